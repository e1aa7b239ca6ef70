"""FastServe: a multi-level feedback queue that a long prompt joins below the top.

Source: Wu et al., Fast Distributed Inference Serving for Large Language Models, 2023 (arXiv 2305.05920); the quantum,
the ratio and the promotion are those of the authors' code.
"""

from dataclasses import dataclass, field

from replay.scheduler import Levelled, Request, Step, policy


@policy("fastserve")
@dataclass
class FastServe(Levelled):
    """Skip-join MLFQ: a request begins at the highest level whose quantum is enough for its whole prompt.

    How long a prompt takes is the cost model's answer for a step of its own. With each quantum of service a request
    goes a level down. In every `every`-th step, whoever got no tokens for `starve_s` seconds goes to the top. The
    paper copies those of low levels to host memory ahead of need; here they go when their room is needed.

    Does badly: it stops answers in the middle, and where nothing is swapped, promotions set off waves of evictions
    whose work is computed again. With steps as long as the first quantum, it is hardly better than `mlfq`.
    """

    every: int = field(default=1000, metadata={"minimum": 1, "help": "steps between looks for the starving"})
    starve_s: float = field(default=3.0, metadata={"minimum": 0, "help": "seconds without tokens that are too many"})

    def first_level(self, request: Request, step: Step) -> int:
        prompt = step.seconds(prefill=request.prompt_tokens, context=request.prompt_tokens)
        return next((level for level in range(self.levels) if self.quantum(level) >= prompt), self.levels)

    def schedule(self, step: Step) -> None:
        if step.number % self.every == 0:
            self.promote(step, lambda request: step.now - self.standing(request).ran >= self.starve_s)
        super().schedule(step)
