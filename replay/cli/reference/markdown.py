"""What the pages of the reference have in common: tables of words, code, and which things are replay's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from replay.registry import Registry


def words(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns are all text."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def own(registry: Registry[Any]) -> Iterator[str]:
    """The names of what comes with replay."""
    return (name for name in registry if registry[name].__module__.startswith(("policies.", "replay.")))
