"""KV memory that a trace would need over time if nobody waited, at a stated pace."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from replay.clock import NANOSECONDS
from replay.plots.canvas import INK, figure, legend, mark
from replay.plots.traces.kv import MODEL, gib_axis, size_text, sizes_text
from replay.plots.traces.registry import trace_pictures
from replay.plots.traces.times import length_text, time_axis
from replay.plots.traces.words import PROMPT, REQUESTS, number_text, tick_text
from replay.traces.describing.resident import LOOKS, resident
from replay.traces.table import Trace

TTFT, TPOT = 0.5, 0.05  # seconds
LINE = 118  # letters that fit under the picture
STEPS = 300


@trace_pictures.register("memory")
def memory(trace: Trace) -> Figure:
    """Tokens, and below requests, resident at once: the mean of each step, and the most within it."""
    found = resident(trace.rows, ttft=TTFT, tpot=TPOT, spans=STEPS)
    peak = float(found.most_tokens.max())
    peak_text = number_text(peak if found.exact else float(f"{peak:.3g}"))
    made = figure(
        f"Up to {'' if found.exact else 'about '}{peak_text} tokens at once, {size_text(peak)} of KV for "
        f"{MODEL}, if nobody waits",
        9.0,
        6.6,
    )
    above, below = made.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [1.6, 1]})
    for axes, mean, most, colour, label in (
        (above, found.mean_tokens, found.most_tokens, PROMPT, "tokens resident"),
        (below, found.mean_requests, found.most_requests, REQUESTS, "requests resident"),
    ):
        unit = time_axis(axes, found.end * NANOSECONDS, f"in steps of {length_text(found.width * NANOSECONDS)}")
        _steps(axes, found.width * NANOSECONDS / unit.size, mean, most, colour)
        axes.set_ylabel(label)
        axes.yaxis.set_major_formatter(tick_text)
        axes.label_outer()
    below.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    gib_axis(above, "y")
    entries = [
        mark("mean of a step", marker="", linestyle="-"),
        mark(
            "most within it" if found.exact else f"most within it, looked at {LOOKS} times",
            marker="s",
            markersize=9,
            alpha=0.3,
        ),
    ]
    pace = (
        f"First token {TTFT:g} s after a request is due, then one each {1000 * TPOT:g} ms, however many run; a turn of "
        "a session waits for the one before. Prompts are not shared."
    )
    legend(made, entries, 2, "\n".join(fill(text, LINE) for text in (pace, f"At the peak: {sizes_text(peak)}.")))
    return made


def _steps(axes: Axes, width: float, mean: NDArray[Any], most: NDArray[Any], colour: str) -> None:
    edges = np.arange(len(mean) + 1) * width
    axes.stairs(most, edges, fill=True, color=colour, alpha=0.3, linewidth=0)
    axes.stairs(mean, edges, color=INK, linewidth=1, baseline=None)
    axes.set_ylim(0, most.max() * 1.08)
