"""Arguments of transforms as they are declared: counts, factors, and tables of settings; each wrong one has a sentence.

It knows no trace.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from replay.errors import ExperimentError
from replay.registry import nearest


def whole(name: str, argument: object, least: int = 1) -> int:
    """The argument as a count; one that no trace can reach is as good as the largest."""
    if isinstance(argument, bool) or not isinstance(argument, int) or argument < least:
        raise ExperimentError(f"{name}: {argument!r} is not a whole number of at least {least}")
    return min(argument, 2**62)


def positive(name: str, argument: object) -> float:
    """The argument as a factor above 0."""
    number = as_number(argument)
    if number is None or number <= 0:
        raise ExperimentError(f"{name}: {argument!r} is not a number above 0")
    return number


def as_number(argument: object) -> float | None:
    """The argument as a finite number; None if it is none."""
    if isinstance(argument, bool) or not isinstance(argument, int | float) or not abs(argument) < math.inf:
        return None
    return float(argument)


def settings(name: str, argument: object, known: Collection[str], example: str) -> dict[str, Any]:
    """The argument as a table of settings with `known` names; `example` shows one that is right."""
    if not isinstance(argument, Mapping):
        raise ExperimentError(f"{name}: {argument!r} is not a table such as {example}")
    for key in argument:
        if key not in known:
            raise ExperimentError(f"{name}: there is no setting {key!r}: {nearest(str(key), known)}")
    return dict(argument)


def one_of(name: str, given: Mapping[str, Any], choices: Collection[str]) -> str:
    """The one of `choices` that a table has; it must have exactly one of them."""
    found = [choice for choice in choices if choice in given]
    if len(found) != 1:
        listed = ", ".join(choices)
        raise ExperimentError(f"{name}: give one of {listed}, not {' and '.join(found) if found else 'none'}")
    return found[0]


def choice(name: str, argument: object, choices: Collection[str]) -> str:
    """The argument as one of so many words."""
    if not isinstance(argument, str) or argument not in choices:
        raise ExperimentError(f"{name}: {argument!r} is not one of {', '.join(choices)}")
    return argument


def entries(name: str, argument: object, example: str) -> dict[str, Any]:
    """The argument as a table with at least one entry, whose keys are names of the trace."""
    if not isinstance(argument, Mapping) or not argument:
        raise ExperimentError(f"{name}: {argument!r} is not a table such as {example}")
    return {str(key): value for key, value in argument.items()}
