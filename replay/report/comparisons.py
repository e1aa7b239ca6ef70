"""The tables in which arms are held against each other: swept settings, policies, modes."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.contrasts import Contrast
from replay.metrics.few import many
from replay.metrics.notation import MINUS, UNDEFINED, milliseconds, number, percent, signed
from replay.metrics.paired import Difference
from replay.metrics.wins import Wins
from replay.report.findings import Findings
from replay.report.settings import standing
from replay.report.tables import joined, markdown

WON = "E2E shorter / longer"


def swept(findings: Findings, trace: str) -> str:
    """Each setting with its outcome; the one that may be called the best in bold."""
    rows = []
    for family in findings.contrasts[trace].swept:
        leaders = standing(findings, family).leaders
        for arm in family:
            value = findings.values.value
            goodput, throughput = value(arm, "goodput", "value"), value(arm, "output_throughput", "value")
            variant = f"**{arm.variant}**" if leaders == [arm] and not arm.mark else f"{arm.variant}{arm.mark}"
            latencies = [milliseconds(value(arm, "ttft", "p95")), milliseconds(value(arm, "tpot", "p95"))]
            rows.append([arm.mode, arm.policy, variant, percent(goodput), number(throughput), *latencies])
    heads = ["mode", "policy", "setting", "goodput", "output tokens/s", "TTFT p95, ms", "TPOT p95, ms"]
    return markdown(heads, rows, words=3)


def contrast_table(pairs: Sequence[Contrast], what: str) -> str:
    """Paired differences with their intervals, and a mark on those that may not be claimed."""
    columns = {"ttft": "mean TTFT, ms", "ttft_delivered": "mean delivered TTFT, ms", "tpot": "mean TPOT, ms"}
    columns |= {"e2e": "mean E2E, ms", "good": "goodput, points", "output_throughput": "output tokens/s"}
    if not any(cell.padded for pair in pairs for arm in (pair.base, pair.other) for cell in arm.cells):
        del columns["ttft_delivered"]
    rows = []
    for pair in pairs:
        base, other = pair.base, pair.other
        names = [base.policy, f"{other.setting}{other.mark} {MINUS} {base.setting}{base.mark}"]
        if what == "policy":
            names = [base.setting, f"{pair.name}{other.mark} {MINUS} {base.policy}{base.mark}"]
        pairs_of_requests = f"{pair.differences['e2e'].pairs:,}"
        changes = [_change(pair.differences[metric]) for metric in columns]
        rows.append([*names, pairs_of_requests, *changes, _won(pair.differences["e2e"].wins)])
    if many([arm for pair in pairs for arm in (pair.base, pair.other)]):
        rows = _alike(rows) if what == "policy" else joined(rows, place=0)
    heads = ["mode" if what == "policy" else "policy", "difference", "pairs", *columns.values(), WON]
    note = (
        "Negative is shorter. Mean difference per request, in brackets its interval, which holds together with all "
        "others of this table. Where no difference is seen, it says why: *not certain*, the interval covers zero (or, "
        "of a figure without one, it is small); *unequal pace*, the machine's speed may have made it. "
        f"{WON}: shares of requests, {_tolerance(pairs)}"
    )
    if any(difference.noise is not None for pair in pairs for difference in pair.differences.values()):
        note += ". *Within noise*: no larger than ±, the largest difference between two runs of one cell"
    return f"{note}.\n\n{markdown(heads, rows, words=2)}"


def _won(wins: Wins | None) -> str:
    """`71 / 20 %`: for how many requests it is shorter, and for how many longer."""
    return UNDEFINED if wins is None else f"{100 * wins.better:.0f} / {100 * wins.worse:.0f} %"


def _tolerance(pairs: Sequence[Contrast]) -> str:
    known = {wins.tolerance for pair in pairs if (wins := pair.differences["e2e"].wins) is not None}
    return f"alike up to {percent(max(known))}" if any(known) else "alike only where equal to the nanosecond"


def _alike(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Differences that are written alike as one row: `klpm, lpm, vllm - fifo`."""
    parts = [[row[0], *row[1].rpartition(f" {MINUS} "), *row[2:]] for row in rows]
    return [[mode, other + minus + base, *rest] for mode, other, minus, base, *rest in joined(parts)]


def _change(difference: Difference) -> str:
    scale = {"good": 100.0, "output_throughput": 1.0}.get(difference.metric, 1000.0)
    if difference.difference is None:
        return UNDEFINED
    text = signed(difference.difference * scale)
    if difference.low is not None and difference.high is not None:
        text += f" [{signed(difference.low * scale)} to {signed(difference.high * scale)}]"
    if difference.noise is not None:
        text += f" ± {number(difference.noise * scale)}"
    return text + (f" ({difference.doubt})" if difference.doubt else "")
