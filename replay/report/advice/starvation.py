"""Some requests wait many times as long as the others because of the policy's order, not because of the load."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.contrasts import BASE_POLICY
from replay.metrics.groups import BREAKDOWNS
from replay.metrics.notation import duration, enumerate_words, number, percent, plural
from replay.report.advice.evidence import enough, of_arm, real, rows, settings
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

TIMES = 5
"""Times the median of the requests' longest times without a token."""
OVERTAKEN = 10
"""Later requests that were admitted first: order alone makes some overtakings, and bursts make waits without any."""
SHARE = 0.01
LEAST = 3
PART = 10
"""The part of the longest time for which others may still go first: with none, the order would be fifo's."""
OWN = 0.5
"""A group is named if it has so much of the starved, and so much more of them than of all requests."""


@dataclass(frozen=True, slots=True)
class Starved:
    """The requests that were starved, beside all of the arm."""

    rows: pl.DataFrame
    everybody: pl.DataFrame
    median: float
    longest: float


@pitfall(
    "starvation",
    "Somebody starves under this policy",
    speaks=f"from {percent(SHARE)} of requests, and {LEAST}, whose longest time without a token is over {TIMES} times "
    f"the median and whom {OVERTAKEN} later requests or more overtook",
    remedy="the policy's own ageing (`sjf` and `lpm`: `ageing`; `hybrid`: `band_s`), so that nobody is overtaken by "
    f"who comes {percent(1 / PART)} of the longest time later; `hybrid` in place of `priority`; else `fifo`, or of the "
    "policies that were run the one that keeps the longest time the shortest",
    figure="of requests starve",
    write=percent,
)
def starvation(arm: Arm, findings: Findings) -> Case | None:
    """each request's longest time without a token, and how many that were due later were admitted before it"""
    if not enough(arm, findings):
        return None
    starved = _starved(arm, findings)
    if starved is None:
        return None
    share = len(starved.rows) / len(starved.everybody)
    overtaken = real(starved.rows["overtakes"].mean())
    tried, remedy = _remedy(arm, findings, starved)
    return Case(
        figure=share,
        cost=share,
        what=f"{plural(len(starved.rows), 'request')} ({percent(share)}) went without a token for up to "
        f"{duration(starved.longest)}, against {duration(starved.median)} in the median{_who(starved)}",
        why=f"{number(overtaken)} requests that came later were admitted before each of them, on average",
        settings=tried,
        remedy=remedy,
    )


def _starved(arm: Arm, findings: Findings) -> Starved | None:
    requests = of_arm(findings.measured.requests, arm)
    ages = requests["starvation_age"].drop_nulls()
    if ages.is_empty():
        return None
    median = real(ages.median())
    found = requests.filter(pl.col("starvation_age") > TIMES * median, pl.col("overtakes") >= OVERTAKEN)
    if len(found) < max(LEAST, SHARE * len(requests)):
        return None
    longest = real(found["starvation_age"].max())
    return Starved(found, requests, median, longest)


def _who(starved: Starved) -> str:
    """The group that most of them are of, and that most others are not of; all groups of the same requests."""
    found: list[tuple[float, int, float, str]] = []
    for by in BREAKDOWNS[1:]:
        column = f"group_{by}"
        groups = starved.rows[column].drop_nulls().value_counts().sort("count", column, descending=[True, False])
        if groups.is_empty():
            continue
        group, count = groups.row(0)
        own, of_all = count / len(starved.rows), real((starved.everybody[column] == group).mean())
        if own >= OWN and own - of_all >= OWN * own:
            name = {"user": f"of user {group}", "length": f"with answers of {group}"}.get(by, f"of {by} {group}")
            found.append((own - of_all, count, of_all, name))
    if not found:
        return ""
    _, count, of_all, _ = best = max(found, key=lambda each: each[0])
    names = enumerate_words([each[3] for each in found if each[:3] == best[:3]])
    return f"; {count:,} of the {len(starved.rows):,} are {names} ({percent(of_all)} of all requests are)"


def _remedy(arm: Arm, findings: Findings, starved: Starved) -> tuple[dict[str, object], str]:
    """A setting of the policy's own that bounds who may overtake whom; else another policy."""
    window = starved.longest / PART
    own, name = settings(arm, "policy"), f"policies.{arm.cells[0].policy}"
    bound = (
        f"then nobody is overtaken by who is due over {duration(window)} later, at the price of those who were first"
    )
    requests = rows(arm, "requests", "prompt_tokens", "output_tokens", "urgency")
    if "ageing" in own:
        column = "prompt_tokens" if arm.cells[0].policy == "lpm" else "output_tokens"
        return {f"{name}.ageing": _rounded(real(requests[column].max()) / window)}, bound
    levels = real(requests["urgency"].max()) - real(requests["urgency"].min())
    if levels and (own.get("band_s") is not None or arm.cells[0].policy.startswith("priority")):
        key = f"{name}.band_s" if own.get("band_s") is not None else "policies.hybrid.band_s"
        return {key: _rounded(window / levels)}, bound
    others = [other for other in findings.compared if (other.trace, other.setting) == (arm.trace, arm.setting)]
    ages = {other: findings.values.value(other, "starvation_age", "max") for other in others if not other.mark}
    known = {other: age for other, age in ages.items() if age is not None}
    fair = [other for other in known if known[other] < starved.longest / 2]
    if fair:
        first = [other for other in fair if other.policy == BASE_POLICY]
        best = first[0] if first else min(fair, key=lambda other: known[other])
        text = f"run here too, it leaves nobody without a token for longer than {duration(known[best])}"
        return {f"policies.{best.cells[0].policy}": {}}, text
    return {"policies.fifo": {}}, "who comes first goes first there, so that nobody is overtaken"


def _rounded(value: float) -> float:
    """Two significant digits."""
    return float(f"{value:.2g}")
