"""The tables in which arms are held against each other: swept settings, policies, modes."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.contrasts import Contrast
from replay.metrics.notation import UNDEFINED, milliseconds, number, percent
from replay.metrics.paired import Difference
from replay.report.findings import Findings
from replay.report.tables import markdown
from replay.report.verdict import certainty


def swept(findings: Findings, trace: str) -> str:
    rows = []
    for family in findings.contrasts[trace].swept:
        for place, arm in enumerate(family):
            value = findings.values.value
            goodput, throughput = value(arm, "goodput", "value"), value(arm, "output_throughput", "value")
            variant = f"**{arm.variant}**" if place == 0 else arm.variant
            latencies = [milliseconds(value(arm, "ttft", "p95")), milliseconds(value(arm, "tpot", "p95"))]
            rows.append([arm.mode, arm.policy, variant, percent(goodput), number(throughput), *latencies])
    heads = ["mode", "policy", "setting", "goodput", "output tokens/s", "TTFT p95, ms", "TPOT p95, ms"]
    return markdown(heads, rows, words=3)


def contrast_table(findings: Findings, pairs: Sequence[Contrast], what: str) -> str:
    """Paired differences with their intervals, or "no difference seen"."""
    columns = {"ttft": "mean TTFT, ms", "ttft_delivered": "mean delivered TTFT, ms", "tpot": "mean TPOT, ms"}
    columns |= {"e2e": "mean E2E, ms", "good": "goodput, points", "output_throughput": "output tokens/s"}
    if not any(cell.padded for pair in pairs for arm in (pair.base, pair.other) for cell in arm.cells):
        del columns["ttft_delivered"]
    rows = []
    for pair in pairs:
        if what == "policy":
            names = [pair.base.setting, f"{pair.name} − {pair.base.policy}"]  # noqa: RUF001  # a true minus
        else:
            names = [pair.base.policy, f"{pair.other.setting} − {pair.base.setting}"]  # noqa: RUF001  # a true minus
        names[1] += "" if pair.base.valid and pair.other.valid else " (invalid)"
        pairs_of_requests = f"{pair.differences['e2e'].pairs:,}"
        rows.append([*names, pairs_of_requests, *(_change(pair.differences[metric]) for metric in columns)])
    heads = ["mode" if what == "policy" else "policy", "difference", "pairs", *columns.values()]
    note = "Negative is shorter. Mean difference per request, its interval in brackets."
    if any(difference.noise is not None for pair in pairs for difference in pair.differences.values()):
        note += " ± is the largest difference between two repeats of one cell: what lies inside it is not claimed."
    else:
        note += f" {certainty(findings)}"
    return f"{note}\n\n{markdown(heads, rows, words=2)}"


def _change(difference: Difference) -> str:
    scale = {"good": 100.0, "output_throughput": 1.0}.get(difference.metric, 1000.0)
    if difference.difference is None:
        return UNDEFINED
    noise = "" if difference.noise is None else f" ± {number(difference.noise * scale)}"
    if not difference.seen:
        return f"{'not claimed: unequal pace' if difference.apparent else 'no difference seen'}{noise}"
    text = number(difference.difference * scale)
    if difference.low is not None and difference.high is not None:
        text += f" [{number(difference.low * scale)} to {number(difference.high * scale)}]"
    return (text + noise).replace("-", "−")  # noqa: RUF001  # a true minus
