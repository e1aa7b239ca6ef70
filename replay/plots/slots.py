"""The picture that explains batching: requests as bars on batch slots over time, one panel for each mode.

Static batching shows its padded tails and empty slots, continuous batching how the next request moves in at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from replay.metrics.arms import Arm
from replay.metrics.contrasts import base_policy, ranked
from replay.metrics.engine import HELD, OWN_SECONDS, OWN_SHARE, PAUSED_SECONDS
from replay.metrics.notation import number, percent
from replay.plots.canvas import FAINT, INK, figure, no_data
from replay.plots.registry import plots
from replay.plots.view import View
from replay.results import Cell

PREFILL, DECODE, DECODE_NEXT = "#14497d", "#6fa8dc", "#93c0e8"
PADDED, PADDED_LINES, PAUSED, IDLE, QUEUE = "#f6cdbd", "#c9502b", "#d9d2e9", "#f2f2f2", "#8d8d8d"
BARS = 40
"""Requests that a panel can show in its width and still be read."""
MOST_SLOTS = 24
WIDTH, SLOT_HEIGHT, STRIP_HEIGHT = 14.0, 0.27, 0.34  # inches


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds that are shown, the same for all modes."""

    start: float
    end: float
    whole: bool


@plots.register("slots")
def slots(view: View) -> Figure:
    """One policy's panels, stacked on one time axis: fifo, or the first."""
    policy = base_policy(view.arms).policy
    shown = _one_a_mode(view, policy)
    spans = {arm: arm.cells[0].table("spans").sort("start", "slot") for arm in shown}
    window = choose_window(list(spans.values()))
    queues = {arm: queue(arm.cells[0]) for arm in shown}
    rows = {arm: min(arm.cells[0].slots or _used_slots(spans[arm]), MOST_SLOTS) for arm in shown}
    heights = [height for arm in shown for height in (STRIP_HEIGHT, max(1.0, SLOT_HEIGHT * rows[arm]))]
    excerpt = "" if window.whole else ", in the busiest part of the run"
    title = f"Who held which batch slot when: the same requests, under {policy}{excerpt}"
    made = figure(title, WIDTH, sum(heights) + 0.45 * len(shown) + 1.4)
    grid = made.subplots(2 * len(shown), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    longest = max((max(table["waiting"].to_list(), default=0) for table in queues.values()), default=0)
    for place, arm in enumerate(shown):
        strip, axes = grid[2 * place : 2 * place + 2]
        shares = slot_shares(spans[arm], arm.cells[0].slots or rows[arm], window)
        strip.set_title(f"{arm.setting}: {shares}; {_mean_queue(queues[arm], window)}", weight="bold", color=INK)
        _strip(strip, queues[arm], longest)
        _panel(axes, spans[arm], rows[arm], window)
    grid[-1].set_xlabel("time since the trace began, s")
    grid[-1].set_xlim(window.start, window.end)
    made.legend(handles=_legend(list(spans.values())), loc="outside lower center", ncols=7, title=view.remark or None)
    return made


def _one_a_mode(view: View, policy: str) -> list[Arm]:
    """The policy's arm of each mode; of a swept mode, the best setting."""
    modes = dict.fromkeys(arm.mode for arm in view.arms if arm.policy == policy)
    return [
        ranked([arm for arm in view.arms if (arm.mode, arm.policy) == (mode, policy)], view.values)[0] for mode in modes
    ]


def _used_slots(spans: pl.DataFrame) -> int:
    top = spans.select(pl.col("slot").max()).item()
    return 1 if top is None else int(top) + 1


def choose_window(tables: list[pl.DataFrame]) -> Window:
    """The whole run where it can be read; else the window in which the emptiest of the modes is at its fullest."""
    filled = [table for table in tables if len(table)]
    if not filled:
        return Window(0.0, 1.0, whole=True)
    start = min(float(table.select(pl.col("start").min()).item()) for table in filled)
    end = max(float(table.select(pl.col("end").max()).item()) for table in filled)
    length = end - start
    for table in filled:
        residents = table["row"].n_unique()
        busy = float(table.select(pl.col("end").max() - pl.col("start").min()).item())
        length = min(length, busy * BARS / residents)
    if length >= 0.85 * (end - start):
        return Window(start, end or 1.0, whole=True)
    starts = np.linspace(start, end - length, 200)
    held = np.min([_slot_seconds(table, starts, length) for table in filled], axis=0)
    best = float(starts[int(np.argmax(held))])
    return Window(best, best + length, whole=False)


def _slot_seconds(spans: pl.DataFrame, starts: np.ndarray, length: float) -> np.ndarray:
    """Slot seconds held in the window from each of `starts`: from the running total of the slots held."""
    edges = np.concatenate([spans["start"].to_numpy(), spans["end"].to_numpy()])
    change = np.concatenate([np.ones(len(spans)), -np.ones(len(spans))])
    order = np.argsort(edges, kind="stable")
    edges, held = edges[order], np.cumsum(change[order])
    total = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(edges))])
    return np.asarray(np.interp(starts + length, edges, total) - np.interp(starts, edges, total))


