"""Who gains and who pays when one arm takes the place of another: the difference in TTFT, group by group.

Averages hide it: a policy mostly moves waiting time from some requests to others.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.metrics.arms import Arm, Values
from replay.metrics.groups import BREAKDOWNS
from replay.metrics.paired import Difference, compare

MOST_GROUPS = 8
"""Of more groups than these, some would differ by chance; they stay in the tables."""


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


def shifts(requests: pl.DataFrame, values: Values, base: Arm, other: Arm, seed: int) -> list[Shift]:
    """The differences of every group, of the breakdowns that have a few."""
    found = []
    rows = requests.filter(pl.col("cell").is_in([*base.names, *other.names]))
    for by in BREAKDOWNS[1:]:
        group, place = f"group_{by}", f"place_{by}"
        groups = rows.select(group, place).drop_nulls().unique().sort(place)[group].to_list()
        if not 2 <= len(groups) <= MOST_GROUPS:
            continue
        found += [
            Shift(by, name, compare(rows.filter(pl.col(group) == name), values, "ttft", base, other, seed))
            for name in groups
        ]
    return found
