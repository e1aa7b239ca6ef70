"""Metrics of hand-worked rows, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import cell_entry, request_row, static_batch, step_row, write_manifest, write_tables

from replay.metrics import Measured, measure, metrics
from replay.metrics.fairness import count_overtakes
from replay.results import read_run


def measured(folder: Path, requests: list[dict[str, Any]], **manifest: Any) -> Measured:
    """One cell, continuous under fifo, with these requests."""
    write_tables(folder / "cells" / "continuous-fifo", requests, manifest.pop("steps", []))
    return measure(read_run(write_manifest(folder, [cell_entry("continuous-fifo")], rows=len(requests), **manifest)))


def value(found: Measured, metric: str, statistic: str = "value", by: str = "all", group: str = "all") -> Any:
    """The value and n of one line of the summary."""
    line = found.summary.filter(by=by, group=group, metric=metric, statistic=statistic)
    assert len(line) == 1, (metric, statistic, by, group)
    return line["value"].item()


def test_padding_is_not_output(tmp_path: Path) -> None:
    found = measure(read_run(static_batch(tmp_path)))
    assert value(found, "output_throughput") == pytest.approx(140)  # 14 tokens in 100 ms, not 20
    assert value(found, "prompt_throughput") == pytest.approx(250)  # 25 tokens, not 40
    short = found.requests.filter(pl.col("row") == 0)
    assert short["e2e"].item() == 0.1  # delivered with the batch, though its last token came at 40 ms
    assert short["tpot"].item() == 0.01
    assert value(found, "ttft", "max") == 0.01
    assert value(found, "ttft_delivered", "min") == 0.1
    # 15 padding tokens in the prefill, one in each of the 6 steps after the short answer; 25 + 12 were of use
    assert value(found, "padding_share") == pytest.approx(21 / 58)
    # two slots of 100 ms: the short prompt fills a quarter of its prefill, and 60 ms of its slot are padding
    assert value(found, "slot_padded") == pytest.approx((0.0075 + 0.06) / 0.2)
    assert value(found, "slot_useful") == pytest.approx(1 - (0.0075 + 0.06) / 0.2)
    assert value(found, "slot_idle") == pytest.approx(0)


def test_jain_is_over_the_mean_slowdowns_of_users(tmp_path: Path) -> None:
    # user a: 100 ms instead of 40; user b: 100 ms instead of 100
    found = measure(read_run(static_batch(tmp_path)))
    assert value(found, "jain") == pytest.approx((2.5 + 1) ** 2 / (2 * (2.5**2 + 1)))
    assert value(found, "slowdown_spread") == pytest.approx(2.5)


def test_tokens_that_come_in_one_chunk_are_tokens_all_the_same(tmp_path: Path) -> None:
    times = [0.1, 0.16, 0.16, 0.16, 0.2, 0.2]
    found = measured(tmp_path, [request_row(0, token_times=times)])
    assert value(found, "ttft", "mean") == 0.1
    assert value(found, "tpot", "mean") == pytest.approx(0.02)
    assert value(found, "itl", "n") == 5
    assert value(found, "itl", "mean") == pytest.approx(0.02)
    assert value(found, "max_gap", "max") == 0.06


def test_one_token_has_no_time_per_token_and_none_no_first_token(tmp_path: Path) -> None:
    rows = [
        request_row(0, token_times=[0.1, 0.12]),
        request_row(1, token_times=[0.3]),
        request_row(2, status="timed_out", ended=1.0),
    ]
    found = measured(tmp_path, rows)
    assert found.requests["tpot"].to_list() == [pytest.approx(0.02), None, None]
    assert found.requests["ttft"].to_list() == [0.1, 0.3, None]
    assert value(found, "ttft", "mean") == pytest.approx(0.2)
    assert value(found, "ttft", "p50") == pytest.approx(0.2)
    assert value(found, "ttft", "n") == 2
    assert value(found, "tpot", "n") == 1


def test_a_failed_request_is_part_of_no_latency_and_no_throughput(tmp_path: Path) -> None:
    rows = [
        request_row(0, token_times=[0.1, 0.2]),
        request_row(1, token_times=[0.001, 0.002, 0.003], status="failed", ended=0.4),
    ]
    found = measured(tmp_path, rows)
    assert value(found, "ttft", "n") == 1
    assert value(found, "itl", "n") == 1
    assert value(found, "output_throughput") == pytest.approx(2 / 0.4)


def test_everything_at_one_instant_divides_by_nothing(tmp_path: Path) -> None:
    found = measured(tmp_path, [request_row(0, token_times=[0.0, 0.0], admitted=0.0, alone=0.0)])
    assert value(found, "e2e", "mean") == 0
    for metric in ("output_throughput", "output_throughput_steady", "output_throughput_drain", "goodput_rate", "jain"):
        assert value(found, metric) is None
    assert value(found, "slowdown", "mean") is None


def test_throughput_of_the_steady_window_and_of_the_drain(tmp_path: Path) -> None:
    # arrivals over 1 s, so the window is 0.1 s to 1 s; the run ends at 2 s
    rows = [
        request_row(0, arrival=0.0, prompt_tokens=7, token_times=[0.05, 0.1, 1.0]),
        request_row(1, arrival=0.5, prompt_tokens=9, token_times=[0.6, 1.5, 2.0]),
        request_row(2, arrival=1.0, token_times=[1.4], status="timed_out", ended=1.8),
    ]
    found = measured(tmp_path, rows)
    assert value(found, "output_throughput") == pytest.approx(6 / 2)
    assert value(found, "output_throughput_steady") == pytest.approx(3 / 0.9)
    assert value(found, "prompt_throughput_steady") == pytest.approx(9 / 0.9)
    assert value(found, "output_throughput_drain") == pytest.approx(2 / 1)
    assert value(found, "drain_time") == 1


def test_a_run_that_ended_before_the_last_arrival_has_no_steady_window(tmp_path: Path) -> None:
    rows = [
        request_row(0, arrival=0.0, token_times=[0.3, 0.5]),
        request_row(1, arrival=0.5, token_times=[0.7], status="unfinished", ended=None),
        request_row(2, arrival=1.0, submitted=None, status="unfinished", ended=None),
    ]
    found = measured(tmp_path, rows, steps=[step_row(0, 0.6, 0.7)])
    assert value(found, "output_throughput") == pytest.approx(2 / 0.7)
    for metric in ("output_throughput_steady", "prompt_throughput_steady", "output_throughput_drain", "drain_time"):
        assert value(found, metric) is None


def test_the_steady_window_is_the_same_for_all_cells(tmp_path: Path) -> None:
    for cell, late in (("continuous-fifo", 0.0), ("continuous-sjf", 5.0)):
        rows = [request_row(row, arrival=row / 10, token_times=[row / 10 + late + 0.01]) for row in range(11)]
        write_tables(tmp_path / "cells" / cell, rows)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    found = measure(read_run(write_manifest(tmp_path, cells, rows=11)))
    steady = found.summary.filter(metric="output_throughput_steady", by="all")["value"].to_list()
    assert steady == [pytest.approx(9 / 0.9), 0]  # 0.11 s ... 0.91 s lie inside; the late cell had nothing then


def test_goodput_keeps_every_goal_to_the_nanosecond(tmp_path: Path) -> None:
    rows = [
        request_row(0, arrival=0.6, token_times=[1.1, 1.15]),  # 1.1 - 0.6 is a little over 0.5 in floats
        request_row(1, arrival=0.6, token_times=[1.100000001, 1.15]),
        request_row(2, arrival=0.6, token_times=[0.7, 0.751]),
        request_row(3, arrival=0.6, status="failed", ended=0.7),
        request_row(4, arrival=0.6, token_times=[0.7]),  # no time per token, so it keeps that goal
    ]
    found = measured(tmp_path, rows)
    assert found.requests["good"].to_list() == [1, 0, 0, 0, 1]
    assert value(found, "goodput") == pytest.approx(0.4)
    assert value(found, "goodput_rate") == pytest.approx(2 / 0.55)


def test_the_goal_of_ttft_is_judged_by_what_the_client_sees(tmp_path: Path) -> None:
    """The first tokens come at 10 ms, and all are delivered with the batch at 100 ms."""
    for goal, share in ((99, 0), (100, 1)):
        folder = static_batch(tmp_path / str(goal))
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, "goals": {"ttft_ms": goal}}))
        assert value(measure(read_run(folder)), "goodput") == share
    assert "ttft_delivered" in metrics["goodput"].formula


def test_without_goals_there_is_no_goodput(tmp_path: Path) -> None:
    found = measured(tmp_path, [request_row(0, token_times=[1.0])], goals={})
    assert value(found, "goodput") is None
    assert value(found, "goodput_rate") is None


def test_users_who_were_never_served_stay_in_the_tables(tmp_path: Path) -> None:
    rows = [
        request_row(0, user="ana", token_times=[0.2], alone=0.1),
        request_row(1, user="ben", status="rejected", ended=0.0),
        request_row(2, token_times=[0.4], alone=0.1),
    ]
    found = measured(tmp_path, rows)
    users = found.summary.filter(by="user", metric="ttft", statistic="mean")
    assert dict(users.select("group", "value").iter_rows()) == {"ana": 0.2, "ben": None, "no user": 0.4}
    assert value(found, "requests", "count", "user", "ben") == 1
    assert value(found, "unserved_users", "count") == 1
    jain = found.summary.filter(metric="jain")
    assert (jain["value"].item(), jain["n"].item()) == (1, 1)  # of the one user that has a slowdown


def test_length_bins_are_the_quartiles_of_the_trace(tmp_path: Path) -> None:
    rows = [request_row(row, output_tokens=row + 1, token_times=[0.1]) for row in range(8)]
    found = measured(tmp_path, rows)
    bins = found.summary.filter(by="length", metric="requests").select("group", "value").rows()
    assert bins == [("1-2 tokens", 2), ("3-4 tokens", 2), ("5-6 tokens", 2), ("over 6 tokens", 2)]
    bins = measured(tmp_path, rows, length_bins=[4]).summary.filter(by="length", metric="requests")
    assert bins["group"].to_list() == ["1-4 tokens", "over 4 tokens"]


def test_equal_lengths_have_one_bin(tmp_path: Path) -> None:
    found = measured(tmp_path, [request_row(row, output_tokens=5, token_times=[0.1]) for row in range(4)])
    assert found.summary.filter(by="length", metric="requests")["group"].to_list() == ["any length"]


def test_the_most_urgent_priority_comes_first(tmp_path: Path) -> None:
    rows = [request_row(row, priority=row, urgency=-row, token_times=[0.1]) for row in range(3)]
    found = measured(tmp_path, rows)
    assert found.summary.filter(by="priority", metric="requests")["group"].to_list() == ["0", "1", "2"]


def test_engine_metrics_of_worked_steps(tmp_path: Path) -> None:
    steps = [
        step_row(0, 0.0, 0.1, launched=0.02, scheduled=2, prefill_tokens=30, waiting=1, admitted=2, used_blocks=128),
        step_row(1, 0.1, 0.4, launched=0.1, scheduled=4, decodes=4, evicted=1, used_blocks=256, bound="blocks"),
    ]
    found = measured(tmp_path, [request_row(0, token_times=[0.1], recomputed_tokens=3)], steps=steps)
    assert value(found, "batch_size", "mean") == 3
    assert value(found, "tokens_per_step", "max") == 30
    assert value(found, "kv_use", "max") == 0.5
    assert value(found, "scheduler_time", "max") == 0.02
    assert value(found, "evictions", "count") == 1
    assert value(found, "recomputed_tokens", "count") == 3
    assert value(found, "bound_by_blocks") == pytest.approx(0.75)
    assert value(found, "bound_by_nothing") == pytest.approx(0.25)
    assert value(found, "left_waiting") == 1


def test_waits_of_those_who_gave_up_count(tmp_path: Path) -> None:
    rows = [
        request_row(0, admitted=0.1, token_times=[0.2]),
        request_row(1, arrival=0.05, status="timed_out", ended=3.05),
        request_row(2, arrival=0.06, admitted=0.08, token_times=[0.2]),
    ]
    found = measured(tmp_path, rows)
    assert value(found, "longest_wait") == 3
    assert value(found, "queue_wait", "n") == 2
    assert found.requests["overtakes"].to_list() == [1, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=25))
def test_overtakes_are_what_counting_pairs_gives(rows: list[tuple[int, int, bool]]) -> None:
    due, left, admitted = ([row[place] for row in rows] for place in range(3))
    expected = [
        sum(due[j] > due[i] and left[j] < left[i] and admitted[j] for j in range(len(rows))) for i in range(len(rows))
    ]
    found = count_overtakes(np.array(due, dtype=float), np.array(left, dtype=float), np.array(admitted, dtype=bool))
    assert found.tolist() == expected


def test_every_metric_says_what_it_is() -> None:
    for name in metrics:
        assert metrics[name].formula, name
        assert metrics[name].unit, name
