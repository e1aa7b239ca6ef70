"""Bars on the slots of a batch over time, and the queue above them: a panel of the picture of the slots."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from replay.metrics.engine import OWN_SHARE
from replay.plots.canvas import FAINT, INK, no_data
from replay.plots.slot_time import Window

PREFILL, DECODE, DECODE_NEXT = "#14497d", "#6fa8dc", "#93c0e8"
PADDED, PADDED_LINES, PAUSED, IDLE, QUEUE = "#f6cdbd", "#c9502b", "#d9d2e9", "#f2f2f2", "#8d8d8d"
DIGIT = 0.09  # inches


def draw_queue(axes: Axes, waiting: pl.DataFrame, longest: int, window: Window) -> None:
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


def draw_slots(axes: Axes, spans: pl.DataFrame, rows: int, window: Window, inches: float) -> None:
    """The first `rows` slots; a panel of so many inches has numbers where there is room."""
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


def entries(tables: Sequence[pl.DataFrame]) -> list[Patch]:
    """Of a legend: what is seen in these spans."""
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
