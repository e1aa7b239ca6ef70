"""What the verdict claims, and what it does not."""

from __future__ import annotations

from pathlib import Path

from runs import MODES, cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.metrics.notation import UNDEFINED, duration, enumerate_words, milliseconds, number, percent, span
from replay.report import write_report


def sentences(folder: Path) -> str:
    return "\n".join(write_report(folder, plots=False).verdict)


def test_modes_and_policies_that_differ_are_told_apart(tmp_path: Path) -> None:
    told = sentences(simulated_run(tmp_path, policies=("fifo", "sjf"), count=60))
    assert "continuous against static (under fifo): mean TTFT 1.63 s shorter (−98 %; 95 % interval" in told  # noqa: RUF001
    assert "times the output tokens/s. The direction" not in told  # under sjf, 60 requests are too few to tell it
    assert "Policies in static, against fifo: sjf has 1.19 times the output tokens/s" in told
    assert "but the longest wait is" in told
    assert "a simulated replay repeats exactly" in told


def test_where_nobody_queues_policies_are_not_told_apart(tmp_path: Path) -> None:
    modes = {"continuous": {"max_running": 64, "token_budget": 2048}}
    told = sentences(simulated_run(tmp_path, policies=("fifo", "sjf", "fair"), modes=modes, count=30))
    assert "Policies in continuous: no queueing: policies cannot be told apart" in told
    assert "sjf" not in told.replace("continuous", "").split("Goodput")[0]


def test_policies_that_do_the_same_show_no_difference(tmp_path: Path) -> None:
    for policy in ("fifo", "sjf"):
        rows = [request_row(row, arrival=row / 10, token_times=[row / 10 + 0.3]) for row in range(20)]
        steps = [step_row(0, 0.0, 1.0, admitted=1, waiting=3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, steps)
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=20)
    told = sentences(folder)
    assert "Policies in continuous, against fifo: no difference seen on average for sjf." in told
    assert "run-to-run noise was not measured" in told
    assert "Goodput is 100 % everywhere." in told


def test_the_best_of_a_swept_setting_is_named(tmp_path: Path) -> None:
    modes = {f"continuous max_running={size}": {"max_running": size, "token_budget": 512} for size in (1, 2, 8)}
    folder = simulated_run(tmp_path, policies=("fifo",), modes=modes, count=100)
    told = sentences(folder)
    assert (
        "In continuous mode, under fifo, max_running=8 is best by goodput, the largest tried: try more (goodput" in told
    )
    text = (folder / "comparison.md").read_text()
    assert "### Settings compared" in text
    assert "| continuous | fifo | **max_running=8** |" in text


def test_repeats_are_the_noise_floor(tmp_path: Path) -> None:
    folder = simulated_run(tmp_path, policies=("fifo", "sjf"), modes={"static": MODES["static"]}, count=40, repeats=2)
    assert "two runs of one cell are not claimed: here their means are alike to the bit." in sentences(folder)
    assert (
        "no larger than ±, the largest difference between two runs of one cell"
        in (folder / "comparison.md").read_text()
    )


def test_numbers_are_written_for_people() -> None:
    numbers = [number(value) for value in (0.1234, 12.345, 123.45, 12345.6)]
    assert numbers == ["0.12", "12.3", "123", "12,346"]
    assert number(None) == UNDEFINED
    assert milliseconds(0.02) == "20.0"
    assert (duration(0.5), duration(2.5), duration(None)) == ("500 ms", "2.50 s", UNDEFINED)
    assert percent(0.5) == "50 %"
    assert span(0.01, 2.0) == "0.01 to 2.00 s"
    assert [enumerate_words(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
