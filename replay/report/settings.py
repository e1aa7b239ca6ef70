"""Which of several arms come first by goodput or by output tokens per second: swept settings, and all combinations.

An arm is put before another only where their difference may be claimed; those that cannot be told apart share a place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from replay.metrics.arms import Arm
from replay.metrics.notation import enumerate_words, number, percent
from replay.report.findings import Findings

HARDLY = 0.1
"""Share of requests below which it is said that the goals are not met, and arms are not ordered by them."""
MOST_NAMES = 4
"""More arms than these are counted, not named."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The arms that come first, and by what: `good` is goodput, request by request."""

    leaders: list[Arm]
    by: str  # in words


def standing(findings: Findings, family: Sequence[Arm]) -> Standing:
    """By goodput where somebody meets the goals, by output tokens/s where not, or where goodput is wholly the same."""
    candidates = [arm for arm in family if arm.valid] or list(family)
    if met(findings, candidates) >= HARDLY:
        leaders = first(findings, candidates, "goodput")
        goodputs = {findings.values.value(arm, "goodput", "value") for arm in leaders}
        if len(leaders) == 1 or len(goodputs) > 1:
            return Standing(leaders, "goodput")
        leaders = first(findings, leaders, "output_throughput")
        return Standing(leaders, "goodput, then by output tokens/s")
    return Standing(first(findings, candidates, "output_throughput"), "output tokens/s")


def met(findings: Findings, found: Sequence[Arm]) -> float:
    """The highest goodput; 0 where there were no goals."""
    return max((findings.values.value(arm, "goodput", "value") or 0.0 for arm in found), default=0.0)


def first(findings: Findings, found: Sequence[Arm], metric: str) -> list[Arm]:
    """The arm with the highest value, and then those that may not be said to be worse than it."""
    known = {arm: value for arm in found if (value := findings.values.value(arm, metric, "value")) is not None}
    if not known:
        return list(found)
    top = max(known, key=lambda arm: known[arm])
    paired = "good" if metric == "goodput" else metric
    others = [arm for arm in known if arm is not top]
    told = findings.compare_all(paired, [(arm, top) for arm in others])
    return [top, *(arm for arm, difference in zip(others, told, strict=True) if difference.merit <= 0)]


def told_of_settings(families: Sequence[Sequence[Arm]], findings: Findings) -> list[str]:
    """Which of the swept settings is best, mode by mode; one sentence where policies agree."""
    sentences: dict[tuple[str, str], list[Sequence[Arm]]] = {}
    for family in families:
        sentences.setdefault((family[0].mode, _best(family, findings)), []).append(family)
    told = []
    for (mode, sentence), alike in sentences.items():
        everywhere = len(alike) == sum(family[0].mode == mode for family in families) > 1
        who = "every policy" if everywhere else enumerate_words([family[0].policy for family in alike])
        told.append(f"In {mode} mode, under {who}, {sentence}{_distance(alike, findings)}.")
    return told


def _distance(families: Sequence[Sequence[Arm]], findings: Findings) -> str:
    """` (goodput 41.7 % to 57.3 %, and 1 % to 14.6 % at the worst setting)`, over the policies that agree."""
    places = [standing(findings, family) for family in families]
    if any(len(place.leaders) > 1 for place in places):
        return ""
    metric, write = ("goodput", percent) if places[0].by == "goodput" else ("output_throughput", number)
    ends = []
    for choose, arms in ((max, [place.leaders for place in places]), (min, families)):
        known = [[findings.values.value(arm, metric, "value") or 0.0 for arm in found] for found in arms]
        texts = [write(end) for end in (min(map(choose, known)), max(map(choose, known)))]
        ends.append(" to ".join(dict.fromkeys(texts)))
    name = "goodput" if metric == "goodput" else "output tokens/s"
    return f" ({name} {ends[0]}, and {ends[1]} at the worst setting)"


def _best(family: Sequence[Arm], findings: Findings) -> str:
    """`**max_running=8** is best by goodput, the largest tried: try more`."""
    place = standing(findings, family)
    names = [f"**{arm.variant or arm.mode}**{arm.mark}" for arm in place.leaders]
    parts = []
    if findings.run.goals.any and met(findings, family) < HARDLY:
        parts.append(f"no setting meets the goals: at best {_requests(findings, family)}")
    if len(place.leaders) == 1:
        parts.append(f"{names[0]} is best by {place.by}{_edge(place.leaders[0], family)}")
    elif len(place.leaders) == len(family):
        parts.append(f"no setting can be told from the best by {place.by}")
    else:
        parts.append(f"{names[0]} comes first by {place.by}, but {enumerate_words(names[1:])} cannot be told from it")
    return "; ".join(parts)


def _requests(findings: Findings, found: Sequence[Arm]) -> str:
    """`3 of 96 requests`, of the arm that comes closest."""
    best = max(found, key=lambda arm: findings.values.value(arm, "goodput", "value") or 0.0)
    requests = findings.count("requests", best)
    return f"{round((findings.values.value(best, 'goodput', 'value') or 0.0) * requests):,} of {requests:,} requests"


def _edge(best: Arm, family: Sequence[Arm]) -> str:
    """Whether the best lies at an end of what was tried."""
    tried: dict[str, set[float]] = {}
    for arm in family:
        for name, value in _numbers(arm).items():
            tried.setdefault(name, set()).add(value)
    own, told = _numbers(best), []
    for name, values in tried.items():
        which = f" {name}" if len(own) > 1 else ""
        if name in own and len(values) > 1 and own[name] == max(values):
            told.append(f"the largest{which} tried: try more")
        elif name in own and len(values) > 1 and own[name] == min(values):
            told.append(f"the smallest{which} tried: try less")
    return f", {' and '.join(told)}" if told else ""


def _numbers(arm: Arm) -> dict[str, float]:
    """The settings of a variant that are numbers, by name."""
    found = re.findall(r"(?:^|, )([^=,]+)=(-?\d+(?:\.\d+)?)(?=,|$)", arm.variant)
    return {name: float(value) for name, value in found}


def told_of_goodput(found: Sequence[Arm], findings: Findings) -> str | None:
    """Who meets the goals most often."""
    shares = {arm: share for arm in found if (share := findings.values.value(arm, "goodput", "value")) is not None}
    if len(shares) < 2:
        return None
    top, bottom = max(shares.values()), min(shares.values())
    if percent(top) == percent(bottom):
        return f"Goodput is {percent(top)} everywhere."
    leaders = first(findings, found, "goodput")
    shared = [arm for arm in leaders if percent(shares[arm]) == percent(top)]
    if top < HARDLY:
        return f"Hardly any request meets the goals: at best {_requests(findings, leaders)}, with {_whom(shared)}."
    sentence = f"Goodput is highest, {percent(top)}, with {_whom(shared)}"
    if near := [arm for arm in leaders if arm not in shared]:
        sentence += f"; {_whom(near)}, down to {percent(min(shares[arm] for arm in near))}, cannot be told from it"
    return f"{sentence}; the lowest is {percent(bottom)}."


def _whom(found: Sequence[Arm]) -> str:
    """Arms by name, or by number where they are many."""
    settings: dict[str, list[str]] = {}
    for arm in found:
        settings.setdefault(arm.setting, []).append(arm.policy + arm.mark)
    if len(found) > MOST_NAMES:
        return f"{len(found)} combinations" + (f", all in {found[0].setting}" if len(settings) == 1 else "")
    return enumerate_words([f"{enumerate_words(policies)} in {setting}" for setting, policies in settings.items()])
