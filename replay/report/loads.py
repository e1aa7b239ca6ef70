"""From which load on policies part, told of a trace that was replayed at several: a sentence, and tables by mode."""

from __future__ import annotations

from replay.metrics.contrasts import Contrast
from replay.metrics.few import few
from replay.metrics.loads import Loads, Parting, loads_of, parted, partings
from replay.metrics.notation import change, enumerate_words, milliseconds, number, percent, several, signed
from replay.metrics.paired import PAIRED
from replay.report.claims import considered
from replay.report.findings import Findings
from replay.report.regime import shares, words
from replay.report.tables import markdown

SHORT = {"ttft": "TTFT", "ttft_delivered": "delivered TTFT", "tpot": "TPOT", "e2e": "E2E", "good": "goodput"}


def told_of_loads(findings: Findings) -> list[str]:
    """For each trace that was replayed at several loads, from which on policies part, mode by mode."""
    told = []
    for loads in loads_of(findings.run.traces):
        found = _partings(loads, findings)
        parts = [_told(loads, parting, findings) for parting in found]
        told += [f"{loads.name} at {len(loads.factors)} loads: {'; '.join(dict.fromkeys(parts))}."] if parts else []
    return told


def sections(findings: Findings) -> list[str]:
    """The part of the report on loads; nothing where none were tried."""
    parts = []
    for loads in loads_of(findings.run.traces):
        if found := _partings(loads, findings):
            parts.append(f"## Loads: {loads.name}")
            parts.append("\n".join(f"- {_sentence(_told(loads, parting, findings))}" for parting in found))
            parts.append(
                "The load is a factor of the trace's mean rate. Mean TTFT in ms. Policies part where a paired "
                "difference from the first of them may be claimed; *waited* is the largest share of requests that "
                "were left waiting by a step that could have admitted them, and the regime is the first policy's."
            )
            if left_out := few(findings.arms, findings.values).left_out:
                parts.append(f"The tables have {left_out}.")
            parts += [f"### {parting.setting}\n\n{_table(loads, parting, findings)}" for parting in found]
    return parts


def _partings(loads: Loads, findings: Findings) -> list[Parting]:
    return partings(loads, {trace: found.policies for trace, found in findings.contrasts.items()})


def _told(loads: Loads, parting: Parting, findings: Findings) -> str:
    """`in **continuous**, policies part from 2x on (55 requests/s): sjf from fifo; at 1x they cannot be told apart`."""
    setting, first = f"in **{parting.setting}**", parting.first
    factors = loads.factors
    if first is None:
        up_to, moved = f"up to {_factor(factors[-1])}", _moved(loads, parting, findings)
        if moved is not None:
            own = f"who gains and who pays differs from {_factor(moved)} on"
            return f"{setting}, policies are alike on average at all of them, {up_to}, but {own}"
        return f"{setting}, policies cannot be told apart at any of them, {up_to}: try more"
    below = [factor for factor in factors if factor < first]
    again = [factor for factor in factors if factor > first and not parting.apart[factor]]
    pairs = _pairs(loads, parting, first, findings)
    who = f"{several(list(parting.apart[first]))} from {pairs[0].base.policy}"
    sentence = f"{setting}, policies part from {_factor(first)} on{_rate(loads, first, findings)}: {who}"
    if again:
        sentence += f" (though not at {enumerate_words([_factor(factor) for factor in again])})"
    if not below:
        return f"{sentence}; that is the lowest tried: try less"
    return f"{sentence}; at {enumerate_words([_factor(factor) for factor in below])} they cannot be told apart"


def _moved(loads: Loads, parting: Parting, findings: Findings) -> float | None:
    """The first load at which a policy moves waiting from some requests to others, as may be claimed of groups."""
    for factor in loads.factors:
        pairs = _pairs(loads, parting, factor, findings)
        if any(shift.difference.seen for pair in pairs for shift in pair.shifts):
            return factor
    return None


def _table(loads: Loads, parting: Parting, findings: Findings) -> str:
    arms = {
        factor: [arm for arm in findings.compared_of(trace) if arm.setting == parting.setting]
        for factor, trace in loads.traces.items()
    }
    chosen = few(findings.arms, findings.values).policies
    ran = dict.fromkeys(arm.policy for found in arms.values() for arm in found)
    policies = [policy for policy in ran if policy in chosen]
    rows = []
    for factor, found in arms.items():
        waited = [share for arm in found if (share := findings.values.value(arm, "queued", "value")) is not None]
        by_policy = {arm.policy: findings.values.value(arm, "ttft", "mean") for arm in found}
        pairs = [pair for pair in _pairs(loads, parting, factor, findings) if parted(pair)]
        told = [pair for pair in pairs if pair.other.policy in chosen]
        more = [f"{len(pairs) - len(told)} more"] if len(pairs) > len(told) else []
        rows.append(
            [
                _factor(factor),
                words(shares(findings, found[0])) if found else "",
                "; ".join([*(_apart(pair) for pair in told), *more]) or "nobody",
                number(_requests_per_second(loads, factor, findings)),
                percent(max(waited, default=None)),
                *(milliseconds(by_policy.get(policy)) for policy in policies),
            ]
        )
    heads = ["load", "regime", "told apart", "requests/s", "waited", *policies]
    return markdown(heads, rows, words=3)


def _pairs(loads: Loads, parting: Parting, factor: float, findings: Findings) -> list[Contrast]:
    found = findings.contrasts.get(loads.traces[factor])
    return [pair for pair in found.policies if pair.base.setting == parting.setting] if found else []


def _apart(pair: Contrast) -> str:
    """`sjf (TTFT −36 %, E2E −20 %)`: what may be claimed."""  # noqa: RUF002  # true minuses
    sizes = []
    for difference, _ in considered(pair):
        if difference.metric in PAIRED and difference.seen and difference.difference is not None:
            points = f"{'+' if difference.difference > 0 else ''}{signed(100 * difference.difference)} points"
            size = points if difference.relative is None or difference.metric == "good" else change(difference.relative)
            sizes.append(f"{SHORT[difference.metric]} {size}")
    return f"{pair.name}{pair.other.mark} ({', '.join(sizes)})"


def _requests_per_second(loads: Loads, factor: float, findings: Findings) -> float | None:
    trace = findings.run.trace(loads.traces[factor])
    return trace.rows / trace.span_s if trace.rows and trace.span_s else None


def _rate(loads: Loads, factor: float, findings: Findings) -> str:
    rate = _requests_per_second(loads, factor, findings)
    return "" if rate is None else f" ({number(rate)} requests/s)"


def _factor(factor: float) -> str:
    return f"{factor:g}x"


def _sentence(told: str) -> str:
    return f"{told[0].upper()}{told[1:]}."
