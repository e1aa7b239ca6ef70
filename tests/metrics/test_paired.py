"""Paired differences: what is claimed, what is not, and the same answer each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.arms import Values, arms
from replay.metrics.asked import Asked
from replay.metrics.paired import Difference
from replay.metrics.pairing import pairing
from replay.results import Run, read_run


def paired(run: Run, metric: str, seed: int = 0) -> Difference:
    """The two arms of a run, compared."""
    found = measure(run)
    return pairing(found.requests, Values(found.summary), arms(run), seed).compare(metric, *arms(run))


Latency = Callable[[int, int], float]  # of a row, in a repeat


def against(folder: Path, other: Latency, base: Latency = lambda row, repeat: 0.1, repeats: int = 1) -> Difference:
    """The difference in TTFT between sjf and fifo over forty requests with these latencies."""
    cells = []
    for policy, latency in (("fifo", base), ("sjf", other)):
        for repeat in range(repeats):
            name = f"continuous-{policy}-{repeat}"
            rows = [request_row(row, arrival=row, token_times=[row + latency(row, repeat)]) for row in range(40)]
            write_tables(folder / "cells" / name, rows)
            cells.append(cell_entry(name, repeat=repeat))
    run = read_run(write_manifest(folder, cells, rows=40))
    return paired(run, "ttft", seed=1)


def test_a_constant_difference_is_seen_exactly(tmp_path: Path) -> None:
    found = against(tmp_path, lambda row, repeat: 0.15)
    assert found.difference == found.low == found.high == pytest.approx(0.05)
    assert (found.pairs, found.seen, found.noise) == (40, True, None)
    assert found.relative == pytest.approx(0.5)


def test_differences_that_cancel_are_none(tmp_path: Path) -> None:
    found = against(tmp_path, lambda row, repeat: 0.1 + (0.05 if row % 4 < 2 else -0.05))
    assert not found.seen
    assert against(tmp_path, lambda row, repeat: 0.1).seen is False


def test_neighbours_that_share_a_queue_are_not_independent(tmp_path: Path) -> None:
    # One burst of ten consecutive requests is slow: forty independent draws would call that certain.
    found = against(tmp_path, lambda row, repeat: 0.1 + (0.05 if row < 10 else -0.005))
    assert found.difference is not None
    assert found.difference > 0
    assert not found.seen


def test_a_difference_within_the_repeats_own_is_not_claimed(tmp_path: Path) -> None:
    noisy: Latency = lambda row, repeat: 0.35 + 0.06 * repeat  # noqa: E731
    found = against(tmp_path, noisy, repeats=2)
    assert found.difference == pytest.approx(0.28)
    assert found.noise == pytest.approx(0.06)
    assert found.seen
    found = against(tmp_path, lambda row, repeat: 0.15 + 0.06 * repeat, repeats=2)
    assert found.difference == pytest.approx(0.08)  # more than 0.06, but two repeats hardly say how far they stray
    assert found.doubt == "not certain"
    found = against(tmp_path, lambda row, repeat: 0.12 + 0.06 * repeat, repeats=2)
    assert found.doubt == "within noise"


def test_only_requests_that_have_the_metric_in_both_are_paired(tmp_path: Path) -> None:
    for policy in ("fifo", "sjf"):
        rows = [request_row(row, token_times=[0.1]) for row in range(5)]
        if policy == "sjf":
            rows[0] = request_row(0, status="rejected")
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows)
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=5))
    assert paired(run, "ttft").pairs == 4
    assert paired(run, "good").difference == pytest.approx(-0.2)


def test_throughput_has_no_interval_and_small_differences_are_ties(tmp_path: Path) -> None:
    for policy, end in (("fifo", 1.0), ("sjf", 0.97), ("fair", 0.5)):
        write_tables(tmp_path / "cells" / f"continuous-{policy}", [request_row(0, token_times=[end])])
    run = read_run(write_manifest(tmp_path, [cell_entry(f"continuous-{name}") for name in ("fifo", "sjf", "fair")]))
    measured, (fifo, sjf, fair) = measure(run), arms(run)
    asked = [Asked("output_throughput", fifo, other, statistic="value") for other in (sjf, fair)]
    close, far = pairing(measured.requests, Values(measured.summary), arms(run)).family(asked)
    assert (close.low, close.seen) == (None, False)
    assert far.relative == pytest.approx(1)
    assert far.seen


def test_nothing_is_claimed_from_one_request(tmp_path: Path) -> None:
    for policy, end in (("fifo", 1.0), ("sjf", 2.0)):
        write_tables(tmp_path / "cells" / f"continuous-{policy}", [request_row(0, token_times=[end])])
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=1))
    found = paired(run, "ttft")
    assert (found.difference, found.low, found.seen) == (1.0, None, False)


def at_pace(pace: float, latency: float, folder: Path) -> Difference:
    """sjf with this TTFT against fifo with 100 ms, when fifo's steps took `pace` times what the cost model says."""
    cost = {"fixed": 0.010, "prefill": 0.0, "decode": 0.0, "context": 0.0}
    cells = []
    for policy, seconds, step in (("fifo", 0.1, 0.010 * pace), ("sjf", latency, 0.010)):
        rows = [request_row(row, arrival=row, token_times=[row + seconds]) for row in range(40)]
        write_tables(folder / "cells" / f"continuous-{policy}", rows, steps=[step_row(0, start=0.0, end=step)])
        cells.append(cell_entry(f"continuous-{policy}", cost=cost))
    return paired(read_run(write_manifest(folder, cells, rows=40)), "ttft")


def test_a_difference_that_the_machines_pace_may_have_made_is_not_claimed(tmp_path: Path) -> None:
    even, helped = at_pace(1.0, 0.08, tmp_path / "even"), at_pace(1.2, 0.08, tmp_path / "helped")
    assert (even.advantage, even.seen) == (pytest.approx(1.0), True)
    assert helped.advantage == pytest.approx(1.2)  # fifo's steps were slower by a fifth
    assert helped.apparent
    assert not helped.seen  # 0.1 / 0.08 = 1.25, and 1.2 ** 5 = 2.49
    assert at_pace(1.2, 0.03, tmp_path / "large").seen  # 3.3 is more than a fifth can make of it
    assert at_pace(0.8, 0.08, tmp_path / "spite").seen  # fifo had the faster machine and did worse all the same
