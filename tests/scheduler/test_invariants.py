"""Where all requests are alike in what a policy goes by, it is another policy, to the last token, in every mode."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.contract.cases import MODES, Case, cases, replay
from replay.scheduler import policies

Mode = tuple[str, dict[str, Any]]

# policy, its options, and what is made alike of all requests: then it serves as fifo does, under evictions too
AS_FIFO: list[tuple[str, dict[str, Any], set[str]]] = [
    ("sjf", {}, {"outputs"}),
    ("sjf", {"ageing": 5.0}, {"outputs"}),
    ("priority", {}, {"priorities"}),
    ("hybrid", {}, {"priorities"}),
    ("fair", {}, {"users"}),
]


def make_alike(case: Case, alike: set[str]) -> None:
    """Give every request the first one's value of each field named; `outputs` are declared alike too."""
    for name in alike:
        values = getattr(case, name)
        values[:] = [values[0]] * len(values)
    if "outputs" in alike:
        case.declared[:] = [max(case.outputs[0], declared) for declared in case.declared]


@pytest.mark.parametrize(("policy", "options", "alike"), AS_FIFO, ids=str)
@settings(max_examples=60)
@given(case=cases(limited=False), mode=st.sampled_from(MODES))
def test_where_all_are_alike_a_policy_is_fifo(
    policy: str, options: dict[str, Any], alike: set[str], case: Case, mode: Mode
) -> None:
    make_alike(case, alike)
    expected, replayed = replay(case, "fifo", mode), replay(case, policies[policy](**options), mode)
    for table in ("requests", "steps", "spans"):
        assert getattr(replayed, table).equals(getattr(expected, table))


@settings(max_examples=100)
@given(case=cases(limited=False), mode=st.sampled_from(MODES))
def test_fifo_serves_in_the_order_of_arrival(case: Case, mode: Mode) -> None:
    served = replay(case, "fifo", mode).requests.filter(pl.col("status") == "completed").sort("row")
    assert served["admitted"].is_sorted()
