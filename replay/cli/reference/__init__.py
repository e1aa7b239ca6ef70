"""The reference: pages of docs/reference, generated from what the code declares, so that they cannot say else.

Each page is one module, and a function without arguments that gives its Markdown. They tell of what comes with replay,
not of what other packages and one's own files register.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from replay.cli.reference import command_line, experiment, metrics, runs, traces

MADE = "<!-- Generated from the code by `make reference`: to be changed there. -->"
PAGES: dict[str, Callable[[], str]] = {
    "experiment": experiment.page,
    "traces": traces.page,
    "metrics": metrics.page,
    "runs": runs.page,
    "command-line": command_line.page,
}


def written(name: str) -> str:
    """The whole text of a page: its title, where it is from, and what it tells."""
    title, _, rest = PAGES[name]().partition("\n\n")
    return f"{title}\n\n{MADE}\n\n{rest.rstrip()}\n"


def write_pages(folder: Path) -> list[Path]:
    """Write every page into a folder; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.md" for name in PAGES]
    for name, file in zip(PAGES, files, strict=True):
        file.write_text(written(name), encoding="utf-8")
    return files
