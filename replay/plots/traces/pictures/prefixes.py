"""Prefix sharing: what a prefix cache of each size would save of the prompts, and an endless one over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from replay.plots.canvas import FAINT, INK, figure, no_data, scale
from replay.plots.traces.kv import MODEL, gib_axis, size_text
from replay.plots.traces.registry import trace_pictures
from replay.plots.traces.times import length_text, round_width, spans_for, time_axis
from replay.plots.traces.words import PROMPT, number_text, percent_tick, share_text, tick_text
from replay.traces.describing.reuse import Reuse, reuse
from replay.traces.table import Trace

MOST_OF_IT = 0.9
SPANS = 100


@trace_pictures.register("prefixes")
def prefixes(trace: Trace) -> Figure | str:
    """Above the share found by size of the cache, below the share that was there before, over time."""
    if trace.block_size is None or (found := reuse(trace.rows, trace.block_size, trace.hash_scope)) is None:
        return "the trace has no prefix hashes"
    if not found.share:
        return "no block of a prompt comes twice, so that a cache would save nothing"
    made = figure(_title(found, trace.block_size), 9.0, 7.6)
    above, below = made.subplots(2, 1, gridspec_kw={"height_ratios": [1.4, 1]})
    _by_size(above, found, trace.block_size)
    _over_time(below, found, trace)
    scope = "of the same session" if trace.hash_scope == "session" else "of anybody"
    drawn = f"; estimated from the blocks of one hash in {found.one_in:,}" if found.one_in > 1 else ""
    made.supxlabel(
        f"Blocks of {trace.block_size:,} tokens, shared with prompts {scope}; the least recently used is forgotten; "
        f"answers are not kept{drawn}",
        size=9,
        color=INK,
    )
    return made


def _title(found: Reuse, block_size: int) -> str:
    text = f"An endless prefix cache would save {share_text(found.share)} of all prompt tokens"
    blocks = found.size_for(MOST_OF_IT)
    tokens = blocks * block_size
    return (
        f"{text}, one of {number_text(tokens)} tokens ({size_text(tokens)} for {MODEL}) "
        f"{share_text(MOST_OF_IT)} of that"
    )


def _by_size(axes: Axes, found: Reuse, block_size: int) -> None:
    sizes, shares = found.curve()
    axes.set(
        title="By size of the cache", ylabel="share of prompt tokens found", ylim=(0, min(found.share * 1.15, 1.02))
    )
    axes.yaxis.set_major_formatter(percent_tick)
    tokens = sizes * block_size
    axes.step(
        [tokens[0] / 1e6, *tokens, tokens[-1] * 1e6],
        [0.0, *shares, shares[-1]],
        where="post",
        color=PROMPT,
        linewidth=1.8,
    )
    axes.axhline(found.share, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    axes.text(0.01, found.share, f"endless: {share_text(found.share)}", transform=axes.get_yaxis_transform(), size=8,
              color=INK, va="bottom")  # fmt: skip
    blocks = found.size_for(MOST_OF_IT)
    at = blocks * block_size
    axes.plot(at, shares[np.searchsorted(sizes, blocks)], marker="o", color=PROMPT, markersize=6)
    axes.annotate(f"{number_text(at)} tokens: {share_text(MOST_OF_IT)} of it", (at, MOST_OF_IT * found.share),
                  xytext=(-8, 2), textcoords="offset points", size=8, color=INK, ha="right")  # fmt: skip
    scale(axes, "x", [tokens[0], tokens[-1] * 1.5], "tokens that the cache holds")
    axes.xaxis.set_major_formatter(tick_text)
    gib_axis(axes, "x")


def seen_over_time(found: Reuse, rows: pl.LazyFrame, width: int) -> NDArray[Any]:
    """The share of the prompt tokens of each span of time that an endless cache would have; nan where none arrive."""
    tokens = rows.group_by(pl.col("arrival") // width).agg(pl.col("prompt_tokens").sum()).collect(engine="streaming")
    asked = np.bincount(tokens["arrival"].to_numpy(), weights=tokens["prompt_tokens"].to_numpy())
    seen = np.bincount(found.arrival // width, weights=found.tokens * (found.needs > 0), minlength=len(asked))
    with np.errstate(invalid="ignore"):
        shares: NDArray[Any] = np.where(asked > 0, np.minimum(seen * found.one_in / asked, 1), np.nan)
    return shares


def _over_time(axes: Axes, found: Reuse, trace: Trace) -> None:
    span = trace.span_nanoseconds
    axes.set(title="Over time, with an endless cache", ylabel="share of prompt tokens found", ylim=(-0.02, 1.02))
    axes.yaxis.set_major_formatter(percent_tick)
    if not span:
        no_data(axes, text="all requests arrive at one instant")
        axes.set_xlabel("time since the first arrival")
        return
    width = round_width(span, spans_for(trace.values(rows=pl.len())["rows"], SPANS))
    shares = seen_over_time(found, trace.rows, width)
    unit = time_axis(axes, span, f"in steps of {length_text(width)}")
    edges = np.arange(len(shares) + 1) * width / unit.size
    axes.stairs(shares, edges, color=PROMPT, linewidth=1.2, baseline=None)
