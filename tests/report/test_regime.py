"""The regime: what steps were bound by, who waited beyond a step, and what the report makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as parquet
import pytest
from runs import cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.contract.simulation import Replayed, request, simulate
from replay.metrics import measure
from replay.metrics.engine import BOUNDS
from replay.metrics.queueing import steps_waited
from replay.records import SCHEMAS
from replay.report import write_report
from replay.report.regime import MEANS, NAMES, words
from replay.results import read_run
from replay.scheduler import Ordered, Request, Step


def waited(left: Replayed, *, padded: bool = False) -> list[int | None]:
    return steps_waited(left.requests.sort("row"), left.steps, padded=padded).to_list()


def kept(folder: Path, left: Replayed, cell: str = "continuous-fifo") -> Path:
    """A simulated replay as a run of one cell."""
    place = folder / "cells" / cell
    place.mkdir(parents=True)
    for table in SCHEMAS:
        rows: pl.DataFrame = getattr(left, table)
        parquet.write_table(rows.to_arrow().cast(SCHEMAS[table]), place / f"{table}.parquet")
    return write_manifest(folder, [cell_entry(cell)], rows=len(left.requests))


def values(folder: Path) -> dict[str, float]:
    summary = measure(read_run(folder)).summary.filter(by="all", statistic="value")
    return dict(summary.select("metric", "value").iter_rows())


def test_steps_are_counted_that_could_have_admitted_who_waited() -> None:
    rows = [request(0), request(1), request(2, arrival=0.035)]
    left = simulate(rows, [3, 1, 1], max_running=1)
    assert left.column("admitted") == [0.0, 0.03, 0.04]
    assert waited(left) == [0, 3, 0], "who came while a step was under way had no earlier one"


def test_in_static_mode_only_steps_that_admit_count() -> None:
    left = simulate([request(row) for row in range(3)], [4, 2, 1], mode="static", batch_size=2)
    assert left.column("admitted") == [0.0, 0.0, 0.04]
    assert waited(left, padded=True) == [0, 0, 1], "the gate was open once, not in each step of the batch"


def test_who_waits_for_a_batch_to_fill_did_not_queue() -> None:
    left = simulate([request(0), request(1, arrival=0.5)], [2, 2], mode="static", batch_size=2)
    assert left.column("admitted") == [0.5, 0.5]
    assert waited(left, padded=True) == [0, 0]


def test_where_steps_overlap_a_wait_is_seen_all_the_same() -> None:
    left = simulate([request(0), request(1)], [2, 1], max_running=1, overlap=True)
    assert left.column("admitted") == [0.0, 0.01], "planned as soon as the first of two steps is over"
    assert waited(left) == [0, 1]


def test_who_is_held_back_while_the_engine_is_idle_waited_too() -> None:
    @dataclass
    class Late(Ordered):
        """Nobody joins before 50 ms."""

        def admit(self, request: Request, step: Step) -> bool:
            return super().admit(request, step) if step.now >= 0.05 else step.withhold()

        def wake(self, now: float) -> float | None:
            return 0.05

    left = simulate([request(0), request(1, arrival=0.055)], [1, 1], policy=Late())
    assert left.column("admitted") == [0.05, 0.06]
    assert waited(left) == [1, 0], "no step was computed, and it waited all the same"


def test_who_gave_up_waited_and_who_was_turned_away_did_not() -> None:
    steps = pl.DataFrame([step_row(step, step / 10, (step + 1) / 10) for step in range(5)])
    rows = [
        request_row(0, status="timed_out", ended=0.25),
        request_row(1, status="rejected", ended=0.0),
        request_row(2, admitted=0.1, submitted=0.1, arrival=0.05),
    ]
    columns = ("status", "admitted", "submitted", "ended")
    table = pl.DataFrame([{name: row[name] for name in columns} for row in rows])
    assert steps_waited(table, steps, padded=False).to_list() == [3, None, 0]


def test_shares_are_of_time_and_of_steps(tmp_path: Path) -> None:
    steps = [
        step_row(0, 0.0, 0.1, bound="slots"),
        step_row(1, 0.1, 0.2, bound="policy"),
        step_row(2, 0.2, 0.8, bound="blocks"),
        step_row(3, 0.8, 1.0),
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, admitted=0.0, token_times=[0.1])], steps)
    found = values(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1))
    assert [found[f"bound_by_{bound}"] for bound in BOUNDS] == pytest.approx([0, 0.1, 0.6, 0, 0.1, 0.2])
    assert [found[f"steps_bound_by_{bound}"] for bound in BOUNDS] == pytest.approx([0, 0.25, 0.25, 0, 0.25, 0.25])
    write_report(tmp_path, plots=False)
    section = (tmp_path / "comparison.md").read_text().split("### The regime")[1].split("###")[0]
    row = "| continuous | fifo | block-bound 60 % of the time, unbound 20 %, slot-bound 10 %, policy-bound 10 % | 0 % |"
    assert f"{row} 10 % (25 %) | 60 % (25 %) | 10 % (25 %) | 20 % (25 %) |" in section
    assert "by gate" not in section, "what bound nobody has no column"
    assert f"- Block-bound: {MEANS['blocks']}." in section
    assert "Slot-bound:" not in section


def test_every_bound_has_its_words() -> None:
    assert set(NAMES) == set(MEANS) == set(BOUNDS)
    assert words({}) == "no steps"
    assert words({"slots": 0.83, "nothing": 0.09, "gate": 0.08}) == "slot-bound 83 % of the time"


def test_a_policy_that_holds_back_is_policy_bound(tmp_path: Path) -> None:
    @dataclass
    class OneAtATime(Ordered):
        """Nobody joins another."""

        def admit(self, request: Request, step: Step) -> bool:
            return super().admit(request, step) if not step.residents else step.withhold()

    left = simulate([request(0), request(1)], [3, 1], policy=OneAtATime(), max_running=8)
    assert left.steps["bound"].to_list() == ["policy"] * 3 + ["nothing"]
    found = values(kept(tmp_path, left))
    assert (found["bound_by_policy"], found["queued"]) == (pytest.approx(0.75), 0.5)


def test_the_verdict_says_the_regime_of_each_mode(tmp_path: Path) -> None:
    said = write_report(simulated_run(tmp_path, policies=("fifo", "sjf"), count=40), plots=False).verdict
    (told,) = [sentence for sentence in said if sentence.startswith("Regime: ")]
    assert told == ("Regime: static and dynamic are gate-bound (67 to 76 % of the time); continuous is unbound (99 %).")
    assert sum("Regime" in sentence for sentence in said) == 1


def test_one_policy_alone_is_told_that_nobody_queued(tmp_path: Path) -> None:
    for cell, late in (("continuous-fifo", 0.0), ("static-fifo", 0.25)):
        rows = [request_row(row, admitted=late, token_times=[0.3]) for row in range(4)]
        steps = [step_row(0, 0.0, 0.2, admitted=1), step_row(1, 0.2, 0.3, admitted=1)]
        write_tables(tmp_path / "cells" / cell, rows, steps)
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("static-fifo")], rows=4)
    said = write_report(folder, plots=False).verdict
    assert (
        "Regime: continuous and static are unbound (100 % of the time). "
        "No queueing in continuous: policies cannot be told apart there."
    ) in said


def test_policies_of_two_regimes_are_told_apart(tmp_path: Path) -> None:
    for policy, bound in (("fifo", "slots"), ("sjf", "blocks")):
        rows = [request_row(row, arrival=row / 10, token_times=[row / 10 + 0.3]) for row in range(4)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, [step_row(0, 0.0, 1.0, bound=bound)])
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=4)
    said = write_report(folder, plots=False).verdict
    assert "Regime: continuous is slot-bound (100 % of the time) under fifo and block-bound (100 %) under sjf." in said


def waiting_run(folder: Path, waiters: int, *, left_waiting: int = 0) -> str:
    """Of 40 requests so many wait beyond a step; of 40 admitting steps so many leave somebody waiting."""
    for policy in ("fifo", "sjf"):
        rows: list[dict[str, Any]] = []
        steps = []
        for row in range(40):
            due = float(row)
            late = 0.1 if row < waiters else 0.0
            rows.append(request_row(row, arrival=due, admitted=due + late, token_times=[due + 0.3]))
            steps.append(step_row(2 * row, due, due + 0.1, admitted=1, waiting=int(row < left_waiting)))
            steps.append(step_row(2 * row + 1, due + 0.1, due + 0.3))
        write_tables(folder / "cells" / f"continuous-{policy}", rows, steps)
    write_manifest(folder, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=40)
    return "\n".join(write_report(folder, plots=False).verdict)


def test_no_queueing_is_said_with_its_rule_below_a_twentieth(tmp_path: Path) -> None:
    told = waiting_run(tmp_path / "one", 1)
    assert (
        "Policies in continuous: no queueing: policies cannot be told apart on this trace: at most 2.5 % of requests "
        "waited beyond the first step that could admit them and 0 % of admitting steps left somebody waiting "
        "(from 5 % on, there is a queue); `loads` finds where they part."
    ) in told
    assert "no queueing" not in waiting_run(tmp_path / "two", 2), "2 of 40 are a twentieth"
    assert "no queueing" not in waiting_run(tmp_path / "left", 0, left_waiting=2)
    text = (tmp_path / "one" / "comparison.md").read_text()
    assert "- continuous: no queueing: policies cannot be told apart on this trace" in text
