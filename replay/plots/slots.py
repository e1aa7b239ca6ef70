"""The picture that explains batching: requests as bars on batch slots over time, one panel for each mode.

Static batching shows its padded tails and empty slots, continuous batching how the next request moves in at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Annotated

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from replay.errors import ExperimentError
from replay.metrics.contrasts import base_policy, ranked
from replay.metrics.engine import OWN_SHARE
from replay.plots.canvas import FAINT, INK, figure, legend, no_data
from replay.plots.options import Option, seconds
from replay.plots.registry import plots
from replay.plots.slot_time import Window, asked_window, choose_window, mean_queue, queue, slot_shares
from replay.plots.view import View
from replay.registry import nearest
from replay.results import Cell

PREFILL, DECODE, DECODE_NEXT = "#14497d", "#6fa8dc", "#93c0e8"
PADDED, PADDED_LINES, PAUSED, IDLE, QUEUE = "#f6cdbd", "#c9502b", "#d9d2e9", "#f2f2f2", "#8d8d8d"
FEW_SLOTS, MOST_SLOTS = 10, 24
WIDTH, SLOT_HEIGHT, STRIP_HEIGHT = 14.0, 0.27, 0.34  # inches
HEADING_LETTERS, DIGIT = 11, 0.09  # to the inch; inches


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
        _strip(strip, panel.waiting, longest, seen)
        _panel(axes, panel.spans, count, seen, made.get_figwidth())
        hidden = (panel.cell.slots or 0) - count
        axes.set_ylabel("batch slot" if hidden <= 0 else f"batch slot\n(first {count} of {count + hidden})")
    grid[-1].set_xlabel("time since the trace began, s")
    grid[-1].set_xlim(seen.start, seen.end)
    remarks = replace(view, left_out=None).remark([panel.cell for panel in panels])
    legend(made, _legend([panel.spans for panel in panels]), 4, remarks)
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


def _strip(axes: Axes, waiting: pl.DataFrame, longest: int, window: Window) -> None:
    """The queue above a panel, on one scale in all panels: an idle slot means one thing when nobody waits."""
    before = waiting.filter(pl.col("time") <= window.start).tail(1)
    inside = pl.concat([before, waiting.filter(pl.col("time").is_between(window.start, window.end, closed="right"))])
    last = inside.tail(1).with_columns(time=pl.lit(window.end))  # what it was last, it is to the edge
    inside = pl.concat([inside, last])
    axes.fill_between(inside["time"], inside["waiting"], step="post", color=QUEUE, linewidth=0)
    axes.set_ylim(0, max(longest, 1))
    axes.set_yticks([0, longest] if longest else [0])
    axes.set_ylabel("waiting", rotation=0, ha="right", va="center")
    axes.tick_params(axis="x", bottom=False)
    axes.grid(visible=False)


def _panel(axes: Axes, spans: pl.DataFrame, rows: int, window: Window, inches: float) -> None:
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_yticks(range(rows), [str(slot + 1) if rows <= 12 or slot % 4 == 3 else "" for slot in range(rows)])
    axes.grid(visible=False)
    axes.barh(range(rows), window.end - window.start, left=window.start, height=0.8, color=IDLE, zorder=0)
    visible = spans.filter((pl.col("end") > window.start) & (pl.col("start") < window.end) & (pl.col("slot") < rows))
    if visible.is_empty():
        no_data(axes)
        return
    _bars(axes, visible)
    _requests(axes, visible, window, inches)


def _bars(axes: Axes, spans: pl.DataFrame) -> None:
    """A bar for each span. A padded prompt's bar is filled as high as its own tokens' share."""
    request = pl.col("row").rle_id().over("slot")
    bars = spans.with_columns(
        width=pl.col("end") - pl.col("start"),
        own=pl.when(pl.col("kind") == "prefill").then(OWN_SHARE.fill_nan(1.0)).otherwise(1.0),
        second=request % 2 == 1,
    )
    for kind, colour, second in (
        ("prefill", PREFILL, None),
        ("decode", DECODE, False),
        ("decode", DECODE_NEXT, True),
        ("paused", PAUSED, None),
        ("padded", PADDED, None),
    ):
        rows = bars.filter(pl.col("kind") == kind)
        rows = rows if second is None else rows.filter(pl.col("second") == second)
        if rows.is_empty():
            continue
        place, width, left = (rows[name].to_numpy() for name in ("slot", "width", "start"))
        hatch = {"padded": "////", "paused": "...."}.get(kind)
        line = {"padded": PADDED_LINES, "paused": "#8e7cc3"}.get(kind, colour)
        if kind == "prefill":
            own = rows["own"].to_numpy()
            axes.barh(
                place, width, left=left, height=0.8, color=PADDED, edgecolor=PADDED_LINES, hatch="////", linewidth=0
            )
            axes.barh(place + 0.4 - 0.4 * own, width, left=left, height=0.8 * own, color=colour, linewidth=0)
        else:
            axes.barh(place, width, left=left, height=0.8, color=colour, edgecolor=line, hatch=hatch, linewidth=0)


def _requests(axes: Axes, spans: pl.DataFrame, window: Window, inches: float) -> None:
    """An outline around each stay of a request, and its number where there is room."""
    stays = (
        spans.sort("slot", "start")
        .with_columns(stay=pl.col("row").rle_id())
        .group_by("stay", "slot", "row", maintain_order=True)
        .agg(pl.col("start").min(), pl.col("end").max())
    )
    width = stays["end"].to_numpy() - stays["start"].to_numpy()
    axes.barh(
        stays["slot"].to_numpy(),
        width,
        left=stays["start"].to_numpy(),
        height=0.8,
        fill=False,
        edgecolor="white",
        linewidth=1.4,
    )
    per_digit = (window.end - window.start) / inches * DIGIT
    for slot, row, start, end in stays.select("slot", "row", "start", "end").iter_rows():
        left, right = max(start, window.start), min(end, window.end)
        if right - left > per_digit * (len(str(row)) + 1):
            axes.text(
                (left + right) / 2,
                slot,
                str(row),
                ha="center",
                va="center",
                size=7.5,
                color=INK,
                weight="bold",
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
            )


def _legend(tables: list[pl.DataFrame]) -> list[Patch]:
    kinds = {kind for table in tables for kind in table["kind"].unique().to_list()}
    padded = any(((table["kind"] == "prefill") & (table["padding_tokens"] > 0)).any() for table in tables)
    filled = "; partly filled: the share\nof the padded prompt that is real" if padded else ""
    patches = [
        Patch(facecolor=PREFILL, label=f"prefill (reads the prompt){filled}"),
        Patch(facecolor=DECODE, label="decode (writes the answer)"),
        Patch(
            facecolor=PADDED, edgecolor=PADDED_LINES, hatch="////", linewidth=0, label="padding (computed, thrown away)"
        ),
    ]
    if "paused" in kinds:
        patches.append(Patch(facecolor=PAUSED, edgecolor="#8e7cc3", hatch="....", linewidth=0, label="paused"))
    patches.append(Patch(facecolor=QUEUE, label="requests that wait"))
    patches.append(Patch(facecolor=IDLE, edgecolor="#cccccc", label="idle slot"))
    patches.append(Patch(facecolor="none", edgecolor=FAINT, label="number: the request, by its row in the trace"))
    return patches
