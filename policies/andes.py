"""Andes: under pressure, tokens go to those whose readers gain the most by them for the memory that they hold.

Source: Liu et al., Andes: Defining and Enhancing Quality-of-Experience in LLM-Based Text Streaming Services, 2024
(arXiv 2404.16283); 90 % and one eviction for each request are those of the authors' code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from replay.scheduler import Ordered, Reader, Request, Step, policy


@policy("andes")
@dataclass
class Andes(Ordered):
    """Fifo, until blocks run short or a step is too slow to read by: then whose readers gain most per block are served.

    Under pressure, every `every` steps, all are packed into the pool by their readers' gain over `horizon_s` if served,
    per block of context; who is left out gives way where the packed need it. Pace, patience and horizon are ours.

    Does badly: readers far behind gain little and are given up; and where only slots are short, it is fifo.
    """

    read_per_s: float = field(default=5.0, metadata={"above": 0, "help": "tokens that a reader reads in a second"})
    patience_s: float = field(default=1.0, metadata={"minimum": 0, "help": "seconds to the first token that are fine"})
    trigger: float = field(default=0.9, metadata={"minimum": 0, "help": "share of blocks in use that is pressure"})
    every: int = field(default=10, metadata={"minimum": 1, "help": "steps from one choice to the next"})
    horizon_s: float = field(default=10.0, metadata={"above": 0, "help": "seconds ahead over which gain is reckoned"})
    evictions: int = field(default=1, metadata={"minimum": 0, "help": "evictions from which a request is left alone"})
    _packed: list[Request] | None = field(default=None, init=False, repr=False)  # who may join; None: no pressure

    def schedule(self, step: Step) -> None:
        pace = step.seconds(decode=len(step.running), context=sum(one.context for one in step.running))
        short = step.blocks - step.free_blocks >= self.trigger * step.blocks
        if not step.running or not (short or pace * self.read_per_s > 1):
            self._packed = None
        elif step.number % self.every == 0:
            self._pack(self.horizon_s / pace, step)
            self.go_on(step)
            return self.join(step)  # in the place of those who gave way
        return super().schedule(step)

    def order(self, step: Step) -> Iterator[Request]:
        packed = super().order(step) if self._packed is None else self._packed
        return (one for one in packed if one.state == "waiting" and one.row not in step.evicted)

    def _pack(self, tokens: float, step: Step) -> None:
        reader, at = Reader(self.read_per_s, self.patience_s), step.now + self.horizon_s
        blocks = {one: -(-one.context // step.block_size) + 1 for one in (*step.running, *step.waiting)}
        packed, losers, room = list[Request](), list[Request](), step.blocks
        for one in sorted(blocks, key=lambda one: (-reader.gain(one, at, tokens) / blocks[one], one.due, one.row)):
            if blocks[one] <= room and len(packed) < step.size:
                packed.append(one)
                room -= blocks[one]
            elif one.state == "running" and one.evictions < self.evictions:
                losers.append(one)
        self._packed = [one for one in packed if one.state == "waiting"]
        wanted = sum(blocks[one] for one in self._packed)
        while losers and (step.slots < len(self._packed) or step.free_blocks < wanted + step.residents):
            step.evict(losers.pop())
