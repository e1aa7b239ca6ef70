"""A run's folder: its own, never an earlier run's, and its manifest, always whole.

It knows names and files; what stands in the manifest is the runner's.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from replay.errors import OutputError
from replay.records_writer import replace_file


def claim_folder(output: Path | None, name: str, when: datetime) -> Path:
    """Make a run's folder: `output`, which must not exist or be empty; or a new one below `outputs/`.

    Raises OutputError when the place is taken, is a file, or cannot be written. Two runs of one second get two folders.
    """
    try:
        if output is not None:
            return _claim_exactly(output)
        base = Path("outputs") / f"{name}-{when:%Y%m%d-%H%M%S}"
        number = 1
        while True:
            folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                if base.parent.is_file():
                    raise
                number += 1
                continue
            return folder
    except OSError as fault:
        place = output or Path("outputs")
        raise OutputError(f"{place}: no results can be written there ({fault.strerror or fault})") from fault


def _claim_exactly(output: Path) -> Path:
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file; results need a folder of their own")
    if output.is_dir() and any(output.iterdir()):
        raise OutputError(f"{output}: holds files already, and a run never overwrites another; name a new folder")
    output.mkdir(parents=True, exist_ok=True)
    if not os.access(output, os.W_OK | os.X_OK):
        raise OutputError(f"{output}: no results can be written there (permission denied)")
    return output


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """`manifest.json`, strict JSON, replaced as a whole."""
    text = json.dumps(manifest, indent=1, allow_nan=False, ensure_ascii=False, default=str) + "\n"
    replace_file(folder / "manifest.json", lambda file: file.write_text(text, encoding="utf-8"))


def write_experiment(folder: Path, document: dict[str, Any]) -> None:
    """`experiment.toml`: the experiment as run, with what the command line added."""
    replace_file(folder / "experiment.toml", lambda file: file.write_text(tomli_w.dumps(document), encoding="utf-8"))
