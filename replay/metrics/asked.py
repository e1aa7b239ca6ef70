"""What is asked of two arms: which figure of theirs is compared, over all requests or over a group of them.

It knows no rows: `pairing` answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from replay.metrics.arms import Arm

What = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison: a metric of two arms, over all requests or over one group of a breakdown. With a `statistic`, of
    what stands under it in the summary: a percentile of the requests where `percent` is given, else one number a run.
    """

    metric: str
    base: Arm
    other: Arm
    by: str | None = None
    group: str | None = None
    statistic: str | None = None
    percent: float | None = None

    @property
    def what(self) -> What:
        return self.metric, self.statistic or "", self.by or "", self.group or ""

    @property
    def of_run(self) -> bool:
        """Whether no requests say how surely it is known."""
        return self.statistic is not None and self.percent is None

    @property
    def exact(self) -> bool:
        """Whether both ran on a virtual clock."""
        return all(cell.simulated for arm in (self.base, self.other) for cell in arm.cells)
