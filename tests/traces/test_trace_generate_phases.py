"""Words of a generated trace beyond a steady rate: forms of lengths, phases, presence, sessions, copies."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.clock import NANOSECONDS
from replay.errors import ExperimentError
from replay.traces.generate import generate_trace
from replay.traces.generating.rates import Phase, crossings, phase_pieces
from replay.traces.generating.requests import requests
from replay.traces.generating.specification import checked_spec
from replay.traces.workload import workload

FIXED = "prompt = { fixed = 4 }\noutput = { fixed = 2 }\n"
USER = f'[[users]]\nname = "a"\n{FIXED}'


@pytest.fixture
def generated(generated):
    """The rows alone."""
    return lambda text: generated(text).frame


def seconds(phases: list[Phase], expected: list[float], start: float, stop: float) -> list[float]:
    """When so many requests are to be expected, between two seconds; a last one never comes."""
    begin, end = round(start * NANOSECONDS), round(stop * NANOSECONDS)
    wanted = iter([*expected, 1e9])
    times = crossings(phase_pieces(phases, end - begin), begin, lambda piece, before: next(wanted))
    return [round(time / NANOSECONDS, 6) for time in times]


def phase(rate: float, lasts: float | None = None, at_end: float | None = None) -> Phase:
    return Phase.model_validate_json(json.dumps({"rate": rate, "lasts": lasts, "rate_at_end": at_end}))


def test_a_request_comes_when_its_share_of_the_rate_has_passed():
    assert seconds([phase(2.0)], [1, 2, 3.5], 0, 10) == [0.5, 1.0, 1.75]
    assert seconds([phase(2.0)], [1, 2], 3, 10) == [3.5, 4.0]


def test_a_phase_ends_and_the_next_one_begins_in_the_middle_of_a_gap():
    # 1 a second for 2 s, then 4 a second: the third has half of its gap in each
    assert seconds([phase(1.0, 2.0), phase(4.0)], [1, 2.5, 3], 0, 10) == [1.0, 2.125, 2.25]


def test_phases_that_all_end_begin_again():
    # 2 a second for a second, then nobody for a second
    assert seconds([phase(2.0, 1.0), phase(0.0, 1.0)], [1, 2.5, 3, 5], 0, 5) == [0.5, 2.25, 2.5, 4.5]


def test_a_rate_may_rise_and_fall_evenly():
    # from 0 to 2 a second within 2 s: t^2 / 2 requests by t
    assert seconds([phase(0.0, 2.0, 2.0)], [0.5, 1.125], 0, 2) == [1.0, 1.5]
    # from 2 to 0: 2 t - t^2 / 2
    assert seconds([phase(2.0, 2.0, 0.0)], [1.5], 0, 2) == [1.0]


def test_a_phase_that_is_cut_short_keeps_its_slope():
    assert seconds([phase(0.0, 4.0, 4.0)], [0.5, 1.9, 2.1], 0, 2) == [1.0, 1.949359]


PHASES = st.tuples(st.floats(0.0, 5.0), st.floats(0.5, 9.0), st.none() | st.floats(0.0, 5.0))


@settings(max_examples=60)
@given(st.lists(PHASES, min_size=1, max_size=4), st.lists(st.floats(0.01, 2.0), min_size=1, max_size=20))
def test_arrivals_are_in_order_and_within_the_time(declared, gaps):
    times = seconds([phase(*each) for each in declared], list(accumulate(gaps)), 1, 30)
    assert times == sorted(times)
    assert all(1 <= time <= 30 for time in times)


def test_phases_keep_their_rates(generated):
    frame = generated(
        "duration = 1200.0\n" + USER + 'phases = [{ rate = 0.5, lasts = "400s" }, { rate = 3.0, lasts = "400s" }, '
        "{ rate = 0.0 }]\n"
    )
    early = frame.filter(pl.col("arrival") < 400 * NANOSECONDS).height
    assert early == pytest.approx(200, abs=4 * 200**0.5)
    assert frame.height - early == pytest.approx(1200, abs=4 * 1200**0.5)
    assert frame["arrival"].max() < 800 * NANOSECONDS


def test_a_user_is_there_from_start_to_stop(generated):
    other = USER.replace('"a"', '"b"') + "count = 2\n"
    frame = generated("duration = 100.0\n" + other + USER + 'rate = 2.0\nstart = "40s"\nstop = "60s"\n')
    first = frame.filter(pl.col("user") == "b")["arrival"].min()
    assert first == 0  # a trace begins with its first request
    own = frame.filter(pl.col("user") == "a")["arrival"] / NANOSECONDS
    assert own.len() > 20
    assert own.max() - own.min() < 20


def test_a_count_is_stretched_over_the_time_between_start_and_stop(generated):
    frame = generated('duration = 100.0\n' + USER + 'count = 30\nstart = "90s"\n')  # fmt: skip
    assert frame.height == 30
    assert 5 * NANOSECONDS < frame["arrival"].max() < 10 * NANOSECONDS


def test_lengths_are_uniform_or_one_of_some_or_always_the_same(generated):
    user = '[[users]]\nname = "a"\ncount = 400\nprompt = { uniform = [3, 6] }\noutput = { choices = [2, 2, 9] }\n'
    frame = generated("duration = 1.0\n" + user)
    assert set(frame["prompt_tokens"]) == {3, 4, 5, 6}
    counts = dict(frame["output_tokens"].value_counts().iter_rows())
    assert counts.keys() == {2, 9}
    assert counts[2] == pytest.approx(267, abs=40)
    assert set(generated("duration = 1.0\n" + USER + "count = 9")["prompt_tokens"]) == {4}


def test_turns_wait_for_the_one_before_by_carrying_its_think_time(generated):
    frame = generated(
        "duration = 10.0\n" + USER + "count = 5\nsessions = { turns = { fixed = 3 }, think_ms = 200.0 }\n"
    )
    assert frame.height == 15
    for _, turns in frame.group_by("session"):
        assert turns["turn"].to_list() == [0, 1, 2]
        assert turns["arrival"].n_unique() == 1
    assert set(frame["think_time_ms"]) == {200.0}
    assert frame["request_id"][0] == "a-0-0"


def test_copies_are_users_of_their_own_with_draws_of_their_own(generated):
    frame = generated("duration = 50.0\n" + USER + "copies = 3\nrate = 1.0\n")
    assert set(frame["user"]) == {"a-1", "a-2", "a-3"}
    starts = [frame.filter(pl.col("user") == f"a-{number}")["arrival"].to_list() for number in (1, 2, 3)]
    assert starts[0] != starts[1] != starts[2]


def test_a_prefix_of_many_copies_gives_each_request_one_of_them(generated):
    prefixes = '[[prefixes]]\nname = "p"\ntokens = 32\ncopies = 3\n[[prefixes]]\nname = "q"\ntokens = 16\n'
    frame = generated(
        "duration = 1.0\n" + prefixes + USER + 'count = 60\nprefix = "p"\n'
        + USER.replace('"a"', '"b"') + 'count = 3\nprefix = "q"\n'
    )  # fmt: skip
    found = {tuple(hashes) for hashes in frame["prefix_hashes"]}
    assert found == {(0, 1), (2, 3), (4, 5), (6,)}


def test_a_generated_session_is_a_workload(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text("duration = 1.0\n" + USER + "count = 1\nsessions = { turns = { fixed = 2 }, think_ms = 50.0 }\n")
    first, second = workload(generate_trace(path)).requests
    assert (first.session, first.turn, second.turn, second.think_time) == ("a-0", 0, 1, 0.05)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (USER + "rate = 1.0\nphases = [{ rate = 1.0 }]", "users.0: give either count"),
        (USER + "phases = [{ rate = 1.0 }, { rate = 2.0 }]", "phases.0: only the last phase may do without lasts"),
        (USER + 'phases = [{ rate = 1.0, lasts = "0s" }]', "phases.0.lasts: must be a microsecond or more"),
        (USER + 'phases = [{ rate = 1.0, lasts = "1 week" }]', "users.0.phases.0.lasts: '1 week' is not a duration"),
        (USER + "phases = [{ rat = 1.0 }]", "users.0.phases.0.rat: there is no such key: did you mean 'rate'?"),
        (USER + "phases = [{ rate = 0.0 }]", "no user has a request within the duration"),
        (USER + 'rate = 1.0\nstart = "2s"', "user 'a': starts when the duration is over"),
        (USER + "rate = 1.0\nstart = 0.5\nstop = 0.5", "users.0: stop must come a microsecond or more after start"),
        (USER + "count = 1\ncopies = 2\n" + USER.replace('"a"', '"a-1"') + "count = 1", "two users have the same name"),
        (USER.replace("fixed = 4", "fixed = 4, uniform = [1, 2]") + "count = 1", "users.0.prompt: give one of median"),
        (USER.replace("fixed = 4", "least = 4") + "count = 1", "users.0.prompt: give one of median"),
        (USER.replace("fixed = 4", "fixed = 4, most = 9") + "count = 1", "most goes with median, not with fixed"),
        (USER.replace("fixed = 4", "median = 4") + "count = 1", "users.0.prompt: median needs most"),
        (USER.replace("fixed = 4", "uniform = [4, 3]") + "count = 1", "uniform = [4, 3]: the first is more than"),
        (USER.replace("fixed = 4", "choices = []") + "count = 1", "users.0.prompt.choices: "),
        (USER + "count = 1\nsessions = { turns = { fixd = 2 } }", "users.0.sessions.turns.fixd: there is no such key"),
    ],
)  # fmt: skip
def test_a_word_that_is_wrong_is_a_sentence(generated, text, sentence):
    with pytest.raises(ExperimentError) as fault:
        generated("duration = 1.0\n" + text)
    assert sentence in str(fault.value)


def test_a_phase_has_exactly_as_many_requests_as_it_counts():
    document = {
        "duration": "100s",
        "users": [
            {
                "name": "a", "prompt": 4, "output": 2, "burstiness": 3.0,
                "phases": [
                    {"count": 40, "lasts": "20s"}, {"count": 0, "lasts": "30s"},
                    {"count": 1, "lasts": "1s"}, {"count": 7},
                ],
            }
        ],
    }  # fmt: skip
    for seed in range(5):
        arrivals = requests(checked_spec(document | {"seed": seed}, "here"))[0]["arrival_ns"] / NANOSECONDS
        edges = [0, 20, 50, 51, 100]
        assert [arrivals.is_between(*ends).sum() for ends in pairwise(edges)] == [40, 0, 1, 7]


def test_counted_phases_begin_again_and_end_with_the_user(generated):
    frame = generated(f'duration = "1h"\n{USER}stop = "25s"\nphases = [{{ count = 100, lasts = "10s" }}]\n')
    assert frame.height == pytest.approx(250, abs=30)
    assert frame["arrival"].max() < 25 * NANOSECONDS


def test_what_is_nobodys_has_no_user_but_requests_of_its_own(generated):
    frame = generated(f'duration = "10s"\n{USER}count = 3\nnobody = true\n[[users]]\nname = "b"\ncount = 2\n{FIXED}')
    assert sorted(frame["user"].to_list(), key=str) == [None, None, None, "b", "b"]
    assert frame["request_id"].n_unique() == 5


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("phases = [{ count = 3, rate = 1.0 }]", "either rate .* or count"),
        ("phases = [{ lasts = 3.0 }]", "either rate .* or count"),
        ("phases = [{ count = 3, rate_at_end = 1.0 }]", "rate_at_end goes with rate"),
        ('phases = [{ count = 3, lasts = "1s" }, { rate = 1.0 }]', "all of them the same"),
        ("phases = [{ count = 3 }]\nstationary = true", "do not go with share, stationary"),
        ("copies = 2\nshare = { zipf = 1.0 }\nphases = [{ count = 3 }]", "do not go with share, stationary"),
    ],
)
def test_a_count_of_a_phase_stands_alone(generated, keys, said):
    with pytest.raises(ExperimentError, match=said):
        generated(f'duration = "10s"\n{USER}{keys}\n')
