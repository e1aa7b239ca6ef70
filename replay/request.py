"""One row of a trace on its way through an engine, and the whole of the rows as a workload.

What a policy may see is all here. The true output length is not: it lies in `Workload.output_tokens`, which only the
engine and the length predictors hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["coming", "waiting", "running", "ended"]
Status = Literal["completed", "rejected", "timed_out", "cancelled", "failed", "skipped", "unfinished"]


@dataclass(slots=True, eq=False)
class Request:
    """A request: what the trace says of it, how far it is, and its stamps (seconds from the clock's zero).

    `due` is when the trace intended it: its arrival, unless a closed-loop session moved it. `computed` counts the
    tokens whose keys and values are in the pool, `generated` the answer's tokens so far.
    """

    row: int
    request_id: str
    arrival: float
    prompt_tokens: int
    max_tokens: int
    user: str | None = None
    priority: int | None = None  # as the trace has it
    urgency: int = 0  # the same, turned so that larger is more urgent; what policies compare
    deadline: float | None = None  # seconds after due by which the first token is wanted
    slo: str | None = None
    session: str | None = None
    turn: int | None = None
    think_time: float = 0.0  # seconds between the end of the turn before and this one
    prefix_hashes: Sequence[int] = ()
    block_keys: Sequence[int] = ()  # of each full KV block of its prompt, chained: equal keys, equal prefixes

    due: float = 0.0
    state: State = "coming"
    computed: int = 0
    generated: int = 0
    slot: int | None = None  # the batch slot that it holds while resident
    sequence: int = 0  # the how-manieth admission its last one was: the newest has the largest
    evictions: int = 0
    swaps: int = 0  # how many of its evictions left its tokens in host memory
    swapped: bool = False  # whether it waits with its `computed` tokens in host memory
    cached_tokens: int | None = None  # of its prompt, found in the cache at its first admission; None: no cache
    recomputed_tokens: int = 0
    furthest: int = 0  # the most tokens that were ever computed: what is computed below it is done again
    memory: dict[str, Any] = field(default_factory=dict)  # a policy's own notes

    submitted: float | None = None
    lag: float | None = None
    admitted: float | None = None
    token_times: list[float] = field(default_factory=list)
    finished: float | None = None  # when the answer was delivered
    ended: float | None = None  # when it left, however it ended
    status: Status | None = None
    reason: str | None = None

    @property
    def context(self) -> int:
        """Tokens that must be computed before the next token of the answer: prompt and answer so far."""
        return self.prompt_tokens + self.generated

    @property
    def todo(self) -> int:
        """Tokens still to compute before the next token of the answer: 1 for a request that is decoding."""
        return self.context - self.computed

    @property
    def undelivered(self) -> bool:
        """Whether its answer is complete and still held, for the others of its batch."""
        return self.status == "completed" and self.finished is None

    @property
    def prefilling(self) -> bool:
        """Whether its prompt (or, resumed after an eviction, its prompt and answer so far) is not yet computed."""
        return self.todo > 1 or self.generated == 0


@dataclass(slots=True)
class Workload:
    """The requests of one cell, fresh, in order of arrival, with what only the engine may know.

    `output_tokens[row]` is the length to force. `prefix_hashes` of the requests cover blocks of `hash_block` tokens;
    equal hashes mean equal prefixes within `hash_scope`. `prompts` holds real content by row, where there is any:
    text, or token ids.
    """

    requests: list[Request]
    output_tokens: list[int]
    hash_block: int | None = None
    hash_scope: Literal["global", "session"] = "global"
    prompts: dict[int, str | Sequence[int]] = field(default_factory=dict)
