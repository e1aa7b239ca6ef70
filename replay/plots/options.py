"""Options of pictures: a plot declares them as keyword-only arguments, each annotated with an `Option`.

`replay plot` and `draw` read them from there, so that a new one touches the plot's own file and nothing else. It knows
no picture.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from replay.clock import NANOSECONDS
from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.durations import nanoseconds


def text(value: object, _: str) -> str:
    """What was typed, as it is."""
    return str(value)


def seconds(value: object, place: str) -> float:
    """Seconds from a duration such as "1m30s", or from a number of them. ExperimentError where it is none."""
    with suppress(ValueError):
        value = float(value) if isinstance(value, str) else value
    return nanoseconds(value, place) / NANOSECONDS


@dataclass(frozen=True, slots=True)
class Option:
    """What may be asked of a picture: `count` values at once, and again if it is `repeatable`. `read` makes a value of
    what was typed, and is given the option's name for its sentence."""

    metavar: str
    help: str
    count: int = 1
    repeatable: bool = False
    read: Callable[[object, str], Any] = text


def options_of(plot: Callable[..., object]) -> dict[str, Option]:
    """The options of a plot by name, in the order in which it declares them."""
    found = {}
    for name, parameter in inspect.signature(plot, eval_str=True).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            metadata = getattr(parameter.annotation, "__metadata__", ())
            (found[name],) = (part for part in metadata if isinstance(part, Option))
    return found


def read_options(picture: str, plot: Callable[..., object], given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of a plot from what was asked, typed or as Python values.

    ExperimentError for an option that this picture does not have, and for a value that cannot be read.
    """
    known = options_of(plot)
    if unknown := [name for name in given if name not in known]:
        takes = nearest(unknown[0], known) if known else "it takes none"
        raise ExperimentError(f"the picture {picture!r} has no option {unknown[0]!r}: {takes}")
    return {name: _read(name, known[name], value) for name, value in given.items()}


def _read(name: str, option: Option, value: Any) -> Any:
    if option.repeatable:
        values = [value] if isinstance(value, str) else value
        return tuple(option.read(one, name) for one in values)
    if option.count == 1:
        return option.read(value, name)
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != option.count:
        raise ExperimentError(f"{name}: {value!r} is not {option.metavar}")
    return tuple(option.read(one, name) for one in value)
