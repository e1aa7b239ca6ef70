"""Policies that are fair between users: their bounds as the papers have them, and examples worked by hand.

Service is 1 for a token of a prompt, at its admission, and 2 for one of an answer, when it comes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import policies as _registered  # noqa: F401  # importing it registers every policy
from policies.drr import Drr
from policies.lcf import Lcf
from policies.rate_limit import RateLimit
from policies.round_robin import RoundRobin
from policies.vtc import Vtc
from policies.wfq import Wfq
from replay.contract.cases import MODES, Case, Engine, cases, check_outcome, engines, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.errors import ExperimentError
from replay.executors.interface import Batch, CostModel
from replay.experiment.faults import Faults
from replay.experiment.options import options_of
from replay.experiment.rules import make, validate_options
from replay.replayer import Replayer
from replay.request import Request
from replay.scheduler import Deficits, Policy, Step, policies

FAIR: dict[str, Callable[[], Policy]] = {
    **{name: policies[name] for name in ("fair", "round_robin", "lcf", "vtc", "wfq", "drr")},
    "vtc(predict)": lambda: Vtc(predict=True),
    "drr(7)": lambda: Drr(quantum=7),
}
TENTHS = st.integers(1, 100).map(lambda count: count / 10)
Event = tuple[float, float]  # when, and how much ada is ahead of bob from then on


def served(replayed: Replayed) -> list[str | None]:
    """The users, in the order in which their requests were first admitted, one slot being all there is."""
    return [one.user for one in sorted(replayed.objects, key=lambda one: one.admitted or 0.0)]


def equal_requests(users: list[str], arrival: float = 0.0, first: int = 0) -> list[Request]:
    """One request of each, in order: a prompt of 8 and an answer of 1 token, a step and a service of 10."""
    return [request(first + place, arrival, 8, user=user) for place, user in enumerate(users)]


def lead(replayed: Replayed, *, whole: bool = False, weights: dict[str, float] | None = None) -> list[Event]:
    """How far ada's service by weight is ahead of bob's, from the start to where one of them waits no more.

    With `whole`, all of a request counts at its admission; of a prompt, what was cached does not count.
    """
    gains: dict[float, float] = defaultdict(float)
    until = min(max(one.admitted or 0.0 for one in replayed.objects if one.user == user) for user in ("ada", "bob"))
    for one in replayed.objects:
        sign = {"ada": 1.0, "bob": -1.0}.get(one.user or "", 0.0) / (weights or {}).get(one.user or "", 1.0)
        assert one.admitted is not None
        if one.admitted < until:
            gains[one.admitted] += sign * (one.prompt_tokens - (one.cached_tokens or 0))
            gains[one.admitted] += sign * 2 * len(one.token_times) * whole
        for instant in one.token_times if not whole else ():
            if instant <= until:
                gains[instant] += 2 * sign
    total, found = 0.0, [(0.0, 0.0)]
    for instant in sorted(gains):
        total += gains[instant]
        found.append((instant, total))
    return found


def spread(events: list[Event]) -> float:
    """The most by which the lead changes between two instants."""
    values = [value for _, value in events]
    return max(values) - min(values)


@st.composite
def contests(draw: st.DrawFn) -> tuple[list[Request], list[int], dict[str, Any]]:
    """Ada and bob who have many requests from the start, of lengths of their own; cleo now and then; a mode; a pool.

    Blocks of one token, and an admission rule that looks at the next tokens only, so that many are evicted.
    """
    slots = draw(st.integers(1, 3))
    longest = (
        draw(st.tuples(st.integers(1, 16), st.integers(1, 16))),
        draw(st.tuples(st.integers(1, 8), st.integers(1, 8))),
    )
    rows, outputs = [], []
    for row in range(draw(st.integers(20, 40))):
        user = draw(st.sampled_from([0, 1]))
        rows.append(request(row, 0.0, draw(st.integers(1, longest[0][user])), user=("ada", "bob")[user]))
        outputs.append(draw(st.integers(1, longest[1][user])))
    for row in range(len(rows), len(rows) + draw(st.integers(0, 8))):
        rows.append(request(row, draw(st.integers(0, 60)) / 100, draw(st.integers(1, 16)), user="cleo"))
        outputs.append(draw(st.integers(1, 8)))
    assume({"ada", "bob"} <= {one.user for one in rows})
    mode = draw(
        st.sampled_from(
            [
                {"mode": "continuous", "max_running": slots},
                {"mode": "continuous", "max_running": slots, "token_budget": 5},
                {"mode": "static", "batch_size": slots},
            ]
        )
    )
    largest = max(one.prompt_tokens + output for one, output in zip(rows, outputs, strict=True))
    return rows, outputs, {**mode, "block_size": 1, "blocks": largest + draw(st.integers(0, 12)), "slots": slots}


def most(rows: list[Request], outputs: list[int], slots: int) -> float:
    """U = max(longest prompt, 2 M), M being the most tokens of a running batch: of as many of the longest requests as
    there are slots."""
    prompt = max(one.prompt_tokens for one in rows)
    return max(prompt, 2 * slots * (prompt + max(outputs)))


@pytest.mark.parametrize("back", [False, True])
def test_who_joins_the_queue_starts_level_with_the_least_of_those_in_it(back: bool) -> None:
    # A and B have had 100 each when C joins, new or back from idle: A B C A B C. Without the lift it is C until it has
    # had 100 too: ten times, or nine when it had 10 before.
    early = equal_requests(["C"] * back + ["A", "B"] * 20)
    joins = (20 + back) / 100
    for policy, expected in (("vtc", ["A", "B", "C"] * 3), ("lcf", ["C"] * (10 - back) + ["A", "B", "C"])):
        rows = [request(one.row, 0.0, 8, user=one.user) for one in early]
        rows += equal_requests(["C"] * 20, joins, len(rows))
        replayed = simulate(rows, [1] * len(rows), policy=policy, max_running=1)
        order = served(replayed)
        assert Counter(order[: 20 + back]) == Counter({"A": 10, "B": 10} | ({"C": 1} if back else {}))
        assert order[20 + back :][: len(expected)] == expected


def test_who_comes_to_an_empty_queue_is_lifted_to_whoever_left_it_last() -> None:
    # Ada's eleven requests are over at 0.11 s, and nobody waits, when bob comes, and then ada again. He is lifted to
    # her 110, so they take turns. Without the lift he has all his twelve first.
    for policy, expected in (("vtc", ["bob", "ada"] * 12), ("lcf", ["bob"] * 12 + ["ada"] * 12)):
        rows = equal_requests(["ada"] * 11)
        rows += equal_requests(["bob"] * 12, 0.105, 11) + equal_requests(["ada"] * 12, 0.106, 23)
        assert served(simulate(rows, [1] * len(rows), policy=policy, max_running=1))[11:] == expected


def test_lcf_lets_who_returns_have_it_all_and_the_others_do_not() -> None:
    # Both cost 10 a request and 10 ms. Until bob comes at 0.5 s, ada has had 50 requests. In the half second after,
    # under lcf he has 500 and she nothing; under the others each has 250. For VTC, U = max(8, 2 * (8 + 1)) = 18.
    gained = {}
    for policy in (Lcf(), Vtc(), Vtc(predict=True), Wfq(), Drr(quantum=10), RoundRobin()):
        rows = [*equal_requests(["ada"] * 120), *equal_requests(["bob"] * 60, 0.5, 120)]
        replayed = simulate(rows, [1] * len(rows), policy=policy, max_running=1)
        late = [one for one in replayed.objects if 0.5 <= (one.admitted or 0.0) < 0.9999]
        gained[repr(policy)] = Counter(one.user for one in late)
    assert list(gained.values()) == [{"bob": 50}, *[{"ada": 25, "bob": 25}] * 5]
    assert 10 * (50 - 0) > 2 * 18


@settings(max_examples=40)
@given(contest=contests(), predict=st.booleans())
def test_vtc_keeps_two_who_always_wait_within_2_u(
    contest: tuple[list[Request], list[int], dict[str, Any]], predict: bool
) -> None:
    rows, outputs, engine = contest
    bound = most(rows, outputs, engine.pop("slots"))

    def check(replayer: Replayer, batch: Batch) -> None:
        """The counters of all who wait are within U of each other."""
        counters = [vtc.user_key(one.user, step) for one in replayer.scheduler.state.waiting.values()]
        assert not counters or max(counters) - min(counters) <= bound

    vtc = Vtc(predict=predict, admission="aggressive")
    step: Any = None  # a counter asks nothing of it
    replayed = simulate(rows, outputs, policy=vtc, check=check, **engine)
    assert spread(lead(replayed)) <= 2 * bound


@pytest.mark.parametrize("policy", ["fifo", "round_robin", "fair"])
def test_the_bound_of_vtc_is_none_for_those_who_count_requests(policy: str) -> None:
    # Ada's requests cost 32 and bob's 3. One slot, so U = 2 * (16 + 8) = 48; after 20 of each she is 580 ahead.
    rows = [request(row, 0.0, 1 if row % 2 else 16, user="bob" if row % 2 else "ada") for row in range(60)]
    outputs = [1 if row % 2 else 8 for row in range(60)]
    found = {}
    for name in (policy, "vtc"):
        fresh = [request(one.row, 0.0, one.prompt_tokens, user=one.user) for one in rows]
        found[name] = spread(lead(simulate(fresh, outputs, policy=name, max_running=1)))
    assert found["vtc"] <= 48
    assert found[policy] > 10 * 48


@settings(max_examples=40)
@given(contest=contests(), policy=st.sampled_from(["lcf", "vtc", "vtc(predict)"]))
def test_what_is_computed_again_is_never_charged(
    contest: tuple[list[Request], list[int], dict[str, Any]], policy: str
) -> None:
    rows, outputs, engine = contest
    engine.pop("slots")
    counting = FAIR[policy]()
    assert isinstance(counting, Lcf | Vtc)
    counting.admission = "aggressive"
    rows = [one for one in rows if one.user != "cleo"]
    simulate(rows, outputs[: len(rows)], policy=counting, **engine)
    step: Any = None
    for user in ("ada", "bob"):
        due = sum(one.prompt_tokens + 2 * one.generated for one in rows if one.user == user)
        assert counting.user_key(user, step) == pytest.approx(due)


def test_the_examples_with_evictions_have_some() -> None:
    rows = [request(row, 0.0, 8, user="bob" if row % 2 else "ada") for row in range(20)]
    replayed = simulate(rows, [12] * 20, policy=Vtc(admission="aggressive"), max_running=3, block_size=1, blocks=40)
    assert sum(replayed.column("evictions")) > 5


def test_an_eviction_brings_its_user_level_with_those_who_wait() -> None:
    # Blocks of one token, 26 of them. Ada's 20 and bob's 1 join in the first step; in the fourth they need 27, and bob
    # is evicted. He has had 1 + 3 * 2 by then, and ada, who has another waiting, 20 + 3 * 2: he comes back with 26.
    levels = []

    class Watched(Vtc):
        def on_evict(self, request: Request, step: Step) -> None:
            before = self.user_key(request.user, step)
            super().on_evict(request, step)
            levels.append((request.user, before, self.user_key(request.user, step)))

    rows = [request(0, 0.0, 20, user="ada"), request(1, 0.0, 1, user="bob"), request(2, 0.0, 1, user="ada")]
    simulate(rows, [6, 6, 1], policy=Watched(admission="aggressive"), max_running=2, block_size=1, blocks=26)
    assert levels == [("bob", 7.0, 26.0)]


def test_in_an_eviction_the_evicted_request_itself_does_not_count_as_waiting() -> None:
    # Both join in the first step, with 4 blocks each of the 8; in the next ada needs a fifth, and bob is evicted.
    asked = []

    class Asking(Vtc):
        def on_evict(self, request: Request, step: Step) -> None:
            asked.append((request.user, self.waits(request.user)))
            super().on_evict(request, step)

    rows = [request(0, 0.0, 4, user="ada"), request(1, 0.0, 4, user="bob")]
    simulate(rows, [4, 4], policy=Asking(admission="aggressive"), max_running=2, block_size=1, blocks=8)
    assert asked == [("bob", False)]


def test_shares_follow_the_weights() -> None:
    # Thirty requests that cost 10 each: by weights of 2 and 1, twenty of ada's and ten of bob's.
    for policy in (Vtc, Lcf, Wfq):
        rows = equal_requests(["ada", "bob"] * 30)
        replayed = simulate(rows, [1] * 60, policy=policy(weights={"ada": 2.0}), max_running=1)
        assert Counter(served(replayed)[:30]) == {"ada": 20, "bob": 10}
    rows = equal_requests(["ada", "bob"] * 60)
    drr = simulate(rows, [1] * 120, policy=Drr(quantum=10, weights={"ada": 2.0}), max_running=1)
    assert Counter(served(drr)[:60]) == {"ada": 40, "bob": 20}


@settings(max_examples=30)
@given(case=cases(), mode=st.sampled_from(MODES), scale=st.sampled_from([0.25, 2.0, 1024.0]))
def test_to_scale_all_weights_changes_nothing(case: Case, mode: tuple[str, dict[str, Any]], scale: float) -> None:
    case.users = [user or "alan" for user in case.users]
    weights = {"ada": 3.0, "grace": 0.5, "alan": 1.0}
    for policy in (Lcf, Vtc, Wfq):
        found = [
            replay(case, policy(weights={user: weight * factor for user, weight in weights.items()}), mode)
            for factor in (1.0, scale)
        ]
        assert found[0].requests.equals(found[1].requests)
        assert found[0].spans.equals(found[1].spans)


@pytest.mark.parametrize("policy", list(FAIR))
@settings(max_examples=10)
@given(case=cases(), mode=st.sampled_from(MODES), engine=engines)
def test_users_by_other_names_get_the_same(
    policy: str, case: Case, mode: tuple[str, dict[str, Any]], engine: Engine
) -> None:
    before = replay(case, FAIR[policy](), mode, engine)
    case.users = [{"ada": None, "grace": "ada", None: "zoe"}[user] for user in case.users]
    after = replay(case, FAIR[policy](), mode, engine)
    assert after.requests.drop("user").equals(before.requests.drop("user"))
    assert after.spans.equals(before.spans)
    check_outcome(case, after)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("policy", list(FAIR))
@settings(max_examples=10)
@given(case=cases(), engine=engines, user=st.sampled_from(["ada", None]))
def test_with_one_user_they_are_fifo_to_the_last_digit(
    policy: str, mode: tuple[str, dict[str, Any]], case: Case, engine: Engine, user: str | None
) -> None:
    case.users = [user] * len(case.users)
    alone, fifo = replay(case, FAIR[policy](), mode, engine), replay(case, "fifo", mode, engine)
    for table in ("requests", "steps", "spans"):
        assert getattr(alone, table).equals(getattr(fifo, table))


def test_to_know_lengths_beforehand_keeps_users_nearer() -> None:
    # Ada asks little and gets long answers, bob the other way round; four slots. Answers that count as they come leave
    # her four requests at a time before her counter shows it.
    found = {}
    for predict in (False, True):
        rows = [request(row, 0.0, 40 if row % 2 else 2, user="bob" if row % 2 else "ada") for row in range(80)]
        outputs = [2 if row % 2 else 21 for row in range(80)]
        replayed = simulate(rows, outputs, policy=Vtc(predict=predict), max_running=4)
        found[predict] = spread(lead(replayed))
    assert found[True] < found[False]


@pytest.mark.parametrize(
    ("declared", "counted"), [(2, [7, 7, 7, 9, 11, 13]), (10, [23, 23, 23, 23, 23, 13]), (5, [13, 13, 13, 13, 13, 13])]
)
def test_a_predicted_answer_is_settled_token_by_token_and_at_the_end(declared: int, counted: list[float]) -> None:
    # A prompt of 3 and the declared answer count at admission. Tokens beyond it count as they come, to 3 + 2 * 5.
    found = []

    class Watched(Vtc):
        def on_admit(self, request: Request, step: Step) -> None:
            super().on_admit(request, step)
            found.append(self.user_key(request.user, step))

        def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
            super().on_tokens(request, tokens, new, seconds, step)
            found.append(self.user_key(request.user, step))

        def on_finish(self, request: Request, step: Step) -> None:
            super().on_finish(request, step)
            found[-1] = self.user_key(request.user, step)

    asked = request(0, 0.0, 3, user="ada", max_tokens=declared)
    simulate([asked], [5], policy=Watched(predict=True), predictor="max_tokens")
    assert found == counted


@given(quantum=TENTHS | st.floats(1e-6, 1e6), spent=st.lists(TENTHS | st.floats(1e-6, 1e6), min_size=1, max_size=4))
def test_who_has_had_the_rounds_it_takes_has_something_left_however_it_is_rounded(
    quantum: float, spent: list[float]
) -> None:
    deficits = Deficits(quantum)
    for service in spent:
        deficits.spend("ada", service)
        deficits.refill(deficits.rounds("ada"))
        assert 0 < deficits.of("ada") <= quantum
        assert deficits.rounds("ada") == 0


def test_a_deficit_of_ten_quanta_of_a_tenth_is_over_after_ten_rounds() -> None:
    deficits = Deficits(0.1)
    deficits.spend("ada", 1.1)
    assert deficits.rounds("ada") == 10  # a tenth in binary is a little more, so that ten are more than 1
    deficits.refill(9)
    assert deficits.of("ada") <= 0
    deficits.refill(1)
    assert deficits.of("ada") > 0


def test_rounds_are_counted_also_where_a_quantum_is_lost_in_rounding() -> None:
    deficits = Deficits(1e-20)
    deficits.spend("ada", 3.0)
    deficits.refill(deficits.rounds("ada") - 5)
    assert deficits.rounds("ada") == 5


@settings(max_examples=30)
@given(contest=contests(), quantum=st.sampled_from([0.5, 3.0, 20.0, 200.0]))
def test_deficits_lie_between_what_one_admission_can_bring_and_a_quantum(
    contest: tuple[list[Request], list[int], dict[str, Any]], quantum: float
) -> None:
    rows, outputs, engine = contest
    bound = most(rows, outputs, engine.pop("slots"))
    drr = Drr(quantum=quantum, admission="aggressive")

    def check(replayer: Replayer, batch: Batch) -> None:
        for user in ("ada", "bob", "cleo"):
            assert -bound <= drr._deficits.of(user) <= quantum

    replayed = simulate(rows, outputs, policy=drr, check=check, **engine)
    assert spread(lead(replayed)) <= 2 * (bound + quantum)


@settings(max_examples=30)
@given(contest=contests())
def test_between_two_turns_of_one_who_waits_nobody_else_has_two(
    contest: tuple[list[Request], list[int], dict[str, Any]],
) -> None:
    rows, outputs, engine = contest
    del engine["slots"]
    simulate(rows, outputs, policy=RoundRobin(admission="aggressive"), **engine)
    turns = sorted(rows, key=lambda one: one.memory["round_robin"])
    for user in ("ada", "bob", "cleo"):
        own = [place for place, one in enumerate(turns) if one.user == user]
        for start, end in pairwise(own):
            if turns[end].due <= (turns[start].admitted or 0.0):
                between = Counter(one.user for one in turns[start + 1 : end])
                assert max(between.values(), default=0) <= 1


@settings(max_examples=30)
@given(contest=contests(), weight=st.sampled_from([0.5, 1.0, 3.0]))
def test_start_tags_keep_two_who_always_wait_within_one_request_of_each(
    contest: tuple[list[Request], list[int], dict[str, Any]], weight: float
) -> None:
    rows, outputs, engine = contest
    del engine["slots"]
    engine["blocks"] = 1000
    weights = {"ada": weight}
    replayed = simulate(rows, outputs, policy=Wfq(weights=weights), **engine)
    longest = {
        user: max(one.prompt_tokens + 2 * outputs[one.row] for one in rows if one.user == user)
        for user in ("ada", "bob")
    }
    bound = longest["ada"] / weight + longest["bob"]
    assert spread(lead(replayed, whole=True, weights=weights)) <= bound + 1e-9


def test_tags_that_a_wrong_length_set_are_put_right() -> None:
    # Everybody declares 64 tokens and gets fewer; in the end each user's tag is what it has had.
    rows = [request(row, 0.0, 3, user="bob" if row % 3 else "ada") for row in range(12)]
    policy = Wfq()
    simulate(rows, [1 + row for row in range(12)], policy=policy, predictor="max_tokens", max_running=3)
    for user in ("ada", "bob"):
        had = sum(one.prompt_tokens + 2 * one.generated for one in rows if one.user == user)
        assert policy._tags[user] == had


def test_who_comes_back_after_an_eviction_does_not_move_virtual_time() -> None:
    # Ada and bob start at 0 and end at 10. Bob is evicted and comes back at 40 ms; cy, new after that, starts at 0 too.
    rows = [
        request(row, due, 2, user=user) for row, (due, user) in enumerate([(0.0, "ada"), (0.0, "bob"), (0.045, "cy")])
    ]
    policy = Wfq()
    replayed = simulate(rows, [4, 4, 1], policy=policy, blocks=6, block_size=1, max_running=2)
    assert replayed.column("evictions") == [0, 1, 0]
    assert dict(policy._tags) == {"ada": 10.0, "bob": 10.0, "cy": 4.0}


def test_a_rate_limit_holds_a_user_back_and_nobody_else() -> None:
    # Two a minute. Ada's third and fourth wait for the minute to end, her fifth for the one after; bob goes at once.
    rows = [request(row, 0.0, user="ada") for row in range(5)] + [request(5, 0.001, user="bob")]
    replayed = simulate(rows, [2] * 6, policy=RateLimit(per_minute=2), max_running=4)
    assert replayed.column("admitted") == [0.0, 0.0, 60.0, 60.0, 120.0, 0.010]
    assert "policy" in replayed.steps["bound"].to_list()


def test_when_the_minute_is_over_it_is_first_come_first_served_again() -> None:
    # A second each, one slot, one a minute. Ada's second waits from the start; at 60 s it is before all who came later.
    rows = [request(row, row / 1000, user="ada" if row < 2 else str(row)) for row in range(72)]
    replayed = simulate(rows, [1] * 72, policy=RateLimit(per_minute=1), max_running=1, cost=CostModel(fixed=1.0))
    assert replayed.column("admitted")[:4] == [0.0, 60.0, 1.0, 2.0]


def test_a_rate_limit_that_rejects_turns_away_whoever_is_too_much_when_it_comes() -> None:
    rows = [request(row, second, user="ada") for row, second in enumerate([0.0, 1.0, 2.0, 59.9, 60.0, 61.5])]
    replayed = simulate(rows, [2] * 6, policy=RateLimit(per_minute=2, reject=True), max_running=1)
    assert replayed.column("status") == ["completed"] * 2 + ["rejected"] * 2 + ["completed"] * 2
    assert replayed.column("reason")[2] == "over 2 requests a minute"
    assert replayed.column("ended")[2] == 2.0


def test_who_was_evicted_is_not_held_to_the_limit_again() -> None:
    rows = [request(0, 0.0, 4, user="ada"), request(1, 0.0, 4, user="ada"), request(2, 0.0, 4, user="ada")]
    policy = RateLimit(per_minute=2, admission="aggressive")
    replayed = simulate(rows, [4, 4, 4], policy=policy, max_running=2, block_size=1, blocks=8)
    assert replayed.column("evictions") == [0, 1, 0]
    assert replayed.column("finished")[1] < 1.0
    assert replayed.column("admitted")[2] == 60.0


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=10)
@given(case=cases(limited=False), limit=st.integers(1, 3), engine=engines)
def test_nobody_is_let_in_more_often_than_the_limit_in_any_minute(
    mode: tuple[str, dict[str, Any]], case: Case, limit: int, engine: Engine
) -> None:
    case.arrivals = [round(400 * arrival, 3) for arrival in case.arrivals]  # over 80 seconds
    replayed = replay(case, RateLimit(per_minute=limit), mode, engine)
    check_outcome(case, replayed)
    let_in = sorted((one.user or "", one.admitted) for one in replayed.objects if one.admitted is not None)
    for _, entries in groupby(let_in, key=lambda entry: entry[0]):
        instants = [instant for _, instant in entries]
        for first, later in zip(instants, instants[limit:], strict=False):
            assert later >= round(first + 60, 9)


def test_an_experiment_gives_weights_as_a_table() -> None:
    faults = Faults("x.toml")
    (settings, varied), *more = validate_options(Vtc, {"weights": {"ada": 2.0, "bob": 1}}, "policies.vtc", faults)
    assert settings["weights"] == {"ada": 2.0, "bob": 1.0}
    assert (varied, more) == ({}, [])
    assert make(Vtc, settings).weights == {"ada": 2.0, "bob": 1.0}
    assert {option.name: option.default for option in options_of(Vtc)}["weights"] is None, "not given"
    validate_options(Vtc, {"weights": {"ada": 0.0, "bob": "2"}}, "policies.vtc", faults)
    with pytest.raises(ExperimentError) as wrong:
        faults.raise_if_any()
    assert str(wrong.value).splitlines() == [
        "x.toml: policies.vtc.weights.ada: input should be greater than 0, not 0.0",
        "x.toml: policies.vtc.weights.bob: input should be a valid number, not '2'",
    ]
