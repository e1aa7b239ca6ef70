"""Requests wait longer than any client does, and are served all the same: nothing takes them out of the queue."""

from __future__ import annotations

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, percent
from replay.report.advice.evidence import enough, real, rows, settings
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

PATIENCE_S = 30.0
"""What a client waits for before it gives up, where nothing else is known: a common time-out of HTTP clients."""
GOALS = 10
"""With a goal for the TTFT, so many times that: then the answer is of no use to whoever set it."""
LATE = 0.05
"""Share of requests: fewer may be a moment's mishap."""
LEAST = 5


@pitfall(
    "no_time_outs",
    "Nobody times out",
    speaks=f"from {percent(LATE)} of requests, and {LEAST}, that wait in the queue for over {PATIENCE_S:g} s (or, if "
    f"that is less, {GOALS} times `goals.ttft_ms`), where neither `queue_timeout_s` nor `timeout_s` is set; not where "
    "all requests come at once",
    remedy="`engine.queue_timeout_s`: that long",
    figure="of requests waited longer",
    write=percent,
)
def no_time_outs(arm: Arm, findings: Findings) -> Case | None:
    """requests that waited in the queue for longer than clients do, and the tokens computed for them"""
    engine = settings(arm, "engine")
    if not engine or engine.get("queue_timeout_s") or engine.get("timeout_s") or not enough(arm, findings):
        return None
    goal = findings.run.goals.ttft
    patience = min(PATIENCE_S, GOALS * goal) if goal else PATIENCE_S
    requests = rows(arm, "requests", "due", "admitted", "generated_tokens")
    waited = requests.with_columns(wait=pl.col("admitted") - pl.col("due")).filter(pl.col("wait") > patience)
    at_once = requests["due"].max() == requests["due"].min()
    if at_once or len(waited) < max(LEAST, LATE * len(requests)):
        return None
    tokens, all_tokens = int(waited["generated_tokens"].sum()), int(requests["generated_tokens"].sum())
    longest = real(waited["wait"].max())
    limit = f"{patience:g} s" + (f", {GOALS} times the TTFT goal" if patience < PATIENCE_S else "")
    return Case(
        figure=len(waited) / len(requests),
        cost=tokens / max(all_tokens, 1),
        what=f"{percent(len(waited) / len(requests))} of requests ({len(waited):,}) waited in the queue for over "
        f"{limit}, the longest {duration(longest)}, and no time-out is set",
        why=f"{percent(tokens / max(all_tokens, 1))} of all output tokens ({tokens:,}) were computed for them, while "
        "others waited behind them",
        settings={"engine.queue_timeout_s": patience},
        remedy="who has waited so long is dropped, counted as timed out, and makes room for those behind",
    )
