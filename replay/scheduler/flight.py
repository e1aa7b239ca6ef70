"""A step on its way: what it was planned to do, and how things stood then, until the executor has its results.

Where steps overlap, the next one is planned meanwhile, and requests move on; so each step keeps its own books.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replay.executors.interface import Batch
from replay.request import Request
from replay.scheduler.spans import Kind, kind_of
from replay.scheduler.state import State
from replay.scheduler.step import Step


@dataclass(slots=True)
class Flight:
    """A step that the executor has been given. `residents`: who held which slot in it, and doing what."""

    step: Step
    batch: Batch
    waiting: int
    used_blocks: int
    bound: str  # what a request went without for, or "nothing"
    residents: list[tuple[Request, int, Kind]]
    completed: set[int] = field(default_factory=set)  # rows whose answers it completes
    left: list[Request] = field(default_factory=list)  # who gives slot and blocks back when it is done

    @classmethod
    def of(cls, step: Step, batch: Batch, state: State) -> Flight:
        """The flight of a step that was just planned, before anything is counted as computed."""
        residents = []
        for request in state.resident.values():
            assert request.slot is not None, "a resident request holds a slot"
            residents.append((request, request.slot, kind_of(request, step.shares.get(request.row))))
        used = state.pool.blocks - state.pool.free_blocks
        return cls(step, batch, len(state.waiting), used, _bound(state, step), residents)


def _bound(state: State, step: Step) -> str:
    """What a request went without for, in this step: the gate too when nobody asked because it was closed; and the
    policy when it has evicted somebody for no other reason."""
    if step.bound is not None:
        return step.bound
    if step.evicted:
        return "policy"
    return "gate" if state.waiting and not step.gate else "nothing"
