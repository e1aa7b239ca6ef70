"""Earliest deadline first, with shedding of those who are late whatever is done.

Source: J. R. Jackson, Scheduling a Production Line to Minimize Maximum Tardiness, University of California, 1955;
C. L. Liu and J. W. Layland, Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment, Journal of the
ACM 20, 1973.
"""

from dataclasses import dataclass, field

from replay.scheduler import Ordered, Request, Step, policy


@policy("edf")
@dataclass
class Edf(Ordered):
    """Whoever's first token is due first, by its deadline, is admitted first.

    With one slot, answers of equal length and all requests there at once, nobody is late if any order can do it. Where
    all have as long a deadline, it is fifo. With `shed`, a request that would get its first token too late even if it
    were alone in the next step is rejected; for that, all who wait are looked at in each step.

    Does badly: without `shed`, an overload makes everybody late in turn, as those who are lost already go first; and
    it does not see that a long answer in front holds the slot that others need before their deadlines.
    """

    deadline_s: float = field(
        default=10.0, metadata={"minimum": 0, "help": "seconds to the first token, for requests that name no deadline"}
    )
    shed: bool = field(default=False, metadata={"help": "reject who can no longer make its deadline"})

    def key(self, request: Request, step: Step) -> float:
        return request.due + (self.deadline_s if request.deadline is None else request.deadline)

    def schedule(self, step: Step) -> None:
        if self.shed:
            for request in [waiting for waiting in step.waiting if self.lost(waiting, step)]:
                step.reject(request, "it has waited too long to get its first token before its deadline")
        super().schedule(step)

    def lost(self, request: Request, step: Step) -> bool:
        """Whether the first token comes too late even if nothing else is computed from now on."""
        if request.generated:
            return False  # evicted with an answer begun
        tokens = request.todo - step.prefix_hit(request)
        first_token = step.now + step.seconds(prefill=tokens, context=request.prompt_tokens)
        return first_token > self.key(request, step) + 1e-9  # clocks count nanoseconds
