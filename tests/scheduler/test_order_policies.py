"""Policies that only order those who wait: by hand, and held to what is proved of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from random import Random
from statistics import mean, pvariance
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.edf import Edf
from policies.hrrn import Hrrn
from policies.hybrid import Hybrid
from policies.least_slack import LeastSlack
from policies.sjf import Sjf
from replay.contract.cases import MODES, Case, cases, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.request import Request
from replay.scheduler import Policy, Step

EPSILON = 1e-9  # seconds: clocks count nanoseconds


def by_admission(run: Replayed) -> list[int]:
    """Rows in the order in which they were first admitted."""
    return run.requests.sort("admitted", "row")["row"].to_list()


def alone(policy: str | Policy, arrivals: list[float], outputs: list[int], **fields: list[Any]) -> Replayed:
    """One slot: requests one after the other, each as many steps of 10 ms as it has output tokens."""
    rows = [
        request(row, arrival, **{name: values[row] for name, values in fields.items()})
        for row, arrival in enumerate(arrivals)
    ]
    return simulate(rows, outputs, policy=policy, max_running=1)


def mean_latency(run: Replayed) -> float:
    return mean((run.requests["finished"] - run.requests["due"]).to_list())


def waits(run: Replayed) -> list[int]:
    """Steps of 10 ms that each request waited, arrivals being at whole steps."""
    return [round((one["admitted"] - one["due"]) * 100) for one in run.requests.iter_rows(named=True)]


@pytest.mark.parametrize(
    ("policy", "admitted"),
    [
        ("fifo", [0.0, 0.03, 0.05, 0.09]),
        ("lifo", [0.0, 0.08, 0.04, 0.03]),
        ("sjf", [0.0, 0.04, 0.06, 0.03]),
        ("ljf", [0.0, 0.07, 0.03, 0.09]),
        ("shortest_prefill", [0.0, 0.08, 0.03, 0.07]),
        ("edf", [0.0, 0.07, 0.03, 0.09]),
        ("priority", [0.0, 0.08, 0.04, 0.03]),
    ],
)
def test_who_is_next_when_the_slot_is_free(policy: str, admitted: list[float]) -> None:
    # The first holds the slot until 30 ms; meanwhile come answers of 2, 4 and 1 tokens.
    run = alone(
        policy,
        [0.0, 0.005, 0.010, 0.015],
        [3, 2, 4, 1],
        prompt=[1, 8, 2, 5],
        deadline=[1.0, 0.095, 0.050, None],  # at 100 ms, at 60 ms, and at 10 s because it names none
        priority=[0, 1, 2, 3],
    )
    assert run.column("admitted") == admitted


def test_a_lot_is_drawn_once_by_each_who_begins_to_wait() -> None:
    random = Random(0)  # the seed of the cell
    lots = [random.random() for _ in range(8)]
    run = alone("random", [0.0] * 8, [1] * 8)
    assert by_admission(run) == sorted(range(8), key=lots.__getitem__)
    assert by_admission(run) != list(range(8))


def test_who_is_evicted_keeps_its_lot() -> None:
    random = Random(0)
    lots = [random.random() for _ in range(3)]
    run = simulate([request(row) for row in range(3)], [4] * 3, policy="random", max_running=2, blocks=5, block_size=1)
    assert run.requests["evictions"].sum() > 0
    assert [one.memory["random"] for one in run.objects] == lots


@settings(max_examples=40)
@given(steps=st.lists(st.integers(0, 30), min_size=2, max_size=12), length=st.integers(1, 4))
def test_without_lengths_no_order_changes_the_mean_wait_and_fifo_has_the_least_variance_lifo_the_most(
    steps: list[int], length: int
) -> None:
    arrivals = [step / 100 for step in sorted(steps)]
    fifo, random, lifo = (
        waits(alone(policy, arrivals, [length] * len(steps))) for policy in ("fifo", "random", "lifo")
    )
    assert sum(fifo) == sum(random) == sum(lifo)
    assert pvariance(fifo) <= pvariance(random) <= pvariance(lifo)


@settings(max_examples=30)
@given(outputs=st.lists(st.integers(1, 20), min_size=1, max_size=7))
def test_no_order_of_work_that_is_there_has_a_smaller_mean_wait_than_sjf_nor_a_larger_one_than_ljf(
    outputs: list[int],
) -> None:
    sums = set()
    for order in permutations(outputs):
        ends = [sum(order[:place]) for place in range(len(order))]
        sums.add(sum(ends))
    assert sum(waits(alone("sjf", [0.0] * len(outputs), outputs))) == min(sums)
    assert sum(waits(alone("ljf", [0.0] * len(outputs), outputs))) == max(sums)


Traffic = list[tuple[int, int, int]]  # when it is due, in steps of 5 ms; output tokens; urgency
traffic = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(0, 3)), min_size=2, max_size=14)


def run_traffic(policy: Policy, given: Traffic, slots: int) -> Replayed:
    given = sorted(given, key=lambda one: one[0])
    rows = [request(row, step / 200, priority=urgency) for row, (step, _, urgency) in enumerate(given)]
    return simulate(rows, [output for _, output, _ in given], policy=policy, max_running=slots)


def overtakes(run: Replayed) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each request with each that was due after it and admitted before it."""
    rows = run.requests.to_dicts()
    return [
        (one, other)
        for one in rows
        for other in rows
        if one["due"] < other["due"] and other["admitted"] < one["admitted"]
    ]


