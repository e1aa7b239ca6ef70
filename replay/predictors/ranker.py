"""A predictor that gets the order of lengths right to a given degree: Kendall's tau, as rankers are measured by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from replay.predictors.disturbed import Disturbed
from replay.predictors.predictor import predictors

PAIRS = 50_000
"""Pairs of requests that the noise is fitted to, at most: all of them up to 316 requests, else drawn."""


@predictors.register("ranker")
@dataclass
class Ranker(Disturbed):
    """An order of the trace's lengths whose Kendall tau with the true one is `tau`; 1: the true order, 0: any.

    Normal noise on the logarithm of each length makes the order; its size is fitted to the trace. The shortest is then
    given the length of the trace's shortest, and so on: the lengths are true, of others. Two requests that are equally
    long have no order, and do not count; where most are, so are most that are predicted, and tau is only near.
    """

    tau: float = field(
        default=0.6, metadata={"minimum": 0, "maximum": 1, "help": "Kendall's tau of predicted and true order"}
    )

    def predict(self, output_tokens: Sequence[int], random: Random) -> Sequence[float]:
        logarithms = [math.log(tokens) for tokens in output_tokens]
        noise = [random.normalvariate(0, 1) for _ in output_tokens]
        turn = _turn(logarithms, noise, self.tau, random)
        scores = [math.cos(turn) * known + math.sin(turn) * z for known, z in zip(logarithms, noise, strict=True)]
        order = sorted(range(len(scores)), key=lambda row: (scores[row], row))
        predicted = [0.0] * len(scores)
        for row, tokens in zip(order, sorted(output_tokens), strict=True):
            predicted[row] = tokens
        return predicted


def _turn(logarithms: Sequence[float], noise: Sequence[float], tau: float, random: Random) -> float:
    """The angle from the logarithms (0: no noise) towards the noise (a quarter turn: nothing else) that leaves `tau`.

    As the angle grows each pair is put in the wrong order at one angle of its own, and stays wrong: so the angle is a
    quantile of theirs. Beyond a quarter turn the noise is outdone, where by chance it had the order of the lengths.
    """
    rows = len(logarithms)
    pairs = combinations(range(rows), 2)
    if rows * (rows - 1) // 2 > PAIRS:
        pairs = ((random.randrange(rows), random.randrange(rows)) for _ in range(PAIRS))  # type: ignore[assignment]
    turns = sorted(
        math.atan2(
            abs(logarithms[a] - logarithms[b]), (noise[b] - noise[a]) * (1 if logarithms[a] > logarithms[b] else -1)
        )
        for a, b in pairs
        if logarithms[a] != logarithms[b]
    )
    wrong = round((1 - tau) / 2 * len(turns))
    return (turns[wrong - 1] + turns[wrong]) / 2 if wrong else 0.0
