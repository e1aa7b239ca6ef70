"""What theory says of modes and loads, seen in simulated replays."""

from __future__ import annotations

from random import Random
from statistics import mean, median

from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.request import Request

COST = CostModel(fixed=0.010, prefill=0.0001, decode=0.0005)
MODES = {
    "static": {"batch_size": 4},
    "dynamic": {"max_batch_size": 4, "max_wait_ms": 50.0},
    "continuous": {"max_running": 4},
}


def workload(rate: float, requests: int = 60) -> tuple[list[Request], list[int]]:
    """Poisson arrivals at `rate` a second, prompts of 20 to 100 tokens, answers of 1 to 40."""
    random = Random(1)
    rows, arrival = [], 0.0
    for row in range(requests):
        rows.append(request(row, round(arrival, 6), random.randint(20, 100)))
        arrival += random.expovariate(rate)
    return rows, [random.randint(1, 40) for _ in range(requests)]


def replayed(rate: float) -> dict[str, Replayed]:
    found = {}
    for mode, settings in MODES.items():
        rows, outputs = workload(rate)
        found[mode] = simulate(rows, outputs, mode=mode, cost=COST, **settings)
    return found


def ttfts(run: Replayed) -> list[float]:
    return (run.requests["first_token"] - run.requests["due"]).to_list()


def output_rate(run: Replayed) -> float:
    """Output tokens per second of the whole run."""
    return float(run.requests["generated_tokens"].sum()) / float(run.requests["finished"].max())  # type: ignore[arg-type]  # a float column


def test_below_saturation_dynamic_gives_the_first_token_sooner_than_static() -> None:
    found = replayed(rate=2.0)
    assert median(ttfts(found["dynamic"])) < median(ttfts(found["static"])) / 2
    assert median(ttfts(found["continuous"])) < median(ttfts(found["dynamic"]))


def test_at_saturation_continuous_beats_both_in_throughput_and_time_to_first_token() -> None:
    for rate in (20.0, 40.0, 100.0):
        found = replayed(rate)
        for other in ("static", "dynamic"):
            assert output_rate(found["continuous"]) > 1.2 * output_rate(found[other]), (rate, other)
            assert mean(ttfts(found["continuous"])) < mean(ttfts(found[other])), (rate, other)


def test_latency_counts_from_the_arrival_however_long_a_request_waits_to_be_taken() -> None:
    # One slot, 500 ms a request, one every 100 ms: dispatch delay 0, 0.4, ... 2.8 s, latency 0.5, 0.9, ... 3.3 s.
    rows = [request(row, row / 10) for row in range(8)]
    run = simulate(rows, [50] * 8, max_running=1)
    assert run.column("admitted") == [row / 2 for row in range(8)]
    waits = [round(wait, 9) for wait in (run.requests.sort("row")["admitted"] - run.requests.sort("row")["due"])]
    latencies = [round(time, 9) for time in (run.requests.sort("row")["finished"] - run.requests.sort("row")["due"])]
    assert (round(mean(waits), 9), max(waits)) == (1.4, 2.8)
    assert latencies == [0.5, 0.9, 1.3, 1.7, 2.1, 2.5, 2.9, 3.3]
    assert round(mean(latencies), 9) == 1.9


def test_with_no_queue_the_order_of_waiting_changes_nothing() -> None:
    rows, outputs = workload(rate=0.5)
    fifo = simulate(rows, outputs, cost=COST, max_running=4)
    rows, outputs = workload(rate=0.5)
    sjf = simulate(rows, outputs, cost=COST, policy="sjf", max_running=4)
    assert sjf.requests.equals(fifo.requests)
