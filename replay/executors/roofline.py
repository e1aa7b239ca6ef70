"""The roofline of a piece of work: how long it takes at best, and whether arithmetic or memory sets that bound.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", 2009. It knows amounts and
ceilings, and nothing of how either was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from replay.ceilings import Ceilings


@dataclass(slots=True, frozen=True)
class Roofline:
    """`flops` floating-point operations and `traffic` bytes under the ceilings of a device."""

    flops: float
    traffic: float
    ceilings: Ceilings

    @property
    def arithmetic_seconds(self) -> float:
        """Seconds if arithmetic were all."""
        return self.flops / self.ceilings.arithmetic

    @property
    def memory_seconds(self) -> float:
        """Seconds if memory were all."""
        return self.traffic / self.ceilings.bandwidth

    @property
    def least_seconds(self) -> float:
        """Seconds at best: both at once, each at its ceiling."""
        return max(self.arithmetic_seconds, self.memory_seconds)

    @property
    def bound(self) -> Literal["memory", "arithmetic"]:
        """Which of the two takes longer."""
        return "memory" if self.memory_seconds >= self.arithmetic_seconds else "arithmetic"

    def arithmetic_used(self, seconds: float) -> float:
        """The share of the arithmetic ceiling that `seconds` of this work come to (MFU)."""
        return self.arithmetic_seconds / seconds

    def bandwidth_used(self, seconds: float) -> float:
        """The share of the bandwidth that `seconds` of this work come to (MBU)."""
        return self.memory_seconds / seconds
