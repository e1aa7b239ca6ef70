"""Shortest prefill first: shortest job first for the first token, which needs no notion of lengths.

Source: C. Hu et al., Inference without Interference: Disaggregate LLM Inference for Mixed Downstream Workloads, 2024
(arXiv 2401.11181), whose prefill instances sort by prompt length.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from replay.scheduler import Ordered, Request, Step, policy


@policy("shortest_prefill")
@dataclass
class ShortestPrefill(Ordered):
    """Whoever has the fewest tokens left to compute before its next one is admitted first.

    What the prefix cache holds need not be computed, nor what waits in host memory; after an eviction without it, the
    answer so far counts too. Without a prefix cache the key is static. With one it changes with what is cached, so
    that every waiting request is looked up again in each step in which somebody may join.

    Does badly: long prompts may wait for ever, and how long an answer will hold its slot is not looked at.
    """

    def key(self, request: Request, step: Step) -> float:
        return request.todo - step.prefix_hit(request)

    def order(self, step: Step) -> Iterator[Request]:
        if step.caches:
            for request in step.waiting:
                self.enqueue(request, step)
        yield from super().order(step)
