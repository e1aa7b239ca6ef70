"""vLLM's own scheduler since its version 1: no phases, only tokens that requests still lack.

Source: W. Kwon et al., Efficient Memory Management for Large Language Model Serving with PagedAttention, SOSP, 2023
(arXiv 2309.06180); vLLM, vllm/v1/core/sched/scheduler.py.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from replay.scheduler import ADMISSION, Admission, Ordered, Request, Step, policy


@policy("vllm")
@dataclass
class Vllm(Ordered):
    """Those who run get tokens in the order in which they were admitted, prompts and decodes alike; then who waits.

    Those who wait come first, first served. When blocks run out the newest is evicted, and in that step nobody joins;
    `evicts` names another choice, such as whoever loses the least by it (vLLM pull request 53723). Of those back from
    an eviction, `most_computed` takes who is further than it was: else prompts in chunks evict each other for ever.
    `admission` is vLLM's: a request joins if the tokens of this step fit.

    Does badly: without a threshold, the prompts behind a long one wait until it is computed; with one, it takes longer
    itself. More is admitted than the pool can hold later, and what is evicted is computed again.
    """

    decodes_first: ClassVar[bool] = False

    long_prefill_token_threshold: int | None = field(
        default=None,
        metadata={
            "minimum": 1,
            "example": 256,
            "help": "tokens of one prompt in a step, at most; unset: no such limit",
        },
    )
    evicts: Literal["newest", "least_computed", "most_computed", "random"] = field(
        default="newest", metadata={"help": "who is evicted when blocks run out; ties by who is newest"}
    )
    admission: str | Admission = field(default="aggressive", kw_only=True, metadata=ADMISSION)

    def chunk(self, request: Request, step: Step) -> int | None:
        return self.long_prefill_token_threshold

    def victim(self, request: Request, step: Step) -> Request:
        if self.evicts == "random":
            return step.random.choice(sorted(step.running, key=lambda one: one.sequence))
        sign = {"newest": 0, "least_computed": -1, "most_computed": 1}[self.evicts]
        back = {one.row for one in step.running if sign > 0 and one.computed <= one.memory.get("vllm", -1)}
        return max(step.running, key=lambda one: (-1 if one.row in back else sign * one.computed, one.sequence))

    def on_evict(self, request: Request, step: Step) -> None:
        request.memory["vllm"] = request.furthest
