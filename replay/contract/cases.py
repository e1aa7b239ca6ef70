"""Traces, pools and limits drawn at random, and what holds of every replay of them, whatever the policy and engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
from hypothesis import strategies as st

from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import Batch, CostModel
from replay.replayer import Replayer
from replay.request import Request
from replay.scheduler import Limits, Ordered, Policy, Step

COST = CostModel(fixed=0.010, prefill=0.0002, decode=0.0005, context=0.00001)
MODES: list[tuple[str, dict[str, Any]]] = [
    ("static", {"batch_size": 3}),
    ("dynamic", {"max_batch_size": 3, "max_wait_ms": 20.0}),
    ("continuous", {"max_running": 3, "token_budget": 7}),
    ("continuous", {"max_running": 3, "token_budget": 16, "prefill": "whole"}),
    ("continuous", {"max_running": 4, "max_scheduled": 2, "token_budget": 64}),
]


@dataclass
class Engine:
    """What an engine may have: a prefix cache, room in host memory, steps that overlap."""

    prefix_cache: bool = False
    host_blocks: int = 0
    overlap: bool = False


PLAIN = Engine()
engines = st.builds(Engine, st.booleans(), st.sampled_from([0, 3, 100]), st.booleans())


@dataclass
class Case:
    """A trace, a pool and limits, drawn at random. `rows` are made anew for each replay.

    `alike` says how many tokens each prompt has in common with the others that have as many.
    """

    arrivals: list[float]
    prompts: list[int]
    outputs: list[int]
    users: list[str | None]
    priorities: list[int]
    sessions: list[str | None]
    declared: list[int]
    alike: list[int]
    blocks: int
    block_size: int
    limits: Limits

    def add(self, arrival: float, prompt: int, output: int) -> None:
        """One more request, of a user of before and more urgent than most."""
        self.arrivals.append(arrival)
        self.prompts.append(prompt)
        self.outputs.append(output)
        self.users.append("ada")
        self.priorities.append(2)
        self.sessions.append(None)
        self.declared.append(output + 3)
        self.alike.append(0)

    def ids(self) -> dict[int, list[int]]:
        """The token ids of each prompt, by row: common ones, then its own."""
        return {
            row: [position if position < alike else 100 * (row + 1) + position for position in range(prompt)]
            for row, (prompt, alike) in enumerate(zip(self.prompts, self.alike, strict=True))
        }

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
        alike=several(st.integers(0, 24)),
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
    left_out = [
        one
        for one in state.resident.values()
        if one.state == "running"
        and not one.prefilling
        and one.row not in {share.request.row for share in batch.shares}
    ]
    if isinstance(scheduler.policy, Ordered) and scheduler.policy.decodes_first and left_out:
        assert not any(share.prefill for share in batch.shares), "a prompt stops a running decode"
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


def replay(
    case: Case, policy: str | Policy, mode: tuple[str, dict[str, Any]], engine: Engine = PLAIN, **options: Any
) -> Replayed:
    """Replay a case; with an engine that is not plain, what is in each block is followed."""
    if engine != PLAIN:
        options |= {**asdict(engine), "prompts": case.ids(), "verify": True}
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
        **options,
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
            assert row["status"] in ("timed_out", "skipped", "cancelled")
            assert row["finished"] is None
    capacity = case.blocks * case.block_size
    for prompt, output, status in zip(case.prompts, case.outputs, rows["status"], strict=True):
        assert prompt + output <= capacity or status in ("rejected", "skipped")
    assert steps["new_tokens"].sum() == rows["generated_tokens"].sum()
    for _, spans in replayed.spans.sort("start").group_by("slot", maintain_order=True):
        assert (spans["start"].shift(-1) >= spans["end"]).all(), "nobody shares a slot"
    own = int(replayed.spans["tokens"].sum())
    assert own == steps.select(pl.col("prefill_tokens").sum() + pl.col("decodes").sum()).item()
    check_work(replayed)


def check_work(replayed: Replayed) -> None:
    """Every token of work is a first computation or a recomputation, and every other one was found in a cache."""
    furthest = [0] * len(replayed.objects)
    again = [0] * len(replayed.objects)
    found: dict[int, int] = {}  # at the first admission
    for batch in replayed.batches:
        for share in batch.shares:
            row, end = share.request.row, share.start + share.tokens
            found.setdefault(row, share.start)
            again[row] += max(0, min(end, furthest[row]) - share.start)
            furthest[row] = max(end, furthest[row])
    rows = replayed.requests.sort("row")
    assert rows["recomputed_tokens"].to_list() == again
    assert [one.furthest for one in replayed.objects] == furthest
    for row, cached in enumerate(rows["cached_tokens"]):
        assert cached in (None, found.get(row)), "a hit is counted once, at the first admission"
        assert cached is None or cached < replayed.objects[row].prompt_tokens
    steps = replayed.steps
    lost = int(rows["evictions"].sum()) - int(steps["evicted"].sum())
    assert lost == 0 or (lost > 0 and (rows["status"] != "completed").any()), "only if nobody ran any more"
    assert (rows["swaps"] <= rows["evictions"]).all()
    assert steps["swapped_in"].sum() <= steps["swapped_out"].sum()
    if not rows["evictions"].sum():
        assert sum(again) == 0


@dataclass
class Fickle(Ordered):
    """Evicts at random, before and after it has given tokens, each way; and then goes on as the first come.

    After `changes` evictions it has made up its mind.
    """

    changes: int = 12

    def schedule(self, step: Step) -> None:
        self._change(step)
        super().schedule(step)
        self._change(step)

    def _change(self, step: Step) -> None:
        for running in step.running:
            if self.changes and step.random.random() < 0.3:
                self.changes -= 1
                step.evict(running, step.random.choice([None, "swap", "recompute"]))
