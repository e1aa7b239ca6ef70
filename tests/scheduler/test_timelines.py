"""Timelines worked by hand in the unit-step model: a step lasts 10 ms, a prefill takes one step and gives a token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from replay.contract.simulation import UNIT, request, simulate
from replay.executors.interface import CostModel
from replay.scheduler import Policy, Step

SECONDS = pytest.approx


def test_static_waits_for_a_full_batch_and_holds_it_to_its_end() -> None:
    # Two of three fill the batch at 20 ms; it runs 4 steps, for the longer answer. The third goes alone, at the end of
    # the trace, when nobody further can come.
    rows = [request(0, 0.000, 5), request(1, 0.020, 20), request(2, 0.030, 3)]
    replayed = simulate(rows, [2, 4, 1], mode="static", batch_size=2)
    assert replayed.column("admitted") == [0.020, 0.020, 0.060]
    assert replayed.column("first_token") == [0.030, 0.030, 0.070]
    assert replayed.column("last_token") == [0.040, 0.060, 0.070]
    assert replayed.column("finished") == [0.060, 0.060, 0.070]
    assert replayed.requests.sort("row")["token_times"].to_list()[1] == [0.030, 0.040, 0.050, 0.060]


def test_padding_is_not_output() -> None:
    # Answers of 4 and 10, prompts of 5 and 20: the batch lasts 100 ms and gives 14 tokens, not 20.
    replayed = simulate([request(0, 0, 5), request(1, 0, 20)], [4, 10], mode="static", batch_size=2)
    assert replayed.column("last_token") == [0.040, 0.100]
    assert replayed.column("finished") == [0.100, 0.100]
    assert replayed.steps["new_tokens"].sum() == 14
    assert replayed.steps["prefill_tokens"].sum() == 25
    # The prompt of 5 is padded to 20, and the answer of 4 keeps its row for 6 more steps.
    assert replayed.steps["padding_tokens"].to_list() == [15, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert replayed.steps["context_tokens"].to_list() == [2 * (20 + step) for step in range(10)]
    kinds = replayed.spans.sort("row", "first_step").select("row", "kind", "first_step", "last_step", "tokens").rows()
    assert kinds == [
        (0, "prefill", 0, 0, 5),
        (0, "decode", 1, 3, 3),
        (0, "padded", 4, 9, 0),
        (1, "prefill", 0, 0, 20),
        (1, "decode", 1, 9, 9),
    ]


def test_dynamic_starts_with_what_is_there_when_the_oldest_has_waited_long_enough() -> None:
    # 25 ms after the first was due the batch of two starts, not full. The third came during it: it was due at 30 ms,
    # so its 25 ms are over at 55 ms, but the batch ends at 65 ms only, and then it starts at once.
    rows = [request(0, 0.000), request(1, 0.010), request(2, 0.030)]
    replayed = simulate(rows, [4, 2, 1], mode="dynamic", max_batch_size=3, max_wait_ms=25.0)
    assert replayed.column("admitted") == [0.025, 0.025, 0.065]
    assert replayed.column("finished") == [0.065, 0.065, 0.075]


def test_dynamic_starts_at_once_when_the_batch_is_full() -> None:
    replayed = simulate(
        [request(0, 0.000), request(1, 0.010)], [1, 1], mode="dynamic", max_batch_size=2, max_wait_ms=1000.0
    )
    assert replayed.column("admitted") == [0.010, 0.010]


def test_dynamic_without_wait_takes_whoever_is_there() -> None:
    replayed = simulate([request(0, 0.0), request(1, 0.001)], [1, 1], mode="dynamic", max_batch_size=8, max_wait_ms=0.0)
    assert replayed.column("admitted") == [0.0, 0.010]


def test_continuous_lets_requests_join_and_leave_between_steps() -> None:
    rows = [request(0, 0.000, 5), request(1, 0.005, 20), request(2, 0.020, 3)]
    replayed = simulate(rows, [4, 10, 2], mode="continuous", max_running=2)
    assert replayed.column("admitted") == [0.0, 0.010, 0.040]
    assert replayed.column("first_token") == [0.010, 0.020, 0.050]
    assert replayed.column("finished") == [0.040, 0.110, 0.060]
    assert replayed.steps["bound"].to_list()[:5] == ["nothing", "nothing", "slots", "slots", "nothing"]


def test_chunked_prefill_keeps_to_the_budget_and_never_stops_a_decode() -> None:
    # Budget 4. The first decodes from 10 ms on; the second's prompt of 7 is computed in chunks of 3, 3 and 1.
    rows = [request(0, 0.0, 1), request(1, 0.005, 7)]
    replayed = simulate(rows, [6, 2], mode="continuous", max_running=2, token_budget=4)
    assert replayed.requests.sort("row")["token_times"].to_list()[0] == [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    assert replayed.column("first_token") == [0.010, 0.040]
    assert replayed.steps["prefill_tokens"].to_list() == [1, 3, 3, 1, 0, 0]
    assert replayed.steps["bound"].to_list() == ["nothing", "budget", "budget", "nothing", "nothing", "nothing"]


def test_not_even_an_urgent_prompt_stops_a_decode() -> None:
    # Budget 4. The urgent one's prompt of 9 leaves the other its token in every step: chunks of 3, 3 and 3.
    rows = [request(0, 0.0, 1, priority=0), request(1, 0.005, 9, priority=5)]
    replayed = simulate(rows, [6, 1], policy="priority", max_running=2, token_budget=4)
    assert replayed.requests.sort("row")["token_times"].to_list()[0] == [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    assert replayed.column("first_token")[1] == 0.040


def test_whole_prefill_waits_for_room_in_the_budget() -> None:
    rows = [request(0, 0.0, 6), request(1, 0.0, 6)]
    replayed = simulate(rows, [3, 3], mode="continuous", max_running=2, token_budget=8, prefill="whole")
    assert replayed.column("admitted") == [0.0, 0.010]  # 6 + 6 are over 8; then one decode and 6 fit
    assert replayed.steps["bound"].to_list()[0] == "budget"


def test_a_whole_prefill_larger_than_the_budget_runs_alone() -> None:
    rows = [request(0, 0.0, 2), request(1, 0.0, 20), request(2, 0.0, 2)]
    replayed = simulate(rows, [2, 2, 2], mode="continuous", max_running=3, token_budget=8, prefill="whole")
    assert replayed.column("admitted") == [0.0, 0.020, 0.030]
    assert replayed.steps["scheduled"].to_list() == [1, 1, 1, 2, 1]


def test_max_scheduled_counts_those_that_get_tokens_and_not_the_residents() -> None:
    # Three residents, two of whom may run in a step: the first sits two steps out and keeps its place.
    rows = [request(0, 0.0), request(1, 0.0), request(2, 0.005)]
    replayed = simulate(rows, [3, 3, 2], policy=Newest(), max_running=3, max_scheduled=2)
    assert replayed.steps["running"].to_list() == [2, 3, 3, 1, 1]
    assert replayed.steps["scheduled"].to_list() == [2, 2, 2, 1, 1]
    assert replayed.spans.filter(kind="paused").select("row", "first_step", "last_step").rows() == [(0, 1, 2)]


def test_eviction_by_recompute_gives_the_next_token_with_the_second_prefill() -> None:
    # Four blocks of one token. Both prompts of 1 are admitted; at their third token they need 3 blocks each. The
    # newest gives way, is computed again from its start (1 + 2 tokens) and no token is emitted twice.
    rows = [request(0, 0.0, 1), request(1, 0.0, 1)]
    replayed = simulate(rows, [3, 3], mode="continuous", max_running=2, blocks=4, block_size=1)
    assert replayed.column("evictions") == [0, 1]
    assert replayed.column("recomputed_tokens") == [0, 2]
    assert replayed.column("finished") == [0.030, 0.040]
    assert replayed.requests.sort("row")["token_times"].to_list() == [[0.01, 0.02, 0.03], [0.01, 0.02, 0.04]]
    assert replayed.steps["bound"].to_list() == ["nothing", "nothing", "blocks", "nothing"]
    assert replayed.spans.filter(row=1)["ending"].to_list() == ["decode", "evicted", "completed"]


@pytest.mark.parametrize(("mode", "settings"), [("static", {"batch_size": 4}), ("continuous", {"max_running": 4})])
def test_the_cost_model_charges_padding_only_where_there_is_some(mode: str, settings: dict[str, Any]) -> None:
    cost = CostModel(fixed=0.1, prefill=0.01, decode=0.001, context=0.0001)
    replayed = simulate([request(0, 0, 10), request(1, 0, 4)], [2, 1], mode=mode, cost=cost, **settings)
    if mode == "static":
        first, second = 0.1 + 0.01 * 20 + 0.0001 * 20, 0.1 + 0.001 * 2 + 0.0001 * 22
    else:
        first, second = 0.1 + 0.01 * 14 + 0.0001 * 14, 0.1 + 0.001 + 0.0001 * 11
    assert replayed.column("finished")[0] == SECONDS(first + second)


@pytest.mark.parametrize("prefill", ["chunked", "whole"])
def test_alone_is_what_the_request_takes_with_the_engine_to_itself(prefill: str) -> None:
    cost = CostModel(fixed=0.1, prefill=0.01, decode=0.001, context=0.0001)
    for budget in (2048, 4):
        replayed = simulate([request(0, 0.0, 10)], [5], cost=cost, token_budget=budget, prefill=prefill)
        assert replayed.column("alone")[0] == SECONDS(replayed.column("finished")[0])


@dataclass
class Newest(Policy):
    """Whoever came last runs first; the others wait in their places."""

    def schedule(self, step: Step) -> None:
        everybody = [*step.waiting, *step.running]
        for one in sorted(everybody, key=lambda one: -one.row):
            step.run(one)


def policy_order(policy: str, mode: str, settings: dict[str, Any], predictor: str = "oracle") -> list[int]:
    """Rows in the order in which they are first served behind one request that holds the only slot until 1 s."""
    rows = [
        request(0, 0.0, user="a", priority=0),
        request(1, 0.10, user="a", priority=0, max_tokens=9),
        request(2, 0.20, user="a", priority=2, max_tokens=30),
        request(3, 0.30, user="b", priority=1, max_tokens=5),
        request(4, 0.40, user="b", priority=1, max_tokens=4),
    ]
    replayed = simulate(rows, [100, 9, 3, 5, 4], mode=mode, policy=policy, predictor=predictor, cost=UNIT, **settings)
    return replayed.requests.sort("admitted", "row")["row"].to_list()[1:]


@pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("static", {"batch_size": 1}),
        ("dynamic", {"max_batch_size": 1, "max_wait_ms": 0.0}),
        ("continuous", {"max_running": 1}),
        ("continuous", {"max_running": 1, "prefill": "whole"}),
    ],
)
@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fifo", [1, 2, 3, 4]),
        ("sjf", [2, 4, 3, 1]),
        ("priority", [2, 3, 4, 1]),
        ("hybrid", [2, 3, 4, 1]),  # a level is worth 30 s, and all came within 0.4 s
        ("fair", [1, 2, 3, 4]),  # with one slot nobody is active when a choice is made: all are equal
    ],
)
def test_each_policy_serves_in_its_order(policy: str, order: list[int], mode: str, settings: dict[str, Any]) -> None:
    assert policy_order(policy, mode, settings) == order


def test_sjf_knows_only_what_its_predictor_knows() -> None:
    assert policy_order("sjf", "continuous", {"max_running": 1}, "oracle") == [2, 4, 3, 1]
    assert policy_order("sjf", "continuous", {"max_running": 1}, "max_tokens") == [4, 3, 1, 2]


def test_fair_counts_active_requests_those_of_this_step_included() -> None:
    # Three slots fall free at once. User a came first with three requests; b and c have one each.
    rows = [request(row, 0.0, user=user) for row, user in enumerate("aaabc")]
    replayed = simulate(rows, [5, 5, 5, 5, 5], policy="fair", max_running=3)
    assert replayed.requests.filter(pl_admitted_at(0.0)).sort("row")["row"].to_list() == [0, 3, 4]


def test_fair_prefers_the_user_with_fewer_residents_over_the_one_who_came_first() -> None:
    rows = [request(0, 0.0, user="a"), request(1, 0.0, user="a"), request(2, 0.0, user="b"), request(3, 0.0, user=None)]
    replayed = simulate(rows, [9, 2, 2, 2], policy="fair", max_running=2)
    # a and b are admitted; when b's is done, nobody's request goes before a's second: a still has one active.
    assert replayed.column("admitted") == [0.0, 0.040, 0.0, 0.020]


def test_hybrid_trades_a_level_for_seconds_of_waiting() -> None:
    from replay.scheduler import policies

    rows = [request(0, 0.0), request(1, 0.1, priority=0), request(2, 1.0, priority=1)]
    for band, order in ((0.5, [0, 1, 2]), (2.0, [0, 2, 1])):
        replayed = simulate(rows_again(rows), [200, 1, 1], policy=policies["hybrid"](band_s=band), max_running=1)
        assert replayed.requests.sort("admitted")["row"].to_list() == order


def test_sjf_with_ageing_lets_nobody_be_overtaken_for_longer_than_its_length_by_the_rate() -> None:
    from replay.scheduler import policies

    # A long request (50 tokens) waits while short ones (10) keep coming every 0.1 s. At 100 tokens/s of ageing it may
    # be overtaken only by those that came within (50 - 10) / 100 = 0.4 s after it.
    rows = [request(0, 0.0), request(1, 0.05), *(request(row, 0.05 + 0.1 * (row - 1)) for row in range(2, 12))]
    replayed = simulate(rows, [20, 50] + [10] * 10, policy=policies["sjf"](ageing=100.0), max_running=1)
    admitted = replayed.column("admitted")
    overtakers = [row for row in range(2, 12) if admitted[row] < admitted[1]]
    assert overtakers
    assert max(overtakers) <= 1 + 4  # row 5 came 0.4 s after row 1


def test_priority_evicts_the_least_urgent_first() -> None:
    rows = [request(0, 0.0, priority=0), request(1, 0.0, priority=5)]
    replayed = simulate(rows, [3, 3], policy="priority", max_running=2, blocks=4, block_size=1)
    assert replayed.column("evictions") == [1, 0]


def test_smaller_urgency_first_is_the_opposite_order() -> None:
    # Priorities 5, 0, 3 behind a busy slot: with "0 is most urgent" the order is 0, 3, 5, else 5, 3, 0.
    def order(sign: int) -> list[int]:
        rows = [request(0, 0.0, priority=0, urgency=0)]
        rows += [
            request(row, row / 10, priority=priority, urgency=sign * priority)
            for row, priority in ((1, 5), (2, 0), (3, 3))
        ]
        replayed = simulate(rows, [100, 1, 1, 1], policy="priority", max_running=1)
        return replayed.requests.sort("admitted")["priority"].to_list()[1:]

    assert order(-1) == [0, 3, 5]
    assert order(+1) == [5, 3, 0]


def pl_admitted_at(instant: float) -> Any:
    import polars as pl

    return pl.col("admitted") == instant


def rows_again(rows: list[Any]) -> list[Any]:
    return [request(row.row, row.arrival, row.prompt_tokens, priority=row.priority or 0) for row in rows]
