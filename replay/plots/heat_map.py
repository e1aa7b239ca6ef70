"""A metric over all policies and modes at once, each figure written in its cell: where the good ones are, and the bad.

Colours tell better from worse within one metric alone. Every policy of the run is in it, for none needs a colour of
its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from typing import Annotated, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from replay.errors import ExperimentError
from replay.metrics.arms import Arm, arms
from replay.metrics.metric import Metric, metrics
from replay.metrics.notation import number, percent, whole
from replay.metrics.statistics import DISTRIBUTION
from replay.plots.canvas import FAINT, INK, figure, legend, mark, panels, rows_of
from replay.plots.options import Option
from replay.plots.registry import plots
from replay.plots.view import View, policy_marks
from replay.registry import nearest

MAIN = (
    ("ttft", "p99"),
    ("ttft_delivered", "p99"),
    ("tpot", "p99"),
    ("e2e", "mean"),
    ("longest_wait", "value"),
    ("output_throughput", "value"),
    ("goodput", "value"),
    ("jain", "value"),
    ("evictions", "count"),
)
"""Those of the picture of a run, as far as the run has them."""
NAMES = {
    "ttft": "TTFT",
    "ttft_delivered": "delivered TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2e": "E2E",
    "output_throughput": "output tokens/s",
    "jain": "Jain index",
    "kv_use": "KV use",
}
COLOURS = mpl.colormaps["cividis"]
"""Of even steps to the eye, and made to look the same to who sees no red or green."""
DARK = 0.55  # up to this share of the colours, writing is white
EMPTY = "#f4f4f4"
UNSOUND: dict[str, Any] = {"facecolor": EMPTY, "edgecolor": "#c8c8c8", "hatch": "////"}
CLEAR = {"facecolor": EMPTY, "edgecolor": "none", "pad": 1.0}
BEST, WORST = "★", "▽"
CELL, ROW, DENSE = 0.74, 0.27, 0.2  # inches: width of a cell, height of a row, and of one of many
MANY = 12
WIDEST = 14.5
FEW_STEPS = 4.0
"""Values that span more than so many times are coloured by their logarithm, as an axis would be."""


Asked = Annotated[str | None, Option("METRIC", "Show this metric alone, such as ttft or output_throughput.")]
Statistic = Annotated[
    str | None, Option("NAME", "Of its values: mean, min, p50, p90, p95, p99, p99.9 or max; the mean by default.")
]


@plots.register("heat_map")
def heat_map(view: View, *, metric: Asked = None, statistic: Statistic = None) -> Figure | None:
    """A small map for each main metric, or one map of the `metric` that is asked for.

    None for fewer than two cells: there is nothing to compare. ExperimentError for a metric or statistic that is none.
    """
    if metric is not None:
        return heat_map_of(view, metric, statistic)
    if statistic is not None:
        raise ExperimentError("statistic: say of which metric, such as ttft")
    whole_view = every_policy(view)
    if len(whole_view.arms) < 2:
        return None
    wanted = [pair for pair in MAIN if _worth(whole_view, *pair)]
    return _maps(whole_view, wanted or [("ttft", "p99")], "Every policy and mode at a glance: the main figures")


def heat_map_of(view: View, metric: str, statistic: str | None = None) -> Figure:
    """One map of any metric: `statistic` is mean, min, p50, p90, p95, p99, p99.9 or max where a metric has a
    distribution. ExperimentError for a metric or a statistic that is none."""
    entry = metrics[metric]
    known = statistics_of(entry)
    chosen = statistic or known[0]
    if chosen not in known:
        raise ExperimentError(f"{metric} has no statistic {chosen!r}: {nearest(chosen, known)}")
    return _maps(every_policy(view), [(metric, chosen)], f"{title(entry, chosen)}, by policy and mode")


def every_policy(view: View) -> View:
    """The same trace with all policies that were run."""
    if view.left_out is None:
        return view
    ran = policy_marks([cell.named_policy for cell in view.run.cells])
    found = [arm for arm in arms(view.run) if arm.trace == view.trace]
    return replace(view, arms=found, policies=list(ran), marks=ran, left_out=None)


def statistics_of(entry: Metric) -> list[str]:
    """What may be asked of a metric, the usual one first."""
    return [entry.statistic] if entry.shape == "one" else [name for name in DISTRIBUTION if name != "n"]


def title(entry: Metric, statistic: str) -> str:
    """`TTFT p99, ms`."""
    name = NAMES.get(entry.name, entry.name.replace("_", " "))
    said = name if entry.shape == "one" else f"{name} {statistic}"
    unit = {"s": "ms", "s/token": "ms/token", "share": "%"}.get(entry.unit, entry.unit)
    return said if unit in ("index", "evictions", "requests") or unit in said else f"{said}, {unit}"


def written(entry: Metric, value: float | None) -> str:
    """A figure as the tables have it."""
    if value is None or entry.unit == "share":
        return percent(value)
    if entry.shape == "one" and entry.statistic == "count":
        return whole(value)
    return number(value * 1000 if entry.unit in ("s", "s/token") else value)


def _worth(view: View, metric: str, statistic: str) -> bool:
    """Whether a main figure says something of this run: some cell has it, and it is not the same by its nature."""
    values = [view.values.value(arm, metric, statistic) for arm in view.arms]
    if metric == "ttft_delivered" and not any(cell.padded for arm in view.arms for cell in arm.cells):
        return False
    if metric == "jain" and view.requests["user"].n_unique() < 2:
        return False
    return any(value is not None and (value > 0 or metric != "evictions") for value in values)


def _maps(view: View, wanted: Sequence[tuple[str, str]], heading: str) -> Figure:
    across, down = len(view.settings), len(view.policies)
    settings = [setting.replace(" (", "\n(") for setting in view.settings]
    longest = max(len(line) for setting in settings for line in setting.split("\n"))
    slanted = longest * 0.075 > CELL
    labels = 0.08 * max(map(len, view.policies)) + 0.2
    most = min(len(wanted), max(1, int((WIDEST - labels) / (CELL * across + 0.2))))
    rows, columns = rows_of(len(wanted), most)
    width = max(7.0, labels + columns * (CELL * across + 0.2))
    map_height = (DENSE if down > MANY else ROW) * down + 0.55
    made = figure(heading, width, 1.6 + rows * map_height + (0.06 * longest if slanted else 0.2))
    grid = panels(made, len(wanted), columns, xlabel="", ylabel="")
    for axes, (metric, statistic) in zip(grid, wanted, strict=True):
        _map(axes, view, metrics[metric], statistic)
    turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if slanted else {}
    for axes in grid:
        axes.set_xticks(range(across), settings, **turned)
    grid[0].set_yticks(range(down), view.policies)
    grid[0].set_xlim(-0.5, across - 0.5)
    grid[0].set_ylim(down - 0.5, -0.5)
    _legend(made, view, wanted)
    return made


def _map(axes: Axes, view: View, entry: Metric, statistic: str) -> None:
    """One metric: a coloured cell for each arm with its figure; whoever is invalid or partial takes no part."""
    axes.grid(visible=False)
    axes.tick_params(length=0)
    better = f"\n{entry.better} is better" if entry.better else ""
    axes.set_title(title(entry, statistic) + better, size=9)
    values = {arm: view.values.value(arm, entry.name, statistic) for arm in view.arms}
    judged = {arm: value for arm, value in values.items() if value is not None and not arm.mark}
    shades, ends = merits(entry, judged), _ends(entry, judged)
    colours = np.full((len(view.policies), len(view.settings), 4), to_rgba(EMPTY))
    for column, setting in enumerate(view.settings):
        for row, policy in enumerate(view.policies):
            arm = view.arm(setting, policy)
            value = None if arm is None else values[arm]
            if arm is None or value is None:
                _write(axes, row, column, "no data", FAINT)
            elif arm in shades:
                colours[row, column] = COLOURS(shades[arm])
                text = written(entry, value)
                sign = f"{BEST} " if text == ends[0] else f"{WORST} " if text == ends[1] else ""
                _write(axes, row, column, sign + text, "white" if shades[arm] < DARK else INK)
            else:
                axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **UNSOUND))
                _write(axes, row, column, written(entry, value), INK, bbox=CLEAR)
    edges = (np.arange(across + 1) - 0.5 for across in (len(view.settings), len(view.policies)))
    axes.pcolormesh(*edges, colours, edgecolors="white", linewidth=1.0, zorder=0.4)


def _write(axes: Axes, row: int, column: int, text: str, colour: str, **style: Any) -> None:
    axes.text(column, row, text, color=colour, ha="center", va="center", size=7.5, **style)


def merits(entry: Metric, judged: Mapping[Arm, float]) -> dict[Arm, float]:
    """From 0, the worst, to 1, the best, or the highest where neither is better; by ratio where values span more than
    fourfold. All alike: a half."""
    low, high = min(judged.values(), default=0.0), max(judged.values(), default=0.0)
    if low == high:
        return dict.fromkeys(judged, 0.5)
    logarithmic = low > 0 and high > FEW_STEPS * low

    def share(value: float) -> float:
        found = log(value / low) / log(high / low) if logarithmic else (value - low) / (high - low)
        return 1 - found if entry.better == "lower" else found

    return {arm: share(value) for arm, value in judged.items()}


def _ends(entry: Metric, judged: Mapping[Arm, float]) -> tuple[str | None, str | None]:
    """How the best and the worst are written: whatever is written alike shares the sign. None where neither lower nor
    higher is better, and for what most of the map is: that is no distinction."""
    if entry.better is None or not judged:
        return None, None
    texts = Counter(written(entry, value) for value in judged.values())
    low, high = (written(entry, end(judged.values())) for end in (min, max))
    best, worst = (text if 2 * texts[text] <= len(judged) else None for text in (low, high))
    return (best, worst) if entry.better == "lower" else (worst, best)


def _legend(made: Figure, view: View, wanted: Sequence[tuple[str, str]]) -> None:
    judged = any(metrics[metric].better for metric, _ in wanted)
    ends = {0: "better" if judged else "higher", 4: "worse" if judged else "lower"}
    entries = [Patch(facecolor=COLOURS(1.0 - place / 4), label=ends.get(place, "")) for place in range(5)]
    signs = [
        mark("best of a map", marker="*", markersize=9),
        mark("worst of a map", marker="v", markersize=7, fillstyle="none"),
    ]
    unsound = [Patch(**UNSOUND, label="invalid or partial: not judged")] if any(arm.mark for arm in view.arms) else []
    legend(made, [*entries, *(signs if judged else []), *unsound], 10, view.remark())
