"""From a trace to the tables of a specification that resembles it.

It puts together what its neighbours find: windows, gaps, people, kinds of requests, sessions, prefixes. What it sees in
a trace and cannot say is in `lost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.fitting.arrivals import (
    AT_ONCE,
    MILLISECOND,
    fit_gaps,
    gap_variation,
    most_windows,
    unit_gaps,
    window_edges,
    windows_needed,
)
from replay.traces.fitting.distances import Numbers, Wholes
from replay.traces.fitting.kinds import MOST_SERVICES, Kind, Known, alike, kinds, parts
from replay.traces.fitting.people import ANYONE, Group, groups
from replay.traces.fitting.prefixes import fit_prefixes
from replay.traces.fitting.rows import Rows, fit_rows
from replay.traces.fitting.sessions import Conversations, conversations, grow, with_turns
from replay.traces.table import Trace
from replay.traces.wording import counted

USERS = 10
NEARLY = 0.15  # how far from 1 the burstiness of arrivals is that are all but Poisson


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for; null is "as many as needed"."""

    users: int = USERS
    windows: int | None = None
    quantiles: int | None = None
    seed: int = 0


@dataclass(slots=True)
class Fit:
    """`document` is the specification's tables; `said` tells what was found, `lost` what is not in it."""

    document: dict[str, Any]
    rows: Rows
    said: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """`3 users, 40 kinds of requests, 64 windows`."""
        users = self.document["users"]
        kinds = sum(len(user.get("classes", [None])) for user in users)
        phases = max(len(user.get("phases", [None])) for user in users)
        named = [user for user in users if "nobody" not in user]
        told = [(sum(user.get("copies", 1) for user in named), "user"), (kinds, "kind"), (phases, "window")]
        return ", ".join(counted(count, noun) for count, noun in told)


def fit_trace(trace: Trace, wanted: Wanted) -> Fit:
    """The specification that resembles this trace."""
    rows = fit_rows(trace.rows, trace.block_size, trace.hash_scope)
    frame, known = told_apart(rows, wanted)
    fit = Fit({"seed": wanted.seed, "duration": f"{span_of(rows.span) / NANOSECONDS:.6f}s"}, rows)
    if rows.block_size is not None:
        fit.document["block_size"] = rows.block_size
    if known.shared:
        fit.document["prefixes"] = [asdict(each) for each in known.shared]
    found = [stream for group in groups(frame, wanted.users) for stream in streams(rows, group, known)]
    fit.document["users"] = [user_table(rows, group, frame, known, wanted) for group in found]
    fit.lost += lost(frame, fit.document["users"])
    return fit


def streams(rows: Rows, group: Group, known: Known) -> list[Group]:
    """The kinds of nobody's requests as if each were a user's, so that each comes and goes when it did.

    Only where arrivals are all but Poisson, for only then do such streams together have gaps like those of the whole.
    """
    if group.name != ANYONE or group.frame["sid"].count():
        return [group]
    edges, counts = group_windows(rows, group, group.frame["arrival"].to_numpy(), None)
    if abs(fit_gaps(group_gaps(rows, group, edges, counts)).burstiness - 1) > NEARLY:
        return [group]
    found = parts(group.frame, known)
    return [group] if len(found) < 2 else [Group(f"{ANYONE}-{n + 1}", part) for n, part in enumerate(found)]


