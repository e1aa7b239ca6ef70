"""Pictures of a trace, one registered function each: they tell what is in it before anything is replayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import replay.plots.headless  # noqa: F401  # first: the others import matplotlib
from replay.errors import OutputError
from replay.plots.canvas import look, save
from replay.plots.traces import pictures  # noqa: F401  # whose files register themselves
from replay.plots.traces.registry import Picture, trace_pictures
from replay.traces.table import Trace

__all__ = ["Drawn", "Picture", "check_folder", "draw_trace", "trace_pictures"]
KINDS = ("png", "svg")


@dataclass(slots=True)
class Drawn:
    """The files that were written, and why a picture was not, by its name."""

    files: list[Path] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def check_folder(folder: Path, *, force: bool) -> None:
    """Raise OutputError where pictures cannot be drawn, or would replace a file that is there already."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file; name a folder to draw pictures into")
    if force:
        return
    for file in (folder / f"{name}.{kind}" for name in trace_pictures for kind in KINDS):
        if file.exists():
            raise OutputError(f"{file}: is there already; name another folder, or --force to replace it")


def draw_trace(trace: Trace, folder: Path, *, force: bool = False) -> Drawn:
    """Draw every picture as PNG and SVG into a folder, made if need be. Raises OutputError, see `check_folder`.

    With `force`, a picture that this trace does not have is taken away, so that none of another trace is left.
    """
    check_folder(folder, force=force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(f"{folder}: cannot be made ({fault.strerror or fault})") from fault
    drawn = Drawn()
    for name in trace_pictures:
        with look():
            made = trace_pictures[name](trace)
            if isinstance(made, str):
                drawn.left_out[name] = made
                for kind in KINDS:
                    (folder / f"{name}.{kind}").unlink(missing_ok=True)
            else:
                drawn.files += save(made, folder / name)
    return drawn
