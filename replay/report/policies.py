"""The sentences on policies within one mode: what each does on average, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.arms import Arm
from replay.metrics.contrasts import Contrast
from replay.metrics.few import MOST
from replay.metrics.notation import duration, enumerate_words
from replay.report.claims import COLUMNS, LARGE, claimed, considered, doubtful, have, paced
from replay.report.findings import Findings
from replay.report.regime import no_queueing
from replay.report.who_pays import who_pays


def families(pairs: Sequence[Contrast]) -> list[list[Contrast]]:
    """The comparisons of policies, those of one mode and setting together."""
    found: dict[tuple[str, str], list[Contrast]] = {}
    for pair in pairs:
        found.setdefault((pair.base.mode, pair.base.variant), []).append(pair)
    return list(found.values())


def members(family: Sequence[Contrast]) -> list[Arm]:
    return [family[0].base, *(pair.other for pair in family)]


def told_of_policies(family: Sequence[Contrast], findings: Findings) -> list[str]:
    """One sentence on the averages, and one on who gains and who pays."""
    if nobody := no_queueing(members(family), findings):
        differ = any(difference.seen for pair in family for difference, _ in considered(pair))
        return [
            f"**Policies in {family[0].base.setting}**: {nobody}"
            + (" What differs in the tables is not of whom they admit." if differ else "")
        ]
    short = len(family) >= MOST  # with what they are held against, more than can be told one by one
    sentences = [_ends_of_many(family, findings) if short else _averages(family, findings)]
    shown = _ends(family) if short else family
    if shown and (told := who_pays(shown)):
        sentences.append(told)
    return sentences


def _averages(family: Sequence[Contrast], findings: Findings) -> str:
    alike: dict[str, list[str]] = {}  # what is said, and of whom
    unseen: list[str] = []
    unclaimed: dict[str, list[str]] = {}  # why, and of whom
    for pair in family:
        name = pair.name + pair.other.mark
        if facts := claimed(pair):
            texts = [fact if fact[0].isdigit() else f"a {fact}" for fact in facts]
            alike.setdefault(enumerate_words(texts) + _longest_wait(pair, findings), []).append(name)
        else:
            (unclaimed.setdefault(why, []) if (why := paced(pair)) else unseen).append(name)
    told = [
        f"{enumerate_words([f'**{name}**' for name in names])} {have(names)} {what}" for what, names in alike.items()
    ]
    told += [
        f"on average nothing can be claimed of {enumerate_words(names)} ({why})" for why, names in unclaimed.items()
    ]
    if unseen:
        told.append(f"no difference seen on average for {enumerate_words(unseen)}")
    doubts: dict[str, list[str]] = {}
    for pair in family:
        if sizes := doubtful(pair):
            doubts.setdefault(sizes, []).append(pair.name + pair.other.mark)
    told += [f"{enumerate_words(names)}: {sizes}" for sizes, names in doubts.items()]
    base = family[0].base
    return f"**Policies in {base.setting}**, against {base.policy}{base.mark}: {'; '.join(told)}."


def _ends_of_many(family: Sequence[Contrast], findings: Findings) -> str:
    """Of many policies, how many are better and worse by mean end-to-end time, and what the first and the last do."""
    base, signs = family[0].base, [pair.differences["e2e"].merit for pair in family]
    better, worse = signs.count(1), signs.count(-1)
    told = [
        f"of {len(family)} policies, {_having(better)} a shorter mean end-to-end time and {_having(worse)} a longer one"
    ]
    if not better + worse:
        told = [f"of none of {len(family)} policies can a difference in mean end-to-end time be claimed"]
    elif better + worse < len(family):
        told[0] += f"; of the other {len(family) - better - worse}, no such difference can be claimed"
    for pair in _ends(family):
        alike = [other.name + other.other.mark for other in family if _figures(other) == _figures(pair)]
        place = "shortest" if pair.differences["e2e"].merit > 0 else "longest"
        texts = [fact if fact[0].isdigit() else f"a {fact}" for fact in claimed(pair)]
        told.append(
            f"{place}: {enumerate_words([f'**{name}**' for name in alike])} {have(alike)} "
            f"{enumerate_words(texts)}{_longest_wait(pair, findings)}"
        )
    return f"**Policies in {base.setting}**, against {base.policy}{base.mark}: {'; '.join(told)}."


def _having(count: int) -> str:
    return f"{count or 'none'} {'has' if count < 2 else 'have'}"


def _ends(family: Sequence[Contrast]) -> list[Contrast]:
    """The one with the shortest mean end-to-end time and the one with the longest, of those that may be claimed."""
    claims = [pair for pair in family if pair.differences["e2e"].merit]
    sides = [[pair for pair in claims if pair.differences["e2e"].merit == sign] for sign in (1, -1)]
    return [choose(side, key=_figures) for choose, side in zip((min, max), sides, strict=True) if side]


def _figures(pair: Contrast) -> tuple[float, ...]:
    return tuple(pair.differences[metric].difference or 0.0 for metric in ("e2e", *COLUMNS))


def _longest_wait(pair: Contrast, findings: Findings) -> str:
    """What the longest wait became; `but` where it went against all else that is claimed."""
    if not (told := longest_wait(pair, findings)):
        return ""
    merits = {difference.merit for difference, _ in considered(pair)} - {0}
    joint = "and" if findings.compare("longest_wait", pair.base, pair.other).merit in merits else "but"
    return f", {joint} {told}"


def longest_wait(pair: Contrast, findings: Findings) -> str:
    """`the longest wait is 9.80 s instead of 17.5 s`, where it changed by much."""
    wait = findings.compare("longest_wait", pair.base, pair.other)
    if not wait.seen or wait.base_mean is None or wait.difference is None:
        return ""
    if abs(wait.difference) < LARGE * wait.base_mean:
        return ""
    return f"the longest wait is {duration(wait.base_mean + wait.difference)} instead of {duration(wait.base_mean)}"
