"""Kinds of requests within a group: parts of it that differ in service, in prefix, or in how answers go with prompts.

It knows one group's rows. Which kind comes next is taken to be chance: what was asked before plays no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from replay.traces.fitting.distances import ks_distance, sample_of
from replay.traces.fitting.lengths import fit_quantiles
from replay.traces.fitting.prefixes import SharedPrefix

MOST_SERVICES = 20
BINS = (1, 2, 4, 8)
FEWEST = 50  # requests in a bin of prompt lengths
BY_CHANCE = 1.63  # of sqrt(1/n + 1/m): a Kolmogorov-Smirnov distance that chance exceeds once in a hundred


@dataclass(frozen=True, slots=True)
class Kind:
    """A `share` of a group's requests: its lengths as quantiles, and what they have in common."""

    share: float
    prompt: list[int]
    output: list[int]
    prefix: str | None = None
    priority: int | None = None
    deadline_ms: float | None = None
    slo: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What holds for the whole trace: its prefixes, what each class of service is called from now on, how many
    quantiles were asked for, and whether prompts of sessions hold what was said before."""

    shared: Sequence[SharedPrefix]
    classes: Mapping[str, str]
    points: int | None
    grown: bool

    def quantiles(self, lengths: pl.Series) -> list[int]:
        """Of these lengths."""
        return fit_quantiles(sample_of(lengths.to_numpy()), self.points)


def kinds(frame: pl.DataFrame, known: Known) -> list[Kind]:
    """The kinds of these rows. What lasts for a session is counted in sessions, so that a share is of what arrives."""
    arriving = int(frame["first"].sum()) if known.grown else frame.height
    found = [part for part in parts(frame, known) if not known.grown or part["first"].any()]  # others never arrive
    return [kind_of(part, arriving, known) for part in found or [frame]]


def parts(frame: pl.DataFrame, known: Known) -> list[pl.DataFrame]:
    """The rows of each kind, which have columns `own` (tokens that are new) and `prefix` (a place in `shared`)."""
    services = frame.group_by("priority", "slo").len().sort("len", "priority", "slo", descending=True, nulls_last=True)
    kept = frame.join(
        services.head(MOST_SERVICES), on=["priority", "slo"], how="semi", nulls_equal=True, maintain_order="left"
    )
    alike = kept.sort("priority", "slo", "prefix", nulls_last=True, maintain_order=True).partition_by(
        "priority", "slo", "prefix", maintain_order=True
    )
    return [part for each in alike for part in ([each] if known.grown else by_prompt(each))]


def kind_of(part: pl.DataFrame, of: int, known: Known) -> Kind:
    """What rows of one kind are like; `of` is how many requests, or sessions, the group has."""
    place, priority, slo = part.select("prefix", "priority", "slo").row(0)
    most = declared(part)
    output = known.quantiles(part["output_tokens"])
    later = part.filter(~pl.col("first")) if known.grown else part
    return Kind(
        share=(int(part["first"].sum()) if known.grown else part.height) / of,
        prompt=known.quantiles((later if later.height else part)["own"]),
        output=output if most is None else [min(length, most) for length in output],
        prefix=None if place is None else known.shared[place].name,
        priority=priority,
        deadline_ms=part["deadline_ms"].median(),  # type: ignore[arg-type]  # of numbers
        slo=None if slo is None else known.classes[slo],
        max_tokens=most,
    )


def alike(part: pl.DataFrame, whole: pl.DataFrame) -> bool:
    """Whether a group's requests could be any of the trace's: then all that is known of those holds for the group."""
    for name in ("own", "output_tokens"):
        one, other = sample_of(part[name].to_numpy()), sample_of(whole[name].to_numpy())
        if (ks_distance(one, other) or 0.0) > BY_CHANCE * (1 / one.size) ** 0.5:
            return False
    return all(whole[name].n_unique() == 1 for name in ("priority", "slo", "deadline_ms", "max_tokens", "prefix"))


def declared(frame: pl.DataFrame) -> int | None:
    """The largest of what clients declared; null where one did not."""
    column = frame["max_tokens"]
    return None if column.null_count() else column.max()  # type: ignore[return-value]  # whole numbers


def by_prompt(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows in as few bins of prompt length as leave answers that do not depend on the prompt, within each."""
    parts = [frame]
    for count in BINS:
        if count > 1 and frame.height < count * FEWEST:
            break
        parts = split(frame, count)
        if not any(depends(part) for part in parts):
            break
    return parts


def split(frame: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """So many parts of about the same size, of rising prompt lengths; equal lengths stay together."""
    own = frame["own"].to_numpy()
    edges = np.unique(np.quantile(own, np.linspace(0, 1, count + 1)[1:-1], method="higher"))
    place = pl.Series(np.searchsorted(edges, own, "right"))
    parts = [frame.filter(place == number) for number in range(len(edges) + 1)]
    return [part for part in parts if part.height]


def depends(frame: pl.DataFrame) -> bool:
    """Whether answers to the shorter half of the prompts differ by more than chance from those to the longer half."""
    halves = split(frame, 2)
    if len(halves) < 2:
        return False
    one, other = (sample_of(half["output_tokens"].to_numpy()) for half in halves)
    by_chance: float = BY_CHANCE * (1 / one.size + 1 / other.size) ** 0.5
    return (ks_distance(one, other) or 0.0) > by_chance
