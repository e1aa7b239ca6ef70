"""One rule for all sentences: what is claimed, what is told of what is not, and what failed and invalid cells do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from runs import MODES, cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.report import write_report

COST = {"fixed": 0.0, "prefill": 0.0, "decode": 0.1, "context": 0.0}


def told(
    folder: Path, latencies: dict[str, list[float]], pace: dict[str, float] | None = None, **entries: dict[str, Any]
) -> tuple[str, str]:
    """The verdict and comparison.md of continuous cells whose requests, a second apart, have these TTFTs in turn."""
    cells = []
    for policy, values in latencies.items():
        rows = [
            request_row(row, arrival=float(row), token_times=[row + values[row % len(values)]]) for row in range(40)
        ]
        seconds = 0.1 * (pace or {}).get(policy, 1.0)
        steps = [step_row(0, 0.0, seconds, scheduled=1, decodes=1, admitted=1, waiting=3)]
        write_tables(folder / "cells" / f"continuous-{policy}", rows, steps)
        cost = COST if pace else None
        cells.append(cell_entry(f"continuous-{policy}", cost=cost, **entries.get(policy, {})))
    sentences = write_report(write_manifest(folder, cells, rows=40, goals={}), plots=False).verdict
    return "\n".join(sentences), (folder / "comparison.md").read_text()


def test_a_large_difference_that_is_not_certain_has_its_size_told(tmp_path: Path) -> None:
    # one request in 40 waits 20 s longer: 0.5 s on average, and the interval reaches below nothing
    slow = [0.5] * 20 + [20.5] + [0.5] * 19
    verdict, text = told(tmp_path, {"fifo": [0.5], "sjf": slow})
    assert (
        "Policies in continuous, against fifo: no difference seen on average for sjf; "
        "sjf: +100 % mean TTFT and +100 % mean end-to-end time, not certain." in verdict
    )
    assert re.search(r"\| 500 \[−[\d,]+ to [\d,]+\] \(not certain\) \|", text)  # noqa: RUF001  # a true minus
    assert "No policy can be said to be better than fifo here, on average." in verdict


def test_a_small_difference_that_is_not_certain_stays_in_the_tables(tmp_path: Path) -> None:
    verdict, text = told(tmp_path, {"fifo": [0.5], "sjf": [0.5] * 20 + [1.0] + [0.5] * 19})
    assert "against fifo: no difference seen on average for sjf." in verdict  # 12.5 ms of 500 ms
    assert "12.5 [−" in text  # noqa: RUF001  # a true minus


def test_what_an_unequal_pace_may_have_made_is_said_to_be_so(tmp_path: Path) -> None:
    verdict, text = told(tmp_path, {"fifo": [0.5], "sjf": [0.6]}, pace={"fifo": 1.0, "sjf": 1.1})
    assert "on average nothing can be claimed of sjf (unequal pace)" in verdict
    assert "sjf: +20 % mean TTFT and +20 % mean end-to-end time, unequal pace." in verdict
    assert "| 100 [100 to 100] (unequal pace) |" in text
    assert "Who gains" not in verdict


def test_an_unequal_pace_that_touches_one_figure_names_it(tmp_path: Path) -> None:
    for policy, gap, seconds in (("fifo", 0.1, 0.1), ("sjf", 0.105, 0.11)):
        rows = [
            request_row(row, arrival=float(row), token_times=[row + 0.4, row + 0.4 + gap], finished=row + 0.6)
            for row in range(40)
        ]
        steps = [step_row(0, 0.0, seconds, scheduled=1, decodes=1, admitted=1, waiting=3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, steps)
    cells = [cell_entry(f"continuous-{policy}", cost=COST) for policy in ("fifo", "sjf")]
    verdict = "\n".join(write_report(write_manifest(tmp_path, cells, rows=40), plots=False).verdict)
    assert "on average nothing can be claimed of sjf (unequal pace in mean time per token)." in verdict


def test_a_policy_that_is_worse_in_every_part_has_no_but(tmp_path: Path) -> None:
    folder = simulated_run(tmp_path, policies=("fifo", "sjf"), modes={"static": MODES["static"]}, count=60)
    sentences = "\n".join(write_report(folder, plots=False).verdict)
    assert "sjf has 1.19 times the output tokens/s, but the longest wait is" in sentences  # more, and a longer wait
    # the other way round, all is worse: see the wait of the last request
    for policy, wait in (("fifo", 0.1), ("sjf", 0.2)):
        rows = [
            request_row(row, arrival=float(row), admitted=row + wait, token_times=[row + 2 * wait]) for row in range(40)
        ]
        steps = [step_row(0, 0.0, 0.1, admitted=1, waiting=3)]
        write_tables(tmp_path / "worse" / "cells" / f"continuous-{policy}", rows, steps)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    worse = "\n".join(write_report(write_manifest(tmp_path / "worse", cells, rows=40), plots=False).verdict)
    assert "(+100 %; 95 % interval 200 to 200 ms), and the longest wait is 200 ms instead of 100 ms." in worse
    assert "fifo serves best here, on average, of the policies in continuous." in worse


def test_throughput_is_part_of_what_is_said_of_a_policy(tmp_path: Path) -> None:
    # one late answer: nothing certain on average, and 79 s for the same tokens instead of 39.5
    verdict, _ = told(tmp_path, {"fifo": [0.5], "sjf": [0.5] * 39 + [40.0]})
    assert "sjf has 0.50 times the output tokens/s" in verdict
    assert "no difference seen on average for sjf" not in verdict


def test_failed_cells_are_left_out_of_every_comparison(tmp_path: Path) -> None:
    verdict, text = told(
        tmp_path, {"fifo": [0.5], "sjf": [0.1], "fair": [0.2]}, sjf={"status": "failed", "error": "out of memory"}
    )
    assert "Cell continuous-sjf failed: out of memory." in verdict
    assert "This report is partial: 2 of 3 cells ran to the end." in verdict
    assert "sjf did not run to its end: it is left out of the comparisons in continuous." in verdict
    better = "fair serves better than fifo here, on average: mean TTFT 200 ms against 500 ms under fifo"
    assert f"{better} (300 ms less; 95 % interval" in verdict
    assert "sjf −" not in text  # noqa: RUF001  # a true minus
    assert "| continuous | sjf (partial) | 100 |" in text  # in the tables, and not in bold


def test_invalid_cells_are_marked_wherever_they_are_named(tmp_path: Path) -> None:
    entry = {"valid": False, "invalid_reason": "lag p99 is 9 ms"}
    verdict, text = told(tmp_path, {"fifo": [0.5], "sjf": [0.1], "fair": [0.4]}, sjf=entry)
    assert "sjf (invalid) has a mean TTFT 400 ms shorter" in verdict
    assert "fair serves better than fifo here, on average: mean TTFT 400 ms" in verdict  # of the valid, the best
    assert "| continuous | sjf (invalid) | 100 |" in text
    assert "| continuous | fair | **400** |" in text
    assert "sjf (invalid) − fifo" in text  # noqa: RUF001  # a true minus


def test_an_invalid_base_is_marked_too(tmp_path: Path) -> None:
    verdict, text = told(tmp_path, {"fifo": [0.5], "sjf": [0.1]}, fifo={"valid": False})
    assert "Policies in continuous, against fifo (invalid): sjf has" in verdict
    assert "sjf − fifo (invalid)" in text  # noqa: RUF001  # a true minus
    assert verdict.startswith("No two valid cells can be compared here: policies are held against fifo (invalid).")


def test_of_several_invalid_cells_the_reason_is_told_of_the_one_that_it_is_of(tmp_path: Path) -> None:
    late = [{"valid": False, "invalid_reason": f"lag p99 is {lag} ms, over the limit of 5 ms"} for lag in (12, 90)]
    verdict, _ = told(tmp_path, {"fifo": [0.5], "sjf": [0.1]}, fifo=late[0], sjf=late[1])
    assert "continuous-fifo and continuous-sjf are invalid (continuous-fifo: lag p99 is 12 ms" in verdict


def test_why_a_difference_is_not_claimed_is_in_the_json(tmp_path: Path) -> None:
    told(tmp_path, {"fifo": [0.5], "sjf": [0.5] * 20 + [20.5] + [0.5] * 19})
    comparisons = json.loads((tmp_path / "summary.json").read_text())["comparisons"]
    (one,) = [one for one in comparisons if one["metric"] == "ttft" and one["table"] == "policies"]
    assert one["doubt"] == "not certain"
    assert (one["comparisons"], one["by_user"]) == (3, None)
    assert one["interval"][0] <= one["uncorrected"][0] < 0 < one["uncorrected"][1] <= one["interval"][1]
    assert (one["wins"]["better"], one["wins"]["worse"], one["wins"]["alike"]) == (0.0, 0.025, 0.975)
