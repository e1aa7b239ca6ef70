"""The signs of a claim's order, by hand, and what stands for a figure in one."""

from __future__ import annotations

import pytest

from replay.errors import ExperimentError
from replay.experiment.faults import Faults
from replay.reproduce.orders import Entry, check_order, entries, keeps


@pytest.mark.parametrize(
    ("sign", "one", "other", "holds"),
    [
        ("<", 98.9, 100, True),
        ("<", 99.0, 100, False),  # 1 % apart is not more than 1 %
        ("<", 100, 98, False),
        ("<", 0, 1e-9, True),  # nothing is less than anything
        ("<", 0, 0, False),
        ("<=", 100, 100, True),
        ("<=", 105, 100, True),  # 5 is less than 5 % of 105
        ("<=", 106, 100, False),
        ("<=", 50, 100, True),
        ("<<", 49.9, 100, True),
        ("<<", 50, 100, False),
        ("<<", 0, 0, False),
        ("~", 90, 100, True),
        ("~", 100, 90, True),
        ("~", 89.9, 100, False),
        ("~", 0, 0, True),
        ("==", 3, 3, True),
        ("==", 3, 3.000001, False),
        (">", 100, 98.9, True),
        (">", 99.5, 99, False),
        (">=", 95, 100, True),
        (">=", 94.9, 100, False),
        (">>", 100, 49.9, True),
        (">>", 100, 50, False),
    ],
)
def test_a_sign_means_what_its_line_in_the_help_says(sign, one, other, holds):
    assert keeps(["a", sign, "b"], [one, other]) is holds


def test_an_order_holds_only_if_each_pair_of_neighbours_does():
    order = ["a", "<", "b", "~", "c", ">>", "d"]
    assert keeps(order, [1.0, 2.0, 2.1, 1.0])
    assert not keeps(order, [2.0, 2.0, 2.1, 1.0])
    assert not keeps(order, [1.0, 2.0, 3.0, 1.0])
    assert not keeps(order, [1.0, 2.0, 2.1, 2.0])


def test_what_is_not_defined_stands_in_no_order():
    assert not keeps(["a", "<", "b"], [None, 1.0])
    assert not keeps(["a", "==", "b"], [None, None])


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("vtc", Entry("vtc")),
        ("vtc@burst", Entry("vtc", "burst")),
        ("vtc/user 1", Entry("vtc", None, "user 1")),
        ("vtc@burst/user@1", Entry("vtc", "burst", "user@1")),
    ],
)
def test_a_name_may_say_of_which_workload_and_group(text, entry):
    assert Entry.of(text) == entry


def test_numbers_in_an_order_are_nobodys_figures():
    assert entries([0.95, "<=", "a", "<", "b"]) == [Entry("a"), Entry("b")]


def test_an_order_is_names_and_signs_by_turns():
    faults = Faults("recipe.toml")
    check_order(["a", "<", "b", "<<<"], "claims[0].order", faults)
    with pytest.raises(ExperimentError) as told:
        faults.raise_if_any()
    assert str(told.value).splitlines() == [
        "recipe.toml: claims[0].order: has names and signs by turns, and ends with a name, not '<<<'",
        "recipe.toml: claims[0].order: there is no sign '<<<'; did you mean '<<'?",
    ]
