"""What holds for every trace, under every registered policy, in every mode, with every pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import Replayed, request, simulate

from replay.executors.interface import Batch, CostModel
from replay.replayer import Replayer
from replay.request import Request
from replay.scheduler import Limits, modes, policies

COST = CostModel(fixed=0.010, prefill=0.0002, decode=0.0005, context=0.00001)
MODES: list[tuple[str, dict[str, Any]]] = [
    ("static", {"batch_size": 3}),
    ("dynamic", {"max_batch_size": 3, "max_wait_ms": 20.0}),
    ("continuous", {"max_running": 3, "token_budget": 7}),
    ("continuous", {"max_running": 3, "token_budget": 16, "prefill": "whole"}),
    ("continuous", {"max_running": 4, "max_scheduled": 2, "token_budget": 64}),
]


@dataclass
class Case:
    """A trace, a pool and limits, drawn at random. `rows` are made anew for each replay."""

    arrivals: list[float]
    prompts: list[int]
    outputs: list[int]
    users: list[str | None]
    priorities: list[int]
    sessions: list[str | None]
    declared: list[int]
    blocks: int
    block_size: int
    limits: Limits

    def rows(self) -> list[Request]:
        columns = zip(
            self.arrivals, self.prompts, self.users, self.priorities, self.sessions, self.declared, strict=True
        )
        return [
            request(
                row,
                arrival,
                prompt,
                user=user,
                priority=priority,
                session=session,
                max_tokens=declared,
                think_time=0.004,
            )
            for row, (arrival, prompt, user, priority, session, declared) in enumerate(columns)
        ]


@st.composite
def cases(draw: st.DrawFn, *, limited: bool = True) -> Case:
    size = draw(st.integers(1, 10))

    def several(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    outputs = several(st.integers(1, 12))
    limits = Limits()
    if limited:
        seconds = st.none() | st.integers(1, 30).map(lambda steps: steps / 100)
        limits = Limits(draw(st.integers(3, 12)), draw(seconds), draw(seconds))
    return Case(
        arrivals=sorted(several(st.integers(0, 40).map(lambda steps: steps / 200))),
        prompts=several(st.integers(1, 24)),
        outputs=outputs,
        users=several(st.sampled_from(["ada", "grace", None])),
        priorities=several(st.integers(0, 2)),
        sessions=several(st.sampled_from([None, None, "s", "t"])) if limited else [None] * size,
        declared=[output + draw(st.integers(0, 20)) for output in outputs],
        blocks=draw(st.integers(2, 40)),
        block_size=draw(st.sampled_from([1, 4, 16])),
        limits=limits,
    )


def check_step(replayer: Replayer, batch: Batch) -> None:
    """What holds when a step is handed to the executor."""
    scheduler = replayer.scheduler
    state, mode = scheduler.state, scheduler.mode
    scheduler.check_integrity()
    assert batch.shares
    assert len(state.resident) <= mode.slots
    assert len(batch.shares) <= mode.scheduled
    assert len({share.request.row for share in batch.shares}) == len(batch.shares)
    tokens = sum(share.tokens for share in batch.shares)
    if mode.budget is not None and tokens > mode.budget:
        assert mode.whole, "a chunked step never exceeds its budget"
        assert len(batch.shares) == 1, "only a prompt larger than the budget may exceed it, alone"
    for share in batch.shares:
        assert share.request.state == "running"
        assert share.start == share.request.computed
        assert 1 <= share.tokens <= share.request.todo
        assert share.samples == (share.start + share.tokens == share.request.context)
        assert len(share.blocks) * state.pool.block_size >= share.start + share.tokens
        if mode.whole:
            assert share.samples, "a whole prefill ends in its step"
    if mode.padded:
        assert batch.padding is not None
        assert batch.padding.rows == len(state.resident)
        running = {row for row, resident in state.resident.items() if resident.state == "running"}
        assert running == {share.request.row for share in batch.shares}, "every row of a batch runs in every step"
        assert batch.padding.context >= max(share.start + share.tokens for share in batch.shares)


def replay(case: Case, policy: str, mode: tuple[str, dict[str, Any]]) -> Replayed:
    return simulate(
        case.rows(),
        case.outputs,
        mode=mode[0],
        policy=policy,
        blocks=case.blocks,
        block_size=case.block_size,
        cost=COST,
        limits=case.limits,
        check=check_step,
        **mode[1],
    )


def check_outcome(case: Case, replayed: Replayed) -> None:
    """What holds when a replay has ended."""
    rows = replayed.requests.sort("row")
    assert rows["row"].to_list() == list(range(len(case.outputs))), "every request has exactly one row"
    assert (rows["status"] != "unfinished").all()
    steps = replayed.steps
    assert (steps["end"] > steps["start"]).all()
    assert (steps["start"].shift(-1) >= steps["end"]).all(), "the clock never goes back"
    for row in rows.iter_rows(named=True):
        times = row["token_times"]
        assert times == sorted(set(times)), "two tokens of one request never come at once"
        assert len(times) == row["generated_tokens"]
        assert set(times) <= set(steps["end"])
        if row["status"] == "completed":
            assert row["generated_tokens"] == case.outputs[row["row"]], "each token exactly once"
            assert row["due"] <= row["submitted"] <= row["admitted"] < row["first_token"] <= row["last_token"]
            assert row["last_token"] <= row["finished"] == row["ended"]
            assert row["lag"] == 0, "a virtual clock is never late"
        elif row["status"] == "rejected":
            assert times == []
            assert "wait" in row["reason"] or "blocks" in row["reason"]
        else:
            assert row["status"] in ("timed_out", "skipped")
            assert row["finished"] is None
    capacity = case.blocks * case.block_size
    for prompt, output, status in zip(case.prompts, case.outputs, rows["status"], strict=True):
        assert prompt + output <= capacity or status in ("rejected", "skipped")
    assert steps["new_tokens"].sum() == rows["generated_tokens"].sum()
    for _, spans in replayed.spans.sort("start").group_by("slot", maintain_order=True):
        assert (spans["start"].shift(-1) >= spans["end"]).all(), "nobody shares a slot"
    own = replayed.spans["tokens"].sum()
    assert own == steps["prefill_tokens"].sum() + steps["decodes"].sum()
    spent = rows["recomputed_tokens"].sum() + sum(r.furthest for r in replayed.objects)
    assert own == spent, "every token of work is a first computation or a recomputation"


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("policy", list(policies))
@settings(max_examples=40, deadline=None)
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
@settings(max_examples=40, deadline=None)
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
@settings(max_examples=40, deadline=None)
@given(case=cases(limited=False))
def test_fifo_serves_in_the_order_of_arrival(mode: tuple[str, dict[str, Any]], case: Case) -> None:
    served = replay(case, "fifo", mode).requests.filter(pl.col("status") == "completed").sort("row")
    assert served["admitted"].is_sorted()


@pytest.mark.parametrize("policy", list(policies))
@settings(max_examples=40, deadline=None)
@given(case=cases(limited=False))
def test_no_step_leaves_a_waiting_request_out_for_nothing(policy: str, case: Case) -> None:
    steps = replay(case, policy, MODES[2]).steps
    assert (steps.filter(pl.col("bound") == "nothing")["waiting"] == 0).all()


@settings(max_examples=40, deadline=None)
@given(case=cases(limited=False), policy=st.sampled_from(list(policies)), mode=st.sampled_from(MODES))
def test_a_later_request_does_not_change_the_past(case: Case, policy: str, mode: tuple[str, dict[str, Any]]) -> None:
    """Causality: what happened before a request arrives does not depend on it (static mode waits for it, and may)."""
    if mode[0] == "static":
        return
    later = 10.0  # seconds, long after the others have ended
    before = replay(case, policy, mode)
    case.arrivals.append(later)
    for column, value in (
        (case.prompts, 3),
        (case.outputs, 2),
        (case.users, "ada"),
        (case.priorities, 2),
        (case.sessions, None),
        (case.declared, 5),
    ):
        column.append(value)  # type: ignore[attr-defined]  # each is a list
    after = replay(case, policy, mode)
    assert after.requests.filter(pl.col("row") < len(case.outputs) - 1).equals(before.requests)


def test_every_mode_is_covered() -> None:
    assert {name for name, _ in MODES} == set(modes)