def queue(cell: Cell) -> pl.DataFrame:
    """How many requests had become due and were not yet admitted, at each instant at which that changed."""
    rows = cell.table("requests").select("due", left=pl.coalesce("admitted", "ended")).drop_nulls()
    changes = pl.concat([rows.select(time="due", change=pl.lit(1)), rows.select(time="left", change=pl.lit(-1))])
    instants = changes.group_by("time").agg(pl.col("change").sum()).sort("time")
    return instants.select("time", waiting=pl.col("change").cum_sum())


def _mean_queue(waiting: pl.DataFrame, window: Window) -> str:
    """`14.2 requests waiting on average`, within the window."""
    start = pl.col("time").clip(window.start, window.end)
    end = pl.col("time").shift(-1, fill_value=window.end).clip(window.start, window.end)
    seconds = waiting.select(((end - start) * pl.col("waiting")).sum()).item()
    return f"{number(seconds / (window.end - window.start), 2)} requests waiting on average"


def _strip(axes: Axes, waiting: pl.DataFrame, longest: int) -> None:
    """The queue above a panel, on one scale in all panels: an idle slot means one thing when nobody waits."""
    axes.fill_between(waiting["time"], waiting["waiting"], step="post", color=QUEUE, linewidth=0)
    axes.set_ylim(0, max(longest, 1))
    axes.set_yticks([0, longest] if longest else [0])
    axes.set_ylabel("waiting", rotation=0, ha="right", va="center")
    axes.tick_params(axis="x", bottom=False)
    axes.grid(visible=False)


def _panel(axes: Axes, spans: pl.DataFrame, rows: int, window: Window) -> None:
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_yticks(range(rows), [str(slot + 1) if rows <= 12 or slot % 4 == 3 else "" for slot in range(rows)])
    axes.set_ylabel("batch slot")
    axes.grid(visible=False)
    axes.barh(range(rows), window.end - window.start, left=window.start, height=0.8, color=IDLE, zorder=0)
    visible = spans.filter((pl.col("end") > window.start) & (pl.col("start") < window.end) & (pl.col("slot") < rows))
    if visible.is_empty():
        no_data(axes)
        return
    _bars(axes, visible)
    _requests(axes, visible, window)


def slot_shares(spans: pl.DataFrame, slots: int, window: Window) -> str:
    """`62 % of slot time useful, 21 % padding, 17 % idle`, within the window."""
    length = window.end - window.start
    clipped = spans.with_columns(
        pl.col("start").clip(window.start, window.end), pl.col("end").clip(window.start, window.end)
    )
    useful, paused, held = clipped.select(
        OWN_SECONDS.sum().alias("useful"), PAUSED_SECONDS.sum().alias("paused"), HELD.sum().alias("held")
    ).row(0)
    total = slots * length
    parts = [
        (useful, "of slot time useful"),
        (held - useful - paused, "padding"),
        (paused, "paused"),
        (total - held, "idle"),
    ]
    told = [
        f"{percent(round(seconds / total, 2))} {name}" for seconds, name in parts if name != "paused" or seconds > 0
    ]
    return ", ".join(told)


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


def _requests(axes: Axes, spans: pl.DataFrame, window: Window) -> None:
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
    per_digit = (window.end - window.start) / WIDTH * 0.09
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
    patches = [
        Patch(facecolor=PREFILL, label="prefill (reads the prompt)"),
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
