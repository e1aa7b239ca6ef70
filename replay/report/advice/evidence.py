"""What several pitfalls ask of an arm: columns of its rows, its settings, what a step takes at another batch size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from replay.metrics.arms import Arm
from replay.report.advice.registry import LEAST_REQUESTS
from replay.report.findings import Findings

GAIN = 0.2
"""What each doubling of a batch must bring in tokens per second: below, the batch is large enough."""
CARRIES = 1.2
"""Times the output tokens that are asked for in a second: a size that serves so many need not be larger."""
HEADROOM = 0.8
"""Share of the per-token goal that a mean step may take: prompts make some steps longer."""
SIZES = {"static": "batch_size", "dynamic": "max_batch_size", "continuous": "max_running"}
"""What the batch size is called in each mode."""


def rows(arm: Arm, table: str, *columns: str) -> pl.DataFrame:
    """Some columns of `requests` or `steps` over all repeats of an arm, in order; token times are large."""
    files = [file for cell in arm.cells for file in cell.files(table)]
    if not files:
        return arm.cells[0].table(table).select(columns)
    return pl.concat(pl.scan_parquet(file, glob=False).select(columns) for file in files).collect()


def real(figure: object) -> float:
    """A maximum, mean or sum of a column of numbers; 0 where there was no row."""
    return float(figure) if isinstance(figure, int | float) else 0.0


def enough(arm: Arm, findings: Findings) -> bool:
    """Whether there are so many requests that a share of them says something."""
    return findings.count("requests", arm) >= LEAST_REQUESTS


def value(findings: Findings, arm: Arm, metric: str, statistic: str = "value") -> float:
    """A figure of the summary; 0 where it is not defined."""
    return findings.values.value(arm, metric, statistic) or 0.0


def settings(arm: Arm, section: str) -> Mapping[str, Any]:
    """The settings in force: of the "engine", the "mode" or the "policy"."""
    found: Mapping[str, Any] = arm.cells[0].settings.get(section) or {}
    return found


def key_of_size(arm: Arm) -> str:
    """`modes.continuous.max_running`."""
    return f"modes.{arm.mode}.{SIZES[arm.mode]}"


def size_of(arm: Arm) -> int | None:
    """The batch size; None where a rule adapts it, or where it is not known."""
    size = settings(arm, "mode").get(SIZES.get(arm.mode, ""))
    return size if isinstance(size, int) else None


def siblings(arm: Arm, findings: Findings) -> list[Arm]:
    """The arms of the run that differ from this one in nothing but a fixed batch size."""
    return [other for other in findings.compared if other != arm and not other.mark and _alike(arm, other)]


def _alike(arm: Arm, other: Arm) -> bool:
    if (arm.trace, arm.mode, arm.policy) != (other.trace, other.mode, other.policy) or size_of(other) is None:
        return False
    size = SIZES.get(arm.mode, "")
    ours, theirs = (dict(each.cells[0].settings) for each in (arm, other))
    modes = [{name: value for name, value in each.pop("mode", {}).items() if name != size} for each in (ours, theirs)]
    return modes[0] == modes[1] and ours == theirs


@dataclass(frozen=True, slots=True)
class StepModel:
    """Seconds of a mean step, by the requests in it: `fixed + slot * requests`, each bringing the arm's own mix of
    prompt and answer. Fitted so that it gives the seconds of the arm's steps at the pace that they were computed at."""

    fixed: float
    slot: float
    tokens: float  # of answers, for each request in a step

    def seconds(self, requests: float) -> float:
        return self.fixed + self.slot * requests

    def rate(self, requests: float) -> float:
        """Tokens of answers a second."""
        return self.tokens * requests / self.seconds(requests)

    def useful(self, asked: float, goal: float | None) -> float:
        """Requests in a step beyond which more are of no use: they serve what is asked for, or use up the goal for the
        time per token, or bring less than `GAIN` when they are doubled."""
        carries = CARRIES * asked
        spare = self.tokens - carries * self.slot
        enough = carries * self.fixed / spare if spare > 0 else float("inf")
        if not self.slot:
            return enough
        kept = float("inf") if goal is None else (HEADROOM * goal - self.fixed) / self.slot
        pays = self.fixed * (1 - GAIN) / (2 * GAIN * self.slot)  # where 2 (f + s n) / (f + 2 s n) is 1 + GAIN
        return max(1.0, min(enough, kept, pays))


def step_model(arm: Arm, findings: Findings) -> StepModel | None:
    """None where the engine's cost model is not known, and in modes that pad."""
    cost = arm.cells[0].cost
    if cost is None or any(cell.padded for cell in arm.cells):
        return None
    columns = ("scheduled", "prefill_tokens", "decodes", "context_tokens", "new_tokens")
    counts = rows(arm, "steps", *columns).sum().row(0, named=True)
    if not counts["scheduled"]:
        return None
    per_token = (("prefill", "prefill_tokens"), ("decode", "decodes"), ("context", "context_tokens"))
    variable = sum(cost.get(kind, 0.0) * counts[column] for kind, column in per_token)
    pace = findings.values.value(arm, "pace", "value") or 1.0
    requests = counts["scheduled"]
    return StepModel(pace * cost["fixed"], pace * variable / requests, counts["new_tokens"] / requests)


def asked(arm: Arm) -> float:
    """Tokens of answers that the trace asks for in each second of its arrivals."""
    requests = rows(arm, "requests", "due", "output_tokens")
    span = real(requests["due"].max()) - real(requests["due"].min())
    return real(requests["output_tokens"].sum()) / len(arm.cells) / span if span else float("inf")


def missed_tpot(arm: Arm, findings: Findings) -> float | None:
    """Share of requests with two tokens or more whose time per token exceeds the goal; None without a goal."""
    goal = findings.run.goals.tpot
    if goal is None:
        return None
    times = of_arm(findings.measured.requests, arm)["tpot"].drop_nulls()
    return real((times > goal).mean()) if len(times) >= LEAST_REQUESTS else None


def of_arm(requests: pl.DataFrame, arm: Arm) -> pl.DataFrame:
    """The measured requests of an arm."""
    return requests.filter(pl.col("cell").is_in(arm.names))
