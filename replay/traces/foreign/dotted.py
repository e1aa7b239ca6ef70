"""Fields within fields by dotted names, `usage.prompt_tokens`, in JSON objects and in Parquet's structures.

It knows no format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl


def paths(fields: dict[str, Any], above: str = "") -> Iterator[str]:
    """The names of an object's fields, and of those within them: `usage`, `usage.prompt_tokens`."""
    for name, value in fields.items():
        yield above + name
        if isinstance(value, dict):
            yield from paths(value, f"{above}{name}.")


def written(fields: dict[str, Any], path: str) -> str | None:
    """The text of a field; numbers, whose digits are text already, as they stand in the file."""
    value: Any = fields.get(path)
    if value is None and "." in path:
        value = fields
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
    if value is None or isinstance(value, str):
        return value
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else json.dumps(value)


def members(schema: pl.Schema) -> Iterator[tuple[str, pl.Expr]]:
    """The columns of a Parquet file and the fields within them, by dotted name."""
    found: list[tuple[str, pl.Expr, Any]] = [(name, pl.col(name), dtype) for name, dtype in schema.items()]
    while found:
        name, value, dtype = found.pop(0)
        yield name, value
        inner = dtype.fields if isinstance(dtype, pl.Struct) else ()
        found += [(f"{name}.{part.name}", value.struct.field(part.name), part.dtype) for part in inner]
