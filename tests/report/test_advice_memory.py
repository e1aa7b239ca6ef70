"""Advice on memory: a pool that is too small, work that a policy throws away, prefixes that nobody caches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from advised import advice, replayed, rows, trace, tried


def short(folder: Path, blocks: int = 40, policy: str = "fifo", **engine: Any) -> Path:
    """100 requests of 64 and 64 tokens - 8 blocks each when they end - for up to 16 slots."""
    path = trace(folder, [20 * row for row in range(100)], [64], [64])
    modes = {"continuous": {"max_running": 16}}
    return replayed(folder / "run", path, {"kv_blocks": blocks} | engine, modes=modes, policies={policy: {}})


def test_short_memory_is_told_with_evictions_and_what_they_cost(tmp_path: Path) -> None:
    run = short(tmp_path, policy="vllm")
    found = advice(run)["memory_short"]
    steps, requests = rows(run, "steps", "continuous-vllm"), rows(run, "requests", "continuous-vllm")
    seconds = steps["end"] - steps["start"]
    assert found.worst.figure == pytest.approx(seconds.filter(steps["bound"] == "blocks").sum() / seconds.sum())
    evictions, most = requests["evictions"].sum(), requests["evictions"].max()
    assert most >= 3
    assert (
        f"{evictions} evictions of 100 requests, one request was thrown out {most} times, with 40" in found.worst.what
    )
    again = requests["recomputed_tokens"].sum()
    share = 100 * again / (steps["prefill_tokens"] + steps["decodes"]).sum()
    told = f"{again:,} tokens were computed again ({share:.1f} % of all, {0.05 * again:.0f} ms by the cost model)"
    assert told in found.worst.why
    assert found.worst.settings == {"engine.kv_blocks": 128}, "16 requests of 8 blocks"
    assert "`modes.continuous.max_running = 5` is as many as fit" in found.worst.remedy
    later = tried(run, found, tmp_path / "again")
    assert rows(later, "requests", "continuous-vllm")["evictions"].sum() == 0
    assert "memory_short" not in advice(later)


def test_requests_that_wait_for_blocks_are_enough(tmp_path: Path) -> None:
    found = advice(short(tmp_path, policy="orca"))["memory_short"]  # it reserves, and never evicts
    assert "evict" not in found.worst.what
    assert found.worst.what.startswith("blocks refused somebody ")


def test_where_more_requests_in_a_step_are_of_no_use_fewer_slots_are_advised_and_not_more_memory(
    tmp_path: Path,
) -> None:
    # 3.1 ms a request beside 1 ms a step: beyond 0.65 requests twice as many bring less than a fifth more
    cost = {"fixed_ms": 1.0, "prefill_ms": 0.1, "decode_ms": 3.0, "context_ms": 0.0}
    run = short(tmp_path, policy="vllm", cost=cost)
    found = advice(run)["memory_short"]
    assert found.worst.settings == {"modes.continuous.max_running": 5}, "40 blocks hold five of 8"
    assert "more than 1 in a step are of no use" in found.worst.remedy
    later = tried(run, found, tmp_path / "again")
    assert rows(later, "requests", "continuous-vllm")["evictions"].sum() == 0
    both = [rows(each, "requests", "continuous-vllm")["ended"].max() for each in (run, later)]
    assert both[1] < both[0], "nothing is computed twice"  # type: ignore[operator]  # seconds
    assert "memory_short" not in advice(later)


def test_with_memory_to_spare_nothing_is_said_of_it(tmp_path: Path) -> None:
    assert "memory_short" not in advice(short(tmp_path, blocks=1024))


def test_where_a_share_of_the_memory_sizes_the_pool_fewer_slots_are_advised(tmp_path: Path) -> None:
    run = short(tmp_path)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["cells"][0]["settings"]["engine"]["memory_utilization"] = 0.5
    (run / "manifest.json").write_text(json.dumps(manifest))
    found = advice(run)["memory_short"]
    assert found.worst.settings == {"modes.continuous.max_running": 5}


def test_work_that_a_policy_throws_away_is_not_a_lack_of_memory(tmp_path: Path) -> None:
    path = trace(tmp_path, [30 * row for row in range(100)], [50], [50])
    modes = {"continuous": {"max_running": 4}}
    run = replayed(tmp_path / "run", path, policies={"mlfq": {}, "fifo": {}}, modes=modes)
    told = advice(run)
    assert "memory_short" not in told
    found = told["work_thrown_away"]
    assert [arm.policy for arm in found.arms] == ["mlfq"]
    steps, requests = rows(run, "steps", "continuous-mlfq"), rows(run, "requests", "continuous-mlfq")
    again = requests["recomputed_tokens"].sum()
    assert found.worst.figure == pytest.approx(again / (steps["prefill_tokens"] + steps["decodes"]).sum())
    served = {policy: rows(run, "requests", f"continuous-{policy}") for policy in ("fifo", "mlfq")}
    rates = {name: table["generated_tokens"].sum() / table["ended"].max() for name, table in served.items()}
    assert f"fifo serves {rates['fifo']:.0f} output tokens/s here, mlfq {rates['mlfq']:.0f}" in found.worst.why
    assert "work_thrown_away" not in advice(tried(run, found, tmp_path / "again"))


def alike(folder: Path, **engine: Any) -> Path:
    """40 prompts of 64 tokens in four blocks, of which the first three are everybody's."""
    path = folder / "trace.parquet"
    hashes = [[1, 2, 3, 100 + row] for row in range(40)]
    frame = pl.DataFrame({"arrival_ms": [50 * row for row in range(40)], "prefix_hashes": hashes})
    frame = frame.with_columns(prompt_tokens=pl.lit(64), output_tokens=pl.lit(10))
    frame.write_parquet(path, metadata={"block_size": "16", "hash_scope": "global"})
    return replayed(folder / "run", str(path), {"cost": {"fixed_ms": 1.0, "prefill_ms": 0.2}} | engine)


def test_prompts_that_begin_alike_want_a_prefix_cache(tmp_path: Path) -> None:
    run = alike(tmp_path)
    found = advice(run)["prefix_cache_off"]
    shared = 39 * 48 / (40 * 64)
    steps = rows(run, "steps")
    busy = (steps["end"] - steps["launched"]).sum()
    assert found.worst.figure == pytest.approx(39 * 48 * 0.0002 / busy)
    assert found.worst.what.startswith(f"{100 * shared:.1f} % of the prompt tokens of trace stand in an earlier")
    assert found.worst.settings == {"engine.prefix_cache": True}
    later = tried(run, found, tmp_path / "again")
    assert rows(later, "requests")["cached_tokens"].sum() == 39 * 48
    steps = rows(later, "steps")
    assert busy - (steps["end"] - steps["launched"]).sum() == pytest.approx(39 * 48 * 0.0002), "what was foretold"
    assert "prefix_cache_off" not in advice(later)


def test_a_cache_that_was_run_beside_or_prompts_that_cost_nothing_need_no_word(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    assert "prefix_cache_off" not in advice(alike(tmp_path / "beside", prefix_cache=[False, True]))
    (tmp_path / "cheap").mkdir()
    cheap = {"fixed_ms": 20.0, "prefill_ms": 0.001}
    assert "prefix_cache_off" not in advice(alike(tmp_path / "cheap", cost=cheap))
