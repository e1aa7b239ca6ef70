"""The command `replay` in this process: what it prints and how it ends, without the seconds that a new process takes.

Where the process itself is the point (signals, pipes, what is imported, environments), tests start a real one.
"""

from __future__ import annotations

import contextlib
import io
import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from replay.cli import main


@dataclass(frozen=True)
class Ended:
    """How the command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def replay(*arguments: str | Path, cwd: Path | None = None) -> Ended:
    """Run `replay` to its end. An exception that a person would see as a traceback is a test's failure."""
    out, err = io.StringIO(), io.StringIO()
    level = logging.getLogger("replay").level
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as left,
    ):
        main([str(argument) for argument in arguments])
    logging.getLogger("replay").setLevel(level)
    return Ended(int(left.value.code or 0), out.getvalue(), err.getvalue())
