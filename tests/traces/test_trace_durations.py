"""Durations as people type them, exact to the nanosecond."""

from __future__ import annotations

import pytest

from replay.errors import ExperimentError
from replay.traces.durations import nanoseconds


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("20m", 1_200 * 10**9),
        ("1.5h", 5_400 * 10**9),
        ("1h30m", 5_400 * 10**9),
        (" 2d 1 h ", 176_400 * 10**9),
        ("1s5ms", 1_005_000_000),
        ("0.1us", 100),
        (90, 90 * 10**9),
        (0.0000001, 100),
    ],
)
def test_a_duration_is_a_sum_of_counts_with_their_units(typed, expected):
    assert nanoseconds(typed, "here") == expected


@pytest.mark.parametrize("typed", ["", "20", "h", "1h30", "1x", "20 minutes", "-1s", -1, True, None, float("nan")])
def test_what_is_no_duration_is_a_sentence(typed):
    with pytest.raises(ExperimentError, match=r"^here: .* is not a duration; write "):
        nanoseconds(typed, "here")
