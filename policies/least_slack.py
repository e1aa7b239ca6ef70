"""Least slack first, prompt chunk by prompt chunk: an urgent prompt need not wait for the end of a long one.

Source: A. Agrawal et al., No Request Left Behind: Tackling Heterogeneity in Long-Context LLM Inference with Medha, 2024
(arXiv 2409.17264), whose own rule weighs slack by length besides.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from replay.scheduler import Ordered, Request, Step, policy


@policy("least_slack")
@dataclass
class LeastSlack(Ordered):
    """After the decodes, the prompt with the least time to spare before its first token is late is computed first.

    Slack is what is left to the deadline, less what its prompt still takes by the cost model. It falls alike for all
    who wait, so the key is static, with what a cache held when it came; not for a prompt that is computed, in chunks. A
    waiting prompt may go before its next chunk, and it is paused; but only with less slack by more than `quantum_s`, as
    equal ones would take turns, all to be late. Nobody is evicted for another's slack, and an answer begun goes on.

    Does badly: where slots are short, paused prompts hold theirs; who is late already has the least slack of all.
    """

    deadline_s: float = field(
        default=10.0, metadata={"minimum": 0, "help": "seconds to the first token, for requests that name no deadline"}
    )
    quantum_s: float = field(default=0.1, metadata={"minimum": 0, "help": "how much less slack interrupts a prompt"})
    _turn: int | None = field(default=None, init=False, repr=False)  # row of the prompt that went on last, unfinished
    _prompts: list[Request] = field(default_factory=list, init=False, repr=False)  # resident, least slack first

    def key(self, request: Request, step: Step) -> float:  # slack, but for `now`, which is the same for all
        tokens = request.todo - step.prefix_hit(request)
        deadline = self.deadline_s if request.deadline is None else request.deadline
        return request.due + deadline - step.seconds(prefill=tokens, context=request.context)

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        slack = self.key(request, step) - self.quantum_s * (request.row == self._turn)
        return (1, slack) if request.prefilling else (0, request.sequence)

    def schedule(self, step: Step) -> None:
        super().schedule(step)
        for request in self._prompts:
            self._keep_running(request, step)
        self._turn = next((row for row, share in step.shares.items() if not share.samples), None)

    def go_on(self, step: Step) -> None:
        running = sorted(step.running, key=lambda one: self.run_key(one, step))
        self._prompts = [request for request in running if request.prefilling]
        for request in running[: len(running) - len(self._prompts)]:
            self._keep_running(request, step)

    def order(self, step: Step) -> Iterator[Request]:
        for request in super().order(step):
            while self._prompts and self.run_key(self._prompts[0], step)[1] <= self.key(request, step):
                self._keep_running(self._prompts.pop(0), step)
            if step.evicted and step.shares:
                return  # for a prompt: whoever joins now is evicted next
            yield request
