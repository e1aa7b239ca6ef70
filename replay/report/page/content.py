"""What the page says, part by part, from a run's findings. How it looks is the template's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from replay.metrics.notation import plural
from replay.plots.view import View, views
from replay.report.advice import Advice, told_of_advice, tried
from replay.report.charts import Chart, charts
from replay.report.document import RULES, definitions, differences, validity, who_pays
from replay.report.escaping import marked_names
from replay.report.findings import Findings
from replay.report.gist import gist
from replay.report.in_force import settings_in_force
from replay.report.isolation import isolation_section
from replay.report.loads import sections
from replay.report.page.blobs import packed_json
from replay.report.page.explorer import explorers
from replay.report.page.facts import facts
from replay.report.page.prose import prose, sentence
from replay.report.page.tables import Table, tables
from replay.report.regime import regime
from replay.report.service import fairness_tables
from replay.report.sessions import session_table
from replay.report.utilisation import utilisation
from replay.report.verdict import in_words, verdict
from replay.report.what_was_run import what_was_run


@dataclass(frozen=True, slots=True)
class Frame:
    """A chart's place in the page: what the template writes around it. What it draws is in the blob of this name."""

    blob: str
    title: str
    note: str
    choice: str
    variants: list[str]
    height: int
    files: list[str]


@dataclass(frozen=True, slots=True)
class TraceContent:
    """The part of the page that one trace has."""

    place: int
    name: str
    words: Markup
    tables: list[Table]
    frames: list[Frame]
    explorer: bool
    chapters: list[tuple[str, Markup]]


@dataclass(frozen=True, slots=True)
class Content:
    """All of the page. `blobs` are packed; `facts` is what its script must know."""

    title: str
    created: str
    machine: str
    badges: list[tuple[str, str]]  # what to know at once, and how bad: note, warn, bad
    gist: list[Markup]
    verdict: Markup
    advice: list[tuple[Markup, Markup]]  # what is wrong, and then what it costs and what to try
    loads: Markup
    traces: list[TraceContent]
    ran: Markup
    in_force: Markup
    experiment: str
    validity: Markup
    definitions: Markup
    rules: Markup
    pictures: list[str]
    facts: Mapping[str, Any]
    blobs: Mapping[str, str] = field(repr=False)
    undrawn: list[str]


def content(findings: Findings, advice: Sequence[Advice], pictures: Sequence[str], problems: Sequence[str]) -> Content:
    """`pictures` are the files of the static ones, from the run's folder on; `problems` what could not be drawn."""
    run = findings.run
    blobs: dict[str, str] = {}
    undrawn: list[str] = []
    names = marked_names(findings)
    parts = []
    seen = views(run, findings.measured, every_policy=True)
    explored = _explored(seen, undrawn)
    for place, view in enumerate(seen):
        frames = _frames(view, findings, place, pictures, blobs, undrawn)
        parts.append(_trace(findings, view.trace, place, frames, names, explorer=bool(explored)))
    blobs |= explored
    manifest = run.manifest
    return Content(
        title=run.name,
        created=str(manifest.get("created") or ""),
        machine=_machine(manifest.get("hardware") or {}),
        badges=_badges(findings),
        gist=[sentence(text, names) for text in gist(findings)],
        verdict=prose("\n".join(f"- {text}" for text in verdict(findings)), names),
        advice=[
            (sentence(what + tried(piece), names), sentence(why, names))
            for piece, (what, why) in zip(advice, told_of_advice(advice, findings), strict=True)
        ],
        loads=prose(sections(findings), names),
        traces=parts,
        ran=prose(what_was_run(findings), names),
        in_force=prose(settings_in_force(findings), names),
        experiment=_experiment(findings),
        validity=prose(validity(findings, [*problems, *undrawn]), names),
        definitions=prose(definitions()),
        rules=prose(RULES),
        pictures=list(pictures),
        facts=facts(findings),
        blobs=blobs,
        undrawn=undrawn,
    )


def _trace(
    findings: Findings, trace: str, place: int, frames: list[Frame], names: Sequence[str], *, explorer: bool
) -> TraceContent:
    chapters = {
        "Compared pair by pair": differences(findings, trace),
        "Who pays": who_pays(findings, trace),
        "Fairness, starvation, sessions": [
            *fairness_tables(findings, trace),
            *session_table(findings, trace),
            *isolation_section(findings, trace),
        ],
        "The regime": [regime(findings, trace)],
        "How the machine was used": utilisation(findings, trace),
    }
    return TraceContent(
        place,
        trace,
        prose("\n".join(f"- {text}" for text in in_words(findings, trace)), names),
        tables(findings, trace),
        frames,
        explorer,
        [(title, prose(parts, names)) for title, parts in chapters.items() if any(parts)],
    )


def _explored(seen: Sequence[View], undrawn: list[str]) -> dict[str, str]:
    """The blobs of the explorer; a sentence goes into `undrawn` where it fails."""
    try:
        return explorers(seen)
    except Exception as error:  # whatever it is, the numbers are written and must not be lost
        undrawn.append(f"who held which slot when could not be packed: {type(error).__name__}: {error}")
        return {}


def _frames(
    view: View, findings: Findings, place: int, pictures: Sequence[str], blobs: dict[str, str], undrawn: list[str]
) -> list[Frame]:
    """The charts of a trace; what they draw goes into `blobs`, and a sentence for one that fails into `undrawn`."""
    frames = []
    for name in charts:
        blob = f"{name}-{place}"
        try:
            chart = charts[name](view, findings)
            if chart is None or not any(chart.variants.values()):
                continue
            blobs[blob] = packed_json(chart.spec())
        except Exception as error:  # whatever it is, the numbers are written and must not be lost
            undrawn.append(f"the chart {name!r} could not be drawn: {type(error).__name__}: {error}")
            continue
        frames.append(_frame(blob, chart, pictures, place))
    return frames


def _frame(blob: str, chart: Chart, pictures: Sequence[str], place: int) -> Frame:
    stems = (chart.picture, f"{chart.picture}-{place + 1}")  # of several traces, each has its number
    return Frame(
        blob,
        chart.title,
        chart.note,
        chart.choice,
        list(chart.variants),
        chart.height,
        [file for file in pictures if Path(file).stem in stems],
    )


def _badges(findings: Findings) -> list[tuple[str, str]]:
    run, badges = findings.run, []
    requests, completed = findings.total("requests"), findings.total("completed")
    badges.append((f"{plural(len(run.cells), 'cell')}, {plural(requests, 'request')}", "note"))
    if findings.simulated:
        badges.append(("simulated: times come from a cost model", "warn"))
    if completed < requests:
        badges.append((f"{requests - completed:,} requests not completed", "warn"))
    if invalid := sum(not cell.valid for cell in run.cells):
        badges.append((f"{plural(invalid, 'cell')} invalid", "bad"))
    if failed := sum(bool(cell.error) for cell in run.cells):
        badges.append((f"{plural(failed, 'cell')} failed", "bad"))
    if run.partial:
        badges.append((f"partial: the run is {run.status}", "bad"))
    return badges


def _machine(hardware: Mapping[str, Any]) -> str:
    """`Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB, Linux 6.18`; what is not known of it in its own words."""
    written = {"cores": "{} cores", "memory_gib": "{} GiB"}
    plain = ("processor", "system", "gpu", "device")
    return ", ".join(
        written.get(name, "{}" if name in plain else name.replace("_", " ") + " {}").format(value)
        for name, value in hardware.items()
        if value is not None
    )


def _experiment(findings: Findings) -> str:
    path = findings.run.folder / "experiment.toml"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
