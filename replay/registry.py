"""Things found by name: policies, modes, length predictors, importers, transforms, metrics, plots.

A registry knows names and what stands behind them; it does not import anybody. Whoever wants the entries of a
package imports that package.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from replay.errors import ExperimentError

T = TypeVar("T")
Entry = TypeVar("Entry")
MANY = 12  # names that a sentence lists


def nearest(name: str, candidates: Iterable[str]) -> str:
    """A clause that helps with a name that does not exist: the nearest valid one, or all of them, or some of many."""
    known = list(candidates)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    if not known:
        return "there are none"
    more = f" and {len(known) - MANY} more" if len(known) > MANY else ""
    return f"known: {', '.join(sorted(known)[:MANY])}{more}"


class Registry(Generic[T]):
    """A dict from name to entry, in order of registration, that answers a wrong name with a helpful sentence."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """A decorator: `@policies.register("fifo")`. Two entries of one name are a bug, so they are refused."""

        def keep(entry: Entry) -> Entry:
            if name in self._entries and self._entries[name] is not entry:
                raise ValueError(f"two {self.kind} entries are named {name!r}")
            self._entries[name] = entry  # type: ignore[assignment]  # T is what this registry promises to hold
            return entry

        return keep

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise ExperimentError(f"there is no {self.kind} {name!r}: {nearest(name, self._entries)}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
