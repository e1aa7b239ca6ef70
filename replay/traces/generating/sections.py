"""What the tables of a specification have in common: strictness, durations, and the sentences where one is wrong.

It knows none of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.durations import nanoseconds

MOST_COPIES = 1_000_000
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


WORDS = {
    "missing": "is required",
    "too_short": "needs {min_length} or more values",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    **dict.fromkeys(("int_type", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("model_type", "model_attributes_type"), "must be a table"),
}


def spec_faults(faults: Sequence[Mapping[str, Any]], whole: type[Section]) -> str:
    """Pydantic's faults in our words, all in a line; a list is not also too short for what is wrong within it."""
    places = [fault["loc"] for fault in faults]
    own = [
        fault
        for fault in faults
        if fault["type"] != "too_short" or not any(place[:-1] == fault["loc"] for place in places)
    ]
    return "; ".join(spec_fault(fault, whole) for fault in own)


def spec_fault(fault: Mapping[str, Any], whole: type[Section]) -> str:
    """One fault: the path of the key, and the nearest valid name for an unknown one."""
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "value_error":
        said = str(fault["ctx"]["error"])
        return f"{place}: {said}" if place else said
    if fault["type"] != "extra_forbidden":
        said = WORDS.get(fault["type"], fault["msg"]).format_map(fault.get("ctx", {}))
        return f"{place}: {said}"
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
