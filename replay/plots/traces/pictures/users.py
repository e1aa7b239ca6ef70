"""Users' shares of a trace: those with the most tokens by name, the rest together, and how unequal they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from replay.plots.canvas import FAINT, GRID, INK, figure, legend, mark
from replay.plots.traces.registry import trace_pictures
from replay.plots.traces.words import PROMPT, REQUESTS, name_text, percent_tick, share_text
from replay.traces.table import Trace
from replay.traces.wording import counted

MOST_NAMED = 15
MANY = 10  # users of whom a tenth is at least one
NO_USER = "no user"
MOST_TIMES = 8  # as long as the longest bar of a name may that of all others be, and not be cut


@dataclass(slots=True, frozen=True)
class Users:
    """Requests and tokens by user, those with the most tokens first; and apart, those of no user."""

    names: list[str]
    requests: NDArray[Any]
    tokens: NDArray[Any]
    nobodys_requests: int
    nobodys_tokens: int

    @property
    def all_requests(self) -> int:
        return int(self.requests.sum()) + self.nobodys_requests

    @property
    def all_tokens(self) -> int:
        return int(self.tokens.sum()) + self.nobodys_tokens

    def lorenz(self, amounts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """From the user with the least on: the share of the users, and what share of the amounts they have."""
        rising = np.concatenate([[0.0], np.cumsum(np.sort(amounts))])
        return np.linspace(0, 1, len(rising)), rising / rising[-1]


def users(rows: pl.LazyFrame) -> Users:
    """Who has what."""
    tokens = (pl.col("prompt_tokens") + pl.col("output_tokens")).sum()
    found = rows.group_by("user").agg(requests=pl.len(), tokens=tokens).collect(engine="streaming")
    named = found.filter(pl.col("user").is_not_null()).sort(
        "tokens", "requests", "user", descending=[True, True, False]
    )
    nobody = found.filter(pl.col("user").is_null())
    return Users(
        named["user"].to_list(),
        named["requests"].to_numpy(),
        named["tokens"].to_numpy(),
        int(nobody["requests"].sum()),
        int(nobody["tokens"].sum()),
    )


@trace_pictures.register("users")
def draw_users(trace: Trace) -> Figure | str:
    """Bars by user on the left; on the right, where there are many, the Lorenz curves."""
    found = users(trace.rows)
    if not found.names:
        return "the trace names no users"
    bars = _bars(found)
    many = len(found.names) >= 3
    height = 2.4 + 0.34 * max(len(bars), 6)
    made = figure(_title(found), 11.0 if many else 8.0, height)
    if many:
        left, right = made.subplots(1, 2, gridspec_kw={"width_ratios": [1.5, 1]})
        _lorenz(right, found)
    else:
        left = made.subplots()
    _draw_bars(left, bars)
    entries = [
        mark("requests", marker="s", color=REQUESTS, markersize=8),
        mark("tokens of prompts and answers", marker="s", color=PROMPT, markersize=8),
    ]
    legend(made, entries, 2, None)
    return made


def _title(found: Users) -> str:
    top = found.tokens[0] / found.all_tokens
    if len(found.names) < MANY or top >= 0.5:
        requests = share_text(found.requests[0] / found.all_requests)
        return f"{name_text(found.names[0])} has {share_text(top)} of all tokens, in {requests} of the requests"
    few = len(found.names) // MANY
    share = share_text(found.tokens[:few].sum() / found.tokens.sum())
    who = f"The {few:,} of {len(found.names):,} users with the most tokens have" if few > 1 else None
    return f"{who or f'{name_text(found.names[0])} has'} {share} of all users' tokens"


def _bars(found: Users) -> list[tuple[str, float, float]]:
    """A label with the shares of requests and tokens: the named, the rest, and no user."""
    shares = [
        (name_text(name), requests / found.all_requests, tokens / found.all_tokens)
        for name, requests, tokens in zip(found.names[:MOST_NAMED], found.requests, found.tokens, strict=False)
    ]
    if (rest := len(found.names) - MOST_NAMED) > 0:
        others = (
            float(found.requests[MOST_NAMED:].sum()) / found.all_requests,
            float(found.tokens[MOST_NAMED:].sum()) / found.all_tokens,
        )
        shares.append((f"({counted(rest, 'more user')})", *others))
    if found.nobodys_requests:
        nobody = (found.nobodys_requests / found.all_requests, found.nobodys_tokens / found.all_tokens)
        shares.append((f"({NO_USER})", *nobody))
    return shares


def _draw_bars(axes: Axes, bars: list[tuple[str, float, float]]) -> None:
    places = np.arange(len(bars))
    longest = [max(requests, tokens) for _, requests, tokens in bars]
    named = max(longest[:MOST_NAMED])
    limit = 1.15 * (named if max(longest) > MOST_TIMES * named else max(longest))
    shares = ([requests for _, requests, _ in bars], [tokens for _, _, tokens in bars])
    for values, offset, colour in zip(shares, (-0.19, 0.19), (REQUESTS, PROMPT), strict=True):
        axes.barh(places + offset, values, height=0.36, color=colour)
        for place, value in zip(places, values, strict=True):
            cut = value > limit
            axes.annotate(
                f"{share_text(value)}, longer than drawn" if cut else share_text(value),
                (min(value, limit), place + offset),
                xytext=(-3 if cut else 3, 0),
                textcoords="offset points",
                size=7,
                va="center",
                ha="right" if cut else "left",
                color="white" if cut else INK,
            )
    axes.set_yticks(places, [label for label, _, _ in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, limit)
    axes.xaxis.set_major_formatter(percent_tick)
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="share of the trace", title="Those with the most tokens")


def _lorenz(axes: Axes, found: Users) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("all equal ", (0.5, 0.5), size=8, color=FAINT, ha="right", va="bottom")
    for amounts, colour in ((found.requests, REQUESTS), (found.tokens, PROMPT)):
        axes.plot(*found.lorenz(amounts), color=colour, linewidth=1.8)
    axes.set(xlim=(0, 1), ylim=(0, 1.01), title=f"How equal all {len(found.names):,} users are")
    axes.set(xlabel="share of the users, least first", ylabel="share of what they have")
    axes.xaxis.set_major_formatter(percent_tick)
    axes.yaxis.set_major_formatter(percent_tick)
    axes.grid(color=GRID)
