"""Classes with lengths and prefixes of their own, and first prompts of sessions: what goes together stays together."""

from __future__ import annotations

import polars as pl
import pytest

from replay.errors import ExperimentError

CLASSES = """
duration = "10s"
block_size = 8
[[prefixes]]
name = "long"
tokens = 16
[[prefixes]]
name = "two"
tokens = 8
copies = 2
[[users]]
name = "a"
count = 300
output = { fixed = 1 }
[[users.classes]]
share = 3
prompt = { fixed = 4 }
[[users.classes]]
prompt = { fixed = 5 }
output = { fixed = 9 }
prefix = "two"
slo = "second"
[[users.classes]]
prompt = { fixed = 6 }
prefix = "long"
"""


@pytest.fixture
def generated(generated):
    """The rows alone."""
    return lambda text: generated(text).frame


def test_a_class_has_lengths_and_a_prefix_of_its_own(generated):
    frame = generated(CLASSES)
    rows = set(frame.select("prompt_tokens", "output_tokens", "slo", pl.col("prefix_hashes").list.len()).rows())
    assert rows == {(4, 1, None, None), (8 + 5, 9, "second", 1), (16 + 6, 1, None, 2)}
    assert 150 < frame.filter(pl.col("prompt_tokens") == 4).height < 210  # three in five of 300
    hashes = frame.group_by("prompt_tokens").agg(pl.col("prefix_hashes").explode().unique().sort())
    assert sorted(hashes.filter(pl.col("prompt_tokens") > 4)["prefix_hashes"].to_list()) == [[0, 1], [2, 3]]


def test_a_class_without_lengths_needs_those_of_the_user(generated):
    with pytest.raises(ExperimentError, match=r"classes\.0: give prompt and output"):
        generated(CLASSES.replace("output = { fixed = 1 }\n", ""))
    with pytest.raises(ExperimentError, match="there is no prefix 'tow'"):
        generated(CLASSES.replace('prefix = "two"', 'prefix = "tow"'))


def test_the_first_prompt_of_a_session_may_be_longer(generated):
    frame = generated(
        'duration = "10s"\n[[users]]\nname = "a"\ncount = 5\nprompt = { fixed = 3 }\noutput = { fixed = 2 }\n'
        "sessions = { turns = { fixed = 3 }, first = { fixed = 100 }, grows = true }\n"
    )
    assert frame["prompt_tokens"].to_list() == [100, 105, 110] * 5
