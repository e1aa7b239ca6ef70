"""A recipe as it is written down: the paper, the workload, the arms, the claims and the outcome on record.

It knows the tables of the file and their types; whether they fit together is for `replay.reproduce.recipe`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from replay.metrics import metrics
from replay.reproduce.orders import Term

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)

Recorded = Literal["holds", "fails"]


class Paper(BaseModel):
    """What is run again. `figure` is the paper's own, with its unit, where it was looked up."""

    model_config = STRICT

    title: str
    authors: str
    venue: str
    year: int
    claim: str
    figure: str | None = None
    note: str | None = None  # what is not as in the paper


class Quantity(BaseModel):
    """A figure of the summary of a run: a metric, its statistic, and of whom."""

    model_config = STRICT

    metric: str
    statistic: str | None = None  # unset: the mean of a distribution, or the one value that there is
    by: str = "all"
    group: str | None = None
    workload: str | None = None


class Ours(Quantity):
    """The figure that stands beside the paper's: of one arm, or of one arm over another."""

    of: str
    over: str | None = None


class Claim(Quantity):
    """An order of figures: `["static", "<", "orca"]`, with names of arms or numbers, which must hold for every seed.

    With `relative_to`, each arm's figure is divided by that arm's. `whose` says who expects it: the paper, whose claims
    decide the outcome, or we. `recorded` is what was found when the recipe was written; where that is "fails",
    `reason` says why.
    """

    says: str
    whose: Literal["paper", "ours"] = "paper"
    order: list[Term] = Field(min_length=3)
    relative_to: str | None = None
    recorded: Recorded = "holds"
    reason: str | None = None


class Outcome(BaseModel):
    """What was found when the recipe was written."""

    model_config = STRICT

    result: Literal["holds", "not reproduced"]
    measured: str
    reason: str | None = None


class Torch(BaseModel):
    """How the recipe is scaled down for a real engine, which runs in real time."""

    model_config = STRICT

    workload: dict[str, Any]
    experiment: dict[str, Any]


class Document(BaseModel):
    """The whole file."""

    model_config = STRICT

    paper: Paper
    regime: str  # where the claim can be seen at all, and how the recipe comes to it
    seeds: list[int] = Field([1, 2, 3], min_length=1)
    workload: dict[str, Any] | None = None
    workloads: dict[str, dict[str, Any]] = {}
    experiment: dict[str, Any]
    arms: dict[str, dict[str, Any]] = Field(min_length=1)
    show: list[Quantity] = []
    ours: Ours | None = None
    claims: list[Claim] = Field(min_length=1)
    outcome: Outcome
    torch: Torch | None = None


def statistic_of(quantity: Quantity) -> str:
    """The statistic that is meant, where none is named too."""
    if quantity.statistic is not None:
        return quantity.statistic
    entry = metrics[quantity.metric]
    return entry.statistic if entry.shape == "one" else "mean"
