"""What every registered transform keeps, over random traces and chains; and it does the same to a scan of rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.errors import TraceError
from replay.traces.reading import read_trace
from replay.traces.scratch import Scratch
from replay.traces.table import SCHEMA, Trace
from replay.traces.transforms import apply_transforms, declaring, parse_transforms, transforms

NAMES = ["a", "b", "c"]
SEEDS = st.integers(0, 3)
PART = (
    st.floats(0.05, 0.95) | st.integers(1, 5) | st.builds(lambda n, seed: {"count": n, "seed": seed}, st.just(2), SEEDS)
)
ARGUMENTS = {
    "limit": st.integers(1, 9),
    "window": st.tuples(st.just(0), st.floats(0.001, 10)).map(list),
    "speed": st.floats(0.01, 100),
    "rate": st.floats(0.01, 100) | st.sampled_from(["0.5x", "3x"]),
    "idle_gap_cap": st.floats(0.001, 3),
    "think_time_cap": st.floats(0, 0.1),
    "scale_tokens": st.floats(0.25, 4),
    "max_prompt": st.integers(1, 50),
    "max_output": st.integers(1, 50),
    "without_users": st.sampled_from([["a"], ["b"]]),
    "sample": PART,
    "sample_users": PART,
    "sample_sessions": PART,
    "merge": st.sampled_from([["other.parquet"], {"traces": ["other.parquet", "other.parquet"], "offset": "1s"}]),
    "derive_priority": st.sampled_from(
        [
            {"from": "prompt_tokens", "below": [5, 20]},
            {"slos": {"x": 2}, "default": -1},
            {"random": {"0": 2, "1": 1}, "seed": 3},
            {"random": {"0": 2, "1": 1}, "each": "user"},
        ]
    ),
    "derive_user": st.sampled_from(["session", "slo", {"random": 4, "zipf": 1.1, "seed": 2}]),
    "deadline": st.sampled_from(["500ms", {"ttft_ms": 9, "per_prompt_token_ms": 0.5, "slos": {"x": 3}}]),
    "anonymize": st.sampled_from([True, {"keep": ["slo"]}]),
}
REFUSALS = (
    "less than one token of the hashes' blocks",
    "all requests arrive at once",
    "of whom there is no request",
    "leaves no request",
    "no request has a ",
    "hashes blocks of",
)


def test_each_transform_is_tried():
    assert set(ARGUMENTS) == set(transforms)


@st.composite
def rows(draw: st.DrawFn) -> pl.DataFrame:
    """Requests with nulls, ties, hashes, users, sessions with and without turns."""
    height = draw(st.integers(1, 24))

    def each(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=height, max_size=height))

    outputs = each(st.integers(1, 60))
    prompts = each(st.integers(1, 60))
    frame = pl.DataFrame(
        {
            "arrival_ns": sorted(each(st.sampled_from([0, 1, 3, 7, 10**6, 10**9, 4 * 10**9, 9 * 10**9 + 1]))),
            "prompt_tokens": prompts,
            "output_tokens": outputs,
            "max_tokens": [m and max(m, o) for m, o in zip(each(st.none() | st.just(40)), outputs, strict=True)],
            "user": each(st.sampled_from([None, *NAMES])),
            "session": each(st.sampled_from([None, *NAMES])),
            "slo": each(st.sampled_from([None, "x", "y"])),
            "priority": each(st.none() | st.integers(0, 3)),
            "think_time_ms": each(st.none() | st.floats(0, 100)),
            "prefix_hashes": [h and h[: (p + 3) // 4] for h, p in zip(each(HASHES), prompts, strict=True)],
        },
        schema_overrides={
            "max_tokens": pl.Int64,
            "priority": pl.Int64,
            "think_time_ms": pl.Float64,
            "prefix_hashes": pl.List(pl.Int64),
            **dict.fromkeys(["user", "session", "slo"], pl.String),
        },
    )
    turn = pl.int_range(pl.len()).over("session")
    return frame.with_columns(turn=pl.when(pl.col("session").is_not_null()).then(turn))


HASHES = st.none() | st.lists(st.integers(0, 6), max_size=16)
CHAIN = st.lists(
    st.sampled_from(sorted(ARGUMENTS)).flatmap(lambda name: ARGUMENTS[name].map(lambda a: {name: a})), max_size=4
)


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory):
    """Reads rows as a trace; beside it lies `other.parquet`."""
    folder: Path = tmp_path_factory.mktemp("transforms")
    other = {"arrival_s": [0.0, 1.0, 1.5], "prompt_tokens": [4, 8, 9], "output_tokens": [3, 2, 5]}
    known = {"user": ["a", None, "z"], "prefix_hashes": [[0], [0, 1], None]}
    pl.DataFrame(other | known).write_parquet(folder / "other.parquet", metadata={"block_size": "4"})
    numbers = count()

    def read(frame: pl.DataFrame) -> Trace:
        file = folder / f"trace{next(numbers)}.parquet"
        frame.write_parquet(file, metadata={"block_size": "4"})
        return read_trace(file)

    return read


def applied(trace: Trace, entries: list[dict[str, object]]) -> Trace | str:
    """The trace after the transforms, or why that cannot be."""
    try:
        return apply_transforms(trace, parse_transforms(entries))
    except TraceError as fault:
        assert any(way in str(fault) for way in REFUSALS), fault  # noqa: PT017  # there is no other way to fail here
        return str(fault)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(rows=rows(), entries=CHAIN)
def test_whatever_is_applied_it_is_a_trace_and_the_same_one_from_a_scan(reading, rows: pl.DataFrame, entries):
    small = reading(rows)
    scratch = Scratch()
    large = replace(small, rows=scratch.spooled(small.rows), large=True, scratch=scratch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declaring, "FEW", 0)  # so that it stays a scan
        found, streamed = applied(small, entries), applied(large, entries)
    if isinstance(found, str) or isinstance(streamed, str):
        assert found == streamed
        return
    frame = found.frame
    assert frame.equals(streamed.frame)
    assert (found.changes, found.notes, found.block_size) == (streamed.changes, streamed.notes, streamed.block_size)
    assert (found.large, streamed.large) == (False, True)
    if entries:
        assert not applied(large, entries).large, "what has become small is in memory"
    assert frame.schema == SCHEMA
    assert frame["arrival"][0] == 0
    assert frame["arrival"].is_sorted()
    assert frame["request_id"].is_unique().all()
    assert frame.filter(pl.min_horizontal("prompt_tokens", "output_tokens") < 1).is_empty()
    assert frame.filter(pl.col("max_tokens") < pl.col("output_tokens")).is_empty()
    if found.block_size is not None:
        most = -(-frame["prompt_tokens"] // found.block_size)
        assert (frame["prefix_hashes"].list.len() <= most).all()
    assert len(found.changes) == len(entries)
    assert not found.changes or found.changes[-1].after == found.extent()
    assert applied(small, entries).frame.equals(frame), "the same seed draws the same"


@pytest.mark.parametrize("name", list(transforms))
def test_each_transform_says_in_a_line_what_it_does_with_an_example_that_is_right(name: str):
    import tomllib

    first = transforms[name].__doc__.splitlines()[0]
    assert len(first) < 116
    text, _, example = first.partition(": { ")
    assert text[0].isupper()
    entry = tomllib.loads(f"entry = {{ {example}".split(" or {")[0])["entry"]
    assert list(entry) == [name]
    assert parse_transforms([entry])[0].argument == entry[name]
