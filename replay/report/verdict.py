"""The verdict: the answer in one line, what a reader must know before any number, then what differs, and how surely."""

from __future__ import annotations

from replay.metrics.loads import loads_of
from replay.report.fairness import told_of_fairness
from replay.report.findings import Findings
from replay.report.health import certainty, health, steadiness
from replay.report.loads import told_of_loads
from replay.report.modes import told_of_modes
from replay.report.opening import best_of_modes, opening
from replay.report.overload import told_of_overload
from replay.report.policies import families, told_of_policies
from replay.report.regime import told_of_regime
from replay.report.sameness import told_of_sameness
from replay.report.settings import standing, told_of_goodput, told_of_settings


def verdict(findings: Findings) -> list[str]:
    """Sentences, one a bullet."""
    if findings.total("completed") == 0:
        return health(findings)
    openings, rest = told_of_loads(findings), []
    for trace in findings.traces:
        prefix = f"{trace}: " if len(findings.traces) > 1 else ""
        told = _of_trace(findings, trace)
        first = opening(trace, findings) or (told.pop(0) if findings.contrasts[trace].swept else None)
        openings += [prefix + first] if first else []
        if _at_a_load(findings, trace):
            regime = told_of_regime(findings.compared_of(trace), findings, queues=True)
            told = [regime] if regime else []
        rest += [prefix + sentence for sentence in told]
    return [*openings, *health(findings), *rest, *steadiness(findings), certainty(findings)]


def in_words(findings: Findings, trace: str) -> list[str]:
    """What the verdict leaves to the trace's own part of the report: of several loads it only tells the regimes."""
    return _of_trace(findings, trace) if _at_a_load(findings, trace) else []


def _at_a_load(findings: Findings, trace: str) -> bool:
    return any(trace in loads.traces.values() for loads in loads_of(findings.run.traces))


def _of_trace(findings: Findings, trace: str) -> list[str]:
    contrasts, found = findings.contrasts[trace], findings.compared_of(trace)
    swept = told_of_settings(contrasts.swept, findings)
    only_swept = opening(trace, findings) is None
    regime = told_of_regime(found, findings)
    sentences = [*(swept if only_swept else []), *([regime] if regime else []), *told_of_overload(found, findings)]
    sentences += told_of_sameness(found, findings)
    sentences += told_of_modes(contrasts.modes)
    for family in families(contrasts.policies):
        sentences += told_of_policies(family, findings)
    sentences += [] if only_swept else swept
    leaders = best_of_modes(contrasts.modes)
    if not leaders and contrasts.swept:
        leaders = standing(findings, contrasts.swept[0]).leaders
    in_best = [arm for arm in found if arm.setting == (leaders or found)[0].setting]
    tail = (told_of_goodput(found, findings), told_of_fairness(in_best, findings))
    return [*sentences, *(sentence for sentence in tail if sentence)]
