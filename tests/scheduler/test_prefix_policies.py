"""Policies that know prefixes: their orders and bounds, and that without a cache they are first come, first served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies as _registered  # noqa: F401  # importing it registers every policy
from policies.dfs_weight import DfsWeight
from policies.dlpm import Dlpm
from policies.klpm import KLpm
from policies.lpm import Lpm
from replay.contract.cases import MODES, Case, Engine, cases, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import Batch
from replay.replayer import Replayer
from replay.scheduler import Policy

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]
CACHED = st.builds(Engine, st.just(True), st.sampled_from([0, 3, 100]), st.booleans())
PREFIX: dict[str, Callable[[], Policy]] = {
    "lpm": Lpm,
    "lpm(ageing)": lambda: Lpm(ageing=50.0),
    "klpm": lambda: KLpm(k=2),
    "dfs_weight": DfsWeight,
}
X, Y, Z = (list(range(start, start + 8)) for start in (1, 101, 201))  # two blocks of four tokens


def serve(
    prompts: list[list[int]],
    policy: str | Policy,
    arrivals: list[float] | None = None,
    users: list[str] | None = None,
    outputs: list[int] | None = None,
    **engine: Any,
) -> Replayed:
    """Prompts in blocks of four tokens, with a cache; one slot, and answers of one token, unless told otherwise."""
    rows = [
        request(row, arrivals[row] if arrivals else 0.0, len(prompt), user=users[row] if users else None)
        for row, prompt in enumerate(prompts)
    ]
    engine = {"block_size": 4, "prefix_cache": True, "max_running": 1} | engine
    return simulate(rows, outputs or [1] * len(rows), policy=policy, prompts=dict(enumerate(prompts)), **engine)


def order(replayed: Replayed) -> list[int]:
    """Rows, as they were admitted."""
    return sorted(range(len(replayed.objects)), key=lambda row: replayed.objects[row].admitted or 0.0)


def widest(replayed: Replayed) -> float:
    """The most by which one of ada and bob got ahead of the other, in tokens computed and twice those of answers, in
    any span of time in which both waited."""
    until = min(max(one.admitted or 0.0 for one in replayed.objects if one.user == user) for user in ("ada", "bob"))
    gains: dict[float, float] = {}
    for one in replayed.objects:
        sign = 1 if one.user == "ada" else -1
        assert one.admitted is not None
        assert one.cached_tokens is not None
        if one.admitted < until:
            gains[one.admitted] = gains.get(one.admitted, 0) + sign * (one.prompt_tokens - one.cached_tokens)
        for instant in one.token_times:
            if instant <= until:
                gains[instant] = gains.get(instant, 0) + 2 * sign
    leads = [sum(gain for instant, gain in gains.items() if instant <= end) for end in (-1.0, *gains)]
    return max(leads) - min(leads)


def same(one: Replayed, other: Replayed) -> bool:
    return all(getattr(one, table).equals(getattr(other, table)) for table in ("requests", "steps", "spans"))


def test_the_longest_prefix_goes_first() -> None:
    # While the first runs, three come: one that the cache does not know, one with a block in it, and one with two.
    prompts = [[*X, 20], [*Y, 30], [*X[:4], *Z], [*X, 40, 41]]
    arrivals = [0.0, 0.005, 0.006, 0.007]
    assert order(serve(prompts, "fifo", arrivals)) == [0, 1, 2, 3]
    replayed = serve(prompts, "lpm", arrivals)
    assert order(replayed) == [0, 3, 2, 1]
    assert replayed.column("cached_tokens") == [0, 0, 4, 8]


def test_with_more_waiting_than_the_fallback_it_is_first_come_first_served() -> None:
    prompts = [[*X, 20], [*Y, 30], [*X[:4], *Z], [*X, 40, 41]]
    arrivals = [0.0, 0.005, 0.006, 0.007]
    assert order(serve(prompts, Lpm(fallback=2), arrivals)) == [0, 1, 3, 2], "three wait at 10 ms, two at 20 ms"


def test_a_cold_request_starves_and_with_ageing_does_not() -> None:
    # From 0 s on there is always a request of prefix X, 21 of them, one each 10 ms; a cold one comes at 5 ms. It is
    # last; with a token for each 10 ms of waiting, it has the better of those who come 85 ms after it: 8 - 100 * 0.09.
    prompts = [[*X, 1000 + row] for row in range(21)] + [[*Y, 2000]]
    arrivals = [0.0] + [row / 100 for row in range(20)] + [0.005]
    admitted = {}
    for name, policy in (("fifo", "fifo"), ("lpm", Lpm()), ("ageing", Lpm(ageing=100.0)), ("klpm", KLpm(k=4))):
        admitted[name] = serve(prompts, policy, arrivals).column("admitted")[21]
    # Of five picks klpm's last is the oldest: at 40 ms that is the cold one, for those before it have gone.
    assert admitted == {"fifo": 0.02, "klpm": 0.04, "ageing": 0.10, "lpm": 0.21}


def test_of_those_who_share_a_cold_prefix_one_goes_ahead() -> None:
    # Two have 32 tokens in common that the cache does not know; a third has others. Of the two slots the first of the
    # pair gets one and the third the other, and then the second finds what the first has computed.
    common = list(range(500, 532))
    prompts = [[*common, 1], [*common, 2], [*Y, 3]]
    assert serve(prompts, "fifo", max_running=2).column("cached_tokens") == [0, 0, 0]
    replayed = serve(prompts, "lpm", max_running=2)
    assert replayed.column("admitted") == [0.0, 0.01, 0.0]
    assert replayed.column("cached_tokens") == [0, 32, 0]
    short = [prompt[:28] + prompt[32:] for prompt in prompts]  # 28 tokens in common are not enough
    assert serve(short, "lpm", max_running=2).column("admitted") == [0.0, 0.0, 0.01]


def test_depth_first_search_finds_all_that_can_be_found() -> None:
    # By turns four of prefix X and three of Y, and a pool of three blocks, which one prompt of 9 tokens takes. First
    # come, first served finds a prefix once, at the end. Depth first, each is computed once: X, for which more wait,
    # then Y. 8 tokens are saved for each of the other five.
    prompts = [[*Y, 300], *([*(Y if row % 2 else X), 301 + row] for row in range(4)), [*X, 305], [*X, 306]]
    found = {name: serve(prompts, name, blocks=3) for name in ("fifo", "dfs_weight")}
    assert order(found["dfs_weight"]) == [1, 3, 5, 6, 0, 2, 4]
    assert found["dfs_weight"].column("cached_tokens") == [0, 0, 8, 8, 8, 8, 8]
    distinct = len({tuple(prompt[: at + 1]) for prompt in prompts for at in range(len(prompt))})
    computed = {name: replayed.steps["prefill_tokens"].sum() for name, replayed in found.items()}
    assert computed["dfs_weight"] == distinct, "every token of every prefix once: no order does with less"
    assert computed["fifo"] == distinct + 4 * 8, "but for the last X, which comes after one"


def test_a_branch_below_a_branch_is_finished_first() -> None:
    # X one and X two are below X. X two, where three wait, goes first, then X one, then who ends at X. Y is alone.
    one, two = list(range(600, 604)), list(range(700, 704))
    prompts = [[*Y, 1], [*X, *one, 2], [*X, 3], [*X, *two, 4], [*X, *two, 5], [*X, *one, 6], [*X, *two, 7]]
    assert order(serve(prompts, "dfs_weight")) == [3, 4, 6, 1, 5, 2, 0]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("policy", list(PREFIX))
@settings(max_examples=10)
@given(case=cases(), cache=st.booleans(), host=st.sampled_from([0, 100]), overlap=st.booleans())
def test_without_a_cache_they_are_fifo_to_the_last_digit(
    policy: str, mode: tuple[str, dict[str, Any]], case: Case, cache: bool, host: int, overlap: bool
) -> None:
    engine = Engine(cache and mode not in CONTINUOUS, host, overlap)  # one that pads uses none
    assert same(replay(case, PREFIX[policy](), mode, engine), replay(case, "fifo", mode, engine))


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=15)
@given(case=cases(), quantum=st.sampled_from([0.5, 9.0, 1e9]), engine=CACHED)
def test_dlpm_with_one_user_is_lpm_and_without_a_cache_fifo(
    mode: tuple[str, dict[str, Any]], case: Case, quantum: float, engine: Engine
) -> None:
    case.users = ["ada"] * len(case.users)
    assert same(replay(case, Dlpm(quantum=quantum), mode, engine), replay(case, "lpm", mode, engine))
    assert same(replay(case, Dlpm(quantum=quantum), mode), replay(case, "fifo", mode))


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=15)
@given(case=cases(), engine=CACHED)
def test_dlpm_with_a_huge_quantum_is_lpm_and_klpm_lies_between_fifo_and_lpm(
    mode: tuple[str, dict[str, Any]], case: Case, engine: Engine
) -> None:
    lpm = replay(case, "lpm", mode, engine)
    assert same(replay(case, Dlpm(quantum=1e12), mode, engine), lpm)
    assert same(replay(case, KLpm(k=10**9), mode, engine), lpm)
    assert same(replay(case, KLpm(k=0), mode, engine), replay(case, "fifo", mode, engine))


@settings(max_examples=30)
@given(
    heads=st.lists(st.sampled_from([0, 1, 2]), min_size=2, max_size=24),
    coming=st.lists(st.integers(0, 12), min_size=24, max_size=24),
    k=st.integers(0, 4),
    slots=st.integers(1, 3),
)
def test_whoever_is_qth_in_line_is_admitted_within_k_plus_1_times_q_picks(
    heads: list[int], coming: list[int], k: int, slots: int
) -> None:
    prompts = [[*(X, Y, Z)[head], 300 + row] for row, head in enumerate(heads)]
    arrivals = sorted(instant / 200 for instant in coming[: len(heads)])
    replayed = serve(prompts, KLpm(k=k), arrivals, max_running=slots, outputs=[1 + head for head in heads])
    assert not any(replayed.column("evictions")), "so that the sequence of an admission is its number"
    rows = replayed.objects
    for one in rows:
        # Who came before it, and those who were admitted before the step in which it first waited.
        gone = [other for other in rows if other.row != one.row and (other.admitted or 0.0) < one.due]
        line = [other for other in rows if other.row <= one.row and other not in gone]
        assert one.sequence - len(gone) < (k + 1) * len(line)


@settings(max_examples=30)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1, 2]), st.integers(1, 8), st.integers(1, 6)),
        min_size=16,
        max_size=40,
    ),
    quantum=st.sampled_from([0.5, 5.0, 50.0]),
    slots=st.integers(1, 3),
)
def test_dlpm_keeps_deficits_in_their_range_and_two_who_always_wait_within_it_twice(
    rows: list[tuple[int, int, int, int]], quantum: float, slots: int
) -> None:
    # U = max(longest prompt, 2 M), M being the tokens of as many of the longest requests as there are slots. What was
    # found in the cache costs nothing. With a small quantum that is the bound of vtc.
    users = ["bob" if user else "ada" for user, *_ in rows]
    prompts = [
        [*(X, Y, Z)[head], *range(1000 * row + 1000, 1000 * row + 1000 + own)]
        for row, (_, head, own, _) in enumerate(rows)
    ]
    outputs = [output for *_, output in rows]
    bound = 2 * slots * (max(map(len, prompts)) + max(outputs))
    dlpm = Dlpm(quantum=quantum)

    def check(replayer: Replayer, batch: Batch) -> None:
        for user in ("ada", "bob"):
            assert -bound <= dlpm._deficits.of(user) <= quantum

    replayed = serve(prompts, dlpm, users=users, outputs=outputs, max_running=slots, blocks=60, check=check)
    if len(set(users)) == 2:
        assert widest(replayed) <= 2 * (bound + quantum)


def test_what_the_cache_held_costs_nothing() -> None:
    # Of three prompts of 9 tokens the last two find 8: computed are 9 + 1 + 1, and three answers of 2 tokens.
    policy = Dlpm(quantum=1000.0)
    serve([[*X, 20], [*X, 30], [*X, 40]], policy, users=["ada"] * 3, outputs=[2, 2, 2])
    assert policy._deficits.of("ada") == 1000 - (9 + 1 + 1) - 2 * 6


def test_dlpm_finds_what_vtc_drives_out_and_keeps_users_nearer_than_lpm() -> None:
    # Four prefixes of ada, who begins them all alike, and four of bob; a pool that holds one or two of them. By turns
    # of service, vtc goes from prefix to prefix as they came. With lpm each of ada's leads to the next, and bob waits
    # for all of them; dlpm leaves ada when what it may receive is spent.
    prompts, users = [], []
    for row in range(64):
        head = row % 8
        first = 100 * head if head % 2 else 0
        prompts.append([*range(first, first + 8), *range(100 * head + 8, 100 * head + 16), 5000 + row])
        users.append("bob" if head % 2 else "ada")
    hits, apart = {}, {}
    for name, policy in (("vtc", "vtc"), ("dlpm", Dlpm(quantum=60.0)), ("lpm", "lpm")):
        replayed = serve(prompts, policy, users=users, blocks=12)
        hits[name] = sum(replayed.column("cached_tokens"))
        apart[name] = widest(replayed)
    assert hits["vtc"] < hits["dlpm"] <= hits["lpm"]
    assert apart["dlpm"] < apart["lpm"]
