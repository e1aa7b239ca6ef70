"""What a step asks of an executor, and what the executor answers.

The scheduler decides who computes which tokens; an executor only computes them, in the blocks it is told. It knows
nothing of policies, modes or time-outs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from replay.request import Request, Workload

TokenIds = NDArray[np.int32]


@dataclass(slots=True)
class Share:
    """One request's part in a step: `tokens` tokens from position `start` on, kept in the blocks of its table.

    The table covers at least `start + tokens` positions; it goes on growing, so `submit` takes what it needs of it.
    Blocks before `start` may be other requests' too. `samples` says that these are the last known tokens, so that the
    step yields the next token of the answer.
    """

    request: Request
    start: int
    tokens: int
    samples: bool
    blocks: Sequence[int]

    @property
    def prefill(self) -> bool:
        """Prompt tokens, or tokens computed again after an eviction; otherwise one decode."""
        return self.tokens > 1 or self.start < self.request.prompt_tokens


@dataclass(slots=True)
class Padding:
    """The padded layout of a plain `generate`: `rows` rows, each computed `width` tokens wide over `context` tokens.

    Rows beyond the batch's shares belong to requests whose answers are complete: they are computed and thrown away.
    """

    rows: int
    width: int
    context: int


@dataclass(slots=True)
class Counts:
    """What shares add up to, without padding: in one pass, for every step is counted."""

    prefill: int = 0
    decodes: int = 0
    context: int = 0
    pairs: int = 0

    @classmethod
    def of(cls, shares: Sequence[Share]) -> Counts:
        counts = cls()
        for share in shares:
            start, tokens = share.start, share.tokens
            if share.prefill:
                counts.prefill += tokens
            else:
                counts.decodes += 1
            counts.context += start + tokens
            counts.pairs += tokens * start + tokens * (tokens + 1) // 2
        return counts


@dataclass(slots=True)
class Batch:
    """All that one step computes: packed tokens, or a padded rectangle when `padding` is given.

    Before it computes, blocks are copied between the pool and host memory: all of `swap_out` (block, host block) first,
    then all of `swap_in` (host block, block), which may come from host blocks that `swap_out` has just filled.
    """

    shares: list[Share]
    padding: Padding | None = None
    swap_out: list[tuple[int, int]] = field(default_factory=list)
    swap_in: list[tuple[int, int]] = field(default_factory=list)
    _counts: Counts | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def prefill_tokens(self) -> int:
        """Tokens of prompts (computed again ones included), without padding."""
        return self._counted().prefill

    @property
    def decodes(self) -> int:
        """Requests that compute one token of their answer."""
        return self._counted().decodes

    @property
    def padding_tokens(self) -> int:
        """Tokens that are computed and mean nothing."""
        if self.padding is None:
            return 0
        counts = self._counted()
        return self.padding.rows * self.padding.width - counts.prefill - counts.decodes

    @property
    def context_tokens(self) -> int:
        """Tokens whose keys and values the step reads, those of padding included."""
        if self.padding is not None:
            return self.padding.rows * self.padding.context
        return self._counted().context

    @property
    def pairs(self) -> int:
        """Pairs of a token and a token that it attends to, itself included; without padding."""
        return self._counted().pairs

    @property
    def swapped_blocks(self) -> int:
        """Blocks copied to host memory or back."""
        return len(self.swap_out) + len(self.swap_in)

    def _counted(self) -> Counts:
        """What the shares add up to. They do not change once they are a batch, and several ask."""
        if self._counts is None:
            self._counts = Counts.of(self.shares)
        return self._counts


@dataclass(slots=True, frozen=True)
class CostModel:
    """Seconds that a step takes: `fixed`, and so much for each prefill token, decode, token of context read, and block
    copied to host memory or back."""

    fixed: float
    prefill: float = 0.0
    decode: float = 0.0
    context: float = 0.0
    swap: float = 0.0

    def seconds(self, prefill: int = 0, decode: int = 0, context: int = 0, swapped: int = 0) -> float:
        """Seconds of one step with so many prefill tokens, decoding requests, context tokens and swapped blocks."""
        computed = self.fixed + self.prefill * prefill + self.decode * decode + self.context * context
        return computed + self.swap * swapped

    def alone(self, prompt_tokens: int, output_tokens: int, token_budget: int | None = None) -> float:
        """Seconds that one request takes with the engine to itself, its prompt in chunks of `token_budget`.

        All of the prompt is computed: what a prefix cache might hold of it is left out, as that is others' work.
        """
        chunk = min(prompt_tokens, token_budget or prompt_tokens)
        ends: list[int] = [*range(chunk, prompt_tokens, chunk), prompt_tokens]
        decodes = output_tokens - 1
        decode_context = decodes * prompt_tokens + decodes * (decodes + 1) // 2  # sum of prompt + 1 ... prompt + n - 1
        context: int = sum(ends) + decode_context
        return (
            self.fixed * (len(ends) + decodes)
            + self.prefill * prompt_tokens
            + self.decode * decodes
            + self.context * context
        )


@dataclass(slots=True)
class Description:
    """What an executor says of itself, for the manifest: kind, device, model and whatever else explains its speed."""

    kind: str
    simulated: bool
    details: dict[str, object] = field(default_factory=dict)


class Executor(Protocol):
    """A thing that computes steps: `submit`, then `collect`; where it `overlaps`, the next may be submitted between."""

    cost: CostModel  # given (simulated) or fitted at warm-up (real)
    max_context: int | None  # the longest prompt + answer that the model can take; None: as the pool allows
    kv_blocks: int  # blocks of its KV pool
    host_blocks: int  # blocks in host memory, for requests that are swapped out
    end_ids: Collection[int]  # tokens that end an answer before its length; none: all have the lengths of the trace
    overlaps: bool  # whether a step may be submitted while the one before is being computed

    def describe(self) -> Description: ...

    def prepare(self, workload: Workload) -> Sequence[TokenIds]:
        """Do what is slow before the clock starts: prompts are drawn or tokenised, state of the cell before dropped.

        The ids of each request's prompt, by row.
        """

    def submit(self, batch: Batch) -> None:
        """Start to compute a step."""

    def collect(self) -> list[int]:
        """Wait for the oldest step that was submitted: the token id sampled for each share that `samples`, in order."""
