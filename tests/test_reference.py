"""docs/reference: it is what the code gives now, it tells of everything, and what it tells is so."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as parquet
import pytest
from click.testing import CliRunner
from silent import Silent
from test_documents import blocks

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.cli.keys import keys_command
from replay.cli.metrics import metrics_command
from replay.cli.reference import MADE, PAGES, write_pages
from replay.cli.reference.command_line import ENVIRONMENT
from replay.cli.reference.experiment import told
from replay.cli.reference.markdown import own
from replay.cli.reference.metrics import STATISTICS
from replay.errors import ExperimentError
from replay.experiment.keys import Section
from replay.experiment.loading import load_experiment
from replay.manifest import KEYS
from replay.metrics import metrics
from replay.metrics.statistics import distribution
from replay.metrics.summary import COLUMNS, SUMMARY
from replay.records import SCHEMAS
from replay.report import write_report
from replay.run_folder import FILES
from replay.runner import Runner, open_traces
from replay.scheduler import policies
from replay.stopping import Stop
from replay.traces.transforms import parse_transforms, transforms

FOLDER = Path("docs/reference")
SAMPLE = "traces/sample.parquet"


def test_the_pages_are_what_the_code_gives_now(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {file.name for file in FOLDER.iterdir()} == {f"{name}.md" for name in PAGES}
    for name in PAGES:
        made, kept = (folder / f"{name}.md" for folder in (tmp_path, FOLDER))
        assert kept.read_text(encoding="utf-8") == made.read_text(encoding="utf-8"), f"{kept}: `make reference`"
        assert kept.read_text(encoding="utf-8").split("\n\n")[1] == MADE


def test_every_key_says_what_it_means_and_takes_and_every_one_is_told() -> None:
    found = told()
    for section in found:
        assert section.meaning, section.path
        for key in section.keys:
            assert key.meaning, section.full(key)
            assert key.takes, section.full(key)
            assert key.example is not None or key.name in ("modes", "policies"), section.full(key)
    page = (FOLDER / "experiment.md").read_text(encoding="utf-8")
    for section in found:
        for key in section.keys:
            assert key.shared or f"`{key.name}`" in page, section.full(key)
    assert {section.entry for section in found if section.kind == policies.kind} == set(own(policies))


def document(section: Section, given: dict[str, Any]) -> dict[str, Any]:
    """An experiment in which a table's keys are given so."""
    table = dict(given)
    if section.within:
        table["rule"] = section.entry
    if section.path == "lengths" and section.entry:
        table["predictor"] = section.entry
    made: dict[str, Any] = {"traces": [SAMPLE], "modes": {"continuous": {}}, "policies": {"fifo": {}}}
    for part in reversed(section.path.split(".") if section.path else []):
        table = {part: table}
    return made | table


def test_every_key_is_accepted_with_its_default_and_with_its_example() -> None:
    for section in told():
        defaults = {key.name: key.default for key in section.keys if key.default not in (None, ...)}
        examples = {key.name: key.example for key in section.keys if key.example is not None}
        if section.path == "engine":
            del examples["kv_blocks"]  # memory_utilization stands in its place
        for given in (defaults, examples):
            load_experiment(document(section, given), "x.toml")


def test_every_key_is_named_to_who_mistypes_it() -> None:
    for section in told():
        if section.keys:
            wrong = {f"{key.name}_": key.default for key in section.keys if key.default is not ...}
            with pytest.raises(ExperimentError) as refused:
                load_experiment(document(section, wrong), "x.toml")
            for name in wrong:
                assert f"{name}: there is no such setting; did you mean '{name[:-1]}'?" in str(refused.value)


def test_what_an_experiment_takes_is_told_as_it_is_checked() -> None:
    takes = {section.full(key): key.takes for section in told() for key in section.keys}
    assert takes["repeats"] == "a whole number, at least 1"
    assert takes["engine.memory_utilization"] == "a number, above 0 and at most 1"
    assert takes["loads"] == "a list of numbers, each above 0"
    assert takes["modes.continuous.prefill"] == '"chunked" or "whole"'
    assert takes["policies.vtc.weights"] == "a table of numbers, each above 0"
    assert takes["modes.static.batch_size"].startswith('a whole number (at least 1), "adaptive", "aimd" or a table')
    for path, low in {"repeats": 0, "engine.block_size": 0, "modes.continuous.token_budget": 0}.items():
        *tables, name = path.split(".")
        table: dict[str, Any] = {name: low}
        for part in reversed(tables):
            table = {part: table}
        with pytest.raises(ExperimentError, match="greater than or equal to 1"):
            load_experiment({"traces": [SAMPLE], **table}, "x.toml")


def test_bins_of_lengths_must_rise() -> None:
    for bins, sentence in {
        (128, 32): "each bin must end later",
        (32, 32): "each bin must",
        (0,): "greater than",
    }.items():
        with pytest.raises(ExperimentError, match=rf"x.toml: length_bins.*{sentence}"):
            load_experiment({"traces": [SAMPLE], "length_bins": list(bins)}, "x.toml")


