"""Latency distributions: which share of all requests was at least so fast."""

from __future__ import annotations

import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.metrics.statistics import percentile
from replay.plots.canvas import figure, legend, mark, no_data, scale, widths
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = (("ttft", "time to first token, ms"), ("e2e", "end-to-end time, ms"), ("tpot", "time per token, ms"))


@plots.register("distributions")
def distributions(view: View) -> Figure:
    """Empirical distributions over all requests: a curve that ends below 1 belongs to requests without an answer."""
    width = max(7.0, 0.6 + 3.2 * len(view.settings))
    made = figure("How many requests were at least this fast (higher and further left is better)", width, 8.6)
    grid = made.subplots(len(ROWS), len(view.settings), sharex="row", sharey=True, squeeze=False)
    for row, (metric, label) in enumerate(ROWS):
        drawn: list[float] = []
        for axes, setting in zip(grid[row], view.settings, strict=True):
            drawn += _panel(axes, view, metric, setting)
        for axes in grid[row]:
            scale(axes, "x", drawn, label)
        grid[row][0].set_ylabel("share of requests")
    for axes, setting in zip(grid[0], view.settings, strict=True):
        axes.set_title(view.heading(setting))
    entries = [*view.legend(linestyle="-", linewidth=1.8, markersize=5), mark("mark: median", marker="o", markersize=5)]
    legend(made, entries, len(entries), view.remark())
    return made


def _panel(axes: Axes, view: View, metric: str, setting: str) -> list[float]:
    """Draw one metric in one mode, the medians marked; the values' ends, in milliseconds."""
    ends: list[float] = []
    colours = view.palette(setting)
    for policy, thickness in widths(view.policies).items():
        if (arm := view.arm(setting, policy)) is None:
            continue
        rows = view.rows(arm)
        values = rows.drop_nulls(metric).select("policy", value=pl.col(metric) * 1000)
        if values.is_empty():
            continue
        # counted, and then told as a share of all: ecdfplot's own proportion forgets those without a value
        share = 1 / len(rows)
        weighted = values.with_columns(weight=pl.lit(share)).to_pandas()
        sns.ecdfplot(
            weighted,
            x="value",
            hue="policy",
            hue_order=view.policies,
            palette=colours,
            weights="weight",
            stat="count",
            linewidth=thickness,
            legend=False,
            ax=axes,
        )
        low, middle, high = values.select(percentile(pl.col("value"), percent) for percent in (0, 50, 100)).row(0)
        axes.plot(middle, share * len(values) / 2, marker=view.marker(policy), color=colours[policy], markersize=5)
        ends += [low, high]
    axes.set_ylim(0, 1.02)
    if not ends:
        no_data(axes)
    return ends
