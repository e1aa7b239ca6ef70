"""Samples: how many are taken, that users and sessions are whole, and that who is taken goes by name and seed alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.drawing import draw, drawn
from replay.traces.transforms import apply_transforms, parse_transforms


def applied(trace, *entries):
    return apply_transforms(trace, parse_transforms(entries))


def ids(trace) -> list[str]:
    return trace.frame["request_id"].to_list()


@pytest.fixture
def users(trace_of):
    """20 users with 5 requests each, in turn, and 10 requests of nobody at the end."""
    return trace_of(arrival_s=list(range(110)), user=[f"u{n % 20}" for n in range(100)] + [None] * 10)


def splitmix(value: int) -> int:
    """The finalizer of SplitMix64, in whole numbers."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> shift)) * factor % 2**64
    return value ^ (value >> 31)


def fnv(text: str, value: int) -> int:
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def test_a_draw_is_fnv_of_the_name_and_the_same_in_any_order():
    start = splitmix(fnv("sample 7", 0xCBF29CE484222325))
    names = ["ada", "", "bob", "é", "a longer name than the others", "ada"]
    found = pl.DataFrame({"name": names}).select(draw(pl.col("name"), 7, "sample"))["name"]
    assert found.to_list() == [splitmix(fnv(name, start)) for name in names]
    assert pl.DataFrame({"name": names[::-1]}).select(draw(pl.col("name"), 7, "sample"))["name"].to_list() == list(
        reversed(found)
    )


def test_draws_are_even_and_those_of_other_purposes_independent():
    names = pl.DataFrame({"name": [str(n) for n in range(20_000)]})
    found = names.select(
        **{f"{purpose}{seed}": draw(pl.col("name"), seed, purpose) / 2.0**64 for purpose in "ab" for seed in (0, 1)}
    ).to_numpy()
    assert np.abs(found.mean(axis=0) - 0.5).max() < 4 / np.sqrt(12 * 20_000)
    correlations = np.corrcoef(found.T) - np.eye(4)
    assert np.abs(correlations).max() < 4 / np.sqrt(20_000)
    tenths = np.histogram(found[:, 0], bins=10, range=(0, 1))[0]
    assert np.abs(tenths - 2_000).max() < 4 * np.sqrt(1_800)


def test_weights_are_drawn_as_often_as_they_say():
    names = pl.DataFrame({"name": [str(n) for n in range(20_000)]})
    counts = names.select(drawn(pl.col("name"), 0, "x", [0, 3, 0, 1]))["name"].value_counts().sort("name").rows()
    assert [place for place, _ in counts] == [1, 3]
    assert abs(counts[0][1] - 15_000) < 4 * np.sqrt(20_000 * 0.75 * 0.25)


def test_sample_takes_so_many_or_a_share_and_begins_at_zero(users):
    half = applied(users, {"sample": 0.5})
    assert half.extent().rows == 55
    assert half.frame["arrival"][0] == 0
    assert applied(users, {"sample": 7}).extent().rows == 7
    assert applied(users, {"sample": 999}).frame.equals(users.frame)
    assert applied(users, {"sample": 0.0001}).extent().rows == 1
    assert set(ids(applied(users, {"sample": 7}))) < set(ids(half)), "a larger sample has the smaller one in it"
    assert ids(applied(users, {"sample": {"share": 0.5, "seed": 0}})) == ids(half)
    assert ids(applied(users, {"sample": {"share": 0.5, "seed": 1}})) != ids(half)


def test_sample_users_takes_them_whole_and_as_large_a_share_of_nobodys_requests(users):
    found = applied(users, {"sample_users": 0.25})
    counts = dict(found.frame["user"].value_counts().iter_rows())
    assert counts.pop(None) == 2  # a quarter of 10, to the even one
    assert list(counts.values()) == [5] * 5
    assert found.changes[0].details == (
        "5 of 20 users",
        "2 of 10 requests without a user, the same share",
    )
    three = applied(users, {"sample_users": 3}).frame["user"].drop_nulls().unique()
    assert three.len() == 3
    assert set(three) < set(counts)
    assert applied(users, {"sample_users": 99}).frame.equals(users.frame)


def test_who_is_taken_does_not_go_by_what_was_left_out_before(users):
    late = applied(users, {"window": [20, 100]}, {"sample_users": 0.25}).frame["user"].drop_nulls().unique()
    assert set(late) == set(applied(users, {"sample_users": 0.25}).frame["user"].drop_nulls().unique())


def test_sample_sessions_takes_them_whole(trace_of):
    sessions = [f"s{n % 10}" for n in range(40)] + [None] * 5
    trace = trace_of(arrival_s=list(range(45)), session=sessions, turn=[n // 10 for n in range(40)] + [None] * 5)
    found = applied(trace, {"sample_sessions": {"count": 4, "seed": 3}})
    counts = dict(found.frame["session"].value_counts().iter_rows())
    assert counts.pop(None) == 2
    assert list(counts.values()) == [4] * 4
    assert found.changes[0].details == ("4 of 10 sessions", "2 of 5 requests without a session, the same share")


def test_sample_tells_of_the_sessions_that_it_cuts(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2], session=["a", "a", "a"])
    assert applied(trace, {"sample": 2}).changes[0].details == ("1 session goes on without some of the turns",)


@pytest.mark.parametrize("column", ["user", "session"])
def test_without_users_or_sessions_there_are_none_to_take(trace_of, column: str):
    with pytest.raises(TraceError, match=f"no request has a {column}; `sample` takes single requests"):
        applied(trace_of(arrival_s=[0, 1]), {f"sample_{column}s": 0.5})


@pytest.mark.parametrize("name", ["sample", "sample_users", "sample_sessions"])
@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        (0, "count: 0 is not a whole number of at least 1"),
        (1.0, "1.0 is neither a share between 0 and 1 nor a whole number"),
        (-0.5, "-0.5 is neither a share between 0 and 1 nor a whole number"),
        (True, "True is neither a share, a count, nor a table such as { share = 0.1, seed = 7 }"),
        ("10%", "'10%' is neither a share, a count, nor a table such as { share = 0.1, seed = 7 }"),
        ({}, "give one of share, count, not none"),
        ({"share": 0.5, "count": 3}, "give one of share, count, not share and count"),
        ({"share": 2}, "share: 2 is not a share between 0 and 1"),
        ({"share": 0.5, "sed": 3}, "there is no setting 'sed': did you mean 'seed'?"),
        ({"share": 0.5, "seed": -1}, "seed: -1 is not a whole number of at least 0"),
        ({"count": 0.5}, "count: 0.5 is not a whole number of at least 1"),
    ],
)
def test_what_is_no_part_is_refused(name: str, argument: object, sentence: str):
    with pytest.raises(ExperimentError) as fault:
        parse_transforms([{name: argument}])
    assert str(fault.value) == f"{name}: {sentence}"
