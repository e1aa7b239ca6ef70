"""What a trace does not say and a transform adds: gaps cut, priorities, users and deadlines, by hand."""

from __future__ import annotations

import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.transforms import apply_transforms, parse_transforms


def applied(trace, *entries):
    return apply_transforms(trace, parse_transforms(entries))


def column(trace, name) -> list:
    return trace.frame[name].to_list()


def test_idle_gap_cap_shortens_the_longer_gaps_and_no_think_time(trace_of):
    trace = trace_of(arrival_s=[0, 10, 40, 41, 101], think_time_ms=[None, 90_000, 0, 0, 0])
    capped = applied(trace, {"idle_gap_cap": "30s"})
    assert column(capped, "arrival") == [at * 10**9 for at in (0, 10, 40, 41, 71)]
    assert column(capped, "think_time_ms") == column(trace, "think_time_ms")
    assert capped.changes[0].details == ("1 gap shortened, by 30 s in all",)
    assert column(applied(trace, {"idle_gap_cap": 1}), "arrival") == [at * 10**9 for at in (0, 1, 2, 3, 4)]
    assert applied(trace, {"idle_gap_cap": 1}).changes[0].details == ("3 gaps shortened, by 97 s in all",)
    assert applied(trace, {"idle_gap_cap": "1m"}).changes[0].details == ("no gap is longer",)
    assert applied(trace, {"idle_gap_cap": "1m"}).frame.equals(trace.frame)


def test_idle_gap_cap_takes_from_a_think_time_what_it_cuts_while_that_lasts(trace_of):
    """s is answered at 2 s and thinks for 98 s, across the gap from 20 to 80 s; u thinks for 15 s within it; t was
    answered 15 s after the gap began, and thinks for no less than the cap; what has no session does not think."""
    trace = trace_of(
        arrival_s=[0, 0, 20, 80, 80, 100, 100],
        session=["s", "u", "t", "u", "t", "s", None],
        turn=[0, 0, 0, 1, 1, 1, None],
        think_time_ms=[None, None, None, 15_000, 45_000, 98_000, 98_000],
    )
    capped = applied(trace, {"idle_gap_cap": "20s"})
    assert column(capped, "arrival") == [at * 10**9 for at in (0, 0, 20, 40, 40, 60, 60)]
    assert column(capped, "think_time_ms") == [None, None, None, 15_000, 20_000, 58_000, 98_000]
    assert capped.changes[0].details == (
        "1 gap shortened, by 40 s in all",
        "2 think times shortened, by 65 s in all",
    )
    alone = trace_of(arrival_s=[0, 100, 100], session=["t", "s", "s"], think_time_ms=[None, None, 90_000])
    assert column(applied(alone, {"idle_gap_cap": "20s"}), "think_time_ms") == [None, None, 90_000]


def test_think_time_cap_lets_later_turns_arrive_sooner(trace_of):
    """s loses 60 s before its second turn and 10 s more before its third, and is before t then; u has delays alone."""
    trace = trace_of(
        arrival_s=[0, 5, 5, 70, 100, 130],
        session=["s", "u", "u", "t", "s", "s"],
        turn=[0, 0, 1, 0, 1, 2],
        request_id=["s0", "u0", "u1", "t0", "s1", "s2"],
        think_time_ms=[99_000, None, 50_000, None, 90_000, 40_000],
    )
    capped = applied(trace, {"think_time_cap": "30s"})
    assert column(capped, "request_id") == ["s0", "u0", "u1", "s1", "s2", "t0"]
    assert column(capped, "arrival") == [at * 10**9 for at in (0, 5, 5, 40, 60, 70)]
    assert column(capped, "think_time_ms") == [30_000, None, 30_000, 30_000, 30_000, None]
    assert capped.changes[0].details == ("4 think times shortened, by 159 s (2.6 min) in all",)
    assert applied(trace, {"think_time_cap": "2m"}).changes[0].details == ("no think time is longer",)
    without = trace_of(arrival_s=[0, 9], session=["s", "s"])
    assert applied(without, {"think_time_cap": 1}).changes[0].details == (
        "no request has a think time; what its arrivals leave idle, idle_gap_cap shortens",
    )


def test_the_shorter_the_more_urgent(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2, 3], prompt_tokens=[5, 10, 99, 100], max_tokens=[5, None, 20, 20])
    derived = applied(trace, {"derive_priority": {"from": "prompt_tokens", "below": [10, 100]}})
    assert column(derived, "priority") == [2, 1, 1, 0]
    assert derived.changes[0].details == ("derived priority 0: 1 request, 1: 2 requests, 2: 1 request",)
    declared = applied(trace, {"derive_priority": {"from": "max_tokens", "below": [10]}})
    assert column(declared, "priority") == [1, None, 0, 0]
    assert "none: 1 request" in declared.changes[0].details[0]
    leaking = applied(trace, {"derive_priority": {"from": "output_tokens", "below": [10]}})
    assert "the true length of the answers, which no policy could know" in leaking.changes[0].sentence()


