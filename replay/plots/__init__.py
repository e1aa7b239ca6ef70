"""Pictures of a run: one registered function for each. They need no display and never cost a result."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import replay.plots.headless  # noqa: F401  # first: the others import matplotlib
from replay.metrics import Measured
from replay.plots import (
    arrivals,
    batch_sizes,
    distributions,
    efficiency,
    frontier,
    heat_map,
    latency,
    length_slowdown,
    loads,
    roofline,
    service,
    slots,
    timeline,
    tradeoff,
    users,
    windowed_difference,
)
from replay.plots.canvas import look, save
from replay.plots.drawing import draw, figures
from replay.plots.registry import Plot, plots
from replay.plots.view import View, views
from replay.results import Run

__all__ = [
    "Plot",
    "View",
    "arrivals",
    "batch_sizes",
    "distributions",
    "draw",
    "draw_all",
    "efficiency",
    "figures",
    "frontier",
    "heat_map",
    "latency",
    "length_slowdown",
    "loads",
    "plots",
    "roofline",
    "service",
    "slots",
    "timeline",
    "tradeoff",
    "users",
    "windowed_difference",
]


def draw_all(run: Run, measured: Measured, folder: Path) -> tuple[list[Path], list[str]]:
    """Draw every registered plot of every trace into `folder`: the files, and a sentence for each plot that failed."""
    files: list[Path] = []
    problems: list[str] = []
    found = views(run, measured)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as fault:
        return [], [f"no picture could be drawn, for {folder} is no folder to write to ({fault.strerror or fault})"]
    for place, view in enumerate(found):
        for name in plots:
            stem = folder / (name if len(found) == 1 else f"{name}-{place + 1}")
            try:
                with look():
                    if (figure := plots[name](view)) is not None:
                        files += save(figure, stem)
            except Exception as error:  # whatever it is, the numbers are written and must not be lost
                for stale in (stem.with_suffix(".png"), stem.with_suffix(".svg")):
                    with suppress(OSError):
                        stale.unlink(missing_ok=True)
                problems.append(f"the plot {name!r} could not be drawn: {type(error).__name__}: {error}")
    return files, problems
