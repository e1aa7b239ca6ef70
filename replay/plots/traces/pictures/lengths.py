"""Lengths of prompts and answers: each by itself, and together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from replay.plots.canvas import INK, figure, log_ticks, scale
from replay.plots.traces.bins import bin_of, edges_of
from replay.plots.traces.registry import trace_pictures
from replay.plots.traces.words import OUTPUT, PROMPT, number_text, percent_tick, tick_text
from replay.traces.table import Trace

BY_ITSELF, TOGETHER = 10, 16  # bins to a decade: more of them would hold two short lengths here and one there
MARKED = (50, 90, 99)
HUNDRED = 100
FEW = 10  # requests up to which each has its colour


@dataclass(slots=True, frozen=True)
class Lengths:
    """How many requests have each length of one kind."""

    tokens: NDArray[Any]
    requests: NDArray[Any]

    def percentile(self, percent: float) -> float:
        """Linear-interpolated between the two requests on either side."""
        place = percent / 100 * (self.requests.sum() - 1)
        up_to = np.cumsum(self.requests)
        low, high = (
            self.tokens[np.searchsorted(up_to, each, side="right")] for each in (int(place), -int(-place // 1))
        )
        return float(low + (high - low) * (place % 1))

    def histogram(self, per_decade: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Requests by bin, and the bins' edges; those that hold no whole number are left out."""
        first, last = (int(np.floor(np.log10(tokens + 0.5) * per_decade)) for tokens in self.tokens[[0, -1]])
        edges = np.unique(edges_of(first, last, per_decade))
        return np.histogram(self.tokens, edges, weights=self.requests)


def lengths(rows: pl.LazyFrame, column: str) -> Lengths:
    """The lengths in a column, the shortest first."""
    counts = rows.group_by(column).len().collect(engine="streaming").sort(column)
    return Lengths(counts[column].to_numpy(), counts["len"].to_numpy())


def pairs(rows: pl.LazyFrame, per_decade: int = TOGETHER) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Edges of the bins of prompt tokens, those of output tokens, and how many requests lie in each of both."""
    both = [bin_of(pl.col(f"{name}_tokens"), per_decade).alias(name) for name in ("prompt", "output")]
    counts = rows.group_by(both).len().collect(engine="streaming")
    first, last = (counts.select(getattr(pl.col("prompt", "output"), end)()).row(0) for end in ("min", "max"))
    grid = np.zeros((last[0] - first[0] + 1, last[1] - first[1] + 1))
    grid[counts["prompt"].to_numpy() - first[0], counts["output"].to_numpy() - first[1]] = counts["len"].to_numpy()
    return (
        edges_of(first[0], last[0], per_decade),
        edges_of(first[1], last[1], per_decade),
        grid,
    )


@trace_pictures.register("lengths")
def draw_lengths(trace: Trace) -> Figure:
    """Two histograms, each beside the same axis of the bins of both."""
    prompt, output = (lengths(trace.rows, f"{name}_tokens") for name in ("prompt", "output"))
    made = figure(_title(prompt, output), 9.0, 8.4)
    parts: Any = made.subfigures(2, 1, height_ratios=[1, 1.4])
    above, below = parts
    left, right = above.subplots(1, 2)
    _histogram(left, prompt, PROMPT, "prompt tokens")
    _histogram(right, output, OUTPUT, "output tokens")
    _together(below, *pairs(trace.rows))
    return made


def _title(prompt: Lengths, output: Lengths) -> str:
    middle, high, most = (
        [number_text(found.percentile(percent)) for found in (prompt, output)] for percent in (50, 99, 100)
    )
    if prompt.tokens[0] == prompt.tokens[-1] and output.tokens[0] == output.tokens[-1]:
        return f"Every prompt has {middle[0]} tokens and every answer {middle[1]}"
    half = f"Half of all prompts have up to {middle[0]} tokens and half of the answers up to {middle[1]}"
    if prompt.requests.sum() < HUNDRED:
        return f"{half}; the longest have {most[0]} and {most[1]}"
    return f"{half}; one in a hundred has over {high[0]} and {high[1]}"


def _histogram(axes: Axes, found: Lengths, colour: str, label: str) -> None:
    """Bins of equal width on the axis, and the percentiles, each label lower than the one before."""
    counts, edges = found.histogram(BY_ITSELF)
    axes.stairs(counts / counts.sum(), edges, fill=True, color=colour, alpha=0.6)
    axes.set_ylim(0, counts.max() / counts.sum() * 1.45)
    axes.set(ylabel="share of requests")
    axes.yaxis.set_major_formatter(lambda share, _: percent_tick(share) if share < 1.01 else "")
    axes.yaxis.set_major_locator(MaxNLocator(6))
    marked: dict[float, list[int]] = {}
    for percent in MARKED:
        marked.setdefault(found.percentile(percent), []).append(percent)
    low, high = _tokens(axes, "x", edges, label)
    for place, (tokens, percents) in enumerate(marked.items()):
        axes.axvline(tokens, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        on_left = tokens > (np.sqrt(low * high) if axes.get_xscale() == "log" else (low + high) / 2)
        text = f"{', '.join(f'p{percent}' for percent in percents)}: {number_text(tokens)}"
        axes.annotate(text, (tokens, 0.98 - 0.1 * place), xycoords=axes.get_xaxis_transform(), va="top", size=8,
                      color=INK, xytext=(-4 if on_left else 4, 0), textcoords="offset points",
                      ha="right" if on_left else "left", bbox={"color": "white", "pad": 1})  # fmt: skip


def _tokens(axes: Axes, which: str, edges: NDArray[Any], label: str) -> tuple[float, float]:
    """An axis of tokens that ends where the bins do; its limits."""
    axis, set_limits = (axes.xaxis, axes.set_xlim) if which == "x" else (axes.yaxis, axes.set_ylim)
    scale(axes, which, [edges[0], edges[-1]], label)
    axis.set_major_formatter(tick_text)
    if axis.get_scale() == "log":
        room = (edges[-1] / edges[0]) ** 0.03
        set_limits(edges[0] / room, edges[-1] * room)
    low, high = axis.get_view_interval()
    return low, high


def _together(made: SubFigure, prompts: NDArray[Any], outputs: NDArray[Any], grid: NDArray[Any]) -> None:
    """The count of each pair of bins, in colour."""
    axes = made.subplots()
    keep_prompts, keep_outputs = np.diff(prompts) > 0, np.diff(outputs) > 0
    shown = np.ma.masked_equal(grid[keep_prompts][:, keep_outputs].T, 0)
    most = float(shown.max())
    mesh = axes.pcolormesh(
        prompts[np.append(True, keep_prompts)],
        outputs[np.append(True, keep_outputs)],
        shown,
        cmap="viridis_r",
        norm=LogNorm(1, most) if most > FEW else Normalize(0, most),
        rasterized=True,
    )
    bar = made.colorbar(mesh, ax=axes, pad=0.01)
    ticks = [tick for tick in log_ticks(1, most, most=8) if 1 <= tick <= most] if most > FEW else range(int(most) + 1)
    bar.set_ticks(ticks, labels=[tick_text(tick) for tick in ticks], minor=False)
    bar.ax.minorticks_off()
    bar.set_label(f"requests{' (log scale)' if most > FEW else ''}")
    _tokens(axes, "x", prompts, "prompt tokens")
    _tokens(axes, "y", outputs, "output tokens")
    axes.set_title("Prompt and answer of the same request")
