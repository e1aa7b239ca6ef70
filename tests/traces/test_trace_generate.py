"""Generated traces: the sample is what its specification says, and a specification that is wrong is told why."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from replay.errors import ExperimentError
from replay.traces.describing.describe import describe
from replay.traces.generate import generate_trace
from replay.traces.reading import read_trace

SAMPLE = Path(__file__).parents[2] / "traces" / "sample.toml"
USER = '[[users]]\nname = "a"\nprompt = { median = 8, most = 9 }\noutput = { median = 5, most = 9 }\n'


def test_the_sample_is_made_again_exactly():
    sample, again = read_trace(SAMPLE.with_suffix(".parquet")), generate_trace(SAMPLE)
    assert_frame_equal(again.frame, sample.frame)
    assert (again.block_size, again.hash_scope, again.history) == (sample.block_size, sample.hash_scope, sample.history)


def test_the_sample_has_what_a_first_replay_should_show():
    found = describe(read_trace(SAMPLE.with_suffix(".parquet")))
    assert found["rows"] == 96
    assert 3 < found["span_s"] < 3.5
    assert found["gap_cv"] > 1 + found["gap_cv_poisson_error"]  # burstier than Poisson
    assert [user["requests"] for user in found["users"]] == [48, 18, 18, 12]
    assert set(found["priorities"]) == {"0", "1", "2"}
    assert 16 <= found["prompt_tokens"]["min"] < found["prompt_tokens"]["max"] <= 256
    assert 4 <= found["output_tokens"]["min"] < found["output_tokens"]["max"] <= 128
    assert found["output_tokens"]["p95"] > 3 * found["output_tokens"]["p50"]  # a long tail
    assert found["prefixes"]["prompt_token_share_seen_before"] > 0.4
    assert "not measured traffic" in found["history"][0]


def test_a_shorter_duration_is_the_same_requests_sooner(generated):
    user = USER + "count = 50\nburstiness = 2.0\n"
    slow, fast = (generated(f"duration = {seconds}\n{user}").frame for seconds in (10.0, 5.0))
    assert_frame_equal(slow.drop("arrival"), fast.drop("arrival"))
    assert (slow["arrival"] - 2 * fast["arrival"]).abs().max() <= 4_000  # both are drawn to the microsecond


def test_another_user_changes_nobody_else(generated):
    one = generated("duration = 5.0\n" + USER + "count = 20\n")
    two = generated("duration = 5.0\n" + USER + "count = 20\n" + USER.replace('"a"', '"b"') + "rate = 4.0\n")
    of_a = two.frame.filter(pl.col("user") == "a")
    assert_frame_equal(of_a.drop("arrival"), one.frame.drop("arrival"))
    assert_frame_equal(of_a.select(pl.col("arrival").diff()), one.frame.select(pl.col("arrival").diff()))


def test_seeds_differ_and_a_rate_is_kept(generated):
    spec = "duration = 500.0\n" + USER + "rate = 4.0\n"
    first, second = generated("seed = 1\n" + spec), generated("seed = 2\n" + spec)
    assert first.frame.height == pytest.approx(2000, abs=4 * 2000**0.5)
    assert not first.frame.equals(second.frame)


def test_lengths_keep_their_bounds_and_prefixes_come_before_them(generated):
    prefixes = '[[prefixes]]\nname = "p"\ntokens = 16\n[[prefixes]]\nname = "q"\ntokens = 8\n'
    user = (
        '[[users]]\nname = "{0}"\ncount = 60\nprefix = "{0}"\nprefix_share = 0.5\n'
        "prompt = {{ median = 6, spread = 2.0, least = 3, most = 12 }}\noutput = {{ median = 5, most = 9 }}\n"
    )
    trace = generated("duration = 1.0\nblock_size = 8\n" + prefixes + user.format("p") + user.format("q"))
    assert trace.block_size == 8
    shares = {}
    for name, hashes in (("p", [0, 1]), ("q", [2])):
        own = trace.frame.filter(pl.col("user") == name)
        carried = own.filter(pl.col("prefix_hashes").is_not_null())
        assert all(found == hashes for found in carried["prefix_hashes"].to_list())
        tail = own["prompt_tokens"] - 8 * own["prefix_hashes"].list.len().fill_null(0)
        assert (tail.min(), tail.max()) == (3, 12)
        assert set(own["output_tokens"]) == {5}  # no spread
        shares[name] = carried.height / own.height
    assert all(0.3 < share < 0.7 for share in shares.values())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed = ", "is not TOML"),
        ("duration = 1.0\n" + USER, "users.0: give either count (requests in all) or rate (requests per second)"),
        ("duration = 1.0\n" + USER + "count = 1\nrate = 1.0", "users.0: give either count"),
        ("duration = 1.0\n" + USER + "cuont = 1", "users.0.cuont: there is no such key: did you mean 'count'?"),
        ("duratoin = 1.0\n" + USER + "count = 1", "duratoin: there is no such key: did you mean 'duration'?"),
        ("duration = 1.0\n" + USER + 'count = "1"', "users.0.count: must be a whole number"),
        ("duration = 1.0\n" + USER + "count = 0", "users.0.count: must be 1 or more"),
        ('duration = "1 s."\n' + USER + "count = 1", "duration: '1 s.' is not a duration"),
        ("duration = 0.0\n" + USER + "count = 1", "duration: must be a microsecond or more"),
        ("duration = 1.0\n" + USER + "rate = 1e-9", "no user has a request within the duration"),
        ("duration = 1.0\n" + USER + "count = 1\nmax_tokens = 8", "max_tokens = 8 is less than output.most = 9"),
        ("duration = 1.0\n" + USER + 'count = 1\nprefix = "p"', "there is no prefix 'p': there are none"),
        ("duration = 1.0\n" + 2 * (USER + "count = 1\n"), "two users have the same name"),
        ('duration = 1.0\n[[prefixes]]\nname = "p"\ntokens = 17\n' + USER + "count = 1", "are not whole blocks"),
        ("duration = 1.0\n" + USER.replace("median = 8", "median = 8, least = 10") + "count = 1", "least = 10 is more"),
    ],
)  # fmt: skip
def test_a_specification_that_is_wrong_is_a_sentence(generated, text, sentence):
    with pytest.raises(ExperimentError) as fault:
        generated(text)
    assert sentence in str(fault.value)
    assert "spec.toml" in str(fault.value)


def test_all_faults_are_named_at_once(generated):
    with pytest.raises(ExperimentError) as fault:
        generated("duration = 1.0\nsead = 1\n" + USER.replace("most = 9", "most = 0") + "count = 1\n")
    for place in ("sead", "users.0.prompt.most", "users.0.output.most"):
        assert place in str(fault.value)


def test_a_specification_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(ExperimentError, match=r"absent\.toml: cannot be read \(No such file or directory\)"):
        generate_trace(tmp_path / "absent.toml")
