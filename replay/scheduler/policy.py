"""What a policy is: whose turn it is, whether to admit, pause or evict.

It does not decide when the batch is open (the mode does) nor what fits (the step does). `Ordered`, `PerUser` and
`Ranked`, in modules of their own, make most policies a few lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from replay.errors import ExperimentError
from replay.registry import Registry
from replay.request import Request
from replay.scheduler.listener import Listener
from replay.scheduler.step import Step

policies: Registry[type[Policy]] = Registry("policy")
Class = TypeVar("Class", bound="type[Policy]")


def policy(name: str) -> Callable[[Class], Class]:
    """Register a policy: `@policy("mine")` above `@dataclass` above the class, whose docstring says its rule.

    Raises ExperimentError for a class that is no dataclass (its options would be lost), or has no docstring.
    """

    def keep(entry: Class) -> Class:
        if "__dataclass_params__" not in entry.__dict__:
            raise ExperimentError(f"policy {name!r}: put @dataclass between @policy and class {entry.__name__}")
        if not entry.__doc__ or entry.__doc__.startswith(f"{entry.__name__}("):  # what @dataclass writes of itself
            raise ExperimentError(f"policy {name!r}: class {entry.__name__} needs a docstring that says its rule")
        return policies.register(name)(entry)

    return keep


class Policy(Listener, ABC):
    """One required method, and events that a policy may listen to.

    A policy is a dataclass: its fields are its options in an experiment. One object serves one cell, so it may keep
    notes; what it may know is in the requests and the step. The docstring's first line is the rule, in one sentence.
    """

    breaks: ClassVar[Mapping[str, str]] = {}
    """Promises of `replay policy check` that the rule breaks on purpose, by name, and why: they are not held to."""

    @abstractmethod
    def schedule(self, step: Step) -> None:
        """Decide this step: call `step.run`, `step.evict` and `step.reject` as you like, in any order."""

    def listeners(self) -> Sequence[Listener]:
        """Who hears of the cell's events, in order: the policy, and what it carries. Asked once, as a cell begins."""
        return (self,)

    def enqueue(self, request: Request, step: Step) -> None:
        """For base classes that keep a queue: `request` waits, after an arrival or an eviction and their events."""

    def wake(self, now: float) -> float | None:
        """When to look again although nothing happens: for policies that leave the engine idle on purpose."""
        return None
