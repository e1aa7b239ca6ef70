"""Service: what users have received, with prompt and answer tokens weighted, and at which instant each got it.

The measure of Y. Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024 (arXiv 2401.00588). A prompt is
received whole at its request's first admission, an answer's token at its own time: nothing is spread over time. Tokens
that are computed again after an eviction are nobody's gain, and those that a prefix cache held cost the others nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.metric import metric
from replay.results import Service

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

PROMPT = pl.col("service_prompt") * (pl.col("prompt_tokens") - pl.col("cached_tokens").fill_null(0))
ANSWER = pl.col("service_output") * pl.col("generated_tokens")
WHOLE = pl.col("service_output") * pl.max_horizontal("output_tokens", "generated_tokens")
GIVEN = pl.when(pl.col("admitted").is_not_null()).then(PROMPT).otherwise(0.0) + ANSWER
"""What a request received."""
ASKED = PROMPT + pl.when(pl.col("status") == "completed").then(ANSWER).otherwise(WHOLE)
"""What it would have received, had it been served to its end."""


def weights(service: Service) -> dict[str, pl.Expr]:
    """What a token of each kind counts, as columns of the requests."""
    return {"service_prompt": pl.lit(service.prompt), "service_output": pl.lit(service.output)}


@metric("service", unit="weighted tokens", shape="one", count=pl.col("admitted").count())
def service() -> pl.Expr:
    """service.prompt * prompt tokens of the requests admitted, without those found in a prefix cache + service.output *
    tokens of answers; tokens that are computed again do not count. A prompt is received when its request is first
    admitted, a token of an answer when it was computed"""
    return GIVEN.sum()


@dataclass(frozen=True, slots=True)
class Amounts:
    """Service of users (by place), each amount at an instant."""

    users: Places
    times: Numbers
    amounts: Numbers


@dataclass(frozen=True, slots=True)
class Ledger:
    """What users asked for and received, each to the instant: prompts when admitted, tokens when they came.

    `asked` is of when a request was due, `withdrawn` is what it still lacked when it ended without its whole answer.
    """

    names: list[str]
    prompts: Amounts
    tokens: Amounts
    asked: Amounts
    withdrawn: Amounts


def ledger(requests: pl.DataFrame) -> Ledger:
    """The ledger of the users of some requests; a request without a user is in nobody's."""
    known = requests.filter(pl.col("user").is_not_null())
    names = known["user"].unique().sort().to_list()
    rows = known.select(
        "due",
        "admitted",
        "ended",
        "status",
        "token_times",
        "service_output",
        user=pl.col("user").rank("dense").cast(pl.Int64) - 1,
        prompt=PROMPT.cast(pl.Float64),
        asked=ASKED.cast(pl.Float64),
        lacked=(ASKED - GIVEN).cast(pl.Float64),
    )
    sent = rows.filter(pl.col("status") != "skipped")
    unserved = sent.filter(pl.col("status") != "completed", pl.col("ended").is_not_null(), pl.col("lacked") > 0)
    tokens = rows.select("user", "service_output", "token_times").explode("token_times").drop_nulls("token_times")
    return Ledger(
        names,
        prompts=_amounts(rows.drop_nulls("admitted"), "admitted", "prompt"),
        tokens=_amounts(tokens, "token_times", "service_output"),
        asked=_amounts(sent.drop_nulls("due"), "due", "asked"),
        withdrawn=_amounts(unserved, "ended", "lacked"),
    )


def _amounts(rows: pl.DataFrame, time: str, amount: str) -> Amounts:
    return Amounts(
        rows["user"].to_numpy().astype(np.int64),
        rows[time].to_numpy().astype(np.float64),
        rows[amount].to_numpy().astype(np.float64),
    )