def test_the_forms_of_transforms_are_right() -> None:
    page = (FOLDER / "experiment.md").read_text(encoding="utf-8").partition("## Transforms")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| \w.* \| (.*) \|$", page, re.MULTILINE))
    assert list(rows) == list(own(transforms))
    for name, forms in rows.items():
        for form in re.findall(r"`([^`]+)`", forms):
            (entry,) = tomllib.loads(f"transforms = [{form}]")["transforms"]
            assert [declared.name for declared in parse_transforms([entry])] == [name]


def test_every_metric_has_a_definition_and_a_unit_and_its_statistics_are_told() -> None:
    page = (FOLDER / "metrics.md").read_text(encoding="utf-8")
    for name in metrics:
        if not metrics[name].module.startswith("replay."):
            continue  # another test's own
        assert metrics[name].formula, name
        assert f"| `{name}` | {metrics[name].formula.replace('|', chr(92) + '|')} | {metrics[name].unit} |" in page
    assert list(STATISTICS) == [*distribution(pl.col("x")), "value", "count"]


def test_a_run_leaves_what_the_reference_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"traces": [SAMPLE], "engine": {"kind": "simulated"}, "policies": {"fifo": {}}, "modes": {"static": {}}}
    experiment = load_experiment(document, "x.toml")
    run = Runner(experiment, open_traces(experiment), Silent(), Stop()).run(tmp_path / "outputs" / "RUN")
    write_report(run.folder, plots=False)
    found = {
        str(file.relative_to(run.folder)).replace("static-fifo", "CELL")
        for file in run.folder.rglob("*")
        if file.is_file()
    }
    assert found == {name for name in FILES if not name.startswith("plots/")}
    manifest = json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest) == set(KEYS[""])
    for table, keys in KEYS.items():
        if table:
            assert set(manifest[table.removesuffix("[]")][0]) == set(keys), table
    assert list(COLUMNS) == list(pl.read_parquet_schema(run.folder / "summary.parquet")) == list(SUMMARY)
    for name, schema in SCHEMAS.items():
        kept = parquet.read_schema(run.folder / "cells" / "static-fifo" / f"{name}.parquet")
        assert [field.metadata for field in kept] == [field.metadata for field in schema]
        assert all(field.metadata[b"meaning"] for field in schema)
    (shown,) = blocks("docs/reference/runs.md", "python")
    monkeypatch.chdir(tmp_path)
    exec(shown, {})


def test_every_variable_of_the_environment_that_is_read_is_told() -> None:
    read = re.compile(r"""environ(?:\.get\(|\[)"(\w+)"(?!\]\s*=[^=])|"(\w+)" (?:not )?in os\.environ""")
    found = {
        name
        for file in Path("replay").rglob("*.py")
        for names in read.findall(file.read_text(encoding="utf-8"))
        for name in names
        if name
    }
    assert found == set(ENVIRONMENT)


def listed(command: Any, *arguments: str) -> str:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.exception
    return result.output


def test_the_keys_are_listed_all_or_by_table_key_or_taker() -> None:
    everything = listed(keys_command)
    assert 'name = (unset)  # what the run is called; unset: as the file; text, such as "busy-quarter"\n' in everything
    assert "traces = (must be given)  # " in everything
    assert "policies.hybrid.band_s = 30.0  # seconds of waiting that one level is worth; a number" in everything
    assert everything.count(".admission = ") == 1, "what many policies share is told once"
    assert listed(keys_command, "engine.kv_blocks") == listed(keys_command, "kv_blocks")
    assert listed(keys_command, "kv_blocks").splitlines()[1:] == [
        "engine.kv_blocks = 1024  # blocks of the KV pool; a whole number, at least 1"
    ]
    assert [line.partition(" ")[0] for line in listed(keys_command, "aimd").splitlines()[1:]] == [
        f"aimd.{name}" for name in ("tpot_ms", "increase", "decrease", "smallest", "largest", "steps")
    ]
    assert "engine.cost.swap_ms = 0.1" in listed(keys_command, "engine")
    result = CliRunner().invoke(keys_command, ["kvblocks"])
    assert str(result.exception) == "there is no key 'kvblocks': did you mean 'kv_blocks'?"


def test_the_metrics_are_listed_with_their_definitions_and_one_is_told_in_full() -> None:
    everything = listed(metrics_command)
    for name in metrics:
        assert re.search(rf"^  {name} +\[", everything, re.MULTILINE), name
    told = listed(metrics_command, "ttft")
    assert told.startswith("ttft: first token - due; null if there was none\n")
    assert "Unit: s; lower is better.\n" in told
    assert "Filed as: n, mean, min, p50, p90, p95, p99, p99.9, max.\n" in told
    assert "by user, priority, class and output length" in told
    assert "Filed as: count.\n" in listed(metrics_command, "completed")
    result = CliRunner().invoke(metrics_command, ["tfft"])
    assert str(result.exception) == "there is no metric 'tfft': did you mean 'ttft'?"
