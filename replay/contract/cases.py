"""Traces, pools, limits and engines drawn at random, and the replay of them.

It does not know what is expected of a replay: that is for `replay.contract.checks` and `replay.contract.promises`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hypothesis import strategies as st

from replay.contract.checks import check_outcome as check_outcome
from replay.contract.checks import check_step as check_step
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.request import Request
from replay.scheduler import Limits, Ordered, Policy, Step

COST = CostModel(fixed=0.010, prefill=0.0002, decode=0.0005, context=0.00001)
THINK_TIME = 0.004  # seconds between the end of a turn and the next
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
    deadlines: list[float | None]
    alike: list[int]
    blocks: int
    block_size: int
    limits: Limits

    @property
    def limited(self) -> bool:
        """Whether somebody may be turned away, or run out of time."""
        return self.limits != Limits()

    @property
    def tokens(self) -> int:
        """All tokens of prompts and answers."""
        return sum(self.prompts) + sum(self.outputs)

    def add(self, arrival: float, prompt: int, output: int) -> None:
        """One more request, of a user of before and more urgent than most."""
        self.arrivals.append(arrival)
        self.prompts.append(prompt)
        self.outputs.append(output)
        self.users.append("ada")
        self.priorities.append(2)
        self.sessions.append(None)
        self.declared.append(output + 3)
        self.deadlines.append(None)
        self.alike.append(0)

    def ids(self) -> dict[int, list[int]]:
        """The token ids of each prompt, by row: common ones, then its own."""
        return {
            row: [position if position < alike else 100 * (row + 1) + position for position in range(prompt)]
            for row, (prompt, alike) in enumerate(zip(self.prompts, self.alike, strict=True))
        }

    def rows(self) -> list[Request]:
        return [
            request(
                row,
                arrival,
                self.prompts[row],
                user=self.users[row],
                priority=self.priorities[row],
                session=self.sessions[row],
                max_tokens=self.declared[row],
                deadline=self.deadlines[row],
                think_time=THINK_TIME,
            )
            for row, arrival in enumerate(self.arrivals)
        ]


@st.composite
def cases(draw: st.DrawFn, *, limited: bool = True, ticks: int = 200, size: int = 10) -> Case:
    """Up to `size` requests within a fifth of a second; `limited` ones may be turned away, or run out of time.

    All instants are multiples of 1 / `ticks` s.
    """
    seconds = st.none() | st.integers(1, 60).map(lambda count: count / ticks)
    row = st.tuples(
        st.integers(0, 40).map(lambda count: count / ticks),  # arrival
        st.integers(1, 24),  # prompt
        st.integers(1, 12),  # output
        st.sampled_from([None, "ada", "grace"]),
        st.integers(0, 2),  # priority
        st.sampled_from([None, None, "s", "t"]) if limited else st.none(),  # session
        st.integers(0, 20),  # tokens declared beyond the output
        seconds,  # deadline
        st.integers(0, 24),  # alike
    )
    rows = sorted(draw(st.lists(row, min_size=1, max_size=size)), key=lambda one: one[0])
    arrivals, prompts, outputs, users, priorities, sessions, beyond, deadlines, alike = map(
        list, zip(*rows, strict=True)
    )
    return Case(
        arrivals=arrivals,
        prompts=prompts,
        outputs=outputs,
        users=users,
        priorities=priorities,
        sessions=sessions,
        declared=[output + more for output, more in zip(outputs, beyond, strict=True)],
        deadlines=deadlines,
        alike=alike,
        blocks=draw(st.integers(2, 40)),
        block_size=draw(st.sampled_from([1, 4, 16])),
        limits=Limits(draw(st.integers(3, 12)), draw(seconds), draw(seconds)) if limited else Limits(),
    )


def replay(
    case: Case,
    policy: str | Policy,
    mode: tuple[str, dict[str, Any]],
    engine: Engine = PLAIN,
    rows: list[Request] | None = None,
    **options: Any,
) -> Replayed:
    """Replay a case, and look at each step; with an engine that is not plain, what is in each block is followed.

    `rows` are its requests, where something of them is to be other than drawn.
    """
    if engine != PLAIN:
        options |= {**asdict(engine), "prompts": case.ids(), "verify": True}
    settings: dict[str, Any] = {"cost": COST, "limits": case.limits, "check": check_step} | mode[1] | options
    return simulate(
        case.rows() if rows is None else rows,
        case.outputs,
        mode=mode[0],
        policy=policy,
        blocks=case.blocks,
        block_size=case.block_size,
        **settings,
    )


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
