"""Compares many pairs of arms at once: a family of differences whose intervals hold together.

Of each request that both arms have, `other` - `base`, each the mean over its repeats. Neighbours share a queue, so the
interval goes by the slowest waves along the arrivals; a user's requests are alike, so where there are enough users it
is also worked out by user, and the wider one counts. To both is added what repeats of a cell differ by, and both are
widened for the number of comparisons. All comparisons of a trace share the same seeded draws of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from replay.metrics.aligned import Aligned
from replay.metrics.arms import Arm, Values
from replay.metrics.asked import Asked, What
from replay.metrics.noise import Key, Noise, by_setting, noises
from replay.metrics.paired import HIGHER_IS_BETTER, PAIRED, Bounds, Difference, advantage
from replay.metrics.percentiles import blocks, strayed
from replay.metrics.resampling import (
    Draws,
    Errors,
    Floats,
    Mask,
    block_draws,
    sample,
    user_and_block_errors,
    user_draws,
)
from replay.metrics.simultaneous import CONFIDENCE, RunNoise, Widths, widths
from replay.metrics.slow_waves import growing, wave_errors
from replay.metrics.wins import Wins, wins

CHANCE = 1 - CONFIDENCE
AT_ONCE = 4_000_000
"""Differences of one turn, so that a long trace needs no more memory than a short one."""
DIGITS = 12
FORGETFUL = ("tpot",)
"""What a queue does not add up, however long it grew: a step lasts for as long as its own batch makes it."""
CERTAIN = 1e9
"""Degrees of freedom of what adds nothing."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """What the requests say of a comparison; without any, nothing but their number."""

    pairs: int
    base_mean: float | None
    difference: float | None
    wins: Wins


@dataclass(frozen=True, slots=True)
class _Part:
    """A few comparisons of a family: what is known of each, and how surely by request and by user."""

    facts: list[_Fact]
    kinds: list[tuple[Errors, Draws]]


@dataclass(frozen=True, slots=True)
class _Half:
    """Half of an interval, alone and in its family; NaN: there is none."""

    own: float
    family: float


@dataclass(frozen=True, slots=True)
class Pairing:
    """Compares the arms of one trace. `runs` has the arms of each run, in families that are as noisy as each other."""

    aligned: Aligned
    values: Values
    runs: Sequence[Sequence[Sequence[Arm]]] = ()

    @property
    def alike(self) -> list[Sequence[Arm]]:
        """The families of all runs."""
        return [family for families in self.runs for family in families]

    def compare(self, metric: str, base: Arm, other: Arm) -> Difference:
        """One comparison alone, of a figure of a request."""
        return self.family([Asked(metric, base, other)])[0]

    def family(self, asked: Sequence[Asked], chance: float = CHANCE) -> list[Difference]:
        """The comparisons of one table: all of their intervals hold, but with this chance."""
        if not asked:
            return []
        width = max(1, AT_ONCE // max(len(self.aligned.rows), 1))
        parts = [self._part(asked[first : first + width]) for first in range(0, len(asked), width)]
        facts = [fact for part in parts for fact in part.facts]
        noise, spreads = self._noise(asked)
        found: list[Widths] = []
        for kind in range(len(parts[0].kinds)):
            errors, draws = _beside([part.kinds[kind] for part in parts])
            found.append(widths(_repeats_tell(errors, asked, noise), draws, noise, self.aligned.seed, chance))
        members = max(1, int(np.isfinite(found[0].family).sum()))
        halves = [
            [_Half(float(each.own[place]), float(each.family[place])) for each in found] for place in range(len(asked))
        ]
        return [self._told(*each, members) for each in zip(asked, facts, spreads, halves, strict=True)]

    def _part(self, asked: Sequence[Asked]) -> _Part:
        """The columns of some comparisons, and what follows from them."""
        base, other = (np.stack([self._column(one, arm) for one in asked], axis=1) for arm in ("base", "other"))
        for column in (base, other):
            column[np.isnan(base) | np.isnan(other)] = np.nan
        found, users = sample(other - base), self.aligned.users
        grown = self._grown(asked)
        kinds = [(wave_errors(found, grown), block_draws(found, self.aligned.starts))]
        for place, one in enumerate(asked):
            if one.percent is not None:
                self._put_percentile(one, one.percent / 100, place, *kinds[0])
        if users is not None:
            errors = user_and_block_errors(found, users, kinds[0][0])
            kinds.append((errors, user_draws(found, users, *self.aligned.times)))
        rises, exact = [one.metric in HIGHER_IS_BETTER for one in asked], [one.exact for one in asked]
        means = np.nansum(base, axis=0) / np.maximum(found.pairs, 1)
        facts = [
            _Fact(int(pairs), float(mean) if pairs else None, float(difference) if pairs else None, won)
            for pairs, mean, difference, won in zip(
                found.pairs, means, found.means, wins(base, other, rises, exact, users, grown), strict=True
            )
        ]
        return _Part(facts, kinds)

    def _grown(self, asked: Sequence[Asked]) -> Mask:
        """Whether a comparison is of what adds up in a queue that, on either side, grew along the whole trace."""
        arms = list(dict.fromkeys(arm for one in asked for arm in (one.base, one.other)))
        queues = np.stack([self.aligned.unfinished(arm) for arm in arms], axis=1)
        grown = dict(zip(arms, growing(sample(queues)).tolist(), strict=True))
        return np.array(
            [one.metric not in FORGETFUL and (grown[one.base] or grown[one.other]) for one in asked], np.bool_
        )

    def _column(self, one: Asked, side: str) -> Floats:
        arm: Arm = getattr(one, side)
        if one.of_run:
            return np.full(len(self.aligned.rows), np.nan)
        column = self.aligned.arm(arm, one.metric)
        return column if one.by is None else np.where(self.aligned.mask(one.by, one.group), column, np.nan)

    def _put_percentile(self, one: Asked, share: float, place: int, errors: Errors, draws: Draws) -> None:
        """In its column, what draws of the requests say that have the metric in every repeat of both."""
        base, other = (
            np.stack([self.aligned.cell(name, one.metric) for name in arm.names]) for arm in (one.base, one.other)
        )
        present = ~np.isnan(np.concatenate([base, other])).any(axis=0)
        error, freedom, found = strayed(base[:, present], other[:, present], share, self.aligned.seed)
        if freedom and one.metric in FORGETFUL:
            freedom = max(freedom, blocks(int(present.sum())))
        errors.error[place], errors.freedom[place], draws[:, place] = error, freedom, found

    def _noise(self, asked: Sequence[Asked]) -> tuple[RunNoise, list[float | None]]:
        """What repeats say of each comparison: variances of both arms, and how far two of them lie apart at most."""
        figures: dict[What, dict[Key, Noise]] = {}
        for one in asked:
            if one.what not in figures:
                means = {tuple(arm.names): self._repeats(one, arm) for family in self.alike for arm in family}
                found = [noises(families, means) for families in self.runs]
                figures[one.what] = {key: noise for each in found for key, noise in each.items()}
        # in an order of their own, so that base and other may change places
        entries = sorted({(one.what, tuple(arm.names)) for one in asked for arm in (one.base, one.other)})
        number = {entry: place for place, entry in enumerate(entries)}
        known = [figures[what].get(names) for what, names in entries]
        base, other = (
            np.array([number[one.what, tuple(arm.names)] for one, arm in zip(asked, arms, strict=True)], np.int64)
            for arms in ([one.base for one in asked], [one.other for one in asked])
        )
        variance = np.array([np.nan if noise is None else noise.variance for noise in known])
        freedom = np.array([0.0 if noise is None else noise.freedom for noise in known])
        spreads = [
            max((noise.spread for place in sides if (noise := known[place]) is not None), default=None)
            for sides in zip(base.tolist(), other.tolist(), strict=True)
        ]
        return RunNoise(variance, freedom, base, other), spreads

    def _repeats(self, one: Asked, arm: Arm) -> list[float]:
        """The figure of each repeat that has it."""
        if one.statistic is not None:
            return self.values.repeats(arm, one.metric, one.statistic)
        mask = self.aligned.mask(one.by, one.group)
        columns = [self.aligned.cell(name, one.metric)[mask] for name in arm.names]
        return [float(np.nanmean(column)) for column in columns if not np.isnan(column).all()]

    def _told(self, one: Asked, fact: _Fact, spread: float | None, halves: Sequence[_Half], members: int) -> Difference:
        """A difference with the wider of its intervals."""
        base_mean, difference = fact.base_mean, fact.difference
        if one.statistic is not None:
            ends = [self.values.value(arm, one.metric, one.statistic) for arm in (one.base, one.other)]
            base_mean, difference = ends[0], None if ends[0] is None or ends[1] is None else ends[1] - ends[0]
        bounds = [None if difference is None else _around(difference, half.family) for half in halves]
        widest = max((half.family for half in halves if np.isfinite(half.family)), default=np.nan)
        shown = None if difference is None else _around(difference, widest)
        own = max((half.own for half in halves if np.isfinite(half.own)), default=np.nan)
        return Difference(
            one.metric,
            one.base,
            one.other,
            pairs=self._runs(one) if one.of_run else fact.pairs,
            base_mean=base_mean,
            difference=None if difference is None else round(difference, DIGITS),
            low=shown[0] if shown else None,
            high=shown[1] if shown else None,
            noise=spread,
            advantage=advantage(self.values, one.base, one.other),
            uncorrected=None if difference is None else _around(difference, own),
            by_request=None if one.of_run else bounds[0],
            by_user=None if one.statistic is not None or len(bounds) < 2 else bounds[1],
            comparisons=members,
            wins=fact.wins if one.statistic is None and fact.pairs and one.metric in PAIRED else None,
        )

    def _runs(self, one: Asked) -> int:
        """Of a figure that is one number a run, the runs that have it in both."""
        assert one.statistic is not None
        return min(len(self.values.repeats(arm, one.metric, one.statistic)) for arm in (one.base, one.other))


def pairing(requests: pl.DataFrame, values: Values, arms: Sequence[Arm], seed: int = 0) -> Pairing:
    """Of the arms of one trace; `requests` are `Measured.requests`."""
    names = [name for arm in arms for name in arm.names]
    return Pairing(Aligned(requests.filter(pl.col("cell").is_in(names)), seed), values, [by_setting(arms)])


def _around(middle: float, half: float) -> Bounds | None:
    return (round(middle - half, DIGITS), round(middle + half, DIGITS)) if np.isfinite(half) else None


def _beside(found: Sequence[tuple[Errors, Draws]]) -> tuple[Errors, Draws]:
    """The parts of a family as one."""
    errors = Errors(*(np.concatenate([getattr(each, name) for each, _ in found]) for name in ("error", "freedom")))
    return errors, np.concatenate([draws for _, draws in found], axis=1)


def _repeats_tell(errors: Errors, asked: Sequence[Asked], noise: RunNoise) -> Errors:
    """With intervals for figures of whole runs too, where repeats tell what they vary by."""
    both = ~np.isnan(noise.variance[noise.base]) & ~np.isnan(noise.variance[noise.other])
    whole = np.array([one.of_run for one in asked])
    return Errors(np.where(whole, 0.0, errors.error), np.where(whole, np.where(both, CERTAIN, 0.0), errors.freedom))
