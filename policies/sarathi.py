"""Sarathi-Serve: stall-free batching, where prompts fill up what decodes leave of a small step.

Source: A. Agrawal et al., Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve, OSDI, 2024
(arXiv 2403.02310).
"""

from dataclasses import dataclass, field

from replay.scheduler import ADMISSION, Admission, Ordered, Request, Step, policy


@policy("sarathi")
@dataclass
class Sarathi(Ordered):
    """Every decode gets its token, and prompts share what is left of `chunk_tokens`: those begun, then who came first.

    So no step is long, and no prompt stops a decode. A smaller budget of the mode holds as well. Where a mode computes
    prompts whole, one may still begin while a token of the chunk is left, but is not cut: the paper's batches of
    prompts and decodes without chunks.

    Does badly: the smaller the chunk, the later the first token and the more often a prompt's keys are read again.
    """

    chunk_tokens: int = field(default=512, metadata={"minimum": 1, "help": "tokens that one step computes, at most"})
    admission: str | Admission = field(default="aggressive", kw_only=True, metadata=ADMISSION)
    _beyond: int = field(default=0, init=False, repr=False)  # of the mode's budget, what the chunk does not use

    def schedule(self, step: Step) -> None:
        self._beyond = (step.budget or 0) - self.chunk_tokens
        super().schedule(step)
        if step.waiting_count or any(step.scheduled(one) < one.todo for one in step.running):
            step.withhold("budget")  # unless it was for another reason, noted before

    def chunk(self, request: Request, step: Step) -> int | None:
        return None if step.budget is None else max(0, step.budget - self._beyond)
