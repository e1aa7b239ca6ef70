"""Words of a generated trace, worked out by hand: patterns, prefixes, classes, sessions that grow, closed loops."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from replay.arrivals import Arrivals
from replay.clock import NANOSECONDS
from replay.errors import ExperimentError
from replay.traces.describing.describe import describe
from replay.traces.generating.arrivals import arrivals
from replay.traces.generating.patterns import Diurnal, Spike
from replay.traces.generating.population import members
from replay.traces.generating.rates import Piece, crossings, multiplied
from replay.traces.generating.specification import checked_spec
from replay.traces.workload import workload

USER = '[[users]]\nname = "a"\nprompt = 20\noutput = 7\n'
SECOND = float(NANOSECONDS)


def piece(seconds: float, rate: float, at_end: float | None = None) -> Piece:
    return Piece(seconds * SECOND, rate, ((rate if at_end is None else at_end) - rate) / (seconds * SECOND))


def test_a_factor_changes_a_rate_in_the_middle_of_a_piece():
    # 2 a second for 4 s, three times that from the second second on: 2, 6, 6, 6
    product = list(multiplied([piece(4, 2)], iter([piece(1, 1), piece(9, 3)])))
    assert [(part.lasts, part.rate) for part in product] == [(1 * SECOND, 2), (3 * SECOND, 6)]
    times = crossings(product, 0, lambda piece, before: before + 2)
    assert [round(time / SECOND, 6) for time in times] == [1, 1.333333, 1.666667, 2, 2.333333, 2.666667, 3, *(
        3.333333, 3.666667, 4)]  # fmt: skip


def test_a_ramp_is_multiplied_at_both_its_ends():
    (only,) = multiplied([piece(2, 1, 3)], iter([piece(2, 2, 0.5)]))
    assert (only.rate, only.rate + only.slope * only.lasts) == (2, 1.5)


PIECES = st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=5)


@settings(max_examples=100)
@given(PIECES, PIECES)
def test_a_product_lasts_as_long_and_lies_between_its_bounds(rates, factors):
    pieces = [piece(*each) for each in rates]
    product = list(multiplied(pieces, iter([*(piece(*each) for each in factors), piece(100, 1)])))
    assert sum(part.lasts for part in product) == pytest.approx(sum(part.lasts for part in pieces))
    most = max(max(first, last) for _, first, last in rates) * max(1, *(max(first, last) for _, first, last in factors))
    ends = [end for part in product for end in (part.rate, part.rate + part.slope * part.lasts)]
    assert all(-1e-6 <= end <= most + 1e-6 for end in ends)


@settings(max_examples=60)
@given(
    st.floats(0.02, 9),
    st.tuples(st.floats(0.1, 60), st.floats(0.1, 60), st.sampled_from(["exponential", "fixed"])),
    st.tuples(st.floats(0, 90), st.floats(0.1, 20), st.floats(0.01, 50)),
    st.integers(0, 10**6),
)
def test_a_count_is_kept_to_the_last_request_within_the_users_time(burstiness, stretches, spike, seed):
    on, off, kind = stretches
    at, lasts, times = spike
    user = {
        **{"name": "a", "prompt": 1, "output": 1, "count": 30, "burstiness": burstiness, "start": 10, "stop": 90},
        "on_off": {"on": on, "off": off, "stretches": kind},
        "spikes": [{"at": at, "lasts": lasts, "times": times}],
    }
    spec = checked_spec({"seed": seed, "duration": 100, "users": [user]}, "here")
    (member,) = members(spec.users[0])
    try:
        found = list(arrivals(spec, spec.users[0], member))
    except ExperimentError:
        assume(False)  # never on between the two instants
    assert len(found) == 30
    assert found == sorted(found)
    assert 10 * NANOSECONDS <= found[0] <= found[-1] <= 90 * NANOSECONDS


def test_a_wave_is_high_at_its_peak_and_low_half_a_period_later():
    wave = Diurnal.model_validate_json('{"period": "96s", "peak_at": "10s", "amplitude": 0.5}')
    level, parts = {}, wave.factors(4.5 * SECOND, None)
    now = 4.5
    while now < 110:
        part = next(parts)
        level[round(now, 6)] = part.rate
        now += part.lasts / SECOND
    assert (level[10], level[34], level[58], level[106]) == (1.5, 1.0, 0.5, 1.5)
    assert level[4.5] == pytest.approx((level[5] + 1 + 0.5 * 0.923879532511) / 2, abs=0.01)


def test_a_spike_begins_and_ends_where_it_says():
    spike = Spike.model_validate_json('{"at": 5, "lasts": 2, "times": 3, "every": 10}')
    parts = spike.factors(6 * SECOND, None)
    found = [(part.lasts / SECOND, part.rate) for part in (next(parts) for _ in range(4))]
    assert found == [(1, 3), (8, 1), (2, 3), (8, 1)]


def test_a_childs_blocks_follow_its_parents(generated):
    prefixes = (
        '[[prefixes]]\nname = "tool"\nparent = "tenant"\ntokens = 16\ncopies = 2\n'
        '[[prefixes]]\nname = "tenant"\nparent = "root"\ntokens = 32\ncopies = 2\n'
        '[[prefixes]]\nname = "root"\ntokens = 16\n'
    )
    user = USER + 'prefix = "{0}"\ncount = 200\n'
    of_a = generated('duration = "1s"\n' + prefixes + user.format("tool")).frame
    # the blocks of the four tools are 0 to 3, those of the two tenants 4 to 7, that of the root 8
    found = {tuple(hashes) for hashes in of_a["prefix_hashes"]}
    assert found == {(8, 4, 5, 0), (8, 4, 5, 1), (8, 6, 7, 2), (8, 6, 7, 3)}
    assert set(of_a["prompt_tokens"]) == {16 + 32 + 16 + 20}
    of_root = generated('duration = "1s"\n' + prefixes + user.format("root")).frame
    assert {tuple(hashes) for hashes in of_root["prefix_hashes"]} == {(8,)}


def test_some_copies_of_a_prefix_are_had_more_often(generated):
    prefixes = (
        '[[prefixes]]\nname = "root"\ntokens = 16\ncopies = 2\nshare = { zipf = 1.0 }\n'
        '[[prefixes]]\nname = "leaf"\nparent = "root"\ntokens = 16\ncopies = 2\n'
    )
    frame = generated('duration = "1s"\n' + prefixes + USER + 'prefix = "leaf"\ncount = 6000\n').frame
    counts = {tuple(hashes): many for hashes, many in frame["prefix_hashes"].value_counts().iter_rows()}
    expected = {(0, 2): 2000, (0, 3): 2000, (1, 4): 1000, (1, 5): 1000}
    assert counts == {hashes: pytest.approx(many, abs=4 * many**0.5) for hashes, many in expected.items()}


def test_requests_are_of_one_of_some_classes(generated):
    classes = (
        'slo = "none"\npriority = 5\n'
        'classes = [{ slo = "chat", share = 3, deadline_ms = 100.0 }, { priority = 9, max_tokens = 30 }]\n'
    )
    frame = generated('duration = "1s"\n' + USER + classes + "count = 4000\n").frame
    counts = frame.group_by("slo", "priority", "deadline_ms", "max_tokens").len()
    found = {row[:-1]: row[-1] for row in counts.iter_rows()}
    assert found == {
        ("chat", 5, 100.0, None): pytest.approx(3000, abs=4 * 750**0.5),
        ("none", 9, None, 30): pytest.approx(1000, abs=4 * 750**0.5),
    }


def test_a_class_may_have_lengths_and_a_prefix_of_its_own(generated):
    prefixes = '[[prefixes]]\nname = "p"\ntokens = 16\ncopies = 2\n[[prefixes]]\nname = "q"\ntokens = 32\n'
    classes = (
        'prefix = "p"\n'
        'classes = [{ slo = "long", prompt = 500, output = 9 }, { slo = "short", prefix = "q" }, { slo = "plain" }]\n'
    )
    frame = generated('duration = "1s"\n' + prefixes + USER + classes + "count = 300\n").frame
    found = frame.group_by("slo", "prompt_tokens", "output_tokens").agg(pl.col("prefix_hashes").unique()).rows()
    assert {row[:3]: sorted(row[3]) for row in found} == {
        ("long", 516, 9): [[0], [1]],
        ("short", 52, 7): [[2, 3]],
        ("plain", 36, 7): [[0], [1]],
    }


def test_a_first_prompt_may_be_longer_than_those_after_it(generated):
    spec = 'duration = "1s"\n' + USER + "count = 1\nsessions = {{ turns = 3, first = 300, grows = {} }}\n"
    assert generated(spec.format("false")).frame["prompt_tokens"].to_list() == [300, 20, 20]
    assert generated(spec.format("true")).frame["prompt_tokens"].to_list() == [300, 327, 354]


def test_a_session_keeps_its_class(generated):
    classes = 'classes = [{ slo = "x" }, { slo = "y" }]\nsessions = { turns = 3 }\n'
    frame = generated('duration = "1s"\n' + USER + classes + "count = 50\n").frame
    assert frame["slo"].n_unique() == 2
    assert frame.group_by("session").agg(pl.col("slo").n_unique())["slo"].unique().to_list() == [1]


GROWING = 'prefix = "p"\nsessions = { turns = 4, grows = true }\n'
PREFIX = '[[prefixes]]\nname = "p"\ntokens = 32\n'


def test_a_prompt_that_grows_holds_what_went_before(generated):
    trace = generated('duration = "1s"\n' + PREFIX + USER + "count = 2\n" + GROWING)
    assert (trace.block_size, trace.hash_tail) == (16, "floor")
    one, other = (trace.frame.filter(pl.col("session") == session) for session in ("a-0", "a-1"))
    # 32 of the prefix and 20 of its own; each further turn has the answer of 7 and 20 more
    assert one["prompt_tokens"].to_list() == [52, 79, 106, 133]
    hashes = one["prefix_hashes"].to_list()
    assert [len(each) for each in hashes] == [3, 4, 6, 8]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(hashes))
    assert hashes[0][:2] == [0, 1]
    assert not set(hashes[-1][2:]) & set(other["prefix_hashes"].to_list()[-1][2:])


def test_a_session_that_grows_finds_its_prompts_in_a_cache(generated):
    spec = 'duration = "1s"\n' + USER + "count = 10\nsessions = {{ turns = 8, grows = {0} }}\n"
    grown = describe(generated(spec.format("true")))["prefixes"]["prompt_token_share_seen_before"]
    # of 20, 47, ..., 209 tokens those in whole blocks of the turn before are found: 16, 32, 64, 96, 128, 144, 176
    assert grown == pytest.approx(656 / 916)
    assert describe(generated(spec.format("false")))["prefixes"] is None


def test_a_session_ends_at_its_context(generated):
    spec = 'duration = "1s"\n' + USER + "count = 3\nsessions = { turns = 9, grows = true, context = 90 }\n"
    trace = generated(spec)
    # 20 + 7, 47 + 7 and 74 + 7 fit; 101 + 7 does not
    assert trace.frame["turn"].to_list() == [0, 1, 2] * 3
    assert trace.notes == ["user a: 3 sessions ended early, at the context"]


def test_sessions_that_grow_are_nobody_elses_business(generated):
    alone = generated('duration = "1s"\n' + USER + "count = 2\nsessions = { turns = 4, grows = true }\n").frame
    other = USER.replace('"a"', '"b"') + "count = 5\nsessions = { turns = 2, grows = true }\n"
    both = generated('duration = "1s"\n' + USER + "count = 2\nsessions = { turns = 4, grows = true }\n" + other).frame
    assert both.filter(pl.col("user") == "a").drop("arrival").equals(alone.drop("arrival"))


def test_the_first_turn_takes_no_time_to_think_unless_that_is_always_the_same(generated):
    spec = 'duration = "1s"\n' + USER + "count = 5\nsessions = {{ turns = 2, think_ms = {} }}\n"
    drawn = generated(spec.format("{ uniform = [5, 6] }")).frame
    assert set(drawn.filter(pl.col("turn") == 0)["think_time_ms"]) == {None}
    assert drawn.filter(pl.col("turn") == 1)["think_time_ms"].is_between(5, 6).all()
    assert set(generated(spec.format("3")).frame["think_time_ms"]) == {3.0}


def test_clients_in_a_closed_loop_wait_for_their_answers(generated):
    loop = 'closed_loop = { clients = 4, ramp = "2s", turns = 3, think_ms = 100 }\n'
    trace = generated('duration = "10s"\n' + USER + 'start = "1s"\n' + loop)
    assert trace.frame["arrival"].to_list() == [
        half * NANOSECONDS // 2 for half in (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
    ]
    arrivals = Arrivals(workload(trace).requests)
    waiting = arrivals.take(100.0)
    assert [request.session for request in waiting] == ["a-0", "a-1", "a-2", "a-3"]
    waiting[2].status = "completed"
    arrivals.ended(waiting[2], 100.0)
    assert arrivals.next_due == pytest.approx(100.1)


def test_a_plain_number_is_a_length(generated):
    assert set(generated('duration = "1s"\n' + USER + "count = 2\n").frame["prompt_tokens"]) == {20}


EVERYTHING = """
seed = 11
duration = "600s"
diurnal = { period = "10m", peak_at = "3m", amplitude = 0.5 }
[[prefixes]]
name = "root"
tokens = 32
[[prefixes]]
name = "leaf"
parent = "root"
tokens = 16
copies = 3
share = { zipf = 0.9 }
[[users]]
name = "crowd"
copies = 5
share = { zipf = 1.1 }
gaps = "weibull"
burstiness = 1.7
stationary = true
phases = [{ rate = 1.0, rate_at_end = 3.0, lasts = "200s" }, { rate = 2.0, burstiness = 0.4, gaps = "gamma" }]
spikes = [{ at = "100s", lasts = "20s", times = 5 }]
prefix = "leaf"
prompt = { zipf = { exponent = 1.3, most = 900 } }
output = { quantiles = [1, 8, 90.5, 400] }
classes = [{ slo = "chat", priority = 1, share = 2 }, { slo = "batch" }]
[[users]]
name = "talkers"
count = 40
on_off = { on = "20s", off = "40s" }
prompt = { median = 30, spread = 0.7, most = 300 }
output = { uniform = [4, 60] }
sessions = { turns = { choices = [1, 2, 5] }, think_ms = { exponential = 900 }, grows = true, context = 1024 }
"""


def test_the_same_file_makes_the_same_trace_wherever_it_is_run(generated):
    trace = generated(EVERYTHING)
    assert hashlib.sha256(json.dumps(trace.frame.rows()).encode()).hexdigest()[:16] == "f10f66fab9aadbb3"


CLOSED = "closed_loop = { clients = 2, turns = 2 }\n"
BARE = '[[users]]\nname = "a"\nrate = 1.0\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (USER + 'rate = 1.0\ngaps = "pareto"', "users.0.gaps: must be 'gamma' or 'weibull'"),
        (USER + 'rate = 1.0\ngaps = "weibull"\nburstiness = 0.001', "users.0: burstiness must be 0.01 or more where"),
        (USER + 'phases = [{ rate = 1.0, gaps = "weibull", burstiness = 0.001 }]', "phases.0: burstiness must"),
        (USER + "rate = 1.0\nshare = { zipf = 1.0 }", "users.0: share needs copies to be shared among"),
        (USER + "rate = 1.0\ncopies = 2\nshare = 1.0", "users.0.share: must be a table"),
        (USER + "rate = 1.0\ncopies = 2\nshare = { zip = 1.0 }", "users.0.share.zip: there is no such key"),
        (USER + "count = 2\nstationary = true", "users.0: stationary does not go with count"),
        (USER + "rate = 1.0\n" + CLOSED, "users.0: give either count"),
        (USER + CLOSED + "burstiness = 2.0", "users.0: burstiness does not go with closed_loop"),
        (USER + CLOSED.replace("clients = 2, ", ""), "users.0.closed_loop.clients: is required"),
        (USER + 'rate = 1.0\non_off = { on = "1s", off = "0s" }', "users.0.on_off.off: must be a microsecond or more"),
        (USER + 'rate = 1.0\non_off = { on = "1s" }', "users.0.on_off.off: is required"),
        (USER + "rate = 1.0\ndiurnal = { peak_at = 0, amplitude = 2 }", "users.0.diurnal.amplitude: must be 1"),
        (USER + "rate = 1.0\nspikes = [{ at = 0, lasts = 2, times = -1 }]", "users.0.spikes.0.times: must be 0"),
        (USER + "rate = 1.0\nspikes = [{ at = 0, lasts = 2, times = 3, every = 1 }]", "users.0.spikes.0: every must"),
        (USER + "count = 9\nspikes = [{ at = 0, lasts = 9, times = 0 }]", "user 'a': its patterns leave no time"),
        (BARE + "prompt = 3", "users.0: give prompt and output, or lengths, which has both"),
        (BARE, "users.0: give prompt and output, or lengths, which has both"),
        (BARE + 'lengths = { trace = "none.parquet" }', "users.0.lengths: "),
        (BARE + 'output = 1\nprompt = { empirical = { trace = "none.parquet", column = "prompt_tokens" } }', "none.p"),
        (BARE + 'output = 1\nprompt = { empirical = { trace = "x", column = "promt_tokens" } }', "did you mean 'prom"),
        (BARE + "output = 1\nprompt = { quantiles = [3] }", "users.0.prompt.quantiles: needs 2 or more values"),
        (BARE + "output = 1\nprompt = { quantiles = [3, 2] }", "users.0.prompt: quantiles must not fall"),
        (BARE + "output = 1\nprompt = { quantiles = [0, 2] }", "users.0.prompt.quantiles.0: must be 1"),
        (BARE + 'output = 1\nprompt = { quantiles = ["1", 2] }', "users.0.prompt.quantiles.0: must be a number"),
        (BARE + "output = 1\nprompt = { zipf = { exponent = 1.0 } }", "users.0.prompt.zipf.most: is required"),
        (BARE + "output = 1\nprompt = { zipf = { exponent = 1.0, least = 9, most = 3 } }", "prompt.zipf: least = 9"),
        (BARE + "output = 1\nprompt = { exponential = 9 }", "users.0.prompt.exponential: there is no such key"),
        (BARE + "output = 1\nprompt = { quantiles = [1, inf] }", "users.0.prompt.quantiles.1: must be a finite number"),
        (BARE + "output = 1\nprompt = { median = nan, most = 3 }", "users.0.prompt.median: must be a finite number"),
        (USER + "rate = inf", "users.0.rate: must be a finite number"),
        (USER + "rate = 1.0\ncopies = 1_000_000_000", "users.0.copies: must be 1000000 or less"),
        (BARE + "output = true\nprompt = 1", "users.0.output: must be a table"),
        (BARE + "output = 1\nprompt = 0", "users.0.prompt.fixed: must be 1 or more"),
        (BARE + 'output = 1\nprompt = "9"', "users.0.prompt: must be a table"),
        (USER + "rate = 1.0\nclasses = [{ max_tokens = 3 }]", "users.0: classes.0: max_tokens = 3 is less"),
        (USER + "rate = 1.0\nclasses = [{ output = 9, max_tokens = 8 }]", "classes.0: max_tokens = 8 is less than"),
        (BARE + "classes = [{ output = 9 }]", "users.0: classes.0: give prompt and output, or lengths"),
        (USER + 'rate = 1.0\nclasses = [{ prefix = "p" }]', "user 'a': there is no prefix 'p'"),
        (USER + "rate = 1.0\nclasses = [{ shares = 3 }]", "users.0.classes.0.shares: there is no such"),
        (USER + "rate = 1.0\nsessions = { turns = 2, context = 99 }", "users.0.sessions: context goes with grows"),
        (USER + "rate = 1.0\nsessions = { turns = 2, grows = true, context = 26 }", "context = 26 is less than a"),
        (USER + "rate = 1.0\nsessions = { turns = 2, think_ms = -1 }", "users.0.sessions.think_ms.fixed: must be 0"),
        ('[[prefixes]]\nname = "p"\ntokens = 16\nparent = "q"\n' + BARE, "prefix 'p': there is no prefix 'q'"),
        ('[[prefixes]]\nname = "p"\ntokens = 16\nparent = "p"\n' + BARE, "prefix 'p': is its own ancestor"),
        ('[[prefixes]]\nname = "p"\ntokens = 16\nshare = { zipf = 1 }\n' + BARE, "prefix 'p': share needs copies"),
    ],
)  # fmt: skip
def test_a_word_of_these_that_is_wrong_is_a_sentence(generated, text, sentence):
    if text.startswith("[[prefixes]]"):
        text += "prompt = 1\noutput = 1\n"
    with pytest.raises(ExperimentError) as fault:
        generated('duration = "9s"\n' + text)
    assert sentence in str(fault.value)
    assert "Error" not in str(fault.value)


def test_a_trace_that_is_drawn_from_lies_beside_the_specification(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = {"duration": 1, "users": [{"name": "a", "rate": 1.0, "lengths": {"trace": "seen.parquet"}}]}
    with pytest.raises(ExperimentError, match=r"here: users\.0\.lengths: seen\.parquet"):
        checked_spec(document, "here")
