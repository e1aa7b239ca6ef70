"""What is told of a trace that was replayed at several loads: from which on policies part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.arms import Values, arms
from replay.metrics.loads import find_partings, loads_of
from replay.report import write_report
from replay.results import Trace, read_run

COUNT = 20


def load_run(
    folder: Path, gains: Mapping[float, float], policies: tuple[str, ...] = ("fifo", "sjf"), *, pays: bool = False
) -> Path:
    """A run in which sjf's first tokens come so many seconds sooner than fifo's at each load; with `pays`, those
    of bob, who has every second request, as much later.
    """
    cells, traces = [], []
    for load, gain in gains.items():
        name = f"sample at {load:g}x"
        traces.append(
            {
                "name": name,
                "rows": COUNT,
                "span_s": 10 / load,
                "origin": "sample",
                "variant": {"load": load},
            }
        )
        for policy in policies:
            rows = []
            for row in range(COUNT):
                due = row / 2 / load
                user = "bob" if pays and row % 2 else "ada"
                first = due + 0.5 - (gain if policy == "sjf" else 0.0) * (-1 if user == "bob" else 1)
                rows.append(request_row(row, arrival=due, admitted=due, token_times=[first, first + 0.1], user=user))
            cell = f"sample_at_{load:g}x-continuous-{policy}"
            write_tables(folder / "cells" / cell, rows, [step_row(0, 0.0, 1.0, admitted=1, waiting=3, bound="slots")])
            cells.append(cell_entry(cell, trace=name, mode="continuous", policy=policy))
    return write_manifest(folder, cells, traces=traces)


def opening(folder: Path) -> str:
    return write_report(folder, plots=False).verdict[0]


def test_policies_part_at_the_first_load_with_a_claimed_difference(tmp_path: Path) -> None:
    folder = load_run(tmp_path, {0.5: 0.0, 1.0: 0.0, 2.0: 0.1, 4.0: 0.2})
    assert opening(folder) == (
        "sample at 4 loads: in continuous, policies part from 2x on (4.00 requests/s): sjf from fifo; "
        "at 0.5x and 1x they cannot be told apart."
    )
    text = (folder / "comparison.md").read_text()
    section = text.split("## Loads: sample")[1].split("## Results")[0]
    assert "- In **continuous**, policies part from 2x on" in section
    assert "| load | regime | told apart | requests/s | waited | fifo | sjf |" in section
    assert "| 1x | slot-bound 100 % of the time | nobody | 2.00 | 0 % | 500 | 500 |" in section
    told = "sjf (TTFT −20 %, E2E −17 %)"  # noqa: RUF001  # true minuses
    assert f"| 2x | slot-bound 100 % of the time | {told} | 4.00 | 0 % | 500 | 400 |" in section


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        ({1.0: 0.0, 4.0: 0.0}, "policies cannot be told apart at any of them, up to 4x: try more."),
        ({1.0: 0.1, 4.0: 0.1}, "from 1x on (2.00 requests/s): sjf from fifo; that is the lowest tried: try less."),
        (
            {1.0: 0.0, 2.0: 0.1, 4.0: 0.0},
            "from 2x on (4.00 requests/s): sjf from fifo (though not at 4x); at 1x they cannot be told apart.",
        ),
    ],
)
def test_what_was_not_found_is_said(tmp_path: Path, gains: dict[float, float], sentence: str) -> None:
    assert opening(load_run(tmp_path, gains)).endswith(sentence)


def test_policies_that_are_alike_on_average_may_still_serve_users_otherwise(tmp_path: Path) -> None:
    assert opening(load_run(tmp_path, {1.0: 0.0, 2.0: 0.1, 4.0: 0.1}, pays=True)) == (
        "sample at 3 loads: in continuous, policies are alike on average at all of them, up to 4x, but who gains and "
        "who pays differs from 2x on."
    )


def test_loads_are_in_order_whatever_the_order_in_which_they_ran(tmp_path: Path) -> None:
    assert "policies part from 2x on" in opening(load_run(tmp_path, {4.0: 0.1, 1.0: 0.0, 2.0: 0.1}))


def test_of_several_loads_the_verdict_tells_the_regime_and_the_report_the_rest(tmp_path: Path) -> None:
    folder = load_run(tmp_path, {1.0: 0.0, 2.0: 0.1})
    said = write_report(folder, plots=False).verdict
    assert "sample at 2x: Regime: continuous is slot-bound (100 % of the time)." in said
    assert not any("Policies in continuous" in sentence for sentence in said)
    text = (folder / "comparison.md").read_text().split("## Results: sample at 2x")[1]
    assert "- **Policies in continuous**, against fifo: **sjf** has a mean TTFT 100 ms shorter" in text


def test_one_policy_has_nobody_to_part_from(tmp_path: Path) -> None:
    folder = load_run(tmp_path, {1.0: 0.0, 2.0: 0.0}, policies=("fifo",))
    said = write_report(folder, plots=False).verdict
    assert not any("part" in sentence for sentence in said)
    assert "## Loads" not in (folder / "comparison.md").read_text()


def test_variants_of_another_kind_keep_their_loads_apart() -> None:
    traces = [
        Trace(f"t{place}", origin="sample", variant={"load": load, **other})
        for place, (load, other) in enumerate([(2.0, {}), (1.0, {}), (1.0, {"without": "b"}), (2.0, {"without": "b"})])
    ]
    found = loads_of([*traces, Trace("alone"), Trace("once", origin="other", variant={"load": 1.0})])
    assert [(one.name, dict(one.traces)) for one in found] == [
        ("sample", {1.0: "t1", 2.0: "t0"}),
        ("sample without b", {1.0: "t2", 2.0: "t3"}),
    ]


def test_partings_from_rows_are_those_of_the_report(tmp_path: Path) -> None:
    run = read_run(load_run(tmp_path, {1.0: 0.0, 2.0: 0.1}))
    measured = measure(run)
    (loads,) = loads_of(run.traces)
    (parting,) = find_partings(loads, arms(run), measured.requests, Values(measured.summary), 0)
    assert (parting.setting, parting.first, dict(parting.apart)) == ("continuous", 2.0, {1.0: [], 2.0: ["sjf"]})


def test_of_many_policies_the_table_of_loads_has_the_few_that_pictures_show(tmp_path: Path) -> None:
    """Nine are fifo under other names."""
    load_run(tmp_path, {1.0: 0.0, 2.0: 0.1}, ("fifo", "sjf", *(f"own{place}" for place in range(9))))
    write_report(tmp_path, plots=False)
    text = (tmp_path / "comparison.md").read_text()
    assert "| load | regime | told apart | requests/s | waited | fifo | sjf |\n" in text
    assert "The tables have 2 of 11 policies: of those that are alike in continuous, one." in text