@settings(max_examples=40)
@given(given=traffic, ageing=st.sampled_from([20.0, 100.0, 1000.0]), slots=st.integers(1, 3))
def test_with_ageing_the_window_in_which_one_is_overtaken_is_its_tokens_by_the_ageing(
    given: Traffic, ageing: float, slots: int
) -> None:
    for one, other in overtakes(run_traffic(Sjf(ageing=ageing), given, slots)):
        later = other["due"] - one["due"]
        assert later < (one["output_tokens"] - other["output_tokens"]) / ageing + EPSILON
        assert later < one["output_tokens"] / ageing


@settings(max_examples=40)
@given(given=traffic, band_s=st.sampled_from([0.0, 0.01, 0.05, 1.0]), slots=st.integers(1, 3))
def test_one_is_only_overtaken_by_those_due_a_band_later_for_each_level_that_they_are_more_urgent(
    given: Traffic, band_s: float, slots: int
) -> None:
    for one, other in overtakes(run_traffic(Hybrid(band_s=band_s), given, slots)):
        assert other["due"] - one["due"] <= band_s * (other["urgency"] - one["urgency"]) + EPSILON


def test_without_ageing_and_with_wide_bands_one_is_overtaken_by_later_ones_than_that() -> None:
    # A long and unurgent one, due first, behind a stream: what the two bounds above are worth.
    given = [(0, 5, 0), (0, 30, 0), *((5 * step, 5, 1) for step in range(1, 13))]
    for aged, free in ((Sjf(ageing=500.0), Sjf()), (Hybrid(band_s=0.06), Hybrid(band_s=30.0))):
        bounded, latest = (
            max(other["due"] - one["due"] for one, other in overtakes(run_traffic(policy, given, 1)))
            for policy in (aged, free)
        )
        assert bounded < 0.07
        assert latest == pytest.approx(0.3)


def test_hrrn_weighs_the_wait_by_the_service() -> None:
    # At 60 ms: row 1 waited 59 ms for 30 ms of service, a ratio of 2.97; row 2 30 for 10, 4.0; row 3 10 for 10, 2.0.
    # At 70 ms: row 1 3.3, row 3 3.0. Shortest first would leave row 1 to the end.
    arrivals, outputs = [0.0, 0.001, 0.03, 0.05], [6, 3, 1, 1]
    assert alone("hrrn", arrivals, outputs).column("admitted") == [0.0, 0.07, 0.06, 0.10]
    assert by_admission(alone("fifo", arrivals, outputs)) == [0, 1, 2, 3]
    assert by_admission(alone("sjf", arrivals, outputs)) == [0, 2, 3, 1]


def test_above_a_length_of_queue_hrrn_is_fifo() -> None:
    arrivals, outputs = [0.0, 0.001, 0.03, 0.05], [6, 3, 1, 1]
    assert by_admission(alone(Hrrn(fifo_above=2), arrivals, outputs)) == [0, 1, 2, 3]
    assert by_admission(alone(Hrrn(fifo_above=3), arrivals, outputs)) == [0, 2, 1, 3]


