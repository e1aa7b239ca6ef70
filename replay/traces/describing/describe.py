"""What a trace is like: size, rate, burstiness, lengths, users, sessions, priorities, and how much prompts share.

It knows one trace as it stands, and no engine. Null means "not defined", as the rate of a trace without a span is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.describing.blocks import block_keys, prompt_blocks
from replay.traces.describing.sessions import describe_sessions
from replay.traces.scratch import Scratch
from replay.traces.table import Trace
from replay.traces.wording import counted, duration_text, skipped_text

PERCENTILES = (50, 90, 95, 99)
SHOWN_USERS = 10
MOST_BLOCKS = 5_000_000  # looked at together


def describe(trace: Trace) -> dict[str, Any]:
    """All that `trace show` says, as plain values that strict JSON can hold; times in seconds, shares from 0 to 1."""
    extent = trace.extent()
    rows = trace.rows
    return {
        "name": trace.name,
        "file": str(trace.path),
        "sha256": trace.sha256,
        "rows": extent.rows,
        "skipped": trace.skipped,
        "span_s": extent.span,
        "requests_per_second": extent.requests_per_second,
        "peak_requests_per_second": peak(rows),
        **burstiness(rows),
        "prompt_tokens": lengths(rows, pl.col("prompt_tokens")),
        "output_tokens": lengths(rows, pl.col("output_tokens")),
        "users": users(rows),
        "sessions": describe_sessions(trace),
        "priorities": priorities(rows),
        "prefixes": prefixes(trace),
        "notes": trace.notes,
        "history": trace.history,
    }


def peak(rows: pl.LazyFrame) -> int:
    """The most arrivals within one second of the trace, counted in whole seconds from its start."""
    counts = rows.group_by(pl.col("arrival") // NANOSECONDS).len()
    most: int = counts.select(pl.col("len").max()).collect(engine="streaming").item()
    return most


def burstiness(rows: pl.LazyFrame) -> dict[str, float | None]:
    """Coefficient of variation of the gaps between arrivals: standard deviation / mean (population).

    Poisson arrivals have 1; over n gaps their estimate strays by about 1 / sqrt(n) (delta method). Null without a span.
    """
    gap = pl.col("arrival").diff()
    found = rows.select(n=gap.count(), mean=gap.mean(), deviation=gap.std(ddof=0)).collect(engine="streaming")
    n, mean, deviation = found.row(0)
    if not mean:
        return {"gap_cv": None, "gap_cv_poisson": None, "gap_cv_poisson_error": None}
    return {"gap_cv": deviation / mean, "gap_cv_poisson": 1.0, "gap_cv_poisson_error": 1 / math.sqrt(n)}


def lengths(rows: pl.LazyFrame, tokens: pl.Expr) -> dict[str, float | int]:
    """Sum, mean, extremes and percentiles (linear-interpolated) of token counts."""
    statistics = {
        "total": tokens.sum(),
        "mean": tokens.mean(),
        "min": tokens.min(),
        **{f"p{p}": tokens.quantile(p / 100, "linear") for p in PERCENTILES},
        "max": tokens.max(),
    }
    return rows.select(**statistics).collect(engine="streaming").row(0, named=True)


def users(rows: pl.LazyFrame) -> list[dict[str, Any]]:
    """Each user's requests and tokens, with shares; the busiest first; null is "no user"."""
    tokens = pl.col("prompt_tokens") + pl.col("output_tokens")
    return (
        rows.group_by("user")
        .agg(pl.len().alias("requests"), tokens.sum().alias("tokens"), pl.col("arrival").min().alias("since"))
        .collect(engine="streaming")
        .sort("since", "user", nulls_last=True)
        .drop("since")
        .with_columns(
            (pl.col("requests") / pl.col("requests").sum()).alias("request_share"),
            (pl.col("tokens") / pl.col("tokens").sum()).alias("token_share"),
        )
        .sort("requests", descending=True, maintain_order=True)
        .to_dicts()
    )


def priorities(rows: pl.LazyFrame) -> dict[str, int]:
    """Requests by priority, the largest number first; empty where the trace has none."""
    known = rows.filter(pl.col("priority").is_not_null()).group_by("priority").len()
    ranked = known.sort("priority", descending=True).collect(engine="streaming")
    return {str(priority): count for priority, count in ranked.iter_rows()}


def prefixes(trace: Trace) -> dict[str, Any] | None:
    """How much of the prompts lies in blocks that an earlier request had, which is what an endless cache would save.

    Tokens of block i of a prompt: min(block_size, prompt_tokens - i * block_size). None where there are no hashes.
    """
    if trace.block_size is None:
        return None
    total, seen_blocks, tokens = map(sum, zip(*seen_before(trace, trace.block_size), strict=True))
    prompt_tokens = trace.extent().prompt_tokens
    return {
        "block_size": trace.block_size,
        "hash_scope": trace.hash_scope,
        "blocks": total,
        "block_share_seen_before": seen_blocks / total if total else None,
        "prompt_token_share_seen_before": tokens / prompt_tokens,
    }


