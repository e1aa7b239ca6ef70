"""Things of installed packages, by entry points: of the group `replay.policies` policies, of `replay.formats` formats.

Each is a class, or a module that registers some. A package that cannot be imported stops nobody who does not ask for
what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from replay.cli.own_file import where
from replay.errors import ExperimentError

Adopt = Callable[[EntryPoint, object], None]


def load_installed(group: str, kind: str, adopt: Adopt) -> dict[str, str]:
    """Let `adopt` have them all; of each that cannot be, by the name of its entry point, a sentence that says why."""
    faults = {}
    for point in sorted(entry_points(group=group), key=lambda one: one.name):
        try:
            adopt(point, point.load())
        except Exception as fault:  # whatever it is, the others are there
            faults[point.name] = f"{_package(point)}: its {kind} {point.name!r} cannot be used: {_why(fault)}"
    return faults


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"


def _why(fault: Exception) -> str:
    """The fault, with the last place where it was in a file that is not Python's own."""
    if isinstance(fault, ExperimentError):
        return str(fault)
    frame, last = fault.__traceback__, Path()
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not name.startswith("<frozen") and Path(name).parent.name not in ("importlib", "metadata", "cli"):
            last = Path(name)
        frame = frame.tb_next
    return where(fault, last) if last.name else str(fault)
