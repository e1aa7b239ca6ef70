"""The verdict in three sentences: the answer with its interval, what the policy does to whom, and how sure that is."""

from __future__ import annotations

from pathlib import Path

from runs import MODES, cell_entry, request_row, simulated_run, write_manifest, write_tables

from replay.report.findings import find
from replay.report.gist import gist
from replay.results import read_run


def told(folder: Path) -> list[str]:
    return gist(find(read_run(folder)))


def test_a_run_is_told_in_three_sentences_the_first_with_its_interval(tmp_path: Path) -> None:
    modes = {"static": MODES["static"], "continuous": {"max_running": 4, "token_budget": 512}}
    answer, policies, sure = told(simulated_run(tmp_path, policies=("fifo", "priority"), modes=modes, rate=14.0))
    assert answer.startswith("**continuous** serves best here: mean TTFT")
    assert "less; 95 % interval" in answer
    assert policies.startswith("In continuous, ")
    assert "; priority 2 gains most (mean TTFT " in policies
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
