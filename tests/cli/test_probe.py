"""`replay probe` as it is typed, and a run that finds what it kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from command import replay

from replay.ceilings import Ceilings, read_ceilings
from replay.cli import group
from replay.cli.probe import _batch_sizes
from replay.errors import ReplayError
from replay.executors.roofline import Roofline
from replay.executors.torch.probing.batch_sizes import BatchSize, BatchSizes
from replay.executors.torch.probing.decodes import Decoded


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user's folder for caches, nobody else's."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def measured(cache: Path) -> dict[str, Any]:
    """What one probing prints as JSON."""
    options = ["--threads", "1", "--model", "tiny", "--batch-sizes", "4,1,4", "--context", "48", "--json"]
    result = CliRunner().invoke(group, ["probe", *options, "--price-per-hour", "0.36"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout, parse_constant=_refuse)
    return document


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_the_ceilings_are_printed_and_kept_alike(measured: dict[str, Any], cache: Path) -> None:
    own = measured["ceilings"][0]
    assert (own["threads"], own["dtype"]) == (1, "float32")
    assert all(own[figure] > 0 for figure in ("arithmetic", "read", "copy"))
    assert all("median of 5 rounds" in how for how in own["how"].values())
    kept = read_ceilings(cache / "replay" / "ceilings.json")
    assert [(one.dtype, one.arithmetic) for one in kept] == [
        (one["dtype"], one["arithmetic"]) for one in measured["ceilings"]
    ]


def test_the_use_of_each_batch_size_follows_from_its_step_time(measured: dict[str, Any]) -> None:
    model, ceilings = measured["model"], measured["ceilings"][0]
    assert [row["batch_size"] for row in model["batch_sizes"]] == [1, 4]
    # tiny: 6 layers of 2 x 256x256 + 2 x 256x64 + 3 x 256x768, logits of 256x4096; 4 bytes everywhere
    layers, head = 6 * (2 * 256 * 256 + 2 * 256 * 64 + 3 * 256 * 768), 256 * 4096
    for row in model["batch_sizes"]:
        rows, pairs, seconds = row["batch_size"], round(row["batch_size"] * row["context"]), row["seconds"]
        flops = 2 * rows * (layers + head) + 4 * pairs * 6 * 256
        traffic = 4 * (layers + head) + (pairs + rows) * 2 * 6 * 2 * 32 * 4
        assert (row["flops"], row["traffic"]) == (flops, traffic)
        bandwidth = max(ceilings["read"], ceilings["copy"])
        assert row["arithmetic_used"] == pytest.approx(flops / seconds / ceilings["arithmetic"])
        assert row["bandwidth_used"] == pytest.approx(traffic / seconds / bandwidth)
        assert row["tokens_per_second"] == pytest.approx(rows / seconds)
        assert row["cost_per_million_tokens"] == pytest.approx(0.0001 * seconds / rows * 1e6)
        least = {"arithmetic": flops / ceilings["arithmetic"], "memory": traffic / bandwidth}
        assert row["bound"] == max(least, key=lambda name: least[name])
    assert "cost" not in json.dumps(measured["ceilings"])


def test_a_run_finds_what_was_kept_and_tells_how_much_of_it_was_used(
    measured: dict[str, Any], cache: Path, tmp_path: Path
) -> None:
    options = ["--trace", "traces/sample.parquet", "--limit", "3", "--mode", "continuous", "--policy", "fifo"]
    options += ["--set", "engine.threads=1", "--no-plots", "--output", str(tmp_path / "run")]
    result = CliRunner().invoke(group, ["run", *options])
    assert result.exit_code == 0, result.output
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["cells"]
    assert entry["ceilings"]["arithmetic"] == measured["ceilings"][0]["arithmetic"]
    assert entry["work"] == measured["model"]["work"]
    assert entry["device_use"]["memory"] > 0
    # the same from the rows, in a few lines of arithmetic
    steps = pl.read_parquet(tmp_path / "run" / "cells" / entry["cell"] / "steps.parquet")
    layers, head = 6 * (2 * 256 * 256 + 2 * 256 * 64 + 3 * 256 * 768), 256 * 4096
    flops = sum(
        2 * (row["prefill_tokens"] + row["decodes"]) * layers
        + 2 * row["new_tokens"] * head
        + 4 * row["attention_pairs"] * 6 * 256
        for row in steps.iter_rows(named=True)
    )
    (cell,) = json.loads((tmp_path / "run" / "summary.json").read_text())["cells"]
    found = cell["metrics"]["all"]["all"]["mfu_run"]["value"]
    requests = pl.read_parquet(tmp_path / "run" / "cells" / entry["cell"] / "requests.parquet")
    seconds = max(steps["end"].max(), requests["ended"].max()) - requests["due"].min()
    assert found == pytest.approx(flops / seconds / entry["ceilings"]["arithmetic"])
    assert "### Utilisation" in (tmp_path / "run" / "comparison.md").read_text()


def test_where_nothing_can_be_kept_the_figures_are_printed_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    ended = replay("probe", "--threads", "1", "--model", "tiny", "--batch-sizes", "1")
    assert ended.returncode == 1
    assert "best sustained" in ended.stdout
    assert "tiny, decode steps over about 256 tokens each" in ended.stdout
    assert "batch 1: " in ended.stdout
    assert f"replay: {tmp_path / 'file'}" in ended.stderr.splitlines()[-1]
    assert "cannot be written" in ended.stderr.splitlines()[-1]


def refused(*options: str) -> Result:
    result = CliRunner().invoke(group, ["probe", *options])
    assert result.exit_code == 2
    return result


@pytest.mark.parametrize("option", ["--linears=plain", "--batch-sizes=1", "--context=8", "--price-per-hour=1"])
def test_options_of_a_model_need_one(option: str) -> None:
    name = option.partition("=")[0]
    assert f"{name} says how a model is timed: name one with --model" in refused(option).output


@pytest.mark.parametrize("sizes", ["", "0", "1,", "1,-2", "eight", "1.5", "1 8"])
def test_batch_sizes_are_whole_numbers(sizes: str) -> None:
    assert "must be whole numbers from 1 on" in refused("--model", "tiny", "--batch-sizes", sizes).output


@pytest.mark.parametrize("price", ["0", "-1", "inf", "nan"])
def test_a_price_is_more_than_nothing(price: str) -> None:
    assert "must be more than 0" in refused("--model", "tiny", "--price-per-hour", price).output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model", "tinny"], "there is no model 'tinny': it is no named shape and no folder; did you mean 'tiny'?"),
        (["--device", "tpu"], "engine.device = 'tpu' is no device"),
        (["--dtype", "floa32"], "engine.dtype = 'floa32' is no number type: did you mean 'float32'?"),
    ],
)
def test_names_that_are_none_are_told_as_an_engine_tells_them(options: list[str], sentence: str) -> None:
    fault = CliRunner().invoke(group, ["probe", *options]).exception
    assert isinstance(fault, ReplayError)
    assert sentence in str(fault)


def test_help_shows_an_example_and_imports_nothing_heavy() -> None:
    assert "replay probe --model smollm2-135m" in CliRunner().invoke(group, ["probe", "-h"]).output
    script = (
        "import sys, replay.cli.probe as p\n"
        "heavy = {'polars', 'seaborn', 'matplotlib', 'torch', 'numpy', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_more_than_a_ceiling_is_explained() -> None:
    ceilings = Ceilings("A", 1, "float32", 1e12, 1e9, 1e9, {}, "2026-01-02T03:04:05+00:00", {})
    roof = Roofline(flops=10, traffic=10**6, ceilings=ceilings)  # 1 ms of memory
    for seconds, told in ((0.002, False), (0.0005, True)):
        row = BatchSize(Decoded(1, 256.0, 3, seconds), roof, None, None, None)
        timed = BatchSizes("tiny", 256, None, None, {}, [row])
        assert ("More than 100 %" in _batch_sizes(timed)) is told