def told_apart(rows: Rows, wanted: Wanted) -> tuple[pl.DataFrame, Known]:
    """The rows with what each has of a `prefix`, and its `own` tokens: what is left without that and what was said."""
    frame = with_turns(rows.frame)
    grown = grow(frame)
    place, shared = fit_prefixes(rows, grown=grown)
    frame = frame.with_columns(place.alias("prefix"))
    if grown:
        begun = pl.col("prefix").filter("first").first().over("sid")
        frame = frame.with_columns(prefix=pl.when(pl.col("sid").is_null()).then("prefix").otherwise(begun))
    tokens = pl.Series([each.tokens for each in shared] or [0], dtype=pl.Int64)
    held = pl.lit(tokens).gather(pl.col("prefix").fill_null(0)) if shared else pl.lit(0)
    held = pl.when(pl.col("prefix").is_not_null() & (pl.col("first") if grown else True)).then(held).otherwise(0)
    said = pl.col("before").fill_null(0) if grown else pl.lit(0)
    frame = frame.with_columns(own=pl.max_horizontal(1, pl.col("prompt_tokens") - held - said))
    levels = sorted(frame["slo"].drop_nulls().unique())
    classes = {name: f"class-{number + 1}" for number, name in enumerate(levels)}
    return frame, Known(shared, classes, wanted.quantiles, grown)


def lost(frame: pl.DataFrame, users: Sequence[dict[str, Any]]) -> list[str]:
    """What this trace has and this fit has not."""
    told = []
    if sum("nobody" in user for user in users) > 1:
        told.append(
            "What is named anyone-1 and so on are kinds of requests, not users: nobody's in the trace, and nobody's "
            "here."
        )
    if any("sessions" in user for user in users) and not frame["think_time_ms"].count():
        told.append("There are no think times in the trace: the time between arrivals of turns stands for them.")
    if any(kind["max_tokens"] for user in users for kind in [user, *user.get("classes", [])] if "max_tokens" in kind):
        told.append("Of what clients declare as max_tokens, the largest of a kind stands for all of it.")
    if any(user.get("sessions", {}).get("grows") for user in users):
        shorter = int((frame["prompt_tokens"] < frame["before"]).sum()) / max(1, frame["before"].count())
        told.append(
            f"In sessions prompts grow, but {shorter:.1%} of later ones are shorter than what was said before; "
            "here none is, and a session ends where it has no room left."
        )
    talks = frame.filter(pl.col("sid").is_not_null()).group_by("sid").agg(pl.col("who").n_unique())
    if (several := talks.filter(pl.col("who") > 1).height) > 0:
        told.append(f"In {counted(several, 'session')} turns are of several users: here all are of who began it.")
    services = frame.select(pl.struct("priority", "slo").n_unique()).item()
    if services > MOST_SERVICES:
        told.append(f"Of {services:,} pairs of priority and class, the {MOST_SERVICES} most common stand for all.")
    instants = int((frame["arrival"].diff() == 0).sum()) / frame.height
    if instants > AT_ONCE:
        told.append(
            f"Of the gaps between arrivals {instants:.0%} are 0, which no family of gaps has: here they are short."
        )
    return told


def span_of(span: int) -> int:
    """Nanoseconds in which requests arrive: the span and a tick for the last, or a millisecond without a span."""
    return span // 1_000 * 1_000 + 1_000 if span else MILLISECOND


def user_table(rows: Rows, group: Group, frame: pl.DataFrame, known: Known, wanted: Wanted) -> dict[str, Any]:
    """One group as the specification has it; `frame` has everybody's rows."""
    table: dict[str, Any] = {"name": group.name}
    if group.name.startswith(ANYONE):
        table["nobody"] = True
    if group.copies > 1:
        table |= {"copies": group.copies, "share": {"zipf": group.zipf}}
    starts = group.frame.filter("first")["arrival"].to_numpy()
    edges, counts = group_windows(rows, group, starts, wanted.windows)
    gaps = fit_gaps(group_gaps(rows, group, edges, counts))
    table |= rate_keys(edges, counts, whole=rows.whole is None, shared=group.copies > 1)
    table["burstiness"] = gaps.burstiness
    if gaps.family != "gamma":
        table["gaps"] = gaps.family
    found = kinds(frame if alike(group.frame, frame) else group.frame, known)
    if (talk := conversations(group.frame, known)) is not None:
        if talk.context is not None:
            talk = replace(talk, context=max(talk.context, largest_turn(talk, found, known)))
        table["sessions"] = {name: value_of(value) for name, value in asdict(talk).items() if value}
    if len(found) == 1:
        return table | kind_table(found[0], share=False)
    return table | {"classes": [kind_table(kind, share=True) for kind in found]}


