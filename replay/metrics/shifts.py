"""Who gains and who pays when one arm takes the place of another: the difference in TTFT, group by group.

Averages hide it: a policy mostly moves waiting time from some requests to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.metrics.arms import Arm
from replay.metrics.asked import Asked
from replay.metrics.groups import BREAKDOWNS, NO_CLASS, NO_PRIORITY, NO_USER
from replay.metrics.paired import Difference
from replay.metrics.pairing import Pairing

MOST_GROUPS = 8
"""Of more groups than these, some would differ by chance; they stay in the tables."""
NOBODY = (NO_USER, NO_PRIORITY, NO_CLASS)


@dataclass(frozen=True, slots=True)
class Shift:
    """The paired difference in TTFT over one group of a breakdown."""

    by: str
    group: str
    difference: Difference

    @property
    def name(self) -> str:
        """As it stands in a sentence: `priority 2`, `grace`, `1-10 tokens`."""
        return f"{self.by} {self.group}" if self.by == "priority" and self.group.lstrip("-").isdigit() else self.group

    @property
    def who(self) -> str:
        """For who does not know the groups: `priority 2`, `user grace`, `answers of 1-10 tokens`."""
        if self.by == "length":
            return f"answers of {self.group}"
        return self.group if self.group in NOBODY else f"{self.by} {self.group}"


def shifts(pairs: Sequence[tuple[Arm, Arm]], pairing: Pairing, chance: float) -> list[list[Shift]]:
    """Of each pair the differences of every group, of the breakdowns that have a few: all of them one family."""
    groups = [(by, name) for by in BREAKDOWNS[1:] for name in _groups(pairing, by)]
    asked = [Asked("ttft", *pair, by, name) for pair in pairs for by, name in groups]
    found = iter(pairing.family(asked, chance))
    return [[Shift(by, name, next(found)) for by, name in groups] for _ in pairs]


def _groups(pairing: Pairing, by: str) -> list[str]:
    """The groups of a breakdown in order; none where they are too many, or one."""
    group, place = f"group_{by}", f"place_{by}"
    known = pairing.aligned.rows.select(group, place).drop_nulls().unique().sort(place)[group].to_list()
    return known if 2 <= len(known) <= MOST_GROUPS else []
