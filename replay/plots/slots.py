"""The picture that explains batching: requests as bars on batch slots over time, one panel for each mode.

Static batching shows its padded tails and empty slots, continuous batching how the next request moves in at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Annotated

import polars as pl
from matplotlib.figure import Figure

from replay.errors import ExperimentError
from replay.metrics.contrasts import base_policy, ranked
from replay.plots.canvas import INK, figure, legend
from replay.plots.options import Option, seconds
from replay.plots.registry import plots
from replay.plots.slot_bars import draw_queue, draw_slots, entries
from replay.plots.slot_time import Window, asked_window, choose_window, mean_queue, queue, slot_shares
from replay.plots.view import View
from replay.registry import nearest
from replay.results import Cell

FEW_SLOTS, MOST_SLOTS = 10, 24
WIDTH, SLOT_HEIGHT, STRIP_HEIGHT = 14.0, 0.27, 0.34  # inches
HEADING_LETTERS = 11  # to the inch

Cells = Annotated[Sequence[str], Option("CELL", "Show this cell, by its name in the folder cells/.", repeatable=True)]
Seconds = Annotated[
    tuple[float, float] | None, Option("FROM TO", "Show the time between these two.", count=2, read=seconds)
]


@dataclass(frozen=True, slots=True)
class Panel:
    """A cell with its name in the picture, and what is drawn of it."""

    name: str
    cell: Cell
    spans: pl.DataFrame
    waiting: pl.DataFrame
    last_due: float


@plots.register("slots")
def slots(view: View, *, cell: Cells = (), window: Seconds = None) -> Figure | None:
    """Panels on one time axis, one for each mode: of one policy, fifo or the first; or one for each `cell` that is
    asked for. `window` is from and to, seconds since the trace began; None: the fullest that can be read.

    None for a trace that has none of the cells. ExperimentError for a cell that the run lacks, and for a window in
    which none of them did anything.
    """
    panels = _asked(view, cell) if cell else _one_a_mode(view)
    if not panels:
        return None
    seen = _window(panels, window)
    rows = [_rows(panel, seen) for panel in panels]
    heights = [height for count in rows for height in (STRIP_HEIGHT, max(1.0, SLOT_HEIGHT * count))]
    excerpt = "" if seen.whole else " (a part of the run)"
    policies = {panel.cell.named_policy for panel in panels}
    under = f", under {policies.pop()}" if len(policies) == 1 else ""
    title = f"Who held which batch slot when: the same trace, the same seconds{under}{excerpt}"
    made = figure(title, WIDTH, sum(heights) + 0.45 * len(panels) + 1.4)
    grid = made.subplots(2 * len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    longest = max((max(panel.waiting["waiting"].to_list(), default=0) for panel in panels), default=0)
    for place, (panel, count) in enumerate(zip(panels, rows, strict=True)):
        strip, axes = grid[2 * place : 2 * place + 2]
        shares = slot_shares(panel.spans, panel.cell.slots or count, seen)
        said = f"{panel.name}: {shares}; {mean_queue(panel.waiting, seen)}"
        strip.set_title(fill(said, int(made.get_figwidth() * HEADING_LETTERS)), weight="bold", color=INK)
        draw_queue(strip, panel.waiting, longest, seen)
        draw_slots(axes, panel.spans, count, seen, made.get_figwidth())
        hidden = (panel.cell.slots or 0) - count
        axes.set_ylabel("batch slot" if hidden <= 0 else f"batch slot\n(first {count} of {count + hidden})")
    grid[-1].set_xlabel("time since the trace began, s")
    grid[-1].set_xlim(seen.start, seen.end)
    remarks = replace(view, left_out=None).remark([panel.cell for panel in panels])
    legend(made, entries([panel.spans for panel in panels]), 4, remarks)
    return made


def _one_a_mode(view: View) -> list[Panel]:
    """The base policy's arm of each mode; of a swept mode, the best setting."""
    policy = base_policy(view.arms).policy
    modes = dict.fromkeys(arm.mode for arm in view.arms if arm.policy == policy)
    best = [
        ranked([arm for arm in view.arms if (arm.mode, arm.policy) == (mode, policy)], view.values)[0] for mode in modes
    ]
    return [_read(arm.shown, arm.setting) for arm in best]


def _asked(view: View, names: Sequence[str]) -> list[Panel]:
    """The cells of this trace, in the order in which they are asked for."""
    known = {cell.name: cell for cell in view.run.recorded}
    for name in names:
        if name not in known:
            raise ExperimentError(f"there is no cell {name!r} to draw: {nearest(name, known)}")
    cells = [known[name] for name in dict.fromkeys(names) if known[name].trace == view.trace]
    same_policy = len({cell.named_policy for cell in cells}) == 1
    repeated = len({(cell.setting, cell.named_policy) for cell in cells}) < len(cells)
    return [
        _read(
            cell,
            cell.setting
            + ("" if same_policy else f", {cell.named_policy}")
            + (f", repeat {cell.repeat + 1}" if repeated else ""),
        )
        for cell in cells
    ]


def _read(cell: Cell, name: str) -> Panel:
    spans = cell.table("spans").sort("start", "slot")
    last_due = max(cell.table("requests")["due"].drop_nulls().to_list(), default=0.0)
    return Panel(name if cell.valid else f"{name} (invalid)", cell, spans, queue(cell), last_due)


def _window(panels: Sequence[Panel], asked: tuple[float, float] | None) -> Window:
    """What is shown: the seconds that were asked for, or those that show the most."""
    tables = [panel.spans for panel in panels]
    return asked_window(tables, *asked) if asked else choose_window(tables, max(panel.last_due for panel in panels))


def _rows(panel: Panel, window: Window) -> int:
    """Slots that are drawn: all of a small batch; of a large one those that are held, and an idle one."""
    top = (
        panel.spans.filter((pl.col("end") > window.start) & (pl.col("start") < window.end))
        .select(pl.col("slot").max())
        .item()
    )
    held = 0 if top is None else int(top) + 1
    slots = panel.cell.slots or max(held, 1)
    return slots if slots <= FEW_SLOTS else min(slots, max(held + 1, FEW_SLOTS), MOST_SLOTS)