def group_windows(rows: Rows, group: Group, starts: Wholes, windows: int | None) -> tuple[Wholes, Numbers]:
    """The windows that a group needs, or has been given: edges, and how many of its starts lie in each."""
    span = span_of(rows.span)
    if windows is not None:
        edges = window_edges(span, windows)
        return edges, rows.counts(starts, edges)
    most = most_windows(len(starts) * rows.every)
    edges = window_edges(span, most)
    counts = rows.counts(starts, edges)
    dispersion = gap_variation(group_gaps(rows, group, edges, counts)) ** 2 or 1.0
    each = most // windows_needed(np.pad(counts, (0, most - len(counts))), dispersion)
    kept = np.unique(np.append(edges[::each], edges[-1]))
    return kept, np.add.reduceat(counts, np.arange(0, len(counts), each))


def group_gaps(rows: Rows, group: Group, edges: Wholes, counts: Numbers) -> Numbers:
    """Gaps between the starts of each of the group's users, in requests that are to be expected of that user."""
    starts = group.frame.filter("first")
    if group.copies == 1:
        gaps = unit_gaps(starts["arrival"].to_numpy(), edges, counts)
        stretch = starts["stretch"].to_numpy()
        within: Numbers = gaps[stretch[1:] == stretch[:-1]]
        return within
    ordered = starts.sort("who", maintain_order=True)
    who, stretch = ordered["who"].to_numpy(), ordered["stretch"].to_numpy()
    gaps = unit_gaps(ordered["arrival"].to_numpy(), edges, counts)
    part = np.bincount(who)[who[1:]] / len(who)
    of_one: Numbers = (gaps * part)[(who[1:] == who[:-1]) & (stretch[1:] == stretch[:-1])]
    return of_one


def rate_keys(edges: Wholes, counts: Numbers, *, whole: bool, shared: bool = False) -> dict[str, Any]:
    """`phases` of one window each, or none where one is enough: with counts, for a rate would have what is drawn stray
    by chance once more; with rates where only a part of the trace was seen, and where users share the phases.
    """
    lasts = np.diff(edges) / NANOSECONDS
    rates = [float(f"{count / long:.4g}") for count, long in zip(counts, lasts, strict=True)]
    if len(rates) == 1:
        return {"count": round(float(counts.sum()))} if whole else {"rate": rates[0]}
    phases: list[dict[str, Any]] = []
    for count, rate, long in zip(counts, rates, lasts, strict=True):
        many = {"count": round(float(count))} if whole and not shared else {"rate": rate}
        phases.append(many | {"lasts": f"{round(float(long), 6):.10g}s"})
    del phases[-1]["lasts"]
    return {"phases": phases}


def largest_turn(talk: Conversations, found: Sequence[Kind], known: Known) -> int:
    """The most tokens that a first turn of any of these kinds may come to, with its answer: a context holds them."""
    prefixes = {each.name: each.tokens for each in known.shared}
    most = [(talk.first or kind.prompt)[-1] + kind.output[-1] for kind in found]
    return max(size + prefixes.get(kind.prefix or "", 0) for size, kind in zip(most, found, strict=True))


def kind_table(kind: Kind, *, share: bool) -> dict[str, Any]:
    """One kind's keys."""
    said = asdict(kind)
    table: dict[str, Any] = {"share": float(f"{said.pop('share'):.5g}")} if share else {}
    said.pop("share", None)
    table |= {name: lengths_table(said.pop(name)) for name in ("prompt", "output")}
    return table | {name: value for name, value in said.items() if value is not None}


def value_of(value: object) -> object:
    """Quantiles as lengths, anything else as it is."""
    return lengths_table(value) if isinstance(value, list) else value


def lengths_table(quantiles: Sequence[int]) -> dict[str, Any]:
    """Lengths as the specification has them."""
    if quantiles[0] == quantiles[-1]:
        return {"fixed": quantiles[0]}
    return {"quantiles": list(quantiles)}
