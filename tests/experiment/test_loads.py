"""`loads`: each trace at several times its mean rate in one run, each as a trace of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.errors import ExperimentError
from replay.experiment.grid import cells
from replay.experiment.loading import Experiment, load_experiment
from replay.manifest import new_manifest
from replay.runner import open_traces

SAMPLE = "traces/sample.parquet"


def load(**document: Any) -> Experiment:
    return load_experiment({"traces": [SAMPLE], **document}, "x.toml")


def test_each_load_is_a_trace_of_its_own_after_the_transforms() -> None:
    experiment = load(loads=[0.5, 1, 2.25], transforms=[{"limit": 10}])
    plain, *_ = open_traces(load(transforms=[{"limit": 10}]))
    traces = open_traces(experiment)
    assert [trace.name for trace in traces] == ["sample at 0.5x", "sample at 1x", "sample at 2.25x"]
    assert [(trace.origin, trace.variant) for trace in traces] == [
        ("sample", {"load": load}) for load in (0.5, 1.0, 2.25)
    ]
    assert [[change.transform for change in trace.changes] for trace in traces] == [["limit", "rate"]] * 3
    rates = [trace.extent().requests_per_second or 0 for trace in traces]
    mean = plain.extent().requests_per_second or 0
    assert rates == pytest.approx([mean * factor for factor in (0.5, 1, 2.25)])


def test_without_loads_a_trace_is_what_it_was() -> None:
    (trace,) = open_traces(load())
    assert (trace.name, trace.origin, trace.variant, trace.changes) == ("sample", "", {}, [])


def test_the_grid_has_every_cell_at_every_load() -> None:
    experiment = load(loads=[1, 4], modes={"continuous": {}}, policies={"fifo": {}, "sjf": {}})
    traces = open_traces(experiment)
    grid = cells(experiment, [trace.name for trace in traces])
    assert [(cell.name, cell.trace) for cell in grid] == [
        ("sample_at_1x-continuous-fifo", 0),
        ("sample_at_1x-continuous-sjf", 0),
        ("sample_at_4x-continuous-fifo", 1),
        ("sample_at_4x-continuous-sjf", 1),
    ]


def test_the_manifest_says_of_which_trace_and_at_which_load(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    experiment = load(loads=[1, 4])
    traces = open_traces(experiment)
    grid = cells(experiment, [trace.name for trace in traces])
    manifest = new_manifest(experiment, traces, grid, datetime(2026, 1, 2, tzinfo=UTC))
    told = [(entry["name"], entry["origin"], entry["variant"]) for entry in manifest["traces"]]
    assert told == [("sample at 1x", "sample", {"load": 1.0}), ("sample at 4x", "sample", {"load": 4.0})]


@pytest.mark.parametrize(
    ("loads", "sentence"),
    [
        ([1, 2, 1.0], "x.toml: loads: 1.0 stands in the list twice"),
        ([1, 0], "x.toml: loads[1]: input should be greater than 0, not 0"),
        (["2x"], "x.toml: loads[0]: input should be a valid number, not '2x'"),
        (2, "x.toml: loads: input should be a valid array, not 2"),
    ],
)
def test_what_is_no_load_is_refused(loads: object, sentence: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load(loads=loads)
    assert str(caught.value) == sentence
