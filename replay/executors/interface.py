"""What a step asks of an executor, and what the executor answers.

The scheduler decides who computes which tokens; an executor only computes them, in the blocks it is told. It knows
nothing of policies, modes or time-outs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from replay.request import Request, Workload


@dataclass(slots=True)
class Share:
    """One request's part in a step: `tokens` tokens from position `start` on, kept in the blocks of its table.

    The table covers at least `start + tokens` positions. `samples` says that these are the last known tokens, so that
    the step yields the next token of the answer.
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
class Batch:
    """All that one step computes: packed tokens, or a padded rectangle when `padding` is given."""

    shares: list[Share]
    padding: Padding | None = None

    @property
    def prefill_tokens(self) -> int:
        """Tokens of prompts (computed again ones included), without padding."""
        return sum(share.tokens for share in self.shares if share.prefill)

    @property
    def decodes(self) -> int:
        """Requests that compute one token of their answer."""
        return sum(not share.prefill for share in self.shares)

    @property
    def padding_tokens(self) -> int:
        """Tokens that are computed and mean nothing."""
        if self.padding is None:
            return 0
        return self.padding.rows * self.padding.width - sum(share.tokens for share in self.shares)

    @property
    def context_tokens(self) -> int:
        """Tokens whose keys and values the step reads, those of padding included."""
        if self.padding is not None:
            return self.padding.rows * self.padding.context
        return sum(share.start + share.tokens for share in self.shares)


@dataclass(slots=True, frozen=True)
class CostModel:
    """Seconds that a step takes: `fixed`, and so much for each prefill token, decode and token of context read."""

    fixed: float
    prefill: float = 0.0
    decode: float = 0.0
    context: float = 0.0

    def seconds(self, prefill: int = 0, decode: int = 0, context: int = 0) -> float:
        """Seconds of one step with so many prefill tokens, decoding requests and context tokens."""
        return self.fixed + self.prefill * prefill + self.decode * decode + self.context * context

    def alone(self, prompt_tokens: int, output_tokens: int, token_budget: int | None = None) -> float:
        """Seconds that one request takes with the engine to itself, its prompt in chunks of `token_budget`."""
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
    """A thing that computes steps. One at a time: `submit`, then `collect`."""

    cost: CostModel  # given (simulated) or fitted at warm-up (real)
    max_context: int | None  # the longest prompt + answer that the model can take; None: as the pool allows

    def describe(self) -> Description: ...

    def prepare(self, workload: Workload) -> None:
        """Do what is slow before the clock starts: prompts are drawn or tokenised, state of the cell before dropped."""

    def submit(self, batch: Batch) -> None:
        """Start to compute a step."""

    def collect(self) -> list[int]:
        """Wait for the step that was submitted: the sampled token id of each share that `samples`, in order."""
