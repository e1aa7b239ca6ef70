"""The sentence on who gains and who pays under each policy of a mode, from what may be claimed of groups."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.contrasts import Contrast
from replay.metrics.notation import change, duration, enumerate_words
from replay.metrics.shifts import Shift


def who_pays(family: Sequence[Contrast]) -> str | None:
    """The group that gains most and the one that pays most under each policy, relatively; None if nobody does."""
    base = family[0].base
    told = [
        f"**{contrast.name}**{contrast.other.mark}: {ends}" for contrast in family if (ends := gains_and_pays(contrast))
    ]
    if not told:
        return None
    return (
        f"Who gains and who pays in {base.setting}, by mean TTFT against {base.policy}{base.mark}: {'; '.join(told)}."
    )


def gains_and_pays(contrast: Contrast) -> str:
    """`grace 4.16 s less (-96 %) and pipeline 2.83 s more (+93 %)`; empty where nothing may be claimed of a group."""
    return enumerate_words([_tell(shift) for shift in _most(contrast) if shift])


def ends_in_words(contrast: Contrast) -> str:
    """`user grace gains most (mean TTFT 4.16 s less, -96 %), class batch pays most (2.83 s more, +93 %)`."""
    told: list[str] = []
    for shift, verb in zip(_most(contrast), ("gains", "pays"), strict=True):
        if shift:
            many = "s" if shift.by != "length" else ""
            moved = f"{duration(abs(_change(shift)))} {'less' if _change(shift) < 0 else 'more'}"
            of = "" if told else "mean TTFT "
            told.append(f"{shift.who} {verb.removesuffix('s')}{many} most ({of}{moved}, {change(_relative(shift))})")
    return ", ".join(told)


def _most(contrast: Contrast) -> tuple[Shift | None, Shift | None]:
    """The group that gains most and the one that pays most, of those of which it may be claimed."""
    claimed = [shift for shift in contrast.shifts if shift.difference.seen]
    gains = [shift for shift in claimed if _change(shift) < 0]
    losses = [shift for shift in claimed if _change(shift) > 0]
    return min(gains, key=_relative, default=None), max(losses, key=_relative, default=None)


def moved(contrast: Contrast) -> float:
    """How far the group that pays most is moved, relatively; 0 where nobody pays."""
    return max((_relative(shift) for shift in contrast.shifts if shift.difference.seen), default=0.0)


def _tell(shift: Shift) -> str:
    moved = _change(shift)
    return f"{shift.name} {duration(abs(moved))} {'less' if moved < 0 else 'more'} ({change(_relative(shift))})"


def _change(shift: Shift) -> float:
    return shift.difference.difference or 0.0


def _relative(shift: Shift) -> float:
    return shift.difference.relative or 0.0