@settings(max_examples=40)
@given(given=traffic)
def test_nobody_waits_with_a_higher_ratio_than_whom_hrrn_admits(given: Traffic) -> None:
    rows = run_traffic(Hrrn(), given, 1).requests.to_dicts()

    def ratio(one: dict[str, Any], now: float) -> float:
        service = one["output_tokens"] / 100
        return float(now - one["due"] + service) / service

    for one in rows:
        now = one["admitted"]
        waiting = [other for other in rows if other["due"] <= now < other["admitted"]]
        assert all(ratio(other, now) <= ratio(one, now) + EPSILON for other in waiting)


def test_hrrn_serves_a_long_one_in_a_stream_of_short_ones_and_sjf_does_not() -> None:
    # A short one of 100 ms every 100 ms, three of them always waiting: at its turn the oldest has waited 300 ms, for a
    # ratio of 4. The long one, of 950 ms, passes that after 2.85 s, so at the next end of a short one.
    arrivals = [0.0] * 5 + [step / 10 for step in range(1, 100)]
    outputs = [10, 95] + [10] * (len(arrivals) - 2)
    assert alone("hrrn", arrivals, outputs).column("admitted")[1] == 2.9
    assert alone("sjf", arrivals, outputs).column("admitted")[1] == pytest.approx(10.3)  # after the last of them all


def is_feasible(jobs: list[tuple[int, int]]) -> bool:
    """Whether one-step jobs (first step, steps until it is late) can all be in time: each matched to a step."""
    taken: dict[int, int] = {}

    def place(job: int, seen: set[int]) -> bool:
        first, steps = jobs[job]
        for step in range(first, first + steps):
            if step not in seen:
                seen.add(step)
                if step not in taken or place(taken[step], seen):
                    taken[step] = job
                    return True
        return False

    return all(place(job, set()) for job in range(len(jobs)))


def late(run: Replayed) -> int:
    rows = run.requests.to_dicts()
    return sum(one["first_token"] > one["due"] + one["deadline"] + EPSILON for one in rows)


@settings(max_examples=100)
@given(jobs=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=9))
def test_with_answers_of_one_token_edf_is_late_only_if_every_order_is(jobs: list[tuple[int, int]]) -> None:
    jobs = sorted(jobs, key=lambda job: job[0])
    arrivals, deadlines = [first / 100 for first, _ in jobs], [steps / 100 for _, steps in jobs]
    run = alone("edf", arrivals, [1] * len(jobs), deadline=deadlines)
    assert (late(run) == 0) == is_feasible(jobs)


