"""Advice on the queue: nobody times out, bursts overflow it, somebody starves in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from advised import advice, replayed, rows, trace, tried

FOUR = {"continuous": {"max_running": 4}}


def crowd(folder: Path, gap_ms: float = 10, **sections: Any) -> Path:
    """200 requests of 50 and 50 tokens for four slots that serve seven a second."""
    path = trace(folder, [gap_ms * row for row in range(200)], [50], [50])
    return replayed(folder / "run", path, **{"modes": FOUR, "goals": {"ttft_ms": 200}} | sections)


def waits(run: Path, cell: str = "continuous-fifo") -> pl.DataFrame:
    return rows(run, "requests", cell).with_columns(wait=pl.col("admitted") - pl.col("due"))


def test_where_nobody_times_out_the_tokens_that_came_too_late_are_counted(tmp_path: Path) -> None:
    run = crowd(tmp_path)
    found = advice(run)["no_time_outs"]
    late = waits(run).filter(pl.col("wait") > 2)  # ten times the goal
    assert found.worst.figure == len(late) / 200
    tokens = late["generated_tokens"].sum()
    assert found.worst.cost == tokens / (200 * 50)
    assert f"({len(late)}) waited in the queue for over 2 s, 10 times the TTFT goal" in found.worst.what
    assert f"the longest {late['wait'].max():.1f} s" in found.worst.what
    assert found.worst.settings == {"engine.queue_timeout_s": 2.0}
    later = tried(run, found, tmp_path / "again")
    assert (waits(later)["wait"].fill_null(0) <= 2.0 + 1e-9).all()
    assert rows(later, "requests")["status"].value_counts().filter(status="timed_out")["count"].item() > 100
    assert "no_time_outs" not in advice(later)


def test_without_a_goal_clients_have_half_a_minute(tmp_path: Path) -> None:
    run = crowd(tmp_path, goals={})
    assert 20 < waits(run)["wait"].max() < 30  # type: ignore[operator]  # seconds
    assert "no_time_outs" not in advice(run)


@pytest.mark.parametrize(("gap_ms", "engine"), [(0, {}), (10, {"timeout_s": 20.0}), (200, {})])
def test_a_batch_job_a_time_out_and_an_empty_queue_need_no_word(
    tmp_path: Path, gap_ms: float, engine: dict[str, Any]
) -> None:
    assert "no_time_outs" not in advice(crowd(tmp_path, gap_ms, engine=engine))


BURST = [
    *(100 * row for row in range(50)),
    *(5000 + row for row in range(60)),
    *(8000 + 100 * row for row in range(90)),
]


def test_a_burst_that_overflows_the_queue_is_told_with_its_time_and_a_queue_that_holds_it(tmp_path: Path) -> None:
    path = trace(tmp_path, BURST, [20], [20])
    run = replayed(tmp_path / "run", path, {"max_waiting": 8}, modes=FOUR)
    found = advice(run)["queue_overflow"]
    rejected = rows(run, "requests").filter(pl.col("status") == "rejected")
    assert rejected["reason"].unique().to_list() == ["the queue is full: 8 wait"]
    assert found.worst.figure == len(rejected) / 200
    # parts of 16.9 s / 50: the burst lies in the 15th, from 14 * 338 ms on
    assert f"most between 4.73 s and 5.07 s ({len(rejected)} requests)" in found.worst.what
    assert found.worst.settings == {"engine.max_waiting": 8 + len(rejected)}
    busy = rows(run, "steps").filter(pl.col("waiting") > 0)
    pace = busy["admitted"].sum() / (busy["end"] - busy["start"]).sum()
    assert f"the last of so many waits for {(8 + len(rejected)) / pace:.2f} s" in found.worst.remedy
    later = tried(run, found, tmp_path / "again")
    assert rows(later, "requests")["status"].unique().to_list() == ["completed"]
    assert "queue_overflow" not in advice(later)


def test_a_queue_that_overflows_all_the_time_is_no_burst(tmp_path: Path) -> None:
    path = trace(tmp_path, [10 * row for row in range(300)], [20], [20])
    run = replayed(tmp_path / "run", path, {"max_waiting": 8}, modes=FOUR)
    found = advice(run)["queue_overflow"].worst
    busy = rows(run, "steps").filter(pl.col("waiting") > 0)
    pace = busy["admitted"].sum() / (busy["end"] - busy["start"]).sum()
    come = 300 / 2.99
    assert found.settings == {"loads": [round(pace / come, 2), 1.0]}
    assert f"{come:.0f} requests/s come, and {pace:.1f} were admitted while others waited" in found.why


def test_a_queue_with_room_and_requests_that_can_never_fit_are_no_overflow(tmp_path: Path) -> None:
    path = trace(tmp_path, [100 * row for row in range(60)], [20, 20, 400], [20])
    run = replayed(tmp_path / "run", path, {"kv_blocks": 16}, modes=FOUR)
    assert rows(run, "requests")["status"].value_counts().filter(status="rejected")["count"].item() == 20
    assert "queue_overflow" not in advice(run)


def starving(folder: Path, policies: dict[str, Any], output: tuple[int, ...] = (30,), **more: Any) -> Path:
    """300 requests, ten a second, for three slots that serve nine of 30 tokens."""
    path = trace(folder, [100 * row for row in range(300)], [20], output, **more)
    return replayed(folder / "run", path, modes={"continuous": {"max_running": 3}}, policies=policies)


def ages(run: Path, cell: str) -> pl.Series:
    """Of each request, the longest time without a token: they all complete."""
    requests = rows(run, "requests", cell).sort("row")
    gaps = requests["token_times"].list.diff(null_behavior="drop").list.max()
    frame = pl.DataFrame({"first": requests["first_token"] - requests["due"], "gap": gaps})
    return frame.select(pl.max_horizontal("first", "gap")).to_series()


def test_who_starves_is_said_with_how_long_and_an_ageing_that_ends_it(tmp_path: Path) -> None:
    run = starving(tmp_path, {"sjf": {}, "fifo": {}}, (5, 5, 5, 110))
    found = advice(run)["starvation"]
    assert [arm.policy for arm in found.arms] == ["sjf"], "fifo starves nobody"
    times = ages(run, "continuous-sjf")
    median, longest = times.median(), times.max()
    assert isinstance(median, float)
    assert isinstance(longest, float)
    requests = rows(run, "requests", "continuous-sjf").sort("row").with_columns(age=times)
    later = pl.struct("due", "admitted").map_elements(
        lambda row: requests.filter(pl.col("due") > row["due"], pl.col("admitted") < row["admitted"]).height,
        return_dtype=pl.Int64,
    )
    starved = requests.with_columns(overtaken=later).filter(pl.col("age") > 5 * median, pl.col("overtaken") >= 10)
    assert found.worst.figure == len(starved) / 300
    assert f"for up to {longest:.2f} s, against {1000 * median:.0f} ms in the median" in found.worst.what
    assert f"{len(starved)} of the {len(starved)} are with answers of over 31 tokens (25 % of" in found.worst.what
    assert f"{starved['overtaken'].mean():.1f} requests that came later were admitted before" in found.worst.why
    (ageing,) = found.worst.settings.values()
    assert found.worst.settings == {"policies.sjf.ageing": ageing}
    assert ageing == float(f"{110 / (longest / 10):.2g}")
    assert "starvation" not in advice(tried(run, found, tmp_path / "again"))


def test_instead_of_priorities_that_starve_ageing_ones_are_advised(tmp_path: Path) -> None:
    run = starving(tmp_path, {"priority": {}}, priority=[2, 2, 0])
    found = advice(run)["starvation"]
    longest = ages(run, "continuous-priority").max()
    assert isinstance(longest, float)
    assert "are of priority 0 (33.3 % of all requests are)" in found.worst.what
    assert found.worst.settings == {"policies.hybrid.band_s": float(f"{longest / 10 / 2:.2g}")}
    later = advice(tried(run, found, tmp_path / "again"))["starvation"]
    assert [arm.policy for arm in later.arms] == ["priority"]


def test_where_a_policy_has_no_ageing_another_of_the_run_is_named(tmp_path: Path) -> None:
    run = starving(tmp_path, {"lifo": {}, "sjf": {}, "fifo": {}})
    found = advice(run)["starvation"]
    assert found.arms[0].policy == "lifo"
    assert found.worst.settings == {"policies.fifo": {}}
    assert f"nobody without a token for longer than {ages(run, 'continuous-fifo').max():.2f} s" in found.worst.remedy
