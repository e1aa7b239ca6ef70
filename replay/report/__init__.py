"""Writes what a run shows: summary tables, JSON, the Markdown report and the pictures, from its Parquet alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from replay.plots import draw_all
from replay.report.advice import advise, in_short
from replay.report.document import document
from replay.report.findings import Findings, find
from replay.report.strict_json import summary_json
from replay.report.tables import headline
from replay.report.verdict import verdict
from replay.results import read_run
from replay.whole_files import replace_file

__all__ = ["Findings", "ReportFiles", "write_report"]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What was written, what it says in short, and what could not be drawn (sentences)."""

    folder: Path
    files: list[Path]
    verdict: list[str]
    table: str  # the main table, aligned for a terminal
    requests: int
    completed: int
    advice: list[str]  # the most important of it
    problems: list[str] = field(default_factory=list)


def write_report(run_folder: Path, *, plots: bool = True) -> ReportFiles:
    """Write summary.parquet, .csv and .json, comparison.md and plots/ into the folder of a run.

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
        "comparison.md": _text(document(findings, _drawn(run_folder), advice=advice)),
    }
    files = [run_folder / name for name in contents]
    for file in files:
        replace_file(file, contents[file.name])
    problems: list[str] = []
    if plots:
        pictures, problems = draw_all(run, findings.measured, run_folder / "plots")
        links = {picture.stem: f"plots/{picture.name}" for picture in pictures if picture.suffix == ".png"}
        replace_file(run_folder / "comparison.md", _text(document(findings, links, problems, advice)))
        files += pictures
    table = "\n\n".join(
        (f"{trace}\n" if len(findings.traces) > 1 else "") + headline(findings.of(trace), findings.values)
        for trace in findings.traces
    )
    counts = findings.total("requests"), findings.total("completed")
    return ReportFiles(run_folder, files, sentences, table, *counts, in_short(advice, findings), problems)


def plain(sentence: str) -> str:
    """Without the marks of Markdown, for a terminal."""
    return sentence.replace("**", "")


def _drawn(run_folder: Path) -> dict[str, str]:
    """The pictures of an earlier report, which one without plots leaves as they are."""
    return {path.stem: f"plots/{path.name}" for path in sorted((run_folder / "plots").glob("*.png"))}


def _text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, encoding="utf-8")
