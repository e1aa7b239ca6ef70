"""Users' shares: by hand, and however many and however named they are."""

from __future__ import annotations

import pytest
from drawn_traces import figure_of, picture, title, trace_of

from replay.plots.traces.pictures.users import users
from replay.plots.traces.words import name_text, number_text, share_text, tick_text


def labels(name_of_users: list[str | None], tokens: list[int]) -> list[str]:
    made = trace_of([0.0] * len(tokens), prompt_tokens=tokens, user=name_of_users)
    return [label.get_text() for label in figure_of("users", made).axes[0].get_yticklabels()]


def test_shares_and_lorenz_curve_by_hand() -> None:
    made = trace_of([0.0] * 5, prompt_tokens=[9, 1, 1, 5, 3], user=["ann", "bob", "bob", None, "cem"])
    found = users(made.rows)
    assert found.names == ["ann", "bob", "cem"]  # with answers of one token: 10, 4 and 4; bob has more requests
    assert (found.requests.tolist(), found.tokens.tolist()) == ([1, 2, 1], [10, 4, 4])
    assert (found.nobodys_requests, found.nobodys_tokens) == (1, 6)
    shares, have = found.lorenz(found.tokens)
    assert shares == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert have == pytest.approx([0, 4 / 18, 8 / 18, 1])
    figure = figure_of("users", made)
    assert title(figure) == "ann has 42 % of all tokens, in 20 % of the requests"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["ann", "bob", "cem", "(no user)"]


def test_of_many_users_the_first_are_named_and_the_rest_is_one_bar() -> None:
    many = [f"user {place}" for place in range(100)]
    assert labels(many, list(range(100, 0, -1))) == [f"user {place}" for place in range(15)] + ["(85 more users)"]
    assert labels(many[:16], list(range(100, 84, -1)))[-1] == "(1 more user)"
    made = trace_of([0.0] * 100, prompt_tokens=[99] * 10 + [9] * 90, user=many)
    assert title(figure_of("users", made)) == "The 10 of 100 users with the most tokens have 53 % of all users' tokens"


def test_the_rest_is_cut_where_it_would_hide_the_others() -> None:
    made = trace_of([0.0] * 400, user=[f"user {place}" for place in range(400)])
    figure = figure_of("users", made)
    assert "96 %, longer than drawn" in [text.get_text() for text in figure.axes[0].texts]
    assert figure.axes[0].get_xlim()[1] < 0.01


def test_nobody_is_named() -> None:
    assert picture("users", trace_of([0])) == "the trace names no users"


def test_names_are_on_one_line_and_not_too_long() -> None:
    assert name_text("$a_b$ <i> 王 🦜") == "$a_b$ <i> 王 🦜"
    assert name_text("tab\tnew\nline\x00") == "tab?new?line?"
    assert name_text("") == '""'
    assert name_text("a" * 20 + "b" * 20) == "a" * 16 + "…" + "b" * 16


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.00012, "0.012 %"),
        (0.0000000001, "0.00000001 %"),
        (0.003, "0.3 %"),
        (0.0996, "10 %"),
        (0.5, "50 %"),
        (0.987, "99 %"),
        (0.9975, "99.8 %"),
        (0.99999, "over 99.9 %"),
        (1, "100 %"),
    ],
)
def test_shares_are_told_as_closely_as_needed(share: float, text: str) -> None:
    assert share_text(share) == text


def test_numbers_are_told_in_three_figures_or_whole() -> None:
    assert [number_text(number) for number in (0, 0.01234, 5.126, 99.96, 1204, 1_234_567, 2.5e9)] == [
        "0",
        "0.0123",
        "5.13",
        "100",
        "1,204",
        "1.23 million",
        "2.5 billion",
    ]
    assert [tick_text(number) for number in (0, 0.5, 1000, 2_000_000, 1.5e9)] == ["0", "0.5", "1,000", "2M", "1.5G"]
