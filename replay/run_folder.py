"""A run's folder: its own, never an earlier run's, and its manifest, always whole.

It knows names and files; what stands in the manifest is the runner's.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import tomli_w

from replay.errors import OutputError
from replay.whole_files import replace_file

MANIFEST = "manifest.json"
FILES = {
    MANIFEST: "what was run, on what, with which traces, and how each cell ended",
    "experiment.toml": "the experiment as run, with what the command line added",
    "cells/CELL/requests.parquet": "a row for each request: its stamps, its tokens, how it ended",
    "cells/CELL/steps.parquet": "a row for each step: when it was, what it computed, what bound it",
    "cells/CELL/spans.parquet": "who held which batch slot when, doing what",
    "summary.parquet": "every metric of every cell and group, one value a row",
    "summary.csv": "the same as text",
    "summary.json": "the same nested, with verdict, advice, definitions and comparisons",
    "report.html": "the report as one page that needs nothing else",
    "comparison.md": "the report as Markdown",
    "plots/*.png": "its pictures",
    "plots/*.svg": "the same for papers",
}
"""What a run leaves. While a cell runs its rows lie in numbered part files; a file under its final name is complete."""


@dataclass(slots=True, frozen=True)
class Claim:
    """A folder that belongs to one run: its manifest is there, empty until the run has begun."""

    folder: Path
    created: bool  # by the claim, rather than by the user

    def give_up(self) -> None:
        """Leave the place as it was found: nothing was run."""
        with suppress(OSError):  # somebody else may have come to use it
            (self.folder / MANIFEST).unlink(missing_ok=True)
            if self.created:
                self.folder.rmdir()


def claim_folder(output: Path | None, name: str, when: datetime) -> Claim:
    """Make a run's folder its own: `output`, which must not exist or be empty; or a new one below `outputs/`.

    Raises OutputError when the place is taken, is a file, or cannot be written. Of two runs that ask for one folder at
    once, one gets it; without a folder of their own, two runs of one second get two.
    """
    place = output or Path("outputs")
    try:
        if output is None:
            return _claim_new(place, f"{name}-{when:%Y%m%d-%H%M%S}")
        check_free(output)
        created = not output.exists()
        output.mkdir(parents=True, exist_ok=True)
        return _mark(output, created=created)
    except FileExistsError as fault:
        if output is not None and output.is_dir():
            raise OutputError(_taken(output)) from fault  # somebody else was quicker
        raise OutputError(f"{place}: no results can be written there (it is, or lies below, a file)") from fault
    except OSError as fault:
        raise OutputError(f"{place}: no results can be written there ({fault.strerror or fault})") from fault


def check_free(output: Path | None) -> None:
    """Raise OutputError when `output` is a file, holds files or cannot be looked into."""
    try:
        if output is None or not output.exists():
            return
        if not output.is_dir():
            raise OutputError(f"{output}: is a file; results need a folder of their own")
        if any(output.iterdir()):
            raise OutputError(_taken(output))
    except OSError as fault:
        raise OutputError(f"{output}: no results can be written there ({fault.strerror or fault})") from fault


def _taken(output: Path) -> str:
    return f"{output}: holds files already, and a run never overwrites another; name a new folder"


def _claim_new(base: Path, name: str) -> Claim:
    base.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = base / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return _mark(folder, created=True)
    raise AssertionError("there is always a next number")


def _mark(folder: Path, *, created: bool) -> Claim:
    """Only one run can make the manifest."""
    (folder / MANIFEST).open("x").close()
    return Claim(folder, created)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """`manifest.json`, strict JSON, replaced as a whole."""
    text = json.dumps(manifest, indent=1, allow_nan=False, ensure_ascii=False, default=str) + "\n"
    replace_file(folder / MANIFEST, lambda file: file.write_text(text, encoding="utf-8"))


def write_experiment(folder: Path, document: dict[str, Any]) -> None:
    """`experiment.toml`: the experiment as run, with what the command line added."""
    replace_file(folder / "experiment.toml", lambda file: file.write_text(tomli_w.dumps(document), encoding="utf-8"))
