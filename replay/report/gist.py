"""The verdict in three sentences: what serves best and how surely, what the policy does to whom, and what to doubt."""

from __future__ import annotations

from replay.metrics.contrasts import Contrast
from replay.metrics.loads import loads_of
from replay.metrics.notation import enumerate_words
from replay.report.claims import doubtful, gains_and_losses
from replay.report.findings import Findings
from replay.report.health import certainty, health
from replay.report.loads import told_of_loads
from replay.report.modes import of_reference
from replay.report.opening import best_of_modes, better, opening, sound
from replay.report.overload import told_of_overload
from replay.report.policies import families, longest_wait, members
from replay.report.regime import no_queueing, told_of_regime
from replay.report.settings import told_of_settings
from replay.report.who_pays import ends_in_words, moved

MOST_PRICES = 2
"""Of what may be claimed against a policy, so much is told here."""


def gist(findings: Findings) -> list[str]:
    """Three sentences; of several traces one more for each; where nothing completed, what went wrong."""
    if findings.total("completed") == 0:
        return health(findings)
    several = len(findings.traces) > 1
    answers = told_of_loads(findings)[:1]
    for trace in findings.traces:
        if answer := _answer(findings, trace):
            answers.append(f"{trace}: {answer}" if several else answer)
    each = ((trace, _of_policies(findings, trace)) for trace in findings.traces)
    policies = next((f"{trace}: {told}" if several else told for trace, told in each if told), None)
    doubts = [*health(findings), *_overloads(findings), certainty(findings)]
    return [*answers, *([policies] if policies else []), " ".join(doubts)]


def _answer(findings: Findings, trace: str) -> str | None:
    """What serves best: the first line of the verdict, or the best of the settings where only those were compared."""
    told = opening(trace, findings) or next(iter(told_of_settings(findings.contrasts[trace].swept, findings)), None)
    return told or told_of_regime(findings.compared_of(trace), findings)


def _overloads(findings: Findings) -> list[str]:
    """Where latencies tell the length of the trace; not of a trace at several loads, whose first sentence tells it."""
    loaded = {trace for loads in loads_of(findings.run.traces) for trace in loads.traces.values()}
    several = len(findings.traces) > 1
    return [
        f"{trace}: {told}" if several else told
        for trace in findings.traces
        if trace not in loaded
        for told in told_of_overload(findings.compared_of(trace), findings)
    ]


def _of_policies(findings: Findings, trace: str) -> str | None:
    """What another policy would do in the mode that serves best, and who would pay for it."""
    contrasts = findings.contrasts[trace]
    leaders = [arm.setting for arm in best_of_modes(contrasts.modes)]
    kinds = families(sound(contrasts.policies))
    family = next((kind for kind in kinds if kind[0].base.setting in leaders), kinds[0] if kinds else None)
    if family is None:
        return None
    base = family[0].base
    if nobody := no_queueing(members(family), findings):
        return f"**Policies in {base.setting}**: {nobody}"
    winners = [pair for pair in family if better(pair) > 0]
    if winners:
        best = min(winners, key=_end_to_end)
        ends = _ends(best, findings)
        if not sound(of_reference(contrasts.modes)):  # the first sentence has said that it is better
            return f"Under **{best.name}**, {ends}." if ends else None
        told = f"In {base.setting}, **{best.name}** is better than {base.policy} on average: it has {_facts(best, 2)}"
        return f"{told}; {ends}." if ends else f"{told}."
    mixed = [pair for pair in family if all(gains_and_losses(pair))]
    if mixed:
        pair = min(mixed, key=_end_to_end)
        told = f"In {base.setting}, no policy is better than {base.policy} in everything, on average"
        told = f"{told}: **{pair.name}** has {_facts(pair, 1)}"
        return f"{told}; {ends}." if (ends := _ends(pair, findings)) else f"{told}."
    told = f"In {base.setting}, no policy can be said to be better than {base.policy} on average"
    mover = max(family, key=moved)
    ends = _ends(mover, findings)
    if moved(mover):
        return f"{told}; they move the wait, **{mover.name}** most: {ends}."
    unsure = min(family, key=_end_to_end)
    return f"{told}; **{unsure.name}**: {sizes}." if (sizes := doubtful(unsure)) else f"{told}."


def _facts(pair: Contrast, most: int) -> str:
    """`a mean TTFT 1.23 s shorter, but a mean time per token 6.23 ms longer`: at most so many gains, then prices."""
    gains, losses = gains_and_losses(pair)
    told = enumerate_words(gains[:most])
    return f"{told}, but {enumerate_words(losses[:MOST_PRICES])}" if losses else told


def _ends(pair: Contrast, findings: Findings) -> str:
    """Who gains and who pays, by mean TTFT and by the longest wait."""
    return "; ".join(told for told in (ends_in_words(pair), longest_wait(pair, findings)) if told)


def _end_to_end(pair: Contrast) -> float:
    return pair.differences["e2e"].difference or 0.0
