"""Longest prefix match: those whose prompts the cache knows best go first, as in SGLang.

Source: Zheng et al., SGLang: Efficient Execution of Structured Language Model Programs, NeurIPS 2024 (arXiv
2312.07104); the fallback and the look at prefixes that wait together are of its scheduler's source.
"""

from dataclasses import dataclass, field

from replay.scheduler import PrefixAware, Request, Step, policy


@policy("lpm")
@dataclass
class Lpm(PrefixAware):
    """The request with the most tokens in the prefix cache is next; ties as they came.

    Of several that find 32 tokens or fewer there and share at least as many among themselves, all but the first come
    last. With more waiting than `fallback`, or without a cache, it is fifo. With `ageing` a > 0, a second of waiting
    counts as a tokens.

    Does badly: without ageing, a request with a cold prefix waits as long as others with a warm one come.
    """

    ageing: float = field(default=0.0, metadata={"minimum": 0, "help": "tokens that a second of waiting counts as"})

    def worth(self, request: Request, hit: int, step: Step) -> float:
        return hit - self.ageing * request.due  # all who wait age alike
