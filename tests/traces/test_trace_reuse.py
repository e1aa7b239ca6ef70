"""What a prefix cache of each size would find: by hand, and against a cache that is played through."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.traces.describing.reuse import Reuse, larger_before, reuse


def rows(*prompts: tuple[int, list[int]], sessions: list[str] | None = None) -> pl.LazyFrame:
    """Prompt tokens and hashes of a request each, which arrive a nanosecond apart."""
    return pl.LazyFrame(
        {
            "arrival": range(len(prompts)),
            "prompt_tokens": [tokens for tokens, _ in prompts],
            "prefix_hashes": [hashes for _, hashes in prompts],
            "session": sessions or [None] * len(prompts),
        },
        schema_overrides={"session": pl.String, "prefix_hashes": pl.List(pl.Int64)},
    )


def found(*arguments: Any, **named: Any) -> Reuse:
    made = reuse(*arguments, **named)
    assert made is not None
    return made


def test_six_prompts_by_hand() -> None:
    """Blocks of 10 tokens. What the cache holds as each comes, the most recently used first:

    1,2 (15 tokens): nothing.          3 (10): 1 2.             1,2 (15): 3 1 2, so that 1 needs 2 blocks and 2 three.
    4 (10): 1 2 3.                     3 (10): 4 1 2 3: needs 4.       1,5 (20): 3 4 1 2: 1 needs 3, 5 is new.
    """
    asked = rows((15, [1, 2]), (10, [3]), (15, [1, 2]), (10, [4]), (10, [3]), (20, [1, 5]))
    made = found(asked, 10, "global")
    assert (made.prompt_tokens, made.one_in) == (80, 1)
    by_request = [
        [int(need) for at, need in zip(made.arrival, made.needs, strict=True) if at == request] for request in range(6)
    ]
    assert by_request == [[0, 0], [0], [3, 2], [0], [4], [0, 3]]  # the last block of a prompt first
    assert made.tokens[made.arrival == 2].tolist() == [5, 10]
    sizes, shares = made.curve()
    assert sizes.tolist() == [2, 3, 4]
    assert shares == pytest.approx([10 / 80, 25 / 80, 35 / 80])
    assert made.share == pytest.approx(35 / 80)
    assert [made.size_for(part) for part in (0.2, 25 / 35, 0.8, 1)] == [2, 3, 4, 4]


def test_hashes_of_a_session_are_its_own() -> None:
    asked = rows((10, [1]), (10, [1]), (10, [1]), sessions=["a", "b", "a"])
    assert found(asked, 10, "session").needs.tolist() == [0, 0, 2]
    assert found(asked, 10, "global").needs.tolist() == [0, 1, 1]


def test_nobody_has_hashes() -> None:
    assert reuse(rows((10, []), (10, [])), 10, "global") is None


def test_nobody_shares() -> None:
    made = found(rows((10, [1]), (10, [2])), 10, "global")
    assert (made.share, made.size_for(0.9)) == (0, 0)


@given(values=st.lists(st.integers(-1, 12), max_size=30))
def test_larger_values_before_are_counted(values: list[int]) -> None:
    expected = [
        sum(earlier > value for earlier in values[:place]) if value >= 0 else 0 for place, value in enumerate(values)
    ]
    assert larger_before(np.array(values, dtype=np.int64)).tolist() == expected


@given(paths=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=25))
def test_against_a_cache_of_each_size_that_is_played_through(paths: list[list[int]]) -> None:
    """Prompts are paths in a tree, and the hash of a block is its path."""
    names: dict[tuple[int, ...], int] = {}
    prompts = [[names.setdefault(tuple(path[: place + 1]), len(names)) for place in range(len(path))] for path in paths]
    made = found(rows(*((10 * len(prompt), prompt) for prompt in prompts)), 10, "global")
    for size in range(1, len(names) + 1):
        recent: list[int] = []  # the most recently used first
        hits = 0
        for prompt in prompts:
            hits += sum(block in recent for block in prompt)
            recent = (prompt + [block for block in recent if block not in prompt])[:size]
        sizes, shares = made.curve()
        within = [share for least, share in zip(sizes, shares, strict=True) if least <= size]
        assert (within[-1] if within else 0) == pytest.approx(10 * hits / made.prompt_tokens)


def test_of_many_blocks_some_are_drawn_and_the_shares_are_near() -> None:
    random = np.random.default_rng(0)
    prompts = [(10, [int(hashed)]) for hashed in np.minimum(random.geometric(0.002, 20_000), 3000)]
    exact, drawn = found(rows(*prompts), 10, "global"), found(rows(*prompts), 10, "global", most=5000)
    assert (exact.one_in, drawn.one_in) == (1, 4)
    assert 3000 < len(drawn.tokens) < 7000
    assert drawn.share == pytest.approx(exact.share, abs=0.1)
    for size in (100, 500, 1000):
        shares = [made.curve()[1][made.curve()[0] <= size][-1] for made in (exact, drawn)]
        assert shares[1] == pytest.approx(shares[0], abs=0.1)


def mixed(number: int) -> int:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        number = (number ^ number >> shift) * factor % 2**64
    return number ^ number >> 31


def test_which_hashes_are_drawn_depends_on_the_hashes_alone_and_of_sessions_on_their_names() -> None:
    hashes = [*range(-50, 50), 2**63 - 1, -(2**63)]
    prompts = [(10, [hashed]) for hashed in hashes]
    drawn = found(rows(*prompts), 10, "global", most=34)
    assert drawn.one_in == 3
    assert drawn.arrival.tolist() == [at for at, hashed in enumerate(hashes) if mixed(hashed % 2**64) % 3 == 0]
    alike = rows(*prompts, *prompts, sessions=["a"] * len(prompts) + ["b"] * len(prompts))
    places = found(alike, 10, "session", most=68).arrival
    one, other = places[places < len(prompts)], places[places >= len(prompts)] - len(prompts)
    assert len(one) > 10
    assert len(other) > 10
    assert one.tolist() != other.tolist()
