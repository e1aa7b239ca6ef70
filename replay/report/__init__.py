"""Writes what a run shows: summary tables, JSON, the report as a page and as Markdown, the pictures, from its Parquet
alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replay.plots import draw_all
from replay.report.advice import advise, in_short
from replay.report.document import document
from replay.report.findings import Findings, find
from replay.report.gist import gist
from replay.report.page import page
from replay.report.strict_json import summary_json
from replay.report.tables import headline
from replay.report.verdict import verdict
from replay.results import read_run
from replay.whole_files import replace_file

__all__ = ["Findings", "ReportFiles", "write_report"]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What was written, what it says, and what could not be drawn (sentences)."""

    folder: Path
    files: list[Path]
    verdict: list[str]  # in full
    gist: list[str]  # the verdict in three sentences
    table: str  # the main table, aligned for a terminal
    requests: int
    completed: int
    advice: list[str]  # the most important of it
    problems: list[str] = field(default_factory=list)


def write_report(run_folder: Path, *, plots: bool = True) -> ReportFiles:
    """Write summary.parquet, .csv and .json, comparison.md, report.html and plots/ into the folder of a run.

    Each file is written under another name and then renamed, so none is ever half there. A plot that fails is a
    sentence in `problems` and loses nothing else. OutputError when there is no run, or its folder cannot be written.
    """
    run = read_run(run_folder)
    findings = find(run)
    summary = findings.measured.summary
    sentences, advice = [plain(sentence) for sentence in verdict(findings)], advise(findings)
    contents = {
        "summary.parquet": lambda path: summary.write_parquet(path),
        "summary.csv": lambda path: summary.write_csv(path),
        "summary.json": _text(summary_json(findings, sentences, advice)),
        "comparison.md": _text(document(findings, _links(_pictures(run_folder)), advice=advice)),
    }
    for name, write in contents.items():
        replace_file(run_folder / name, write)
    pictures, problems = _pictures(run_folder), list[str]()
    if plots:
        pictures, problems = draw_all(run, findings.measured, run_folder / "plots")
        replace_file(run_folder / "comparison.md", _text(document(findings, _links(pictures), problems, advice)))
    html, undrawn = page(findings, advice, [f"plots/{picture.name}" for picture in pictures], problems)
    replace_file(run_folder / "report.html", _text(html))
    problems += undrawn
    files = [run_folder / "report.html", *(run_folder / name for name in contents), *(pictures if plots else [])]
    table = "\n\n".join(
        (f"{trace}\n" if len(findings.traces) > 1 else "") + headline(findings.of(trace), findings.values)
        for trace in findings.traces
    )
    counts = findings.total("requests"), findings.total("completed")
    short = [plain(sentence) for sentence in gist(findings)]
    return ReportFiles(run_folder, files, sentences, short, table, *counts, in_short(advice, findings), problems)


def plain(sentence: str) -> str:
    """Without the marks of Markdown, for a terminal."""
    return sentence.replace("**", "")


def _pictures(run_folder: Path) -> list[Path]:
    """The pictures of an earlier report, which one without plots leaves as they are."""
    return sorted(path for path in (run_folder / "plots").glob("*.*") if path.suffix in (".png", ".svg"))


def _links(pictures: Sequence[Path]) -> dict[str, str]:
    return {path.stem: f"plots/{path.name}" for path in pictures if path.suffix == ".png"}


def _text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, encoding="utf-8")
