"""The best of what was swept, and of all: named only where it may be claimed."""

from __future__ import annotations

from pathlib import Path

from runs import cell_entry, request_row, write_manifest, write_tables

from replay.report import write_report

ROWS = 40


def told(folder: Path, good: dict[str, int], ends: dict[str, float] | None = None) -> tuple[str, str]:
    """Cells under fifo, by variant: so many of 40 requests meet the goal, evenly; the last answer ends then."""
    cells = []
    for variant, count in good.items():
        rows = [
            request_row(row, arrival=float(row), token_times=[row + (0.1 if row * count % ROWS < count else 0.9)])
            for row in range(ROWS)
        ]
        if end := (ends or {}).get(variant):
            rows[-1] |= {"ended": end}
        name = f"continuous-fifo-{variant}"
        write_tables(folder / "cells" / name, rows)
        cells.append(cell_entry(name, variant=variant))
    folder = write_manifest(folder, cells, rows=ROWS, goals={"ttft_ms": 500})
    return "\n".join(write_report(folder, plots=False).verdict), (folder / "comparison.md").read_text()


def test_the_best_setting_at_an_end_of_what_was_tried_says_so(tmp_path: Path) -> None:
    verdict, text = told(tmp_path, {"max_running=1": 5, "max_running=4": 20, "max_running=16": 40})
    assert "In continuous mode, under fifo, max_running=16 is best by goodput, the largest tried: try more " in verdict
    assert "(goodput 100 %, and 12.5 % at the worst setting)." in verdict
    assert "| **max_running=16** |" in text
    verdict, _ = told(tmp_path / "less", {"max_running=1": 40, "max_running=4": 20, "max_running=16": 5})
    assert "max_running=1 is best by goodput, the smallest tried: try less (goodput" in verdict
    verdict, _ = told(tmp_path / "middle", {"max_running=1": 5, "max_running=4": 40, "max_running=16": 20})
    assert "max_running=4 is best by goodput (goodput 100 %, and 12.5 % at the worst setting)." in verdict


def test_settings_that_cannot_be_told_apart_share_the_place(tmp_path: Path) -> None:
    verdict, text = told(tmp_path, {"max_running=1": 5, "max_running=4": 39, "max_running=16": 40})
    assert "max_running=16 comes first by goodput, but max_running=4 cannot be told from it." in verdict
    assert "**max_running" not in text.split("### Settings compared")[1].split("###")[0]
    assert (
        "Goodput is highest, 100 %, with fifo in continuous (max_running=16); "
        "fifo in continuous (max_running=4), down to 97.5 %, cannot be told from it; the lowest is 12.5 %." in verdict
    )


def test_equal_goodput_leaves_the_choice_to_throughput(tmp_path: Path) -> None:
    verdict, _ = told(tmp_path, {"max_running=1": 40, "max_running=4": 40}, {"max_running=1": 80.0})
    assert (
        "max_running=4 is best by goodput, then by output tokens/s, the largest tried: try more "
        "(output tokens/s 1.02, and 0.50 at the worst setting)." in verdict
    )
    verdict, _ = told(tmp_path / "same", {"max_running=1": 40, "max_running=4": 40})
    assert "no setting can be told from the best by goodput, then by output tokens/s." in verdict


def test_goals_that_hardly_anybody_meets_order_nothing(tmp_path: Path) -> None:
    verdict, _ = told(tmp_path, {"max_running=1": 3, "max_running=4": 0}, {"max_running=1": 80.0})
    assert (
        "no setting meets the goals: at best 3 of 40 requests; "
        "max_running=4 is best by output tokens/s, the largest tried: try more (output" in verdict
    )
    assert "Hardly any request meets the goals: at best 3 of 40 requests, with fifo in continuous" in verdict
