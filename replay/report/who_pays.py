"""The sentence on who gains and who pays under each policy of a mode, from what may be claimed of groups."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.contrasts import Contrast
from replay.metrics.notation import change, duration, enumerate_words
from replay.metrics.shifts import Shift


def who_pays(family: Sequence[Contrast]) -> str | None:
    """The group that gains most and the one that pays most under each policy, relatively; None if nobody does."""
    base = family[0].base
    told = []
    for contrast in family:
        claimed = [shift for shift in contrast.shifts if shift.difference.seen]
        gains = [shift for shift in claimed if _change(shift) < 0]
        losses = [shift for shift in claimed if _change(shift) > 0]
        most = [chosen(shifts, key=_relative) for chosen, shifts in ((min, gains), (max, losses)) if shifts]
        if most:
            told.append(
                f"**{contrast.name}**{contrast.other.mark}: {enumerate_words([_tell(shift) for shift in most])}"
            )
    if not told:
        return None
    return (
        f"Who gains and who pays in {base.setting}, by mean TTFT against {base.policy}{base.mark}: {'; '.join(told)}."
    )


def _tell(shift: Shift) -> str:
    moved = _change(shift)
    return f"{shift.name} {duration(abs(moved))} {'less' if moved < 0 else 'more'} ({change(_relative(shift))})"


def _change(shift: Shift) -> float:
    return shift.difference.difference or 0.0


def _relative(shift: Shift) -> float:
    return shift.difference.relative or 0.0
