"""Batch sizes that adapt: each rule step by step, each in every mode by hand, and what holds for all of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.contract.cases import Case, cases, check_outcome, check_step
from replay.contract.simulation import UNIT, Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.scheduler import BatchSize, batch_sizes, policies
from replay.scheduler.batch_size import Adaptive, Aimd, Load, Outcome

SIZES = {"static": "batch_size", "dynamic": "max_batch_size", "continuous": "max_running"}
BY_ROWS = CostModel(fixed=0.010, decode=0.010)  # a step of n decodes lasts 10 + 10 n ms; a prefill 10 ms


def tell(rule: Aimd, milliseconds: float, **fields: Any) -> int:
    """`rule` hears of a step that decoded 4 and whose slots were all taken; its size from then on."""
    size = rule.size(Load(0, 0, 0.0))
    told = {"decodes": 4, "size": size, "residents": size, "full": True} | fields
    rule.observe(Outcome(seconds=milliseconds / 1000, **told))
    return rule.size(Load(0, 0, 0.0))


@pytest.mark.parametrize(
    ("waiting", "kv_use", "size"),
    [
        (0, 0.0, 8),
        (20, 0.9, 8),
        (21, 0.9, 32),
        (100, 0.5, 32),
        (101, 0.5, 64),
        (101, 0.901, 16),
        (0, 1.0, 16),
    ],
)
def test_the_rule_of_the_article(waiting: int, kv_use: float, size: int) -> None:
    assert Adaptive().size(Load(waiting, 3, kv_use)) == size


def test_every_threshold_and_size_of_the_rule_can_be_set() -> None:
    rule = Adaptive(kv_use=0.5, kv_size=3, long_queue=4, long_size=9, middle_queue=2, middle_size=7, short_size=5)
    assert rule.largest == 9
    loads = [Load(2, 0, 0.5), Load(3, 0, 0.5), Load(4, 0, 0.5), Load(5, 0, 0.5), Load(5, 0, 0.51)]
    assert [rule.size(load) for load in loads] == [5, 7, 7, 9, 3]


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 99), min_size=3, max_size=3).map(sorted),
    queues=st.lists(st.integers(0, 50), min_size=2, max_size=2, unique=True).map(sorted),
    kv_size=st.integers(1, 99),
    waiting=st.lists(st.integers(0, 60), min_size=2).map(sorted),
    kv_use=st.floats(0, 1),
)
def test_a_longer_queue_never_makes_the_batch_smaller(
    sizes: list[int], queues: list[int], kv_size: int, waiting: list[int], kv_use: float
) -> None:
    rule = Adaptive(0.9, kv_size, queues[1], sizes[2], queues[0], sizes[1], sizes[0])
    found = [rule.size(Load(count, 0, kv_use)) for count in waiting]
    assert all(before <= after for before, after in pairwise(found))
    assert max(found) <= rule.largest
    assert kv_use <= 0.9 or set(found) == {kv_size}


def test_aimd_grows_by_its_increase_once_in_so_many_steps_and_no_further_than_its_largest() -> None:
    rule = Aimd(tpot_ms=50, increase=3, largest=9, smallest=2, steps=2)
    assert [tell(rule, 50.0) for _ in range(8)] == [2, 5, 5, 8, 8, 9, 9, 9]  # 50 ms is within a goal of 50 ms


def test_aimd_shrinks_by_its_factor_once_in_so_many_steps_and_no_further_than_its_smallest() -> None:
    rule = Aimd(tpot_ms=50, smallest=3, largest=20, steps=1, increase=17)
    tell(rule, 10.0)
    rule.steps = 2
    assert [tell(rule, 50.1) for _ in range(8)] == [20, 10, 10, 5, 5, 3, 3, 3]


def test_aimd_goes_by_the_mean_over_tokens_so_that_one_slow_step_among_few_is_outweighed() -> None:
    rule = Aimd(tpot_ms=50, steps=3)
    # (170 * 1 + 30 * 10 + 30 * 10) / 21 tokens = 36.7 ms, although the mean of the steps is 76.7 ms
    assert [tell(rule, 170, decodes=1), tell(rule, 30, decodes=10), tell(rule, 30, decodes=10)] == [1, 1, 2]
    rule = Aimd(tpot_ms=50, steps=3, smallest=1, increase=7)
    assert [tell(rule, 10), tell(rule, 10), tell(rule, 10)] == [1, 1, 8]
    # (170 * 10 + 30 + 30) / 12 tokens = 146.7 ms: halved once, not at every step
    assert [tell(rule, 170, decodes=10), tell(rule, 30, decodes=1), tell(rule, 30, decodes=1)] == [8, 8, 4]


def test_aimd_does_not_grow_unless_the_size_was_what_bound() -> None:
    rule = Aimd(steps=2, increase=1)
    assert [tell(rule, 10, full=False) for _ in range(4)] == [1, 1, 1, 1]
    assert [tell(rule, 10, full=True), tell(rule, 10, full=False)] == [1, 2]
    # slots that a limit on scheduled requests refused, while residents were fewer than the size, do not count
    assert [tell(rule, 10, residents=1), tell(rule, 10, residents=1)] == [2, 2]


def test_a_prefill_may_show_that_the_size_bound_and_is_no_evidence_of_time() -> None:
    rule = Aimd(tpot_ms=50, steps=1)
    assert tell(rule, 5000, decodes=0) == 1
    assert tell(rule, 10, full=False) == 2


def test_while_a_larger_batch_drains_and_where_a_step_was_planned_before_aimd_draws_no_conclusion() -> None:
    rule = Aimd(tpot_ms=50, steps=1, smallest=8)
    assert tell(rule, 10) == 9
    assert tell(rule, 10) == 10
    rule.smallest = 1
    assert tell(rule, 80) == 5
    assert [tell(rule, 80, residents=10), tell(rule, 75, residents=6)] == [5, 5]
    assert tell(rule, 80, size=10, residents=5) == 5
    assert tell(rule, 80, residents=5) == 2


@settings(deadline=None)
@given(
    times=st.lists(st.integers(1, 100), max_size=60),
    increase=st.integers(1, 5),
    decrease=st.floats(0.01, 0.99),
    smallest=st.integers(1, 6),
    room=st.integers(0, 20),
    steps=st.integers(1, 4),
)
def test_aimd_stays_between_its_ends_and_moves_once_in_its_steps(
    times: list[int], increase: int, decrease: float, smallest: int, room: int, steps: int
) -> None:
    rule = Aimd(50.0, increase, decrease, smallest, smallest + room, steps)
    sizes = [smallest, *(tell(rule, time) for time in times)]
    assert all(smallest <= size <= rule.largest for size in sizes)
    moves = [place for place, (before, after) in enumerate(pairwise(sizes), start=1) if before != after]
    assert all(place % steps == 0 for place in moves)


SMALL = Adaptive(kv_use=0.8, kv_size=1, long_queue=3, long_size=4, middle_queue=1, middle_size=2, short_size=1)


def test_adaptive_in_continuous_mode() -> None:
    # Five of 3 tokens come at once: 5 wait, so 4 may run. The fifth then waits alone, which makes the size 1: it joins
    # when all four have left. Two more come at 35 ms: 2 wait, so 2 may run, and one of them joins the fifth. The other
    # waits alone, until nobody runs.
    rows = [*(request(row) for row in range(5)), request(5, 0.035), request(6, 0.035)]
    replayed = simulate(rows, [3] * 7, max_running=SMALL)
    assert replayed.column("admitted") == [0.0, 0.0, 0.0, 0.0, 0.030, 0.040, 0.070]
    assert replayed.steps["slots"].to_list() == [4, 1, 1, 1, 2, 1, 1, 1, 1, 1]
    assert replayed.steps["running"].to_list() == [4, 4, 4, 1, 2, 2, 1, 1, 1, 1]
    assert replayed.column("evictions") == [0] * 7, "a smaller size evicts nobody"


def test_adaptive_in_continuous_mode_by_memory() -> None:
    # Prompts of 4 tokens, one every 10 ms, 16 blocks of one token. The first two hold 4, 5 + 4, 6 + 5 (69 %) and 7 + 6
    # blocks (81 %) in the steps that begin at 0, 10, 20 and 30 ms. The third lacks blocks at 20 and 30 ms. At 40 ms
    # over 70 % are in use: the size is 1, so it is the size that keeps it out, and both residents go on.
    rule = Adaptive(kv_use=0.7, kv_size=1, long_queue=4, long_size=3, middle_queue=3, middle_size=3, short_size=3)
    rows = [request(row, row / 100, 4) for row in range(4)]
    replayed = simulate(rows, [5] * 4, max_running=rule, blocks=16, block_size=1)
    assert replayed.steps["used_blocks"].to_list()[:4] == [4, 9, 11, 13]
    assert replayed.steps["slots"].to_list()[:5] == [3, 3, 3, 3, 1]
    assert replayed.steps["bound"].to_list()[:5] == ["nothing", "nothing", "blocks", "blocks", "slots"]
    assert replayed.steps["running"].to_list()[:5] == [1, 2, 2, 2, 2]


def test_adaptive_in_static_mode() -> None:
    # One waits at 0, which is a batch. At 30 ms there wait 3, so the batch is of 2; then one waits, which is a batch.
    rows = [request(0, 0.0), *(request(row, 0.010) for row in (1, 2, 3))]
    replayed = simulate(rows, [3, 2, 2, 2], mode="static", batch_size=SMALL)
    assert replayed.column("admitted") == [0.0, 0.030, 0.030, 0.050]


def test_a_static_batch_waits_for_the_size_in_force() -> None:
    # Three wait at 10 ms: the size is then 4, so they wait for a fourth, which comes at 50 ms.
    rule = Adaptive(kv_size=1, long_queue=3, long_size=5, middle_queue=2, middle_size=4, short_size=1)
    rows = [request(0, 0.0), *(request(row, 0.005) for row in (1, 2, 3)), request(4, 0.050), request(5, 1.0)]
    replayed = simulate(rows, [1] * 6, mode="static", batch_size=rule)
    assert replayed.column("admitted") == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert replayed.steps["slots"].to_list() == [1, 5]


def test_adaptive_in_dynamic_mode() -> None:
    # Full with the one that waits at 0. During it 4 come: the batch after it is of 4, at once.
    rows = [request(0, 0.0), *(request(row, 0.005) for row in (1, 2, 3, 4)), request(5, 0.006)]
    replayed = simulate(rows, [2, 1, 1, 1, 1, 1], mode="dynamic", max_batch_size=SMALL, max_wait_ms=100.0)
    assert replayed.column("admitted") == [0.0, 0.020, 0.020, 0.020, 0.020, 0.030]
    assert replayed.steps["slots"].to_list() == [1, 4, 4, 1]


def test_aimd_in_continuous_mode() -> None:
    # Goal 35 ms, steps of 10 + 10 n ms for n decodes; a decision at each decoding step. All wait from the start.
    # Alone (20 ms): grow to 2. The second's prompt goes beside a decode (20 ms): grow to 3, and then to 4, for
    # 10 + 20 ms are within the goal. With 3 decodes beside the fourth's prompt a step takes 40 ms: halve to 2. Steps 5
    # to 10 still have 4 or 3 residents: they take up to 50 ms, and the size stays 2. Step 11 has 2 and takes 30 ms, so
    # there is room for a third.
    rule = Aimd(tpot_ms=35, steps=1, largest=8)
    replayed = simulate([request(row) for row in range(6)], [9, 9, 9, 9, 2, 2], cost=BY_ROWS, max_running=rule)
    assert replayed.steps["decodes"].to_list()[:6] == [0, 1, 1, 2, 3, 4]
    assert replayed.steps["slots"].to_list()[:6] == [1, 1, 2, 3, 4, 2]
    assert replayed.steps["running"].to_list()[:6] == [1, 1, 2, 3, 4, 4]
    assert replayed.steps["running"].to_list()[6:13] == [4, 4, 4, 3, 3, 2, 3]
    assert replayed.steps["slots"].to_list()[6:13] == [2, 2, 2, 2, 2, 2, 3]


def test_aimd_in_continuous_mode_does_not_grow_on_what_the_pool_refused() -> None:
    # One block of 4 tokens: whoever waits, waits for blocks.
    rule = Aimd(tpot_ms=1000, steps=1, smallest=2, largest=8)
    rows = [request(row) for row in range(3)]
    replayed = simulate(rows, [3, 3, 3], max_running=rule, blocks=1, block_size=4)
    assert set(replayed.steps["slots"]) == {2}
    assert "blocks" in replayed.steps["bound"].to_list()


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_aimd_where_batches_run_to_their_end_grows_once_a_batch(mode: str) -> None:
    # Ten wait, with a goal that is met. The first batch is of 1 and leaves others waiting: it grows to 2, and no
    # further, for in later steps it is the gate that keeps them out. So the batches are of 1, 2, 3 and 4.
    rule = Aimd(tpot_ms=1000, steps=1)
    replayed = simulate([request(row) for row in range(10)], [4] * 10, mode=mode, **{SIZES[mode]: rule})
    assert replayed.column("admitted") == [0.0, 0.04, 0.04, 0.08, 0.08, 0.08, 0.12, 0.12, 0.12, 0.12]
    assert replayed.steps["slots"].to_list()[:4] == [1, 1, 2, 2]


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_aimd_where_batches_run_to_their_end_shrinks_once_a_batch(mode: str) -> None:
    # Batches of 4 decode in 50 ms: halved after the first such step, and held at 2 while the 4 go on. A batch of 2
    # takes 30 ms, so it grows again: 4, 2, 3, ...
    rule = Aimd(tpot_ms=35, steps=1, smallest=4, largest=4)
    rule.smallest = 1
    replayed = simulate([request(row) for row in range(9)], [4] * 9, mode=mode, cost=BY_ROWS, **{SIZES[mode]: rule})
    admitted = replayed.column("admitted")
    assert [admitted.count(instant) for instant in sorted(set(admitted))] == [4, 2, 3]
    assert replayed.steps["slots"].to_list()[:4] == [4, 4, 2, 2]


def test_where_steps_overlap_a_rule_hears_late_and_the_books_balance() -> None:
    rule = Aimd(tpot_ms=35, steps=1, largest=8)
    replayed = simulate(
        [request(row) for row in range(12)], [9] * 12, cost=BY_ROWS, max_running=rule, overlap=True, check=check_step
    )
    sizes = replayed.steps["slots"].to_list()
    assert sizes[:2] == [1, 1], "the second step was planned before the first was back"
    assert 3 <= max(sizes) < rule.largest
    assert min(sizes[sizes.index(max(sizes)) :]) <= max(sizes) // 2, "it shrank"
    assert replayed.requests["status"].unique().to_list() == ["completed"]


def check_admissions(replayed: Replayed, largest: int) -> None:
    steps = replayed.steps
    assert steps["running"].max() is None or steps["running"].max() <= largest
    assert steps["slots"].max() is None or steps["slots"].max() <= largest
    joined = steps.filter(steps["admitted"] > 0)
    assert (joined["running"] <= joined["slots"]).all(), "nobody joins residents who are as many as the size in force"


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """The settings of a rule, small enough for a few requests."""
    small = st.integers(1, 5)
    if draw(st.booleans()):
        middle = draw(st.integers(0, 3))
        return {
            "rule": "adaptive",
            "kv_use": draw(st.sampled_from([0.3, 0.6, 0.9])),
            "kv_size": draw(small),
            "long_queue": middle + draw(small),
            "long_size": draw(small),
            "middle_queue": middle,
            "middle_size": draw(small),
            "short_size": draw(small),
        }
    smallest = draw(st.integers(1, 3))
    return {
        "rule": "aimd",
        "tpot_ms": draw(st.sampled_from([10.0, 12.0, 15.0])),
        "increase": draw(st.integers(1, 3)),
        "decrease": draw(st.sampled_from([0.25, 0.5, 0.9])),
        "smallest": smallest,
        "largest": smallest + draw(st.integers(0, 4)),
        "steps": draw(st.integers(1, 3)),
    }


def fresh(settings: dict[str, Any]) -> BatchSize:
    options = dict(settings)
    return batch_sizes[options.pop("rule")](**options)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("mode", list(SIZES))
@settings(max_examples=40)
@given(case=cases(), rule=rules(), policy=st.sampled_from(list(policies)))
def test_nobody_joins_a_batch_as_large_as_the_size_in_force(
    mode: str, overlap: bool, case: Case, rule: dict[str, Any], policy: str
) -> None:
    def replay() -> Replayed:
        return simulate(
            case.rows(),
            case.outputs,
            mode=mode,
            policy=policy,
            blocks=case.blocks,
            block_size=case.block_size,
            cost=CostModel(fixed=0.010, prefill=0.0002, decode=0.0005, context=0.00001),
            limits=case.limits,
            overlap=overlap,
            check=check_step,
            **{SIZES[mode]: fresh(rule)},
        )

    replayed = replay()
    check_outcome(case, replayed)
    check_admissions(replayed, fresh(rule).largest)
    assert replay().steps.equals(replayed.steps), "the same again, to the last digit"


@pytest.mark.parametrize("mode", list(SIZES))
@settings(max_examples=20)
@given(case=cases(), size=st.integers(1, 4))
def test_a_rule_that_never_moves_is_a_number(mode: str, case: Case, size: int) -> None:
    still = [size, Aimd(smallest=size, largest=size), Adaptive(0.5, size, 9, size, 3, size, size)]
    found = [
        simulate(
            case.rows(), case.outputs, mode=mode, blocks=case.blocks, block_size=case.block_size, cost=UNIT,
            limits=case.limits, **{SIZES[mode]: value},
        )
        for value in still
    ]  # fmt: skip
    for table in ("requests", "steps", "spans"):
        assert getattr(found[0], table).equals(getattr(found[1], table))
        assert getattr(found[0], table).equals(getattr(found[2], table))
