"""Advice on what steps are made of: prompts that stall answers, padding, limits that nothing reaches."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from advised import advice, replayed, rows, trace, tried


def long_prompts(folder: Path, prefill: str = "chunked", longest: int = 1500, **sections: Any) -> Path:
    """80 requests, ten a second; every other prompt has 1,500 tokens, 75 ms of a step."""
    path = trace(folder, [100 * row for row in range(80)], [20, longest], [60])
    modes = {"continuous": {"max_running": 16, "prefill": prefill}}
    return replayed(folder / "run", path, **{"modes": modes, "goals": {"tpot_ms": 30}} | sections)


@pytest.mark.parametrize("prefill", ["chunked", "whole"])
def test_prompts_that_stall_answers_want_a_smaller_budget(tmp_path: Path, prefill: str) -> None:
    run = long_prompts(tmp_path, prefill)
    found = advice(run)["budget_stalls"]
    steps = rows(run, "steps").with_columns(seconds=pl.col("end") - pl.col("launched"))
    decoding = steps.filter(pl.col("decodes") > 0)
    plain = decoding.filter(pl.col("prefill_tokens") == 0)["seconds"].median()
    assert isinstance(plain, float)
    stalls = decoding.filter(pl.col("prefill_tokens") > 0, pl.col("seconds") > max(0.03, 3 * plain))
    assert found.worst.figure == stalls["decodes"].sum() / decoding["decodes"].sum()
    assert f"The longest of them took {1000 * stalls['seconds'].max():.1f} ms" in found.worst.why  # type: ignore[operator]
    decodes = stalls["decodes"].mean()
    assert isinstance(decodes, float)
    budget = int((30 - 10 - 0.2 * decodes) / 0.05 + decodes) // 16 * 16
    expected = {"modes.continuous.token_budget": budget}
    assert found.worst.settings == ({"modes.continuous.prefill": "chunked"} if prefill == "whole" else {}) | expected
    assert f"takes {ceil(1500 / (budget - ceil(decodes)))} steps instead of 1" in found.worst.remedy
    later = rows(tried(run, found, tmp_path / "again"), "steps")
    assert (later["end"] - later["launched"]).max() < 0.032  # type: ignore[operator]  # seconds
    assert "budget_stalls" not in advice(tmp_path / "again")


def test_prompts_that_fit_beside_answers_stall_nobody(tmp_path: Path) -> None:
    assert "budget_stalls" not in advice(long_prompts(tmp_path, longest=200))


def test_a_budget_that_is_hardly_smaller_is_not_advised(tmp_path: Path) -> None:
    # a step of 544 tokens takes 39 ms, three times one without prompts; with 480 it would keep the goal of 36
    modes = {"continuous": {"max_running": 16, "token_budget": 544}}
    run = long_prompts(tmp_path, modes=modes, goals={"tpot_ms": 36})
    steps = rows(run, "steps")
    stalls = steps.filter(pl.col("end") - pl.col("launched") > 0.038)
    assert stalls["decodes"].sum() > 0.05 * steps["decodes"].sum()
    assert "budget_stalls" not in advice(run)


def test_no_budget_is_advised_with_which_prompts_would_queue_up(tmp_path: Path) -> None:
    # a step of 11 ms has no room for the prompts that come: 760 tokens every 100 ms, nine steps
    assert "budget_stalls" not in advice(long_prompts(tmp_path, goals={"tpot_ms": 13}, engine=COSTLY))


COSTLY = {"cost": {"fixed_ms": 10.0, "prefill_ms": 0.1, "decode_ms": 0.2, "context_ms": 0.0}}


def uneven(folder: Path, output: tuple[int, ...], **sections: Any) -> Path:
    """80 requests for batches of eight, of answers like these."""
    path = trace(folder, [50 * row for row in range(80)], [20], output)
    return replayed(folder / "run", path, **{"modes": {"static": {"batch_size": 8}}} | sections)


def test_padding_is_counted_with_what_the_other_modes_and_policies_do(tmp_path: Path) -> None:
    modes = {"static": {"batch_size": 8}, "continuous": {"max_running": 6}}
    run = uneven(tmp_path, (5, 5, 5, 100), modes=modes, policies={"fifo": {}, "sjf": {}})
    found = advice(run)["padding"]
    assert [arm.names for arm in found.arms] == [["static-fifo"]], "sjf batches like with like"

    def padded(cell: str) -> float:
        totals = rows(run, "steps", cell).sum()
        padding = totals["padding_tokens"].item()
        return float(padding / (padding + totals["prefill_tokens"].item() + totals["decodes"].item()))

    assert found.worst.figure == padded("static-fifo")
    assert found.worst.what.endswith(f"({rows(run, 'steps', 'static-fifo')['padding_tokens'].sum():,})")
    requests = rows(run, "requests", "continuous-fifo")
    served = requests["generated_tokens"].sum() / requests["ended"].max()
    assert f"continuous, run here too, serves {served:.0f} a second" in found.worst.remedy
    assert f"within static, sjf pads least, {100 * padded('static-sjf'):.1f} %" in found.worst.remedy
    assert found.worst.settings == {"modes.continuous.max_running": 6}, "the size that was run"


def test_answers_of_like_length_pad_little(tmp_path: Path) -> None:
    assert "padding" not in advice(uneven(tmp_path, (60, 70)))


def test_limits_that_nothing_came_near_are_told_with_what_was_reached(tmp_path: Path) -> None:
    path = trace(tmp_path, [100 * row for row in range(60)], [100, 200], [20, 40])
    modes = {"continuous": {"max_running": [4, 64]}}
    run = replayed(tmp_path / "run", path, {"kv_blocks": 4096}, modes=modes)
    found = advice(run)["never_reached"]
    steps = pl.concat([rows(run, "steps", f"continuous-fifo-max_running={size}") for size in (4, 64)])
    used, resident = steps["used_blocks"].max(), steps["running"].max()
    assert isinstance(used, int)
    assert isinstance(resident, int)
    assert found.arms[0].variant == "max_running=64"
    assert f"max_running 64 (at most {resident} resident)" in found.worst.what
    assert f"kv_blocks 4,096 (at most {used} used)" in found.worst.what
    assert found.worst.settings == {
        "modes.continuous.max_running": ceil(1.25 * resident),
        "engine.kv_blocks": ceil(1.25 * used),
    }
    assert len(found.cases) == 2, "4 slots were reached, and the pool was not"
    assert "never_reached" not in advice(tried(run, found, tmp_path / "again"))


def test_defaults_that_nothing_came_near_are_nobodys_mistake(tmp_path: Path) -> None:
    path = trace(tmp_path, [100 * row for row in range(60)], [100, 200], [20, 40])
    assert advice(replayed(tmp_path / "run", path)) == {}