def seen_before(trace: Trace, block_size: int) -> Iterator[tuple[int, int, int]]:
    """How many blocks there are, how many of them an earlier request had, and the tokens of these: of the blocks of
    some hashes, then of others."""
    count = trace.values(pl.col("prefix_hashes").list.len().sum())["prefix_hashes"]
    keys = block_keys(trace.hash_scope)
    blocks = prompt_blocks(trace.rows, block_size).select(
        "tokens", *(pl.col(key).hash() if key == "session" else pl.col(key) for key in keys)
    )
    scratch = Scratch()
    for part in scratch.parts(blocks, pl.col("hash").hash(), -(-count // MOST_BLOCKS)):
        seen = ~(pl.struct(keys) if len(keys) > 1 else pl.col("hash")).is_first_distinct()
        tokens = pl.col("tokens").filter("seen").sum()
        yield part.with_columns(seen=seen).select(pl.len(), pl.col("seen").sum(), tokens).collect().row(0)


def description_text(trace: Trace) -> str:
    """`describe` for reading, a line a subject."""
    d = describe(trace)
    lines = [("file", d["file"]), ("rows", f"{d['rows']:,}")]
    if d["skipped"]:
        lines.append(("skipped", skipped_text(d["skipped"])))
    lines.append(("span", duration_text(trace.span_nanoseconds)))
    rate = d["requests_per_second"]
    mean = "not defined, for there is no span" if rate is None else f"{rate:,.3f} requests/s"
    lines.append(("rate", f"{mean}; peak {d['peak_requests_per_second']:,} in one second"))
    if d["gap_cv"] is not None:
        poisson = f"a Poisson process: 1.00 ± {d['gap_cv_poisson_error']:.2f}"
        lines.append(("burstiness", f"{d['gap_cv']:.2f} (coefficient of variation of the gaps; {poisson})"))
    for name in ("prompt_tokens", "output_tokens"):
        values = " ".join(f"{key} {value:,.0f}" for key, value in d[name].items() if key != "total")
        lines.append((name.replace("_", " "), f"{values}; {d[name]['total']:,} in all"))
    named = sum(user["user"] is not None for user in d["users"])
    lines.append(("users", f"{named:,}" if named else "none given"))
    if named:
        lines += [("", user_text(user)) for user in d["users"][:SHOWN_USERS]]
        if len(d["users"]) > SHOWN_USERS:
            lines.append(("", f"and {len(d['users']) - SHOWN_USERS:,} more"))
    lines += session_lines(d["sessions"])
    levels = ", ".join(f"{priority}: {counted(count, 'request')}" for priority, count in d["priorities"].items())
    lines.append(("priorities", f"{levels} (larger is more urgent by default)" if levels else "none given"))
    lines.append(("prefixes", prefix_text(d["prefixes"])))
    lines += [("history", line) for line in d["history"]]
    return "\n".join(f"{label:<14}{text}" for label, text in lines)


def user_text(user: dict[str, Any]) -> str:
    """One user's line."""
    name = "no user" if user["user"] is None else user["user"]
    return (
        f"{name}: {counted(user['requests'], 'request')} ({user['request_share']:.1%}), "
        f"{counted(user['tokens'], 'token')} ({user['token_share']:.1%})"
    )


def session_lines(found: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The lines on sessions: how many, what they think, and how long a closed loop takes at least."""
    if found is None:
        return [("sessions", "none given")]
    mean = f"mean {found['mean']:.1f}, max {found['max']:,}"
    lines = [("sessions", f"{found['sessions']:,} with {counted(found['requests'], 'request')}: {mean}")]
    if found["with_gaps"]:
        lines.append(("", f"{found['with_gaps']:,} of them without some of the numbers among their turns"))
    if found["later_turns"]:
        last = duration_text(round(found["last_due_s"] * 1_000) * 1_000_000)
        lines.append(("think times", think_text(found)))
        lines.append(("closed loop", f"the last request is due after {last}, even if answers took no time"))
        lines.append(("", f"at most {counted(found['most_open'], 'session')} under way at once then"))
    return lines


def think_text(found: dict[str, Any]) -> str:
    """The line on how long sessions think between an answer and the next turn."""
    unknown, times = found["later_turns_without_think_time"], found["think_time_s"]
    if times is None:
        return "none given: a turn is due at its arrival, or at the end of the one before if that is later"
    told = " ".join(
        f"{name} {value:,.3g}" if value < 1_000 else f"{name} {value:,.0f}" for name, value in times.items()
    )
    return f"{told} s" + (f"; {counted(unknown, 'later turn')} of {found['later_turns']:,} without" if unknown else "")


def prefix_text(found: dict[str, Any] | None) -> str:
    """The line on prefix sharing."""
    if found is None:
        return "no hashes"
    return (
        f"{found['prompt_token_share_seen_before']:.1%} of prompt tokens lie in blocks seen before "
        f"({found['blocks']:,} blocks of {found['block_size']} tokens, scope {found['hash_scope']})"
    )
