"""A prefix cache and swap space, from the experiment to the rows, the manifest and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from silent import Silent

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.clock import VirtualClock
from replay.engines import host_blocks
from replay.errors import ExperimentError
from replay.executors.interface import CostModel
from replay.executors.simulated import VOCABULARY, SimulatedExecutor
from replay.experiment.loading import load_experiment
from replay.experiment.settings import Engine
from replay.report import write_report
from replay.request import Request, Workload
from replay.run_outcome import Run
from replay.runner import Runner, open_traces
from replay.stopping import Stop


def run(folder: Path, engine: dict[str, Any], **sections: Any) -> Run:
    """A simulated run, first come, first served: eight requests, 100 ms apart, of 48 tokens; the first 32 are alike."""
    trace = folder / "trace.parquet"
    frame = pl.DataFrame(
        {
            "arrival_ms": [100 * row for row in range(8)],
            "prompt_tokens": [48] * 8,
            "output_tokens": [20] * 8,
            "prompt_token_ids": [[*range(32), *range(100 * row + 100, 100 * row + 116)] for row in range(8)],
        }
    )
    frame.write_parquet(trace)
    document = {"traces": [str(trace)], "engine": {"kind": "simulated"} | engine, "policies": {"fifo": {}}} | sections
    experiment = load_experiment(document, "e.toml")
    return Runner(experiment, open_traces(experiment), Silent(), Stop()).run(folder / "out")


def figures(done: Run, *names: str) -> dict[str, float]:
    """Metrics of the continuous cell."""
    summary = pl.read_parquet(done.folder / "summary.parquet").filter(by="all", mode="continuous")
    return dict(summary.filter(pl.col("metric").is_in(names)).select("metric", "value").rows())


def test_a_prefix_cache_reaches_the_rows_and_the_report(tmp_path: Path) -> None:
    done = run(tmp_path, {"prefix_cache": True}, modes={"continuous": {}, "static": {"batch_size": 2}})
    entries = {entry["mode"]: entry for entry in done.manifest["cells"]}
    assert {mode: entry["prefix_cache"] for mode, entry in entries.items()} == {"continuous": True, "static": False}
    rows = pl.read_parquet(done.folder / "cells" / entries["continuous"]["cell"] / "requests.parquet").sort("row")
    assert rows["cached_tokens"].to_list() == [0] + [32] * 7
    rows = pl.read_parquet(done.folder / "cells" / entries["static"]["cell"] / "requests.parquet")
    assert rows["cached_tokens"].to_list() == [None] * 8
    write_report(done.folder, plots=False)
    told = (done.folder / "comparison.md").read_text()
    assert "- prefix cache: 58.3 % of the prompt tokens were found in it" in told  # 7 * 32 of 8 * 48
    assert "- prefix cache: none in static mode, as a plain `generate` has none" in told
    summary = pl.read_parquet(done.folder / "summary.parquet").filter(by="all", mode="continuous")
    found = dict(
        summary.filter(pl.col("metric").is_in(["cache_hit_rate", "cached_tokens"])).select("metric", "value").rows()
    )
    assert found == {"cache_hit_rate": pytest.approx(224 / 384), "cached_tokens": 224}


def test_swap_space_reaches_the_rows_and_the_report(tmp_path: Path) -> None:
    # Eight blocks for two requests of up to 68 tokens, 5 blocks each: the newest is swapped out.
    engine = {"kv_blocks": 8, "swap_gb": 0.001, "cost": {"fixed_ms": 20.0}}
    done = run(tmp_path, engine, modes={"continuous": {"max_running": 4}})
    (entry,) = done.manifest["cells"]
    assert (entry["blocks"], entry["host_blocks"]) == (8, 43)
    assert done.manifest["engines"][0]["details"]["host_blocks"] == 43
    rows = pl.read_parquet(done.folder / "cells" / entry["cell"] / "requests.parquet")
    steps = pl.read_parquet(done.folder / "cells" / entry["cell"] / "steps.parquet")
    swaps = rows["swaps"].sum()
    assert swaps > 0
    assert swaps == rows["evictions"].sum()
    assert rows["recomputed_tokens"].sum() == 0
    assert steps["swapped_out"].sum() == steps["swapped_in"].sum() > 0
    write_report(done.folder, plots=False)
    summary = pl.read_parquet(done.folder / "summary.parquet").filter(by="all")
    found = dict(
        summary.filter(pl.col("metric").is_in(["swaps", "swapped_blocks", "pace"])).select("metric", "value").rows()
    )
    assert found == {"swaps": swaps, "swapped_blocks": 2 * steps["swapped_out"].sum(), "pace": pytest.approx(1.0)}


@pytest.mark.parametrize(
    ("settings", "blocks"),
    [
        ({}, 0),
        # tiny: 2 * 6 layers * 2 heads * 32 numbers * 2 bytes = 1,536 bytes a token, 24,576 a block of 16
        ({"swap_gb": 1.0}, 2**30 // 24_576),
        ({"swap_gb": 1.0, "dtype": "float32"}, 2**30 // 49_152),
        ({"swap_gb": 1.0, "dtype": "float32", "kv_dtype": "float16"}, 2**30 // 24_576),
        ({"swap_gb": 1.0, "block_size": 32}, 2**30 // 49_152),
        # llama-3.1-8b: 2 * 32 layers * 8 heads * 128 numbers * 2 bytes = 131,072 bytes a token, 2 MiB a block
        ({"swap_gb": 1.0, "model": "llama-3.1-8b"}, 512),
        ({"swap_gb": 0.001, "model": "llama-3.1-8b"}, 0),
    ],
)
def test_how_many_blocks_the_hosts_memory_holds(settings: dict[str, Any], blocks: int) -> None:
    assert host_blocks(Engine(kind="simulated", **settings)) == blocks


def test_a_simulated_engine_swaps_for_named_shapes_only(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"engine.model: 'my/model' is no named shape, and how large a token"):
        run(tmp_path, {"swap_gb": 1.0, "model": "my/model"})


def test_the_model_of_a_simulated_engine_matters_to_its_swap_space_only() -> None:
    assert Engine(kind="simulated", model="tiny").unused() == ["model"]
    assert Engine(kind="simulated", model="tiny", swap_gb=1.0).unused() == []


def test_a_simulated_engine_draws_prompts_where_a_cache_asks_for_them() -> None:
    asked = [Request(row, str(row), 0.0, 4, 1) for row in range(3)]
    workload = Workload(asked, [1] * 3, prompts={0: [5, 2 * VOCABULARY], 1: "some text"})
    assert SimulatedExecutor(CostModel(1.0), VirtualClock()).prepare(workload) == []
    prompts = SimulatedExecutor(CostModel(1.0), VirtualClock(), prompt_seed=3).prepare(workload)
    assert prompts[0].tolist() == [5, 2 * VOCABULARY]
    assert [len(prompt) for prompt in prompts] == [2, 4, 4]
