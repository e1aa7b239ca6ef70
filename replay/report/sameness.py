"""What in a trace makes policies the same: nothing to rank requests by."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from replay.metrics.arms import BASE_POLICY, Arm
from replay.metrics.notation import enumerate_words
from replay.report.findings import Findings

BY_PRIORITY, BY_USER = ("priority", "hybrid"), ("fair",)


def told_of_sameness(found: Sequence[Arm], findings: Findings) -> list[str]:
    """A sentence for each kind of policy that is fifo on this trace, of those that ran."""
    if not found:
        return []
    rows = findings.measured.requests.filter(pl.col("cell") == found[0].names[0])
    run = {arm.policy for arm in found}
    told = []
    for policies, distinct, why in (
        (BY_PRIORITY, rows["place_priority"].n_unique(), "all requests of this trace are equally urgent"),
        (BY_USER, rows["user"].n_unique(), "this trace has one user or none"),
    ):
        names = [f"**{policy}**" for policy in policies if policy in run]
        if names and distinct <= 1:
            verb = "is" if len(names) == 1 else "are"
            told.append(f"{why[0].upper()}{why[1:]}, so {enumerate_words(names)} {verb} {BASE_POLICY} here.")
    return told
