"""Arrivals over time: requests a second, and the tokens of their prompts and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from replay.clock import NANOSECONDS
from replay.plots.canvas import INK, figure
from replay.plots.traces.registry import trace_pictures
from replay.plots.traces.times import length_text, round_width, spans_for, time_axis
from replay.plots.traces.words import OUTPUT, PROMPT, REQUESTS, number_text, share_text, tick_text
from replay.traces.table import Trace

AMOUNTS = ("requests", "prompt_tokens", "output_tokens")


@dataclass(slots=True, frozen=True)
class Rates:
    """What arrives in each span between two `edges` (nanoseconds), by name of `AMOUNTS`. All are `width` long but the
    last, which ends with the trace; where that leaves less than half a span, it is one with the span before."""

    width: int
    edges: NDArray[Any]
    amounts: dict[str, NDArray[Any]]

    def per_second(self, name: str) -> NDArray[Any]:
        rates: NDArray[Any] = self.amounts[name] / (np.diff(self.edges) / NANOSECONDS)
        return rates

    def busiest_share(self, of_requests: float = 0.5) -> float:
        """The share of the time in which such a share of the requests comes, the busiest spans taken first."""
        order = np.argsort(-self.per_second("requests"), kind="stable")
        requests = np.concatenate([[0.0], np.cumsum(self.amounts["requests"][order])])
        time = np.concatenate([[0.0], np.cumsum(np.diff(self.edges)[order])])
        return float(np.interp(of_requests * requests[-1], requests, time) / time[-1])


def rates(rows: pl.LazyFrame, span: int, width: int) -> Rates:
    """What arrives in each `width` nanoseconds of a trace of so long a span, which is more than none."""
    found = (
        rows.group_by(pl.col("arrival") // width)
        .agg(pl.len().alias("requests"), pl.col("prompt_tokens", "output_tokens").sum())
        .collect(engine="streaming")
    )
    places = found["arrival"].to_numpy()
    count = span // width + 1
    amounts = {name: np.zeros(count) for name in AMOUNTS}
    for name, values in amounts.items():
        values[places] = found[name].to_numpy()
    edges = np.append(np.arange(count, dtype=np.int64) * width, span)
    if count > 1 and span % width < width / 2:
        edges = np.delete(edges, -2)
        amounts = {name: np.append(values[:-2], values[-2:].sum()) for name, values in amounts.items()}
    return Rates(width, edges, amounts)


@trace_pictures.register("rate")
def rate(trace: Trace) -> Figure | str:
    """Steps, from zero, and the mean of the whole trace."""
    span = trace.span_nanoseconds
    if not span:
        return "all requests arrive at one instant"
    requests = trace.values(rows=pl.len())["rows"]
    found = rates(trace.rows, span, round_width(span, spans_for(requests)))
    mean, most = requests / (span / NANOSECONDS), found.per_second("requests").max()
    made = figure(
        f"Half of all requests come within {share_text(found.busiest_share())} of the time: "
        f"{number_text(mean)} a second on average, {number_text(most)} a second in the busiest "
        f"{length_text(found.width)}",
        9.0,
        7.2,
    )
    panels: Any = made.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": [1.4, 1, 1]})
    labels = ("requests/s", "prompt tokens/s", "output tokens/s")
    for axes, name, label, colour in zip(panels, AMOUNTS, labels, (REQUESTS, PROMPT, OUTPUT), strict=True):
        unit = time_axis(axes, span, f"in steps of {length_text(found.width)}")
        _steps(axes, found.edges / unit.size, found.per_second(name), colour)
        average = found.amounts[name].sum() / (span / NANOSECONDS)
        axes.axhline(average, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_title(f"mean {number_text(average)} (dashed)")
        axes.set_ylabel(label)
        axes.yaxis.set_major_formatter(tick_text)
        axes.label_outer()
    return made


def _steps(axes: Axes, edges: NDArray[Any], values: NDArray[Any], colour: str) -> None:
    axes.stairs(values, edges, fill=True, color=colour, alpha=0.25)
    axes.stairs(values, edges, color=colour, linewidth=1)
    axes.set_ylim(0, values.max() * 1.08)
