"""Advice on batch sizes: too large, too small, and when neither may be said."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from advised import advice, replayed, rows, trace, tried

from replay.metrics.notation import percent

LARGE = {"cost": {"fixed_ms": 5.0, "prefill_ms": 0.05, "decode_ms": 0.8, "context_ms": 0.0}}


def crowd(folder: Path, gap_ms: int = 5) -> str:
    """200 requests of 20 and 40 tokens."""
    return trace(folder, [gap_ms * row for row in range(200)], [20], [40])


def missed(run: Path, goal: float, cell: str = "continuous-fifo") -> float:
    """Share of requests over the goal for the time per token."""
    requests = rows(run, "requests", cell)
    gaps = requests["generated_tokens"] - 1
    times = ((requests["last_token"] - requests["first_token"]).round(9) / gaps).to_list()
    return sum(time > goal for time in times) / len(times)


def rate(run: Path, cell: str) -> float:
    """Output tokens a second: the first is due at 0."""
    requests = rows(run, "requests", cell)
    return float(requests["generated_tokens"].sum() / requests["ended"].max())


def test_a_batch_too_large_is_found_by_the_cost_model_and_the_size_advised_keeps_the_goal(tmp_path: Path) -> None:
    run = replayed(
        tmp_path / "run", crowd(tmp_path), LARGE, modes={"continuous": {"max_running": 128}}, goals={"tpot_ms": 50}
    )
    found = advice(run)["batch_too_large"]
    share = missed(run, 0.05)
    assert share == 1
    assert found.worst.figure == share
    assert found.worst.what == "100 % of requests take longer than 50.0 ms a token at max_running 128"
    # each request-step brings one decode and 20 / 40 of a prompt token: 0.8 + 0.05 * 0.5 ms beside the fixed 5
    steps = rows(run, "steps").sum()
    slot = (0.8 * steps["decodes"].item() + 0.05 * steps["prefill_tokens"].item()) / steps["scheduled"].item()
    assert found.worst.settings == {"modes.continuous.max_running": int((50 - 5) / slot)}
    again = tried(run, found, tmp_path / "again")
    assert missed(again, 0.05) < 0.1
    assert rate(again, "continuous-fifo") > 0.9 * rate(run, "continuous-fifo")
    assert "batch_too_large" not in advice(again)


def test_of_sizes_that_were_run_the_one_with_fewer_misses_and_no_fewer_tokens_is_advised(tmp_path: Path) -> None:
    sizes = {"continuous": {"max_running": [4, 48, 128]}}
    run = replayed(tmp_path / "run", crowd(tmp_path), LARGE, modes=sizes, goals={"tpot_ms": 50})
    found = advice(run)["batch_too_large"]
    cells = {size: f"continuous-fifo-max_running={size}" for size in (4, 48, 128)}
    assert [arm.names for arm in found.arms] == [[cells[128]]]
    assert found.worst.settings == {"modes.continuous.max_running": 48}, "4 serve too little"
    assert rate(run, cells[48]) > 0.9 * rate(run, cells[128]) > rate(run, cells[4])
    share = missed(run, 0.05, cells[48])
    assert found.worst.cost == pytest.approx(1 - share)
    assert f"at 48, run here too, it is {rate(run, cells[48]):,.0f} with {percent(share)}" in found.worst.why


def test_where_a_smaller_batch_costs_tokens_it_is_a_choice_and_not_a_fault(tmp_path: Path) -> None:
    # at 10 + 0.2 ms a request, 128 in a step serve far more than the 40 that take 20 ms
    run = replayed(tmp_path / "run", crowd(tmp_path), modes={"continuous": {"max_running": 128}}, goals={"tpot_ms": 20})
    assert missed(run, 0.02) > 0.1
    assert "batch_too_large" not in advice(run)


def waiting(folder: Path, **sections: object) -> Path:
    """100 requests of 50 and 30 tokens, 20 a second, for four slots that serve 12."""
    path = trace(folder, [50 * row for row in range(100)], [50], [30])
    sections = {"goals": {"tpot_ms": 50}, "modes": {"continuous": {"max_running": 4}}} | sections
    return replayed(folder / "run", path, **sections)  # type: ignore[arg-type]  # sections of an experiment


def test_a_batch_too_small_is_doubled_until_it_serves_what_is_asked(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    found = advice(run)["batch_too_small"]
    steps, requests = rows(run, "steps"), rows(run, "requests")
    seconds = steps["end"] - steps["start"]
    bound = float(seconds.filter(steps["bound"] == "slots").sum() / seconds.sum())
    assert found.worst.figure == pytest.approx(bound)
    wait = (requests["admitted"] - requests["due"]).mean()
    assert found.worst.why.startswith(f"They waited {wait:.2f} s on average, while a step of 4 took 11.1 ms of the ")
    # a request-step is 0.2 ms and 50 / 30 of 0.05 ms: rates of 4, 8 and 16, of 30 * 100 tokens in 4.95 s
    totals = steps.sum()
    slot = (0.2 * totals["decodes"].item() + 0.05 * totals["prefill_tokens"].item()) / totals["scheduled"].item()
    tokens = totals["new_tokens"].item() / totals["scheduled"].item()
    rates = {size: tokens * size / (10 + slot * size) * 1000 for size in (4, 8, 16)}
    assert rates[8] < 1.2 * 3000 / 4.95 < rates[16]
    assert found.worst.settings == {"modes.continuous.max_running": 16}
    assert f"({rates[4]:,.0f} to {rates[16]:,.0f})" in found.worst.remedy
    again = tried(run, found, tmp_path / "again")
    later = rows(again, "requests")
    assert (later["admitted"] - later["due"]).mean() < 0.01
    assert "batch_too_small" not in advice(again)


@pytest.mark.parametrize(
    "sections",
    [
        {"goals": {"tpot_ms": 14}},  # a step of 8 takes 12.3 ms, and 0.8 of the goal are 11.2
        {"engine": {"kv_blocks": 24}},  # four requests of five blocks fill it
        {"modes": {"continuous": {"max_running": [4, 8]}}},  # run beside, so that the comparison of settings tells
    ],
)
def test_no_larger_batch_is_advised_where_goal_or_memory_forbid_it_or_it_was_run(
    tmp_path: Path, sections: dict[str, object]
) -> None:
    run = waiting(tmp_path, **sections)
    cells = [arm.variant for each in [advice(run).get("batch_too_small")] if each for arm in each.arms]
    assert "" not in cells
    assert "max_running=4" not in cells


def test_slots_of_equal_rate_are_enough(tmp_path: Path) -> None:
    # all of a step goes by the request: twice the batch serves the same
    cost = {"fixed_ms": 0.1, "prefill_ms": 0.05, "decode_ms": 3.0, "context_ms": 0.0}
    run = waiting(tmp_path, engine={"cost": cost})
    bound = rows(run, "steps").filter(pl.col("bound") == "slots")
    assert len(bound) > 100
    assert "batch_too_small" not in advice(run)
