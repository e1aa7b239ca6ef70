"""The picture of a recipe: a panel for each figure that its claims are about, a mark for each seed of each arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from replay.metrics import metrics
from replay.plots.canvas import DPI, GRID, INK, figure, legend, look, mark, no_data, scale
from replay.reproduce.document import Quantity
from replay.reproduce.findings import Findings
from replay.reproduce.recipe import ONLY
from replay.reproduce.running import rows_of
from replay.reproduce.text import column_name
from replay.whole_files import replace_file

if TYPE_CHECKING:  # the package of the plots sees to it that matplotlib opens no window, and so comes first
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 4  # more would be too small to read
SEED, MEAN = "#6fa8dc", "#14497d"


def draw(findings: Findings, engine: str, file: Path) -> Path:
    """Write the picture as a PNG to `file`. Raises OutputError where it cannot be written."""
    with look():
        made = _figure(findings, engine)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, lambda path: made.savefig(path, format="png", dpi=DPI, metadata={"Software": None}))
    return file


def _figure(findings: Findings, engine: str) -> Figure:
    recipe = findings.recipe
    shown, places = recipe.columns[:PANELS], list(rows_of(recipe))
    width, height = max(8.0, 2.2 + 2.9 * len(shown)), 2.0 + 0.34 * max(len(places), 3)
    made = figure(f"{recipe.name} ({recipe.reference}): {findings.result}", width, height)
    grid = made.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, quantity in zip(grid, shown, strict=True):
        _panel(axes, findings, quantity, places)
    labels = [arm if workload == ONLY else f"{arm}, {workload}" for workload, arm in places]
    grid[0].set_yticks(range(len(places)), labels)
    grid[0].set_ylim(len(places) - 0.5, -0.5)
    left_out = len(recipe.columns) - len(shown)
    remark = "simulated engine: times of a cost model, not of hardware" if engine == "simulated" else "torch engine"
    remark += f"; {left_out} more figures in the table" if left_out else ""
    handles = [
        mark("a seed", marker="o", color=SEED, markersize=5),
        mark("mean", marker="|", color=MEAN, markersize=12),
    ]
    legend(made, handles, 2, remark)
    return made


def _panel(axes: Axes, findings: Findings, quantity: Quantity, places: list[tuple[str, str]]) -> None:
    figures, drawn = findings.figures, []
    factor, unit = (1000, "ms") if metrics[quantity.metric].unit == "s" else (1, metrics[quantity.metric].unit)
    for height, (workload, arm) in enumerate(places):
        axes.axhline(height, color=GRID, linewidth=7, zorder=0)
        for seed in figures.seeds:
            if (value := figures.value(arm, workload, seed, quantity)) is not None:
                drawn.append(value * factor)
                axes.plot(value * factor, height, marker="o", color=SEED, markersize=5, linestyle="")
        if (mean := figures.mean(arm, workload, quantity)) is not None:
            axes.plot(mean * factor, height, marker="|", color=MEAN, markersize=12, markeredgewidth=2, linestyle="")
    axes.set_title(column_name(quantity), color=INK)
    axes.grid(visible=False, axis="y")
    if not drawn:
        no_data(axes)
    scale(axes, "x", drawn, unit)
