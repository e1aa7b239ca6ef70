"""The prefix cache: what is shared, for how long, what it saves, and that it changes nothing where nothing is alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.block_keys import chain
from replay.contract.contents import Contents, answer
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.pool import KVPool
from replay.predictors import Oracle
from replay.records import Records
from replay.request import Request
from replay.scheduler import Ordered, Scheduler, Step, modes, policies

LINEAR = CostModel(fixed=0.0, prefill=0.001, decode=0.001)  # a token a millisecond
HEAD = list(range(1, 9))  # eight tokens that prompts share: two blocks of four


def replay(prompts: list[list[int]], outputs: list[int], arrivals: list[float], **settings: Any) -> Replayed:
    """Requests with these prompts, in blocks of four tokens, cached unless told otherwise."""
    rows = [request(row, arrivals[row], len(prompt)) for row, prompt in enumerate(prompts)]
    settings = {"block_size": 4, "prefix_cache": True, "verify": True, "cost": LINEAR} | settings
    return simulate(rows, outputs, prompts=dict(enumerate(prompts)), **settings)


def test_a_shared_prefix_is_computed_once() -> None:
    # The first computes 9 tokens in 9 ms and decodes its second token to 10 ms. The second, at 20 ms, finds the two
    # blocks of the prefix and computes 11 - 8 = 3 tokens to 23 ms, then decodes to 24 ms.
    replayed = replay([[*HEAD, 20], [*HEAD, 30, 31, 32]], [2, 2], [0.0, 0.02])
    assert replayed.column("token_times") == [[0.009, 0.010], [0.023, 0.024]]
    assert replayed.column("cached_tokens") == [0, 8]
    assert replayed.steps["prefill_tokens"].to_list() == [9, 0, 3, 0]
    assert replayed.spans.filter(row=1)["tokens"].to_list() == [3, 1]


def test_without_a_cache_every_prompt_is_computed_in_full() -> None:
    replayed = replay([[*HEAD, 20], [*HEAD, 30, 31, 32]], [2, 2], [0.0, 0.02], prefix_cache=False)
    assert replayed.column("token_times") == [[0.009, 0.010], [0.031, 0.032]]
    assert replayed.column("cached_tokens") == [None, None]


@pytest.mark.parametrize(
    ("mode", "settings"), [("static", {"batch_size": 1}), ("dynamic", {"max_batch_size": 1, "max_wait_ms": 0.0})]
)
def test_a_padded_batch_uses_no_cache(mode: str, settings: dict[str, Any]) -> None:
    replayed = replay([HEAD, HEAD], [1, 1], [0.0, 0.02], mode=mode, **settings)
    assert replayed.column("token_times") == [[0.008], [0.028]]
    assert replayed.column("cached_tokens") == [None, None]


@pytest.mark.parametrize(("tokens", "cached"), [(4, 0), (5, 4), (8, 4), (9, 8)])
def test_a_prompt_that_is_wholly_cached_still_computes_its_last_token(tokens: int, cached: int) -> None:
    # Of 4 or 8 tokens the last block would be cached too, but then nothing would be left to sample from.
    prompt = list(range(tokens))
    replayed = replay([prompt, prompt], [1, 1], [0.0, 0.02])
    assert replayed.column("cached_tokens") == [0, cached]
    assert replayed.column("finished")[1] == pytest.approx(0.02 + (tokens - cached) / 1000)


def test_blocks_are_shared_while_they_are_in_use_and_cost_nothing_then() -> None:
    # Six blocks. The first holds 3 of them (9 + 3 tokens) when the second comes, which needs 11 tokens: 2 blocks
    # shared, one of its own, and one free for each of the two to grow. Without the cache it would have to wait.
    prompts, outputs, arrivals = [[*HEAD, 20], [*HEAD, 30, 31]], [3, 3], [0.0, 0.005]
    shared = replay(prompts, outputs, arrivals, blocks=6)
    assert shared.column("admitted") == [0.0, 0.009]
    assert shared.steps["used_blocks"].max() == 4
    alone = replay(prompts, outputs, arrivals, blocks=6, prefix_cache=False)
    assert alone.column("admitted") == [0.0, 0.011]


def test_nothing_is_shared_within_the_step_that_computes_it() -> None:
    # Both come at once: the keys and values of the prefix exist only when the step has ended.
    replayed = replay([[*HEAD, 20], [*HEAD, 30]], [1, 1], [0.0, 0.0])
    assert replayed.column("cached_tokens") == [0, 0]
    # With one slot the second comes a step later, and finds them.
    assert replay([[*HEAD, 20], [*HEAD, 30]], [1, 1], [0.0, 0.0], max_running=1).column("cached_tokens") == [0, 8]


def test_a_chunk_that_is_computed_can_be_shared_before_the_prompt_is() -> None:
    # A budget of 5: after the first chunk one block is full. The second step computes the other 4 tokens of the first
    # prompt, and of the second prompt, whose first block is there, one.
    replayed = replay([[*HEAD, 20], [*HEAD, 30]], [1, 1], [0.0, 0.004], token_budget=5)
    assert replayed.column("cached_tokens")[1] == 4
    assert replayed.spans.filter(row=1)["tokens"].to_list() == [5]


def test_the_budget_is_charged_for_what_is_computed() -> None:
    # A budget of 9: without the cache, the 11 tokens of the second would take two steps.
    replayed = replay([[*HEAD, 20], [*HEAD, 30, 31, 32]], [1, 1], [0.0, 0.1], token_budget=9)
    assert replayed.steps["prefill_tokens"].to_list() == [9, 3]


def test_a_whole_prefill_counts_what_is_left_of_it() -> None:
    replayed = replay([HEAD, [*HEAD, 20], [40, 41, 42]], [1, 1, 1], [0.0, 0.1, 0.1], token_budget=8, prefill="whole")
    assert replayed.steps["prefill_tokens"].to_list() == [8, 4]  # 1 + 3 fit together; 9 + 3 would not


def test_the_tail_of_a_prefix_is_reused_before_its_head() -> None:
    # Six blocks. Two requests leave 2 full blocks each, and 2 blank ones. A third needs 3 blocks: the blank ones, then
    # the one unused for longest, which is the second block of the first prompt; its first is still found.
    one, two = list(range(9)), list(range(20, 29))
    prompts = [one, two, list(range(40, 49)), one]
    replayed = replay(prompts, [1, 1, 1, 1], [0.0, 0.1, 0.2, 0.3], blocks=6)
    assert replayed.column("cached_tokens") == [0, 0, 0, 4]


def test_what_nobody_can_look_for_is_reused_before_a_prefix() -> None:
    # Six blocks. The first leaves its 2 full blocks, and 4 are blank. The second, of 1 + 12 tokens, fills 3 of these
    # and begins the fourth; no prompt holds tokens of its answer, so they are blank again when it is over. The third
    # finds 3 blank ones, and the first prompt is still there.
    one, three = list(range(9)), list(range(40, 49))
    replayed = replay([one, [20], three, one], [1, 13, 1, 1], [0.0, 0.1, 0.2, 0.3], blocks=6)
    assert replayed.column("cached_tokens") == [0, 0, 0, 8]


def test_an_evicted_request_finds_its_own_blocks_again() -> None:
    # Blocks of one token, six of them: with prompts of 1 both need a fourth block at their fourth token, and the newest
    # gives way. Its 3 tokens are left in blocks that the other has no need of but one; so it is not computed from its
    # start, but from what is left.
    prompts, outputs, settings = [[7], [8]], [4, 4], {"blocks": 6, "block_size": 1, "max_running": 2}
    cached = replay(prompts, outputs, [0.0, 0.0], **settings)
    plain = replay(prompts, outputs, [0.0, 0.0], prefix_cache=False, **settings)
    assert cached.column("evictions") == plain.column("evictions") == [0, 1]
    assert plain.column("recomputed_tokens") == [0, 3]
    assert cached.column("recomputed_tokens") == [0, 1]  # one of the three went to the other
    assert cached.column("cached_tokens") == [0, 0], "a hit is counted at the first admission, and there was none"


@pytest.mark.parametrize("settings", [{}, {"max_running": 1}, {"token_budget": 3}])
def test_all_answers_of_one_long_prompt(settings: dict[str, Any]) -> None:
    prompts = [[*HEAD, *HEAD, row] for row in range(5)]
    replayed = replay(prompts, [9, 1, 5, 3, 7], [0.0, 0.002, 0.004, 0.03, 0.031], **settings)
    assert replayed.column("generated_tokens") == [9, 1, 5, 3, 7]
    assert max(replayed.column("cached_tokens")) == 16


class Asking(Ordered):
    """Notes what the cache would save those who wait, and what it saved them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int]] = []

    def schedule(self, step: Step) -> None:
        self.asked += [(one.row, step.prefix_hit(one)) for one in step.waiting]
        super().schedule(step)
        self.asked += [(one.row, step.prefix_hit(one)) for one in step.running]


