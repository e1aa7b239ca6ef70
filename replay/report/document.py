"""comparison.md: the whole report as Markdown, from the verdict down to the definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replay.metrics import metrics
from replay.metrics.few import few, many
from replay.metrics.groups import BREAKDOWNS
from replay.metrics.metric import TABLES
from replay.metrics.notation import duration
from replay.metrics.paired import TIE
from replay.metrics.resampling import FEWEST_USERS, RESAMPLES
from replay.metrics.simultaneous import CONFIDENCE
from replay.report.advice import Advice, advice_section
from replay.report.breakdowns import breakdown
from replay.report.comparisons import contrast_table, swept
from replay.report.escaping import escaped, marked_names, one_line
from replay.report.findings import Findings
from replay.report.isolation import isolation_section
from replay.report.loads import sections
from replay.report.regime import regime
from replay.report.service import fairness_tables
from replay.report.sessions import session_table
from replay.report.tables import ENGINE, LATENCY, OUTCOMES, SERVICE, arm_table, markdown
from replay.report.utilisation import utilisation
from replay.report.verdict import in_words, verdict
from replay.report.what_was_run import what_was_run

RULES = f"""\
- Every latency counts from `due`, the moment at which the trace intended the request, never from when it was sent.
- A dash means "not defined": nothing happened that could be measured. It is never a zero.
- Percentiles are linear-interpolated. Their `n` stands in the summary files.
- Rates count tokens of completed requests only, and padding never. The steady window lies between two arrival times
  and is the same for all cells of a trace.
- Percentiles of a latency cover the requests that have it: read them beside the number that completed.
- Comparisons are paired: the same requests ran under both. Intervals are of {CONFIDENCE:.0%}. They go by the slowest
  waves in the differences along the trace, for neighbours share a queue; from {FEWEST_USERS} users on also by user, and
  the wider of the two is shown. Where cells were repeated, what their means differ by is in it.
- All intervals of a table hold together: by {RESAMPLES:,} seeded draws they are widened for the number of comparisons,
  so that about one table in twenty has a false claim, and more of a short trace or one whose queue grows all along.
  summary.json has each interval alone too.
- Where an interval covers zero, or the difference is no larger than that between two runs of one cell, no difference is
  seen; its size is shown all the same, with the reason.
