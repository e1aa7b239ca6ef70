"""Sessions from a Parquet file to the rows, the manifest and the report: closed and open loop, on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from silent import Silent

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.errors import ExperimentError
from replay.experiment.loading import load_experiment
from replay.report import write_report
from replay.run_outcome import Run
from replay.runner import Runner, open_traces
from replay.stopping import Stop

SIMULATED = {
    "kind": "simulated",  # every step takes 10 ms
    "cost": {"fixed_ms": 10.0, "prefill_ms": 0.0, "decode_ms": 0.0, "context_ms": 0.0},
}
TORCH = {"kind": "torch", "model": "tiny", "device": "cpu", "threads": 1}
MODES = {
    "static": {"batch_size": 2},
    "dynamic": {"max_batch_size": 2, "max_wait_ms": 5.0},
    "continuous": {"max_running": 2},
}


def trace(folder: Path, **columns: Any) -> Path:
    """A trace of these columns, its answers of 3 tokens and its prompts of 8 unless told otherwise."""
    metadata = columns.pop("metadata", None)
    rows = len(columns["session"])
    lengths = {"prompt_tokens": [8] * rows, "output_tokens": [3] * rows}
    path = folder / "trace.parquet"
    pl.DataFrame({**lengths, **columns}).write_parquet(path, metadata=metadata)
    return path


def run(path: Path, engine: dict[str, Any], **sections: Any) -> Run:
    """A run, first come, first served, with its report."""
    document = {"traces": [str(path)], "engine": engine, "policies": {"fifo": {}}, "modes": MODES} | sections
    experiment = load_experiment(document, "e.toml")
    done = Runner(experiment, open_traces(experiment), Silent(), Stop()).run(path.parent / "out")
    write_report(done.folder, plots=False)
    return done


def rows(done: Run, mode: str = "continuous") -> pl.DataFrame:
    (entry,) = [entry for entry in done.manifest["cells"] if entry["mode"] == mode]
    assert entry["status"] == "complete", entry["error"]
    return pl.read_parquet(done.folder / "cells" / entry["cell"] / "requests.parquet").sort("row")


def report(done: Run) -> str:
    return (done.folder / "comparison.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", [SIMULATED, TORCH], ids=["simulated", "torch"])
@pytest.mark.parametrize("open_loop", [False, True], ids=["closed", "open"])
def test_every_mode_of_both_engines_keeps_the_loop(tmp_path: Path, engine: dict[str, Any], *, open_loop: bool) -> None:
    # The second turn of s is larger than the whole pool, the others are small.
    path = trace(
        tmp_path,
        arrival_ms=[0, 0, 10, 20, 30],
        session=["s", "t", "s", "t", "s"],
        turn=[0, 0, 1, 1, 2],
        think_time_ms=[None, None, 40.0, 60.5, 1.0],
        prompt_tokens=[8, 8, 999, 8, 8],
    )
    done = run(path, engine | {"kv_blocks": 32}, open_loop=open_loop)
    assert done.manifest["open_loop"] is open_loop
    for mode in MODES:
        found = rows(done, mode)
        assert found["status"].to_list() == ["completed"] * 2 + ["rejected", "completed"] + (
            ["completed"] if open_loop else ["skipped"]
        )
        thought = ((found["finished"][[0, 1]] + pl.Series([0.04, 0.0605])) * 1e9).round()
        moved = [0, 0, 10_000_000, 20_000_000, 30_000_000]
        if not open_loop:
            moved[2:4] = [max(one, two) for one, two in zip(moved[2:4], thought.cast(pl.Int64).to_list(), strict=True)]
        assert (found["due"] * 1e9).round().cast(pl.Int64).to_list() == moved
        if not open_loop:
            assert found["reason"][4] == "turn 1 of its session (row 2) was rejected"
    told = report(done)
    loop, other = ("open", "closed") if open_loop else ("closed", "open")
    assert f"  - sessions: {loop} loop, 2 sessions with 5 requests: " in told
    assert f"sessions: {other} loop" not in told


# Prompts that grow, and how many of their tokens the cache holds: the whole engine blocks within what is shared.
GROWING: dict[str, tuple[int, int, list[int], list[list[int]], list[int]]] = {
    # Whole blocks have hashes. 150 tokens: 2 blocks. Then 300: 4 blocks, of which 2 are known: 128 tokens, 8 engine
    # blocks. Then 310, with all 4 known: 256 tokens. Last, another beginning.
    "64 on 16": (64, 16, [150, 300, 310, 200], [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4], [9, 2, 3]], [0, 128, 256, 0]),
    # A begun block has a hash as well. 600 tokens: 1 whole, 1 begun. Then 1100, whose second block is another one:
    # 512 tokens. Then the same 1100 again: 68 whole engine blocks, 1088 tokens; the other 12 are no whole block.
    "512 on 16, begun": (512, 16, [600, 1100, 1100], [[1, 2], [1, 3, 4], [1, 3, 4]], [0, 512, 1088]),
    # 24 tokens a block. 60: 2 whole, 1 begun. Then 100 with 2 known: 48 tokens, 3 engine blocks. Then 80 with 1 known:
    # 24 tokens, of which 16 are a whole engine block. Then 3 known: 72 tokens, 4 engine blocks.
    "24 on 16": (24, 16, [60, 100, 80, 90], [[1, 2, 3], [1, 2, 4, 5], [1, 6, 7], [1, 2, 4]], [0, 48, 16, 64]),
    # 16 tokens a block, in engine blocks of 24: 3 known are 48 tokens, 2 engine blocks; 1 known is none.
    "16 on 24": (16, 24, [50, 80, 40], [[1, 2, 3], [1, 2, 3, 4], [1, 7]], [0, 48, 0]),
    # A prompt that is found whole computes its last token all the same: of 64, the last block of 16 is computed.
    "whole": (64, 16, [64, 64], [[1], [1]], [0, 48]),
}


ON_TORCH = [("64 on 16", "global", False), ("64 on 16", "session", True), ("24 on 16", "session", False)]
ON_TORCH += [("512 on 16, begun", "global", False)]


@pytest.mark.parametrize(
    ("case", "scope", "open_loop", "engine"),
    [
        *(
            (case, scope, loop, SIMULATED)
            for case in GROWING
            for scope in ("global", "session")
            for loop in (False, True)
        ),
        *((*case, TORCH) for case in ON_TORCH),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else str(value),
)
def test_a_growing_prompt_finds_the_whole_blocks_that_the_trace_says_it_shares(
    tmp_path: Path, case: str, scope: str, engine: dict[str, Any], *, open_loop: bool
) -> None:
    trace_block, engine_block, prompts, hashes, cached = GROWING[case]
    turns = len(prompts)
    path = trace(
        tmp_path,
        metadata={"block_size": str(trace_block), "hash_scope": scope},
        arrival_ms=[0] * turns + [200] * turns,
        session=["s"] * turns + ["t"] * turns,
        turn=[*range(turns)] * 2,
        prompt_tokens=prompts * 2,
        prefix_hashes=hashes * 2,
    )
    settings = {"block_size": engine_block, "kv_blocks": 600, "prefix_cache": True}
    # One slot: all that one turn leaves is there for the next, in an open loop too. The last that is due comes first,
    # so that the first session is over before the other begins, however long it takes.
    order = {"fifo": {}} if open_loop else {"lifo": {}}
    modes = {"continuous": {"max_running": 1}}
    done = run(path, engine | settings, open_loop=open_loop, modes=modes, policies=order)
    found = rows(done)
    assert found["status"].to_list() == ["completed"] * 2 * turns
    assert found["cached_tokens"].to_list()[:turns] == cached
    again = [(prompt - 1) // engine_block * engine_block for prompt in prompts]  # as far as it is hashed
    hashed = [len(known) * trace_block for known in hashes]
    again = [min(whole, known // engine_block * engine_block) for whole, known in zip(again, hashed, strict=True)]
    assert found["cached_tokens"].to_list()[turns:] == (again if scope == "global" else cached)
    told = "they match no later prompt: a later turn finds the prompts of turns before it, and never their answers"
    assert told in report(done)


def test_turns_without_hashes_share_nothing_and_the_report_says_so(tmp_path: Path) -> None:
    path = trace(tmp_path, arrival_ms=[0, 0], session=["s", "s"], prompt_tokens=[64, 128])
    done = run(path, SIMULATED | {"prefix_cache": True}, modes={"continuous": {}})
    assert rows(done)["cached_tokens"].to_list() == [0, 0]
    assert "trace trace says of no prompt of its sessions that it goes on with an earlier one" in report(done)


def test_a_session_goes_on_without_a_turn_that_was_left_out(tmp_path: Path) -> None:
    # The second turn got no answer when the trace was taken: its row is skipped, and the third follows the first.
    path = trace(
        tmp_path,
        arrival_ms=[0, 0, 0],
        session=["s"] * 3,
        turn=[0, 1, 2],
        think_time_ms=[None, 100.0, 200.0],
        output_tokens=[3, 0, 3],
    )
    done = run(path, SIMULATED, modes={"continuous": {}})
    assert rows(done)["due"].to_list() == [0.0, 0.23]
    told = report(done)
    assert "1 skipped (zero output tokens)" in told
    assert "sessions: in 1 of them numbers of turns are left out, as where a row of the trace was skipped" in told


@pytest.mark.parametrize(("transform", "due"), [({"window": ["1s", "9s"]}, [0.0, 1.03]), ({"limit": 2}, [0.0, 1.03])])
def test_a_session_that_is_cut_begins_with_what_is_left_of_it(
    tmp_path: Path, transform: dict[str, Any], due: list[float]
) -> None:
    path = trace(
        tmp_path,
        arrival_s=[0.0, 1.0, 1.5],
        session=["s"] * 3,
        turn=[0, 1, 2],
        think_time_ms=[1000.0] * 3,
    )
    assert rows(run(path, SIMULATED, transforms=[transform], modes={"continuous": {}}))["due"].to_list() == due


def test_time_that_passes_faster_shortens_think_times(tmp_path: Path) -> None:
    path = trace(tmp_path, arrival_s=[0.0, 0.5], session=["s", "s"], think_time_ms=[None, 1000.0])
    done = run(path, SIMULATED, transforms=[{"speed": 2.0}], modes={"continuous": {}})
    assert rows(done)["due"].to_list() == [0.0, 0.53]


def test_the_report_tells_of_whole_sessions(tmp_path: Path) -> None:
    path = trace(tmp_path, arrival_s=[0, 0, 1], session=["s", "s", "t"], prompt_tokens=[8, 8, 9999])
    done = run(path, SIMULATED | {"kv_blocks": 32}, modes={"continuous": {}})
    heads, _, figures = report(done).partition("### Sessions\n\n")[2].split("\n\n")[1].splitlines()
    told = dict(zip(heads.split(" | "), figures.split(" | "), strict=True))
    assert told["sessions completed"] == "50 %"  # t's only turn fits no pool
    assert told["time p50"] == "60.0 ms"  # 3 tokens, then 3 tokens, 10 ms each
    alone = trace(tmp_path, arrival_s=[0, 1], session=pl.Series([None, None], dtype=pl.String))
    (tmp_path / "out").rename(tmp_path / "before")
    assert "ession" not in report(run(alone, SIMULATED)).partition("## Definitions")[0]


def test_why_a_run_is_not_whole_is_told_by_the_turn_that_failed(tmp_path: Path) -> None:
    path = trace(tmp_path, arrival_s=[0] * 4, session=["s"] * 4, prompt_tokens=[9999, 8, 8, 8])
    told = report(run(path, SIMULATED | {"kv_blocks": 32}, modes={"continuous": {}}))
    assert "0 of 4 requests completed (1 rejected, 3 skipped; most often because: 10002 tokens need" in told


def test_an_open_loop_is_true_or_false(tmp_path: Path) -> None:
    path = trace(tmp_path, arrival_s=[0], session=["s"])
    with pytest.raises(ExperimentError, match="open_loop"):
        load_experiment({"traces": [str(path)], "open_loop": "yes"}, "e.toml")
