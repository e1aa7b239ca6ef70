"""The verdict in three sentences: the answer with its interval, what the policy does to whom, and how sure that is."""

from __future__ import annotations

from pathlib import Path

from runs import MODES, cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.report.findings import find
from replay.report.gist import gist
from replay.results import read_run


def told(folder: Path) -> list[str]:
    return gist(find(read_run(folder)))


def test_a_run_is_told_in_three_sentences_the_first_with_its_interval(tmp_path: Path) -> None:
    modes = {"static": MODES["static"], "continuous": {"max_running": 4, "token_budget": 512}}
    answer, policies, sure = told(simulated_run(tmp_path, policies=("fifo", "priority"), modes=modes, rate=14.0))
    assert answer.startswith("**continuous** serves best here: mean ")
    assert "less; 95 % interval" in answer
    assert policies.startswith("In continuous, ")
    assert ": priority 2 gains most (mean TTFT " in policies
    assert sure.startswith("Simulated: ")


def test_where_nobody_queues_policies_are_not_held_against_each_other(tmp_path: Path) -> None:
    modes = {"continuous": {**MODES["continuous"], "max_running": 64}}
    _, policies, _ = told(simulated_run(tmp_path, policies=("fifo", "sjf"), modes=modes, rate=1.0))
    assert policies.startswith("**Policies in continuous**: ")
    assert "no queueing" in policies.lower() or "nobody" in policies.lower()


def test_a_policy_alone_has_no_sentence_on_policies(tmp_path: Path) -> None:
    answer, sure = told(simulated_run(tmp_path, policies=("fifo",), modes={"continuous": MODES["continuous"]}))
    assert "Nothing was run to compare it with" in answer
    assert sure


def test_where_nothing_completed_it_is_what_went_wrong(tmp_path: Path) -> None:
    row = request_row(0, status="rejected", reason="the queue is full")
    write_tables(tmp_path / "cells" / "continuous-fifo", [row])
    write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1)
    first, *_ = told(tmp_path)
    assert first.startswith("0 of 1 requests completed (1 rejected; most often because: the queue is full)")


def test_a_policy_that_gains_and_loses_is_told_with_both_and_with_who_pays(tmp_path: Path) -> None:
    # sjf: first tokens 0.2 s sooner on average, each token 20 ms later: short answers gain, long ones pay
    for policy, waits, gap in (("fifo", (0.5, 0.5), 0.02), ("sjf", (0.05, 0.55), 0.04)):
        rows = []
        for row in range(80):
            first, count = row + waits[row % 2], (5, 50)[row % 2]
            times = [first + gap * token for token in range(count)]
            rows.append(request_row(row, arrival=float(row), admitted=first - 0.01, token_times=times))
        steps = [step_row(0, 0.0, 0.1, scheduled=1, decodes=1, admitted=1, waiting=3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, steps)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    _, policies, _ = told(write_manifest(tmp_path, cells, rows=80, goals={}))
    assert policies.startswith(
        "In continuous, no policy is better than fifo in everything, on average: "
        "**sjf** has a mean TTFT 200 ms shorter (−40 %; 95 % interval "  # noqa: RUF001  # a true minus
    )
    assert ", but a mean end-to-end time " in policies
    assert policies.endswith(
        "; answers of 1-5 tokens gain most (mean TTFT 450 ms less, −90 %), "  # noqa: RUF001  # a true minus
        "answers of over 27 tokens pay most (50.0 ms more, +10 %); the longest wait is 540 ms instead of 490 ms."
    )


def test_an_overload_stands_in_the_third_sentence(tmp_path: Path) -> None:
    rows = [
        request_row(row, arrival=row / 10, admitted=row / 5, token_times=[row / 5 + 0.1]) for row in range(41)
    ]  # ten a second over four seconds, served at five: the last waits for four
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    *_, sure = told(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=41))
    assert (
        "Overloaded: requests come faster than they are served in **continuous** (the queue drained for 4.00 s" in sure
    )
    assert "**continuous** carries about 0.5 of this load: try `loads = [0.5, 1.0]`." in sure


def test_of_policies_alone_the_second_sentence_is_who_gains_and_who_pays(tmp_path: Path) -> None:
    for policy, waits in (("fifo", (0.5, 0.5)), ("sjf", (0.05, 0.55))):
        rows = [
            request_row(row, arrival=float(row), admitted=row, token_times=[row + waits[row % 2]], user="ab"[row % 2])
            for row in range(80)
        ]
        steps = [step_row(0, 0.0, 0.1, scheduled=1, decodes=1, admitted=1, waiting=3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, steps)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    answer, policies, _ = told(write_manifest(tmp_path, cells, rows=80, goals={}))
    assert answer.startswith("**sjf** serves better than fifo here, on average: mean TTFT 300 ms against 500 ms")
    assert policies == (
        "Under **sjf**, user a gains most (mean TTFT 450 ms less, −90 %), "  # noqa: RUF001  # a true minus
        "user b pays most (50.0 ms more, +10 %)."
    )


def test_where_no_policy_may_be_called_better_the_size_of_what_is_seen_is_told(tmp_path: Path) -> None:
    # one request in 40 waits 18 s less under sjf: 0.45 s on average, and the interval reaches above nothing
    for policy, first in (("fifo", 18.5), ("sjf", 0.5)):
        rows = [
            request_row(row, arrival=float(row), token_times=[row + (first if row == 20 else 0.5)]) for row in range(40)
        ]
        steps = [step_row(0, 0.0, 0.1, scheduled=1, decodes=1, admitted=1, waiting=3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, steps)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    _, policies, _ = told(write_manifest(tmp_path, cells, rows=40, goals={}))
    assert policies.endswith("; **sjf**: −47 % mean TTFT and −47 % mean end-to-end time, not certain.")  # noqa: RUF001  # a true minus
