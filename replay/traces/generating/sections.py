"""What the tables of a specification have in common: strictness, durations, and the sentences where one is wrong.

It knows none of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.durations import nanoseconds

TICK = 1_000  # arrivals are drawn to the microsecond: finer digits could differ between two machines' logarithms


def _nanoseconds(value: object) -> int:
    try:
        return nanoseconds(value, "")
    except ExperimentError as fault:
        raise ValueError(str(fault).removeprefix(": ")) from fault


def _stretch(value: object) -> int:
    if (found := _nanoseconds(value)) < TICK:
        raise ValueError("must be a microsecond or more")
    return found


Duration = Annotated[int, BeforeValidator(_nanoseconds)]
"""As people type it, and nanoseconds inside."""
Stretch = Annotated[int, BeforeValidator(_stretch)]
"""A duration in which something can arrive."""
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A table of the file: no key but the known ones, no value but of the stated type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def spec_fault(fault: Mapping[str, Any], whole: type[Section]) -> str:
    """One of pydantic's faults in our words: the path of the key, and the nearest valid name for an unknown one."""
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] != "extra_forbidden":
        return f"{place}: {fault['msg'].removeprefix('Value error, ')}" if place else str(fault["ctx"]["error"])
    table = whole
    for part in fault["loc"][:-1]:
        if part in table.model_fields:
            table = _table(table.model_fields[part].annotation) or table
    return f"{place}: there is no such key: {nearest(fault['loc'][-1], table.model_fields)}"


def _table(annotation: object) -> type[Section] | None:
    """The table that a field holds, one or many, if it holds any."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for part in get_args(annotation) if (found := _table(part)) is not None), None)