- Throughput is one number a run: it has an interval where cells were repeated. Run once, differences up to
  {TIE:.0%} are not claimed."""

MANY = (
    "In each mode, policies stand by their mean end-to-end time, the shortest first. Those whose figures are written "
    "alike in a table share a row of it."
)

PICTURES = {
    "slots": "Who held which batch slot when",
    "heat_map": "Every policy and mode at a glance",
    "latency": "Time to first token and time per token",
    "distributions": "Latency distributions",
    "arrivals": "Time to first token against arrival",
    "tradeoff": "Throughput against latency",
    "frontier": "The frontier of throughput and latency over sizes",
    "loads": "Latency against load",
    "timeline": "Running, waiting, KV use and evictions over time",
    "batch_sizes": "Batch sizes that adapt, over time",
    "efficiency": "Fairness between users against throughput",
    "users": "Latency by user",
    "length_slowdown": "Slowdown by length of the answer",
    "service": "What each user received over time",
    "windowed_difference": "How unevenly users were served over time",
    "roofline": "What was computed for each byte moved, under the machine's roof",
}


def document(
    findings: Findings, pictures: Mapping[str, str], problems: Sequence[str] = (), advice: Sequence[Advice] = ()
) -> str:
    """The Markdown text. `pictures` are links by name of plot, `problems` what could not be drawn."""
    run = findings.run
    parts = [
        f"# {one_line(run.name)}",
        "## Verdict",
        "\n".join(f"- {sentence}" for sentence in verdict(findings)),
        *(_picture(pictures, name) for name in pictures if name.startswith("slots")),
        *advice_section(advice, findings),
        "## What was run",
        what_was_run(findings),
    ]
    parts += sections(findings)
    for trace in findings.traces:
        title = f"## Results: {trace}" if len(findings.traces) > 1 else "## Results"
        parts += [title, *results(findings, trace)]
    others = [name for name in _in_order(pictures) if not name.startswith("slots")]
    parts += ["## Pictures" if others else "", *(_picture(pictures, name) for name in others)]
    parts += ["## Validity", validity(findings, problems), "## Definitions", definitions(), RULES]
    return escaped("\n\n".join(part for part in parts if part), marked_names(findings)) + "\n"


def _in_order(pictures: Mapping[str, str]) -> list[str]:
    """As in `PICTURES`; unknown ones last."""
    order = list(PICTURES)

    def place(name: str) -> int:
        plot = name.partition("-")[0]
        return order.index(plot) if plot in order else len(order)

    return sorted(pictures, key=place)


def _picture(pictures: Mapping[str, str], name: str) -> str:
    plot, _, trace = name.partition("-")
    title = PICTURES.get(plot, plot) + (f", {trace}" if trace else "")
    return f"![{title}]({pictures[name]})"


def results(findings: Findings, trace: str) -> list[str]:
    """The tables of one trace."""
    found, values = findings.of(trace), findings.values
    parts = [
        "\n".join(f"- {sentence}" for sentence in in_words(findings, trace)),
        MANY if many(found) else "",
        "### The regime",
        regime(findings, trace),
        "### Latency\n\nMilliseconds; the best of each column in bold.",
        arm_table(LATENCY, found, values),
        "### Throughput, goodput and fairness",
        arm_table(SERVICE, found, values),
        *fairness_tables(findings, trace),
        *session_table(findings, trace),
        *isolation_section(findings, trace),
        "### How requests ended",
        arm_table(OUTCOMES, found, values, mark=False),
    ]
    parts += differences(findings, trace)
    parts += ["### Who pays", *who_pays(findings, trace)]
    parts += ["### What the engine did", arm_table(ENGINE, found, values, mark=False)]
    parts += utilisation(findings, trace)
    return parts


def differences(findings: Findings, trace: str) -> list[str]:
    """Swept settings, policies and modes of a trace against each other."""
    contrasts, found, parts = findings.contrasts[trace], findings.of(trace), []
    if contrasts.swept:
        parts += [
            "### Settings compared\n\nBy goodput, then by output tokens/s. The best in bold, where one may be named.",
            swept(findings, trace),
        ]
    chosen = few(findings.arms, findings.values)
    modes = [pair for pair in contrasts.modes if pair.base.policy in chosen.policies]
    if contrasts.policies:
        base = contrasts.policies[0].base.policy
        place = {arm: number for number, arm in enumerate(found)}
        parts += [
            f"### Policies against {base}, within each mode",
            contrast_table(sorted(contrasts.policies, key=lambda pair: place.get(pair.other, 0)), "policy"),
        ]
    if modes:
        parts += [
            "### Modes against each other, under each policy",
            f"Of {chosen.left_out}." if chosen.left_out else "",
            contrast_table(modes, "setting"),
        ]
    return parts


def who_pays(findings: Findings, trace: str) -> list[str]:
    """The tables by user, priority, class and length."""
    return [table for by in BREAKDOWNS[1:] if (table := breakdown(findings, trace, by))]


def validity(findings: Findings, problems: Sequence[str]) -> str:
    """Lag, invalid and failed cells, what is missing, what could not be drawn."""
    run, values, lines = findings.run, findings.values, []
    lags = {arm.label: max(found) for arm in findings.arms if (found := values.repeats(arm, "lag", "p99"))}
    limit = run.manifest.get("lag_limit_ms")
    if lags:
        worst = max(lags, key=lambda label: lags[label])
        asked = f", the limit {limit:g} ms" if isinstance(limit, int | float) else ""
        lines.append(f"lag p99: at worst {duration(lags[worst])} ({worst}){asked}")
    for cell in run.cells:
        if not cell.valid:
            lines.append(f"{cell.name} is invalid: {cell.invalid_reason or 'no reason was given'}")
        if cell.error:
            lines.append(f"{cell.name} failed: {cell.error}")
        elif cell.partial:
            lines.append(
                f"{cell.name} is {cell.status if cell.status != 'complete' else 'partial'}: not all of it was run"
            )
    lines += problems
    if not any(not cell.valid or cell.error or cell.partial for cell in run.cells):
        lines.append("every cell ran to its end and is valid")
    return "\n".join(f"- {line}" for line in lines)


def definitions() -> str:
    """Every registered metric with its formula and unit."""
    names = sorted(metrics, key=lambda name: TABLES.index(metrics[name].table))
    rows = [[f"`{name}`", metrics[name].formula, metrics[name].unit] for name in names]
    return markdown(["metric", "definition", "unit"], rows, words=3)
