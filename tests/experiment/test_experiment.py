"""The experiment file: every fault at once, by path and with the nearest name; sweeps; the grid of cells."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.cli.init import TEMPLATE
from replay.errors import ExperimentError
from replay.executors.torch.sampling import CANDIDATES
from replay.experiment.document import merged, parse_setting, paths_of, read_document
from replay.experiment.grid import cells, folder_name
from replay.experiment.loading import load_experiment
from replay.experiment.options import options_model, options_of
from replay.registry import nearest
from replay.scheduler import policies

SAMPLE = "traces/sample.parquet"


def load(**document: Any) -> Any:
    return load_experiment({"traces": [SAMPLE], **document}, "x.toml")


def faults(**document: Any) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        load(**document)
    return str(caught.value).splitlines()


def test_only_traces_is_required_and_the_defaults_are_the_articles() -> None:
    experiment = load()
    assert [choice.name for choice in experiment.modes] == ["static", "dynamic", "continuous"]
    assert [choice.name for choice in experiment.policies] == ["fifo", "sjf", "priority", "fair", "hybrid"]
    assert experiment.predictor.name == "oracle"
    assert experiment.make_policy(experiment.policies[4]).band_s == 30.0
    assert len(cells(experiment, ["sample"])) == 15


def test_every_fault_is_reported_at_once_by_path_and_nearest_name() -> None:
    found = faults(
        repeets=3,
        seed="7",
        engine={"kv_blcks": 12, "model": 3, "cost": {"fixed": 1.0}},
        modes={"continous": {}, "static": {"batch_size": 0}, "dynamic": {"max_wait_ms": []}},
        policies={"fcfs2": {}, "sjf": {"aging": 1.0}, "hybrid": {"band_s": "30"}},
        lengths={"predictor": "orcale"},
        goals={"ttft_ms": -5.0},
        transforms=[{"sped": 2.0}, {"limit": 5}],
    )
    assert found == [
        "x.toml: seed: input should be a valid integer, not '7'",
        "x.toml: repeets: there is no such setting; did you mean 'repeats'?",
        "x.toml: engine.model: input should be a valid string, not 3",
        "x.toml: engine.cost.fixed: there is no such setting; did you mean 'fixed_ms'?",
        "x.toml: engine.kv_blcks: there is no such setting; did you mean 'kv_blocks'?",
        "x.toml: modes.continous: there is no mode of this name; did you mean 'continuous'?",
        "x.toml: modes.static.batch_size: input should be greater than or equal to 1, not 0",
        "x.toml: modes.dynamic.max_wait_ms: an empty list leaves nothing to sweep",
        f"x.toml: policies.fcfs2: there is no policy of this name; {nearest('fcfs2', policies)}",
        "x.toml: policies.sjf.aging: there is no such setting; did you mean 'ageing'?",
        "x.toml: policies.hybrid.band_s: input should be a valid number, not '30'",
        "x.toml: lengths.predictor: there is no length predictor 'orcale'; did you mean 'oracle'?",
        "x.toml: goals.ttft_ms: input should be greater than 0, not -5.0",
        "x.toml: transforms[0]: there is no transform 'sped': did you mean 'speed'?",
    ]


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"policies": "some"}, "x.toml: policies: is a table of policy names, or \"all\", not 'some'"),
        ({"modes": {}}, "x.toml: modes: is empty; known: continuous, dynamic, static, or leave the section out"),
        ({"modes": {"static": 8}}, "x.toml: modes.static: is a table of settings, such as {}, not 8"),
        ({"engine": {"kind": "torch2"}}, "x.toml: engine.kind: input should be 'torch' or 'simulated', not 'torch2'"),
        ({"traces": ["no.parquet"]}, "x.toml: traces[0]: 'no.parquet' does not exist (looked for no.parquet)"),
        (
            {"engine": {"max_waiting": 4}, "modes": {"static": {"batch_size": [2, 8]}}},
            "x.toml: modes.static.batch_size: a batch of 8 never fills when only engine.max_waiting = 4 may wait",
        ),
        (
            {"modes": {"continuous": {"max_running": [8, "x"], "prefil": "whole"}}},
            "x.toml: modes.continuous.prefil: there is no such setting; did you mean 'prefill'?",
        ),
        (
            {"lengths": {"predictor": "user_mean", "last": 0}},
            "x.toml: lengths.last: input should be greater than or equal to 1, not 0",
        ),
        (
            {"modes": {"continuous": {"max_running": [4, 8, 4]}}},
            "x.toml: modes.continuous.max_running: 4 stands in the list twice",
        ),
        (
            {"engine": {"model": "tinny"}},
            "x.toml: engine.model: 'tinny' is no named shape and no folder; did you mean 'tiny'?",
        ),
        ({"seed": float("nan")}, "x.toml: seed: input should be a valid integer, not nan"),
        (
            {"engine": {"device": "gpu"}},
            "x.toml: engine.device: 'gpu' is no device: write 'auto', 'cpu', 'cuda' or 'cuda:N'",
        ),
        (
            {"engine": {"stop": ["length", "eos"]}},
            "x.toml: engine.stop: \"eos\" needs a model with an end token, and 'tiny' is a named shape, which has "
            'none; name a folder with real weights, or leave it at "length"',
        ),
        (
            {"engine": {"temperature": 1.0, "top_k": CANDIDATES + 1}},
            f"x.toml: engine.top_k: input should be less than or equal to {CANDIDATES}, not {CANDIDATES + 1}",
        ),
    ],
)
def test_a_fault_says_what_would_be_right(document: dict[str, Any], sentence: str) -> None:
    assert sentence in faults(**document)


def test_a_fault_beside_a_sweep_is_said_once() -> None:
    found = faults(modes={"continuous": {"max_running": [1, 2, 3], "prefil": "whole"}})
    assert len(found) == 1


def test_a_list_is_swept_and_the_cells_say_what_varies() -> None:
    experiment = load(
        repeats=2,
        engine={"kv_blocks": [64, 128]},
        modes={"continuous": {"max_running": [1, 8]}},
        policies={"sjf": {"ageing": [0.0, 2.5]}},
    )
    grid = cells(experiment, ["sample"])
    assert len(grid) == 2 * 2 * 2 * 2
    assert grid[0].name == "continuous-sjf-kv_blocks=64-max_running=1-ageing=0.0-r1"
    assert grid[0].variant == "kv_blocks=64, max_running=1, ageing=0.0"
    flags = cells(load(engine={"prefix_cache": [False, True]}, policies={"fifo": {}}), ["sample"])
    assert flags[-1].name == "continuous-fifo-prefix_cache=true", "as TOML has it"
    assert [cell.repeat for cell in grid] == [0] * 8 + [1] * 8, "repeats are outermost"
    assert len({cell.name for cell in grid}) == 16


def test_names_cannot_leave_the_folder() -> None:
    for label in ("../../etc/passwd", "a/b", "..", ".hidden", "", "x" * 500, "naïve ☃ name"):
        name = folder_name(label)
        assert Path(name).name == name
        assert not name.startswith(".")
        assert 0 < len(name) <= 120


def test_cells_of_traces_with_one_name_get_two_folders() -> None:
    experiment = load(traces=[SAMPLE, SAMPLE], modes={"static": {}}, policies={"fifo": {}})
    assert [cell.name for cell in cells(experiment, ["a", "a"])] == ["a-static-fifo", "a-static-fifo-2"]


def test_settings_that_the_engine_does_not_use_are_said() -> None:
    experiment = load(engine={"kind": "simulated", "model": "tiny", "threads": 1})
    assert experiment.warnings == [
        "engine.model is not used by a simulated engine",
        "engine.threads is not used by a simulated engine",
    ]


@pytest.mark.parametrize(
    ("engine", "warned"),
    [
        ({"top_k": 40}, ["engine.top_k is not used at engine.temperature = 0, which takes the likeliest"]),
        ({"top_k": 40, "temperature": [0.0, 0.7]}, []),
        (
            {"stop": "eos", "overlap": True, "model": "docs"},
            ['engine.overlap is not used with engine.stop = "eos": nobody knows beforehand who goes on'],
        ),
        ({"prefix_cache": True}, ["engine.prefix_cache is not used in static and dynamic mode, only in continuous"]),
        ({"swap_gb": [0.0, 1.0]}, ["engine.swap_gb is not used in static and dynamic mode, only in continuous"]),
    ],
)
def test_settings_that_others_make_useless_are_said(engine: dict[str, Any], warned: list[str]) -> None:
    assert load(engine=engine, modes={"static": {}, "dynamic": {}}).warnings == warned
    within = [sentence for sentence in warned if "in continuous" not in sentence]
    assert load(engine=engine).warnings == within


def test_settings_on_the_command_line_are_toml_and_text_needs_no_quotes() -> None:
    assert parse_setting("engine.kv_blocks=4096") == {"engine": {"kv_blocks": 4096}}
    assert parse_setting("modes.continuous.max_running = [1, 8]") == {"modes": {"continuous": {"max_running": [1, 8]}}}
    assert parse_setting("engine.model=org/name") == {"engine": {"model": "org/name"}}
    for wrong in ("kv_blocks", "=3", "a b=3"):
        with pytest.raises(ExperimentError, match="--set"):
            parse_setting(wrong)
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}, "d": 4}) == {"a": {"b": 3, "c": 2}, "d": 4}


def test_a_fault_names_the_option_that_it_came_by() -> None:
    addition = parse_setting("engine.kv_block=3")
    with pytest.raises(ExperimentError) as caught:
        load_experiment(
            {"traces": [SAMPLE], "sed": 1, **addition}, "x.toml", None, dict.fromkeys(paths_of(addition), "--set")
        )
    assert str(caught.value).splitlines() == [
        "x.toml: sed: there is no such setting; did you mean 'seed'?",
        "--set: engine.kv_block: there is no such setting; did you mean 'kv_blocks'?",
    ]


def test_a_simulated_run_need_not_be_repeated() -> None:
    experiment = load(repeats=3, engine={"kind": "simulated"})
    assert experiment.warnings == ["a simulated replay repeats exactly: repeats = 3 gives the same 3 times"]


def test_an_option_may_be_made_afresh_or_be_required() -> None:
    @dataclass
    class Thing:
        several: tuple[int, ...] = field(default_factory=tuple)
        needed: int = field(kw_only=True)

    assert [(option.name, option.default) for option in options_of(Thing)] == [("several", ()), ("needed", ...)]
    assert options_model(Thing).model_validate_json('{"needed": 3}').model_dump() == {"several": (), "needed": 3}


def test_a_file_that_is_no_toml_is_refused_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("seed = 1\ntraces = [x]\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"x\.toml: is not TOML: .*line 2"):
        read_document(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ExperimentError, match="is not UTF-8"):
        read_document(file)
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_document(tmp_path / "nothing.toml")


def test_the_template_and_the_demo_are_experiments() -> None:
    for document in (tomllib.loads(TEMPLATE), read_document(Path("docs/demo.toml"))):
        experiment = load_experiment(document, "x.toml")
        assert len(cells(experiment, ["sample"])) == 15
        assert not experiment.warnings


def test_what_the_template_leaves_to_be_uncommented_is_right() -> None:
    section = TEMPLATE.partition("[engine]")[2].partition("[modes]")[0]
    lines = re.findall(r"^# (\w+ += .*)$", section, flags=re.MULTILINE)
    engine = tomllib.loads("\n".join(lines))
    assert {"prefix_cache", "swap_gb", "linears", "stop", "price_per_hour"} <= engine.keys()
    for name, value in engine.items():
        other = {"cost": {"kind": "simulated"}, "stop": {"model": "docs"}}.get(name, {})  # a folder will do
        assert not load(engine={name: value, **other}).warnings
