"""What came out of a recipe: of each claim, for how many seeds it holds, and whether that is what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.reproduce.document import Claim, Ours, Quantity
from replay.reproduce.orders import Entry, Term, keeps
from replay.reproduce.recipe import ONLY, Recipe
from replay.reproduce.running import Figures


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim: the figures of its order for each seed."""

    claim: Claim
    seeds: Sequence[int]
    terms: Sequence[Sequence[float | None]]

    @property
    def kept(self) -> list[bool]:
        """Whether it holds, seed by seed."""
        return [keeps(self.claim.order, terms) for terms in self.terms]

    @property
    def means(self) -> list[float | None]:
        """Each figure's mean over the seeds."""
        return [_mean(values) for values in zip(*self.terms, strict=True)]

    @property
    def holds(self) -> bool:
        """A claim holds if it does for every seed."""
        return all(self.kept)

    @property
    def as_recorded(self) -> bool:
        return self.holds == (self.claim.recorded == "holds")


@dataclass(frozen=True, slots=True)
class Findings:
    """A recipe that was run. `ours` is the figure beside the paper's: mean, smallest and largest of the seeds."""

    recipe: Recipe
    figures: Figures
    claims: Sequence[Finding]
    ours: tuple[float, float, float] | None

    @property
    def result(self) -> str:
        """What the paper claims decides; what we expect beside it does not."""
        return "holds" if all(finding.holds for finding in self.of("paper")) else "not reproduced"

    def of(self, whose: str) -> list[Finding]:
        """The claims of the paper, or ours."""
        return [finding for finding in self.claims if finding.claim.whose == whose]

    @property
    def as_recorded(self) -> bool:
        return all(finding.as_recorded for finding in self.claims)


def find(recipe: Recipe, figures: Figures) -> Findings:
    """Hold the claims against the figures."""
    found = [_finding(claim, recipe, figures) for claim in recipe.document.claims]
    return Findings(recipe, figures, found, _ours(recipe.document.ours, recipe, figures))


def _finding(claim: Claim, recipe: Recipe, figures: Figures) -> Finding:
    return Finding(claim, figures.seeds, [_terms(claim, recipe, figures, seed) for seed in figures.seeds])


def _terms(claim: Claim, recipe: Recipe, figures: Figures, seed: int) -> list[float | None]:
    """The figures of an order for one seed."""
    base = None if claim.relative_to is None else figure(claim.relative_to, claim, recipe, figures, seed)
    terms = [figure(term, claim, recipe, figures, seed) for term in claim.order[::2]]
    if claim.relative_to is None:
        return terms
    pairs = zip(terms, claim.order[::2], strict=True)
    return [over(value, base) if isinstance(term, str) else value for value, term in pairs]


def figure(term: Term, quantity: Quantity, recipe: Recipe, figures: Figures, seed: int) -> float | None:
    """What one name of an order, or a number, stands for."""
    if not isinstance(term, str):
        return float(term)
    entry = Entry.of(term)
    workload = entry.workload or quantity.workload or next(iter(recipe.workloads), ONLY)
    asked = Quantity(
        metric=quantity.metric, statistic=quantity.statistic, by=quantity.by, group=entry.group or quantity.group
    )
    return figures.value(entry.arm, workload, seed, asked)


def over(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def _ours(ours: Ours | None, recipe: Recipe, figures: Figures) -> tuple[float, float, float] | None:
    if ours is None:
        return None
    found = []
    for seed in figures.seeds:
        value = figure(ours.of, ours, recipe, figures, seed)
        if ours.over is not None:
            value = over(value, figure(ours.over, ours, recipe, figures, seed))
        if value is None:
            return None
        found.append(value)
    return sum(found) / len(found), min(found), max(found)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
