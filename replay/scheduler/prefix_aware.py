"""`PrefixAware`: waiting requests by how much of their prompts the prefix cache holds, for policies that spare work.

Where no cache is used (none on the engine, or a mode that pads), no prefix is known and it is first come, first served.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from replay.request import Request
from replay.scheduler.ordered import Ordered
from replay.scheduler.step import Step


@dataclass
class PrefixAware(Ordered):
    """Waiting requests by the tokens that the cache would save, the most first; ties as they came.

    Of several that find little and share a prefix among themselves, the first goes ahead and the others come last: once
    it has run, they find what it computed. With more waiting than `fallback`, looking costs too much, and it is first
    come, first served. A step in which somebody may join looks up every waiting request's blocks and sorts them all.
    """

    alike: ClassVar[int] = 32  # tokens: who finds no more in the cache, and shares as many with one before, comes last

    fallback: int = field(
        default=128, kw_only=True, metadata={"minimum": 0, "help": "with more waiting, first come, first served"}
    )

    def looks(self, step: Step) -> bool:
        """Whether prefixes count in this step."""
        return step.caches and step.waiting_count <= self.fallback

    def worth(self, request: Request, hit: int, step: Step) -> float:
        """Who comes first: the largest. The tokens that the cache would save, unless overridden."""
        return hit

    def by_prefix(self, step: Step) -> Iterator[Request]:
        """Waiting requests, the longest prefix first; as they came where prefixes do not count."""
        came = sorted(step.waiting, key=lambda one: (one.due, one.row))
        if not self.looks(step):
            yield from came
            return
        ranks: dict[int, tuple[bool, float]] = {}
        seen: set[int] = set()  # blocks of the prompts of those who go ahead
        for request in came:
            hit = step.prefix_hit(request)
            later = hit <= self.alike and _shared(request, seen) * step.block_size >= self.alike
            if hit <= self.alike and not later:
                seen.update(request.block_keys)
            ranks[request.row] = (later, -self.worth(request, hit, step))
        yield from sorted(came, key=lambda one: ranks[one.row])

    def order(self, step: Step) -> Iterator[Request]:
        return self.by_prefix(step) if self.looks(step) else super().order(step)


def _shared(request: Request, seen: set[int]) -> int:
    """Blocks of a prompt, from its start on, that are among `seen`. Keys are chained: equal ones, equal prefixes."""
    for index, key in enumerate(request.block_keys):
        if key not in seen:
            return index
    return len(request.block_keys)
