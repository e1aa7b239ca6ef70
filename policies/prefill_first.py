"""Prefill first: a step of prompts or a step of decodes, as vLLM scheduled before it computed prompts in chunks.

Source: W. Kwon et al., Efficient Memory Management for Large Language Model Serving with PagedAttention, SOSP, 2023
(arXiv 2309.06180).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from replay.scheduler import ADMISSION, Admission, Ordered, Request, Step, policy


@policy("prefill_first")
@dataclass
class PrefillFirst(Ordered):
    """If any prompt can be computed, the step computes prompts only; if none can, it decodes.

    Prompts that a chunk was computed of come before those who wait, these first come, first served. Who is computed
    again after an eviction counts as a prompt.

    Does badly: whoever decodes stands still while prompts come, so that the gaps between tokens are long and uneven.
    """

    decodes_first: ClassVar[bool] = False

    admission: str | Admission = field(default="aggressive", kw_only=True, metadata=ADMISSION)

    def schedule(self, step: Step) -> None:
        for request in step.running:
            if request.prefilling:
                step.run(request)
        self.join(step)
        if not any(share.request.prefilling for share in step.shares.values()):
            self.go_on(step)

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (request.prefilling, request.sequence)

    def chunk(self, request: Request, step: Step) -> int | None:
        """Nothing, in a step of the other kind."""
        first = next(iter(step.shares.values()), None)
        return None if first is None or first.request.prefilling == request.prefilling else 0

    def admit(self, request: Request, step: Step) -> bool:
        if self.chunk(request, step) == 0:
            return step.withhold()  # back from host memory, it goes on with the decodes
        return super().admit(request, step)
