"""What holds for every trace, under every registered policy, in every mode, with every pool."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.contract.cases import MODES, Case, cases, check_outcome, replay
from replay.scheduler import modes, policies


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("policy", list(policies))
@settings(max_examples=40)
@given(case=cases())
def test_the_books_balance_and_everybody_is_served(policy: str, mode: tuple[str, dict[str, Any]], case: Case) -> None:
    replayed = replay(case, policy, mode)
    check_outcome(case, replayed)
    again = replay(case, policy, mode)
    for table in ("requests", "steps", "spans"):
        assert getattr(replayed, table).equals(getattr(again, table)), "the same seed gives the same bytes"


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(
    ("policy", "alike"),
    [("sjf", {"outputs"}), ("priority", {"priorities"}), ("hybrid", {"priorities"}), ("fair", {"users"})],
)
@settings(max_examples=40)
@given(case=cases(limited=False))
def test_where_all_are_alike_a_policy_is_fifo(
    policy: str, alike: set[str], mode: tuple[str, dict[str, Any]], case: Case
) -> None:
    if "outputs" in alike:
        case.outputs = [case.outputs[0]] * len(case.outputs)
        case.declared = [max(case.outputs[0], declared) for declared in case.declared]
    if "priorities" in alike:
        case.priorities = [case.priorities[0]] * len(case.priorities)
    if "users" in alike:
        case.users = [case.users[0]] * len(case.users)
    expected, replayed = replay(case, "fifo", mode), replay(case, policy, mode)
    for table in ("requests", "steps", "spans"):
        assert getattr(replayed, table).equals(getattr(expected, table))


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=40)
@given(case=cases(limited=False))
def test_fifo_serves_in_the_order_of_arrival(mode: tuple[str, dict[str, Any]], case: Case) -> None:
    served = replay(case, "fifo", mode).requests.filter(pl.col("status") == "completed").sort("row")
    assert served["admitted"].is_sorted()


@pytest.mark.parametrize("policy", list(policies))
@settings(max_examples=40)
@given(case=cases(limited=False))
def test_no_step_leaves_a_waiting_request_out_for_nothing(policy: str, case: Case) -> None:
    steps = replay(case, policy, MODES[2]).steps
    assert (steps.filter(pl.col("bound") == "nothing")["waiting"] == 0).all()


@settings(max_examples=40)
@given(case=cases(limited=False), policy=st.sampled_from(list(policies)), mode=st.sampled_from(MODES))
def test_a_later_request_does_not_change_the_past(case: Case, policy: str, mode: tuple[str, dict[str, Any]]) -> None:
    """Causality: what happened before a request arrives does not depend on it (static mode waits for it, and may)."""
    if mode[0] == "static":
        return
    later = 10.0  # seconds, long after the others have ended
    before = replay(case, policy, mode)
    case.add(later, prompt=3, output=2)
    after = replay(case, policy, mode)
    assert after.requests.filter(pl.col("row") < len(case.outputs) - 1).equals(before.requests)


def test_every_mode_is_covered() -> None:
    assert {name for name, _ in MODES} == set(modes)
