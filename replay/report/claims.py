"""How a comparison is put into words: one rule for every sentence, and the same that marks the tables.

A difference is told as a fact where it may be claimed. Where it may not, its size is told once it is large, with the
reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.contrasts import Contrast
from replay.metrics.notation import change, duration, enumerate_words, number, signed, span
from replay.metrics.paired import Difference

CLAIM = "95 % interval"
LARGE = 0.1
"""Relative difference from which a size is told although it may not be claimed."""
COLUMNS = {
    "ttft": "mean TTFT",
    "ttft_delivered": "mean delivered TTFT",
    "e2e": "mean end-to-end time",
    "tpot": "mean time per token",
    "good": "goodput",
    "output_throughput": "output tokens/s",
}
"""The columns of the tables of comparisons, as they are called in sentences."""


def considered(pair: Contrast) -> list[tuple[Difference, str]]:
    """The differences of a comparison with their names. Delivered TTFT says more only where one side delivers late."""
    late = {cell.padded for arm in (pair.base, pair.other) for cell in arm.cells}
    names = {metric: name for metric, name in COLUMNS.items() if metric != "ttft_delivered" or len(late) > 1}
    return [(pair.differences[metric], name) for metric, name in names.items()]


def claimed(pair: Contrast) -> list[str]:
    """What may be claimed, difference by difference."""
    return [_fact(difference, name) for difference, name in considered(pair) if difference.seen]


def gains_and_losses(pair: Contrast) -> tuple[list[str], list[str]]:
    """What may be claimed, what speaks for `other` apart from what speaks against it."""
    sides = [
        [_fact(difference, name) for difference, name in considered(pair) if difference.merit == sign]
        for sign in (1, -1)
    ]
    articled = [[fact if fact[0].isdigit() else f"a {fact}" for fact in facts] for facts in sides]
    return articled[0], articled[1]


def _fact(difference: Difference, name: str) -> str:
    assert difference.difference is not None
    if difference.metric == "good":
        points = number(abs(difference.difference) * 100)
        return f"{name} {points} points {'higher' if difference.difference > 0 else 'lower'}"
    if difference.metric == "output_throughput":
        return f"{number(1 + (difference.relative or 0.0))} times the {name}"
    with_interval = difference.metric in ("ttft", "e2e")
    return f"{name} {tell(difference, smaller='shorter', larger='longer', with_interval=with_interval)}"


def tell(difference: Difference, *, smaller: str, larger: str, with_interval: bool) -> str:
    """`45 ms shorter (-30 %; 95 % interval 30 to 60 ms)`."""
    assert difference.difference is not None
    word = smaller if difference.difference < 0 else larger
    details = []
    if difference.relative is not None:
        details.append(change(difference.relative))
    if with_interval and difference.low is not None and difference.high is not None:
        ends = sorted((abs(difference.low), abs(difference.high)))
        details.append(f"{CLAIM} {span(*ends)}")
    return f"{duration(abs(difference.difference))} {word}" + (f" ({'; '.join(details)})" if details else "")


def doubtful(pair: Contrast) -> str:
    """`−36 % mean TTFT, not certain`: the large differences that may not be claimed; empty if there are none."""  # noqa: RUF002  # a true minus
    reasons: dict[str, list[str]] = {}
    for difference, name in considered(pair):
        if difference.doubt and (size := _size(difference)):
            reasons.setdefault(difference.doubt, []).append(f"{size} {name}")
    return enumerate_words([f"{enumerate_words(sizes)}, {doubt}" for doubt, sizes in reasons.items()])


def _size(difference: Difference) -> str | None:
    """A large difference as text: points of a share, or relative."""
    if not difference.difference or abs(difference.difference) < LARGE * abs(difference.base_mean or 1.0):
        return None
    if difference.metric == "good":
        points = signed(difference.difference * 100)
        return f"{'+' if difference.difference > 0 else ''}{points} points of"
    return None if difference.relative is None else change(difference.relative)


def paced(pair: Contrast) -> str:
    """`unequal pace`, where the machine's pace may have made a difference; with where, if TTFT is not of it."""
    names = {difference.metric: name for difference, name in considered(pair) if difference.doubt == "unequal pace"}
    return f"unequal pace{'' if 'ttft' in names else f' in {enumerate_words(list(names.values()))}'}" if names else ""


def have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
