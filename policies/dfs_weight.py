"""Depth-first search over the prefixes of those who wait, the most wanted first, as in SGLang.

Source: Zheng et al., SGLang: Efficient Execution of Structured Language Model Programs, NeurIPS 2024 (arXiv
2312.07104), whose scheduler has it as `dfs-weight`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from replay.scheduler import Ordered, Request, Step, policy


@policy("dfs_weight")
@dataclass
class DfsWeight(Ordered):
    """All who share a prefix go one after another, depth first: what the cache holds, then where the most wait below.

    SGLang's tree is what its cache holds; here, the full blocks that several waiting prompts begin with are branches
    too. Of branches that weigh the same, that of whoever came first is next; who ends at a node comes after those below
    it, and who shares nothing comes last. Without a cache it is fifo. In each step in which somebody may join, it looks
    at every block of every prompt that waits.

    Does badly: a request that shares nothing waits as long as others come who do.
    """

    def order(self, step: Step) -> Iterator[Request]:
        if not step.caches:
            yield from super().order(step)
            return
        came = sorted(step.waiting, key=lambda one: (one.due, one.row))
        below = Counter(key for request in came for key in request.block_keys)  # keys are chained: one is a node
        order = {key: number for number, key in enumerate(below)}  # as they came
        cached = {key for one in came for key in one.block_keys[: step.prefix_hit(one) // step.block_size]}

        def path(request: Request) -> list[tuple[int, int, int]]:
            nodes = [key for key in request.block_keys if below[key] > 1 or key in cached]
            return [*((key not in cached, -below[key], order[key]) for key in nodes), (2, 0, 0)]  # ends after branches

        yield from sorted(came, key=path)
