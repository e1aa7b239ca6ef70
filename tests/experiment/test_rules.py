"""Batch sizes in an experiment: numbers, names of rules and their tables; sweeps of them; every fault at once."""

from __future__ import annotations

from typing import Any

import pytest

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.errors import ExperimentError
from replay.experiment.grid import cells
from replay.experiment.loading import Experiment, load_experiment
from replay.scheduler.batch_size import Adaptive, Aimd, Outcome


def load(modes: dict[str, Any], **document: Any) -> Experiment:
    document = {"traces": ["traces/sample.parquet"], "policies": {"fifo": {}}, "modes": modes, **document}
    return load_experiment(document, "x.toml")


def faults(modes: dict[str, Any], **document: Any) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        load(modes, **document)
    return str(caught.value).splitlines()


def rules(experiment: Experiment) -> list[Any]:
    """The batch size of each cell's mode, as the mode has it."""
    return [experiment.make_mode(choice).rule for choice in experiment.modes]


def test_fixed_sizes_names_and_tables_stand_side_by_side_in_a_sweep() -> None:
    experiment = load({"continuous": {"max_running": [8, 32, "adaptive", {"rule": "aimd", "tpot_ms": 40}]}})
    assert rules(experiment) == [8, 32, Adaptive(), Aimd(tpot_ms=40.0)]
    grid = cells(experiment, ["sample"])
    assert [cell.variant for cell in grid] == [f"max_running={name}" for name in ("8", "32", "adaptive", "aimd")]
    assert [cell.name for cell in grid][2:] == [
        "continuous-fifo-max_running=adaptive",
        "continuous-fifo-max_running=aimd",
    ]
    in_force = grid[3].settings()["mode"]["max_running"]
    assert in_force == {
        "rule": "aimd", "tpot_ms": 40.0, "increase": 1, "decrease": 0.5, "smallest": 1, "largest": 64, "steps": 8,
    }  # fmt: skip


def test_each_mode_takes_a_rule_without_a_sweep_and_is_not_varied() -> None:
    table = {"rule": "aimd", "largest": 12}
    experiment = load(
        {
            "static": {"batch_size": "adaptive"},
            "dynamic": {"max_batch_size": table},
            "continuous": {"max_running": table},
        }
    )
    assert rules(experiment) == [Adaptive(), Aimd(largest=12), Aimd(largest=12)]
    assert [experiment.make_mode(choice).slots for choice in experiment.modes] == [64, 12, 12]
    assert [cell.name for cell in cells(experiment, ["s"])] == ["static-fifo", "dynamic-fifo", "continuous-fifo"]


def test_tables_of_one_rule_are_told_apart_by_what_differs() -> None:
    sizes = [{"rule": "aimd", "largest": 32}, {"rule": "aimd", "largest": 32, "tpot_ms": 20}, "adaptive"]
    grid = cells(load({"continuous": {"max_running": sizes, "token_budget": [64, 128]}}), ["sample"])
    assert [cell.variant for cell in grid] == [
        f"max_running={size}, token_budget={budget}"
        for size in ("aimd tpot_ms 50", "aimd tpot_ms 20", "adaptive")
        for budget in (64, 128)
    ]
    assert grid[0].name == "continuous-fifo-max_running=aimd_tpot_ms_50-token_budget=64"


def test_a_list_within_a_table_is_swept() -> None:
    experiment = load({"continuous": {"max_running": {"rule": "aimd", "tpot_ms": [20, 40.5]}}})
    assert rules(experiment) == [Aimd(tpot_ms=20.0), Aimd(tpot_ms=40.5)]
    assert [choice.varied for choice in experiment.modes] == [
        {"max_running": "aimd tpot_ms 20"},
        {"max_running": "aimd tpot_ms 40.5"},
    ]


def test_no_two_cells_share_a_rule() -> None:
    experiment = load({"continuous": {"max_running": "aimd"}})
    first, second = (experiment.make_mode(experiment.modes[0]) for _ in range(2))
    for _ in range(8):
        first.observe(Outcome(0.01, decodes=1, size=1, residents=1, full=True))
    assert first.rule.size(None) == 2
    assert second.rule.size(None) == 1


def test_every_fault_of_a_batch_size_is_told_at_once_with_what_would_be_right() -> None:
    sizes = [
        0,
        8.5,
        "adaptiv",
        "16",
        True,
        {"tpot_ms": 3},
        {"rule": "amd"},
        {"rule": "aimd", "tpot": 3, "decrease": 1.0, "largest": "9", "tpot_ms": 0, "steps": []},
        {"rule": "aimd", "smallest": 9, "largest": 4},
        {"rule": "adaptive", "middle_queue": 100, "kv_use": 1},
        {"rule": "adaptive", "kv_use": 1.5},
        "adaptive",
        {"rule": "adaptive"},
    ]
    either = 'is a whole number, "adaptive" or a table such as { rule = "adaptive" }'
    assert faults({"continuous": {"max_running": sizes, "tokn_budget": 1}}) == [
        f"x.toml: modes.continuous.{fault}"
        for fault in (
            "max_running[0]: input should be greater than or equal to 1, not 0",
            f"max_running[1]: {either}, not 8.5",
            "max_running[2]: there is no batch size 'adaptiv'; did you mean 'adaptive'?",
            "max_running[3]: there is no batch size '16'; known: adaptive, aimd, or a number without quotes",
            f"max_running[4]: {either}, not True",
            "max_running[5].rule: is required; known: adaptive, aimd",
            "max_running[6].rule: there is no batch size 'amd'; did you mean 'aimd'?",
            "max_running[7].steps: an empty list leaves nothing to sweep",
            "max_running[7].tpot_ms: input should be greater than 0, not 0",
            "max_running[7].decrease: input should be less than 1, not 1.0",
            "max_running[7].largest: input should be a valid integer, not '9'",
            "max_running[7].tpot: there is no such setting; did you mean 'tpot_ms'?",
            "max_running[8]: smallest = 9 must not be above largest = 4",
            "max_running[9]: middle_queue = 100 must be below long_queue = 100, or middle_size never comes into force",
            "max_running[10].kv_use: input should be less than or equal to 1, not 1.5",
            "max_running: 'adaptive' stands in the list twice",
            "tokn_budget: there is no such setting; did you mean 'token_budget'?",
        )
    ]


@pytest.mark.parametrize(
    ("size", "fault"),
    [
        ([], "max_running: an empty list leaves nothing to sweep"),
        (-1, "max_running: input should be greater than or equal to 1, not -1"),
        ({"rule": 3}, "max_running.rule: there is no batch size 3; known: adaptive, aimd"),
        ({}, "max_running.rule: is required; known: adaptive, aimd"),
        ([[8]], 'max_running[0]: is a whole number, "adaptive" or a table such as { rule = "adaptive" }, not [8]'),
        ([8, 8], "max_running: 8 stands in the list twice"),
    ],
)
def test_one_fault_of_a_batch_size(size: Any, fault: str) -> None:
    assert faults({"continuous": {"max_running": size}}) == [f"x.toml: modes.continuous.{fault}"]


def test_a_static_batch_that_adapts_must_be_able_to_fill_at_its_largest() -> None:
    static = {"batch_size": ["adaptive", {"rule": "aimd", "largest": 40}]}
    assert faults({"static": static}, engine={"max_waiting": 40}) == [
        "x.toml: modes.static.batch_size: a batch of 64 never fills when only engine.max_waiting = 40 may wait"
    ]