def test_priorities_by_user_and_class(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2], user=["ada", None, "bob"], slo=["x", "y", None], priority=[None, 7, None])
    by_user = applied(trace, {"derive_priority": {"users": {"ada": 2, "bob": -1}}})
    assert column(by_user, "priority") == [2, 0, -1]
    assert by_user.changes[0].details[1] == "1 request had a priority, which is replaced"
    assert column(applied(trace, {"derive_priority": {"slos": {"y": 3}, "default": 1}}), "priority") == [1, 3, 1]
    with pytest.raises(TraceError, match=r"users names 'adda', of whom there is no request; did you mean 'ada'\?"):
        applied(trace, {"derive_priority": {"users": {"adda": 2}}})


def test_priorities_by_chance_for_each_request_user_or_session(trace_of):
    count = 400
    users, sessions = [f"u{n % 20}" for n in range(count)], [f"s{n % 40}" for n in range(count)]
    trace = trace_of(arrival_s=list(range(count)), user=users, session=sessions)
    weights = {"0": 3, "5": 1}

    def drawn(**settings) -> list:
        return column(applied(trace, {"derive_priority": {"random": weights, **settings}}), "priority")

    assert set(drawn()) == {0, 5}
    assert 65 < drawn().count(5) < 135  # 100, within four standard deviations
    assert drawn(seed=1) != drawn() == drawn(seed=0)
    for each, names in (("user", users), ("session", sessions)):
        found = drawn(each=each)
        assert len(set(zip(names, found, strict=True))) == len(set(names)), "each has one"
        assert set(found) == {0, 5}
    after = applied(trace, {"sample": 0.5}, {"derive_priority": {"random": weights}}).frame
    before = dict(zip(column(trace, "request_id"), drawn(), strict=True))
    assert after["priority"].to_list() == [before[name] for name in after["request_id"]]
    assert set(after["priority"]) == {0, 5}, "a sample and priorities of the same seed are independent"


def test_users_by_session_class_and_priority(trace_of):
    trace = trace_of(
        arrival_s=[0, 1, 2, 3], session=["a", None, "a", "b"], slo=[None, "x", "x", None], priority=[1, 2, 1, None]
    )
    by_session = applied(trace, {"derive_user": "session"})
    assert column(by_session, "user") == ["a", None, "a", "b"]
    assert by_session.changes[0].details == (
        "2 derived users, the busiest with 2 requests",
        "1 request of nobody",
    )
    assert column(applied(trace, {"derive_user": "slo"}), "user") == [None, "x", "x", None]
    assert column(applied(trace, {"derive_user": "priority"}), "user") == ["1", "2", "1", None]
    again = applied(trace, {"derive_user": "slo"}, {"derive_user": "session"})
    assert "2 requests had a user, who is replaced" in again.changes[1].details
    with pytest.raises(TraceError, match="no request has a session"):
        applied(trace_of(arrival_s=[0]), {"derive_user": "session"})


def test_users_by_chance_ask_by_zipfs_law_and_a_session_has_one(trace_of):
    count = 3_000
    trace = trace_of(arrival_s=list(range(count)))
    users = applied(trace, {"derive_user": {"random": 3, "zipf": 1}}).frame["user"]
    counts = dict(users.value_counts().iter_rows())
    for rank in (1, 2, 3):
        expected = count / rank / (1 + 1 / 2 + 1 / 3)
        assert abs(counts[f"user-{rank}"] - expected) < 4 * expected**0.5
    even = dict(applied(trace, {"derive_user": {"random": 3}}).frame["user"].value_counts().iter_rows())
    assert all(abs(n - 1_000) < 110 for n in even.values())
    assert len(even) == 3
    sessions = [f"s{n % 30}" for n in range(count)]
    talks = applied(trace_of(arrival_s=list(range(count)), session=sessions), {"derive_user": {"random": 5}}).frame
    assert talks.select("session", "user").unique().height == 30


def test_deadlines_for_all_by_class_and_by_prompt_token(trace_of):
    trace = trace_of(
        arrival_s=[0, 1, 2], prompt_tokens=[10, 20, 1000], slo=["fast", "slow", None], priority=[1, None, 2]
    )
    assert column(applied(trace, {"deadline": "1.5s"}), "deadline_ms") == [1500, 1500, 1500]
    assert applied(trace, {"deadline": "1.5s"}).changes[0].details == ("deadlines of 1,500 ms",)
    by_token = applied(trace, {"deadline": {"ttft_ms": 500, "per_prompt_token_ms": 0.5}})
    assert column(by_token, "deadline_ms") == [505, 510, 1000]
    assert by_token.changes[0].details == ("deadlines of 505 ms to 1,000 ms",)
    by_class = applied(trace, {"deadline": {"slos": {"fast": 100}, "per_prompt_token_ms": 1}})
    assert column(by_class, "deadline_ms") == [110, None, None]
    assert by_class.changes[0].details == ("deadlines of 110 ms", "2 requests without one")
    assert column(applied(trace, {"deadline": {"ttft_ms": 9, "priorities": {"2": 1}}}), "deadline_ms") == [9, 9, 1]
    replaced = applied(trace, {"deadline": "1s"}, {"deadline": "2s"}).changes[1]
    assert replaced.details == ("deadlines of 2,000 ms", "3 requests had a deadline, which is replaced")
    with pytest.raises(TraceError, match=r"slos names 'fats', of whom there is no request; did you mean 'fast'\?"):
        applied(trace, {"deadline": {"slos": {"fats": 100}}})