@settings(max_examples=40)
@given(length=st.integers(1, 4), steps=st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_with_answers_of_equal_length_that_are_there_at_once_edf_is_late_only_if_every_order_is(
    length: int, steps: list[int]
) -> None:
    feasible = any(
        all(place * length + 1 <= deadline for place, deadline in enumerate(order)) for order in permutations(steps)
    )
    deadlines = [deadline / 100 for deadline in steps]
    run = alone("edf", [0.0] * len(steps), [length] * len(steps), deadline=deadlines)
    assert (late(run) == 0) == feasible


def test_a_set_that_edf_serves_in_time_is_late_under_fifo() -> None:
    arrivals, deadlines = [0.0, 0.0, 0.0], [0.03, 0.02, 0.01]
    assert late(alone("edf", arrivals, [1] * 3, deadline=deadlines)) == 0
    assert late(alone("fifo", arrivals, [1] * 3, deadline=deadlines)) == 1


def test_edf_does_not_see_the_long_answer_that_holds_the_slot() -> None:
    # As its docstring says: the other way round, both would be in time, at 10 and 20 ms.
    run = alone("edf", [0.0, 0.0], [10, 1], deadline=[0.02, 0.03])
    assert run.column("first_token") == [0.01, 0.11]


@settings(max_examples=40)
@given(given=traffic, slots=st.integers(1, 3), blocks=st.integers(33, 80), policy=st.sampled_from(["edf", "named"]))
def test_where_all_have_as_long_a_deadline_edf_is_fifo_to_the_last_digit(
    given: Traffic, slots: int, blocks: int, policy: str
) -> None:
    given = sorted(given, key=lambda one: one[0])

    def run(policy: str | Policy, deadline: float | None) -> Replayed:
        rows = [request(row, step / 200, deadline=deadline) for row, (step, _, _) in enumerate(given)]
        outputs = [output for _, output, _ in given]
        return simulate(rows, outputs, policy=policy, max_running=slots, blocks=blocks, block_size=1)

    deadline = 0.3 if policy == "named" else None
    edf, fifo = run("edf", deadline), run("fifo", deadline)
    for table in ("requests", "steps", "spans"):
        assert getattr(edf, table).equals(getattr(fifo, table))


def test_shedding_rejects_one_in_the_first_step_from_which_it_cannot_be_in_time() -> None:
    # The first holds the slot until 50 ms. Row 1 would have to begin by 20 ms: it is lost at 30. Row 2 begins at 50 and
    # is in time at 60, to the digit. Row 3 would have to begin by 55 ms, and is lost at 60.
    run = alone(Edf(shed=True), [0.0] * 4, [5, 2, 2, 1], deadline=[0.01, 0.03, 0.06, 0.065])
    assert run.column("status") == ["completed", "rejected", "completed", "rejected"]
    assert run.column("ended") == [0.05, 0.03, 0.07, 0.06]
    assert run.column("first_token")[2] == 0.06
    assert run.column("reason")[1] == "it has waited too long to get its first token before its deadline"
    kept = alone("edf", [0.0] * 4, [5, 2, 2, 1], deadline=[0.01, 0.03, 0.06, 0.065])
    assert late(kept) == 3, "who is lost makes the next one late"


@settings(max_examples=60)
@given(given=traffic, slots=st.integers(1, 3), seed=st.integers(0, 99))
def test_shedding_rejects_those_who_are_lost_and_nobody_else(given: Traffic, slots: int, seed: int) -> None:
    given, random = sorted(given, key=lambda one: one[0]), Random(seed)
    rows = [request(row, step / 200, deadline=random.randint(1, 40) / 200) for row, (step, _, _) in enumerate(given)]
    outputs = [output for _, output, _ in given]
    run = simulate(rows, outputs, policy=Edf(shed=True), max_running=slots)
    for one in run.requests.iter_rows(named=True):
        until = one["due"] + one["deadline"] + EPSILON
        if one["status"] == "completed":
            assert one["first_token"] <= until
        else:
            assert one["status"] == "rejected"
            assert one["ended"] + 0.01 > until, "it could not have been in time"
            before = max((end for end in [0.0, *run.steps["start"]] if end < one["ended"]), default=0.0)
            assert one["ended"] == one["submitted"] or before + 0.01 <= until, "and a step before, it could"


def test_one_whose_answer_has_begun_is_not_shed_when_it_is_evicted() -> None:
    rows = [request(0, deadline=0.015), request(1, deadline=0.015)]
    run = simulate(rows, [3, 3], policy=Edf(shed=True), max_running=2, blocks=4, block_size=1)
    assert run.column("evictions") == [0, 1]
    assert run.column("status") == ["completed", "completed"]


def test_the_prefix_cache_makes_a_long_prompt_a_short_one_while_it_waits() -> None:
    # Prompts of 9, 10 and 9 tokens. When the first is computed, 8 tokens of the second are in the cache.
    prompts = {0: list(range(9)), 1: [*range(8), 50, 51], 2: list(range(100, 109))}
    orders = []
    for prefix_cache in (False, True):
        rows = [request(row, prompt=len(prompt)) for row, prompt in prompts.items()]
        run = simulate(
            rows,
            [1, 1, 1],
            policy="shortest_prefill",
            max_running=1,
            block_size=4,
            prefix_cache=prefix_cache,
            prompts=prompts,
        )
        orders.append(by_admission(run))
    assert orders == [[0, 2, 1], [0, 1, 2]]


def test_slack_is_the_deadline_less_what_the_prompt_takes() -> None:
    # 10 ms a prompt token. Row 1 must begin by 150 ms, its five tokens to be there by 200; row 2 by 170, to be by 180.
    cost = CostModel(fixed=0.0, prefill=0.01, decode=0.01)
    orders = []
    for policy in ("least_slack", "edf"):
        rows = [
            request(0, deadline=0.05, prompt=1),
            request(1, deadline=0.20, prompt=5),
            request(2, deadline=0.18, prompt=1),
        ]
        run = simulate(rows, [3, 1, 1], policy=policy, max_running=1, cost=cost)
        orders.append(by_admission(run))
    assert orders == [[0, 1, 2], [0, 2, 1]]


def test_an_urgent_prompt_goes_before_the_next_chunk_of_a_long_one() -> None:
    # Chunks of 4. The long prompt has done 8 of 20 tokens when the urgent one comes; it waits for one step.
    tokens = {}
    for policy in ("least_slack", "edf"):
        rows = [request(0, 0.0, 20, deadline=1.0), request(1, 0.015, 4, deadline=0.1)]
        run = simulate(rows, [1, 1], policy=policy, max_running=2, token_budget=4)
        tokens[policy] = run.column("first_token")
    assert tokens == {"least_slack": [0.06, 0.03], "edf": [0.05, 0.06]}


def test_prompts_of_equal_slack_do_not_take_turns_within_a_quantum() -> None:
    # 10 ms a token, chunks of 4, prompts of 8. By turns the first ends at 120 ms instead of 80, the second no sooner.
    cost = CostModel(fixed=0.0, prefill=0.01, decode=0.01)
    found = []
    for quantum_s in (0.0, 0.1):
        rows = [request(row, prompt=8, deadline=1.0) for row in range(2)]
        policy = LeastSlack(quantum_s=quantum_s)
        run = simulate(rows, [1, 1], policy=policy, max_running=2, token_budget=4, cost=cost)
        found.append(run.column("first_token"))
    assert found == [[0.12, 0.16], [0.08, 0.16]]


def crowd(seed: int) -> tuple[list[Request], list[int]]:
    """More than two slots can serve: answers of 1 to some 300 tokens, most of them short."""
    random, arrival = Random(seed), 0.0
    rows, outputs = [], []
    for row in range(50):
        rows.append(request(row, round(arrival, 6), random.randint(1, 20), max_tokens=400))
        outputs.append(min(400, 1 + int(random.lognormvariate(3.0, 1.1))))
        arrival += random.expovariate(8.0)
    return rows, outputs


@pytest.mark.parametrize("seed", range(2))
def test_in_a_crowd_the_controls_are_where_they_belong(seed: int) -> None:
    found = {}
    for policy in ("sjf", "hrrn", "fifo", "lifo", "random", "ljf"):
        rows, outputs = crowd(seed)
        found[policy] = mean_latency(simulate(rows, outputs, policy=policy, max_running=2))
    assert min(found, key=found.__getitem__) == "sjf"
    assert max(found, key=found.__getitem__) == "ljf"
    assert 1.3 * found["sjf"] < found["random"] < found["ljf"] / 1.3


@pytest.mark.parametrize("policy", ["sjf", "srpt", "trail"])
def test_who_waits_keeps_the_guess_that_it_came_with(policy: str) -> None:
    # When row 1 came nothing was known: 64 tokens. When row 3 comes the user's last answer had 2: so it goes first,
    # though by then the same is expected of both.
    arrivals, outputs = [0.0, 0.0, 0.0, 0.030], [2, 3, 4, 3]
    rows = [
        request(row, due, max_tokens=most) for row, (due, most) in enumerate(zip(arrivals, [2, 64, 4, 64], strict=True))
    ]
    replayed = simulate(rows, outputs, policy=policy, predictor="user_mean", max_running=1)
    assert by_admission(replayed) == [0, 2, 3, 1]


@settings(max_examples=150)
@given(case=cases(size=14), mode=st.sampled_from(MODES[2:]))
def test_nobody_joins_in_a_step_in_which_a_prompt_evicts_somebody(case: Case, mode: tuple[str, dict[str, Any]]) -> None:
    @dataclass
    class Watched(LeastSlack):
        """Looks at the end of each step whether somebody joined others who were short of blocks."""

        def schedule(self, step: Step) -> None:
            super().schedule(step)
            assert not (step.evicted and step.admitted and len(step.shares) > len(step.admitted))

    replay(case, Watched(admission="aggressive"), mode)
