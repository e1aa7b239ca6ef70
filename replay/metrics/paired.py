"""A comparison of two arms over the same requests: what differs, by how much, how surely, and what may be claimed.

The same requests ran in both, so differences are taken request by request. A difference is claimed only where its
interval excludes zero, that interval being wide enough for the whole table that it stands in, and where it is larger
than what runs of one cell differ by. Nor is it claimed where the arm that did better ran while the machine was faster,
unless the difference is far larger than that alone would make. How intervals are worked out is told in `pairing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from replay.metrics.arms import Arm, Values
from replay.metrics.wins import Wins

TIE = 0.05
"""Relative difference of two numbers that have no interval (throughput, run once) up to which they count as equal."""
STEADY = 1.05
"""Ratio of the slowest to the fastest pace up to which nothing is said of the machine's speed."""
AMPLIFICATION = {"output_throughput": 1.0}
QUEUE_AMPLIFICATION = 5.0
"""A slower machine shows in throughput at its own ratio, and in a queue's waits at a power of it."""
PAIRED = ("ttft", "ttft_delivered", "tpot", "e2e", "good")
HIGHER_IS_BETTER = ("good", "output_throughput", "jain")


Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """`other` - `base` in one metric: the mean over the `pairs` requests that have it in both.

    `low` and `high` bound it (None: no interval) together with all `comparisons` of its table: it decides what is
    claimed. It is the wider of two, `by_request` and `by_user` (None: too few users). `uncorrected` would bound it
    were it the only comparison. `noise` is the largest difference between two runs of one cell (None: not measured),
    `advantage` how many times faster the machine was when `other` ran (None: not known), `wins` for how many requests
    `other` did better (None: it is no figure of a request).
    """

    metric: str
    base: Arm
    other: Arm
    pairs: int
    base_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    noise: float | None
    advantage: float | None = None
    uncorrected: Bounds | None = None
    by_request: Bounds | None = None
    by_user: Bounds | None = None
    comparisons: int = 1
    wins: Wins | None = None

    @property
    def seen(self) -> bool:
        """Whether the difference may be claimed."""
        return self.apparent and not self.confounded

    @property
    def confounded(self) -> bool:
        """Whether the machine's speed may be what made it: whoever did better had the faster machine."""
        if self.advantage is None or not self.difference or not self.base_mean:
            return False
        other_mean = self.base_mean + self.difference
        if other_mean <= 0 or self.base_mean < 0:
            return False
        rises = self.metric in HIGHER_IS_BETTER
        better = rises == (self.difference > 0)  # the other did better
        helped = self.advantage if better else 1 / self.advantage
        effect = max(other_mean, self.base_mean) / min(other_mean, self.base_mean)
        return helped > 1 and effect <= helped ** AMPLIFICATION.get(self.metric, QUEUE_AMPLIFICATION)

    @property
    def apparent(self) -> bool:
        """Whether the rows show a difference, whatever made it."""
        if self.difference is None or self.difference == 0:
            return False
        if self.noise is not None and abs(self.difference) <= self.noise:
            return False
        if self.low is not None and self.high is not None:
            return self.low > 0 or self.high < 0
        if self.metric in PAIRED:
            return False  # a few requests have no interval
        if self.noise is not None:
            return True
        return self.base_mean is not None and abs(self.difference) > TIE * abs(self.base_mean)

    @property
    def doubt(self) -> str | None:
        """Why the difference may not be claimed, in a word or two; None where it may, or where there is none."""
        if self.difference is None or self.seen or not (self.difference or self.low or self.high):
            return None
        if self.apparent:
            return "unequal pace"
        return "within noise" if self.noise is not None and abs(self.difference) <= self.noise else "not certain"

    @property
    def merit(self) -> int:
        """1 where `other` may be said to do better, -1 where worse, 0 where nothing may be said."""
        if not self.seen or not self.difference:
            return 0
        return 1 if (self.difference > 0) == (self.metric in HIGHER_IS_BETTER) else -1

    @property
    def relative(self) -> float | None:
        """The difference as a share of the base's mean."""
        if self.difference is None or not self.base_mean:
            return None
        return self.difference / self.base_mean

    @property
    def relative_bounds(self) -> Bounds | None:
        """The interval as shares of the base's mean, the lower first."""
        if self.low is None or self.high is None or not self.base_mean:
            return None
        low, high = sorted((self.low / self.base_mean, self.high / self.base_mean))
        return low, high


def advantage(values: Values, base: Arm, other: Arm) -> float | None:
    """How many times faster the machine was when `other` ran than when `base` did."""
    paces = [values.value(arm, "pace", "value") for arm in (base, other)]
    return paces[0] / paces[1] if paces[0] and paces[1] else None
