"""What a prefix cache would save, as it is drawn; its numbers are tested with `replay.traces.describing.reuse`."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_traces import figure_of, picture, title, trace_of

from replay.plots.traces.pictures.prefixes import seen_over_time
from replay.traces.describing.reuse import reuse

MADE = trace_of(
    [0, 1, 1.5, 3],
    block_size=16,
    prompt_tokens=[32, 20, 16, 48],
    prefix_hashes=[[1, 2], [1, 3], None, [1, 2, 4]],
)


def test_the_share_seen_before_by_second() -> None:
    """0 of 32; 16 of 20 + 16; nobody; 32 of 48."""
    found = reuse(MADE.rows, 16, "global")
    assert found is not None
    shares = seen_over_time(found, MADE.rows, 1_000_000_000)
    assert shares == pytest.approx([0, 16 / 36, np.nan, 32 / 48], nan_ok=True)


def test_the_title_says_what_an_endless_cache_saves_and_how_large_it_must_be() -> None:
    """48 of 116 tokens; the last prompt needs 1 and, with 3 in between, 2 to be kept: 3 blocks of 16."""
    figure = figure_of("prefixes", MADE)
    assert title(figure) == (
        "An endless prefix cache would save 41 % of all prompt tokens, one of 48 tokens (6 MiB for llama-3.1-8b) "
        "90 % of that"
    )
    assert figure.get_supxlabel().startswith("Blocks of 16 tokens, shared with prompts of anybody;")


def test_nothing_to_save() -> None:
    assert picture("prefixes", trace_of([0])) == "the trace has no prefix hashes"
    assert picture("prefixes", trace_of([0], block_size=16)) == "the trace has no prefix hashes"
    alone = trace_of([0, 1], block_size=16, prompt_tokens=[16, 16], prefix_hashes=[[1], [2]])
    assert picture("prefixes", alone) == "no block of a prompt comes twice, so that a cache would save nothing"
    sessions = {"prompt_tokens": [16, 16], "prefix_hashes": [[1], [1]], "session": ["a", "b"]}
    apart = trace_of([0, 1], block_size=16, scope="session", **sessions)
    assert picture("prefixes", apart) == "no block of a prompt comes twice, so that a cache would save nothing"
    assert not isinstance(picture("prefixes", trace_of([0, 1], block_size=16, **sessions)), str)
