"""What a step is bound by where nobody waits and somebody is paused: the slots of the step, or its budget."""

from __future__ import annotations

from replay.contract.simulation import request, simulate


def test_who_is_paused_for_another_goes_without_a_slot() -> None:
    rows = [request(0), request(1, arrival=0.02)]
    left = simulate(rows, [6, 3], policy="srpt", max_running=2, max_scheduled=1)
    steps = left.steps.select("scheduled", "running", "waiting", "bound").rows()
    alone, paused = (1, 1, 0, "nothing"), (1, 2, 0, "slots")
    assert steps == [alone, alone, paused, paused, paused, alone, alone, alone, alone]


def test_who_is_paused_for_want_of_budget_goes_without_that() -> None:
    rows = [request(0), request(1, arrival=0.02)]
    left = simulate(rows, [6, 3], policy="srpt", max_running=2, token_budget=1)
    assert left.steps["bound"].to_list() == ["nothing"] * 2 + ["budget"] * 3 + ["nothing"] * 4