def test_a_policy_sees_what_the_cache_would_save_now() -> None:
    policy = Asking()
    replayed = replay([[*HEAD, 20], [*HEAD, 30]], [1, 1], [0.0, 0.1], policy=policy)
    assert policy.asked == [(0, 0), (0, 0), (1, 8), (1, 0)]
    assert replayed.column("cached_tokens") == [0, 8]


@settings(max_examples=60)
@given(
    prompts=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=12), min_size=1, max_size=8),
    outputs=st.lists(st.integers(1, 6), min_size=8, max_size=8),
    block_size=st.sampled_from([1, 2, 4]),
)
def test_with_room_for_all_each_prefix_is_computed_once(
    prompts: list[list[int]], outputs: list[int], block_size: int
) -> None:
    # One at a time: what is computed is what no prompt before had at the same place after the same tokens, in whole
    # blocks; and the last token of each.
    arrivals = [float(row) for row in range(len(prompts))]
    outputs = outputs[: len(prompts)]
    replayed = replay(prompts, outputs, arrivals, block_size=block_size)
    seen: set[tuple[int, ...]] = set()
    expected = []
    for prompt in prompts:
        full = [tuple(prompt[: end + block_size]) for end in range(0, len(prompt) - block_size + 1, block_size)]
        usable = full[: (len(prompt) - 1) // block_size]
        hits = next((index for index, block in enumerate(usable) if block not in seen), len(usable))
        expected.append(hits * block_size)
        seen.update(full)
    assert replayed.column("cached_tokens") == expected
    assert replayed.steps["prefill_tokens"].sum() == sum(map(len, prompts)) - sum(expected)


def test_keys_are_equal_where_all_tokens_up_to_there_are() -> None:
    one, two = np.array([1, 2, 3, 4, 5, 6, 7], np.int32), np.array([1, 2, 3, 9, 5, 6, 7], np.int32)
    assert len(chain(one, 2)) == 3
    assert chain(one, 2) == chain(one[:6], 2)
    assert chain(one, 2)[0] == chain(two, 2)[0]
    assert set(chain(one, 2)[1:]).isdisjoint(chain(two, 2)), "equal tokens after different ones are not alike"
    assert chain(one, 8) == []
    assert chain(one, 2) != chain(one, 3)


def test_a_key_leads_to_one_block_and_a_reused_block_has_none() -> None:
    pool = KVPool(3, 4, prefix_cache=True)
    assert pool.grow(0, 8)
    pool.name(0, 0, 11)
    pool.name(0, 1, 12)
    assert pool.grow(1, 4)
    pool.name(1, 0, 11)  # computed twice at the same time: the first keeps the name
    assert [pool.tables[0], pool.find([11, 12, 13])] == [[0, 1], [0, 1]]
    pool.release(0)
    assert pool.free_blocks == 2
    assert pool.grow(2, 8, pool.find([11]))  # shares the head; the other block is the tail, which loses its name
    assert pool.tables[2] == [0, 1]
    assert pool.find([11, 12]) == [0]
    assert not pool.writable(2, 3, 4), "the head is full, and others may read it"
    assert pool.writable(2, 4, 8)
    pool.check_integrity()


def test_to_share_a_free_block_takes_it_from_the_free_ones() -> None:
    pool = KVPool(3, 4, prefix_cache=True)
    assert pool.grow(0, 8)
    pool.name(0, 0, 11)
    pool.name(0, 1, 12)
    pool.release(0)
    hits = pool.find([11, 12])
    assert pool.held(hits) == 0
    assert not pool.grow(1, 16, hits), "two of the three are the ones found; one is left, and two are missing"
    assert pool.free_blocks == 3
    assert pool.grow(1, 12, hits)
    assert pool.free_blocks == 0
    assert pool.grow(2, 8, hits), "who shares what another holds takes nothing"
    assert not pool.grow(3, 12, hits)
    pool.check_integrity()
    assert [pool.release(1), pool.free_blocks] == [3, 1]
    assert [pool.release(2), pool.free_blocks] == [2, 3]


def test_a_miscounted_reference_is_noticed() -> None:
    pool = KVPool(2, 4, prefix_cache=True)
    pool.grow(0, 4)
    pool.tables[1] = list(pool.tables[0])
    with pytest.raises(AssertionError, match="miscounted"):
        pool.check_integrity()


@pytest.mark.parametrize("host_blocks", [0, 8])
def test_a_client_that_goes_away_leaves_what_it_shared_to_the_others(host_blocks: int) -> None:
    # Fifty times: of two requests with one prefix the first, the second, or neither goes after so many steps; one more
    # waits in vain. Then a last request needs the whole pool.
    pool = KVPool(12, 4, host_blocks=host_blocks, prefix_cache=True)
    lengths, prompts = [6] * 150 + [1], {150: list(range(500, 547))}
    contents = Contents(12, host_blocks, 4, prompts)
    scheduler = Scheduler(
        policy=policies["fifo"](),
        mode=modes["continuous"](max_running=2, token_budget=6),
        pool=pool,
        output_tokens=lengths,
        predictor=Oracle(),
        cost=LINEAR,
        records=Records(),
    )
    now = 0.0

    def run(arrivals: list[Request], gone: dict[int, Request]) -> None:
        nonlocal now
        for request_ in arrivals:
            request_.block_keys = chain(np.array(prompts[request_.row], np.int32), 4)
            contents.answers[request_.row] = []
        step = 0
        while (batch := scheduler.plan(now, arrivals)) is not None:
            arrivals = []
            contents.compute(batch)
            scheduler.advance(batch)
            now += 0.1
            scheduler.complete(batch, now - 0.1, now)
            if step in gone:
                scheduler.cancel(gone[step], now, reason="client gone")
            scheduler.check_integrity()
            step += 1

    for turn in range(50):
        rows = range(3 * turn, 3 * turn + 3)
        prompts |= {row: [*HEAD, 50 + turn % 3, row] for row in rows}
        first, second, third = (request(row, now, 10, max_tokens=6) for row in rows)
        run([first, second, third], {turn % 7: (first, second, third)[turn % 3], 1: third})
        for one in (first, second):
            assert contents.answers[one.row] == answer(prompts[one.row], one.generated)
            assert one.status == "cancelled" or one.generated == 6
        assert third.status in ("cancelled", "completed")
        assert scheduler.idle
        assert (pool.free_blocks, pool.host.free_blocks) == (12, host_blocks)
    last = request(150, now, 47, max_tokens=1)
    run([last], {})
    assert (last.status, pool.free_blocks) == ("completed", 12)