@pytest.mark.parametrize(
    ("name", "argument", "sentence"),
    [
        ("idle_gap_cap", "30", "'30' is not a duration"),
        ("idle_gap_cap", 0, "a gap of 0 would make all requests arrive at once"),
        ("derive_priority", 3, '3 is not a table such as { from = "prompt_tokens", below = [100, 1000] }'),
        ("derive_priority", {}, "give one of from, users, slos, random, not none"),
        ("derive_priority", {"users": {"a": 1}, "slos": {}}, "give one of from, users, slos, random, not users and"),
        ("derive_priority", {"from": "user"}, "from: 'user' is not one of prompt_tokens, output_tokens, max_tokens"),
        ("derive_priority", {"from": "prompt_tokens"}, "prompt_tokens needs bounds in tokens"),
        ("derive_priority", {"from": "prompt_tokens", "below": [9, 9]}, "below: [9, 9] does not rise"),
        ("derive_priority", {"from": "prompt_tokens", "below": [0]}, "below: 0 is not a whole number of at least 1"),
        ("derive_priority", {"from": "prompt_tokens", "below": [1], "seed": 1}, "'seed' does not go with 'from'"),
        ("derive_priority", {"users": {}}, "users: {} is not a table such as { ada = 2 }"),
        ("derive_priority", {"users": {"ada": 1.5}}, "users.ada: 1.5 is not a whole number"),
        ("derive_priority", {"users": {"ada": 1}, "default": "x"}, "default: 'x' is not a whole number"),
        ("derive_priority", {"random": {"a": 1}}, "random: 'a' is not a whole number"),
        ("derive_priority", {"random": {"1": 0}}, "does not give each priority a weight of 0 or more"),
        ("derive_priority", {"random": {"1": 1}, "each": "slo"}, "each: 'slo' is not one of request, user, session"),
        ("derive_priority", {"random": {"1": 1}, "sed": 2}, "there is no setting 'sed': did you mean 'seed'?"),
        ("derive_user", "turn", '\'turn\' is none of "session", "slo", "priority", nor a table such as {'),
        ("derive_user", {"zipf": 1}, "say how many users there are, as in { random = 20, zipf = 1.1, seed = 7 }"),
        ("derive_user", {"random": 0}, "random: 0 is not a whole number of at least 1"),
        ("derive_user", {"random": 10**9}, "random: 1000000000 users are more than 1,000,000"),
        ("derive_user", {"random": 2, "zipf": -1}, "zipf: -1 is not a number from 0 (all alike) to 100"),
        ("deadline", 500, '500 has no unit; write "500ms", or { ttft_ms = 500, per_prompt_token_ms = 0.2 }'),
        ("deadline", "0s", "ttft_ms: 0.0 is not a number of milliseconds above 0"),
        ("deadline", {"ttft": 5}, "there is no setting 'ttft': did you mean 'ttft_ms'?"),
        ("deadline", {"per_prompt_token_ms": 5}, "there is no ttft_ms, nor slos, users, priorities"),
        ("deadline", {"ttft_ms": 5, "per_prompt_token_ms": -5}, "per_prompt_token_ms: -5 is not a number of at least"),
        ("deadline", {"slos": {"a": 5}, "users": {"a": 5}}, "give one of slos and users, not both"),
        ("deadline", {"slos": {"a": 0}}, "slos.a: 0 is not a number of milliseconds above 0"),
        ("deadline", {"priorities": {"a": 5}}, "priorities: 'a' is not a whole number"),
        ("anonymize", False, "false does nothing; leave it out"),
        ("anonymize", "yes", "'yes' is not a table such as { keep = [\"slo\"] }, nor true"),
        ("anonymize", {"keep": ["prompt"]}, "keep: ['prompt'] is not a list of user, session, slo"),
        ("merge", 3, '3 is not a list of traces, such as ["batch.parquet"]'),
        ("merge", [], '[] is not a list of traces, such as ["batch.parquet"]'),
        ("merge", {"offset": "5m"}, 'None is not a list of traces, such as ["batch.parquet"]'),
        ("merge", {"traces": ["b"], "offset": "5"}, "offset: '5' is not a duration"),
        ("merge", {"traces": ["b"], "hashes": 1}, "hashes: 1 is neither true nor false"),
        ("merge", {"trace": ["b"]}, "there is no setting 'trace': did you mean 'traces'?"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_before_any_trace_is_read(name, argument, sentence):
    with pytest.raises(ExperimentError) as fault:
        parse_transforms([{name: argument}])
    assert str(fault.value).startswith(f"{name}: ")
    assert sentence in str(fault.value)
