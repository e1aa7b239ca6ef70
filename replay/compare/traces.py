"""Which traces of different runs are the same: those of one name whose requests are, after their transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from replay.compare.sides import Side
from replay.results import Run
from replay.traces.wording import named

ASKED = (
    *("row", "arrival", "prompt_tokens", "output_tokens", "max_tokens"),
    *("user", "session", "turn", "priority", "deadline", "slo"),
)
"""What a trace asks for: two traces that are the same in these are one."""


def traces_of(sides: Sequence[Side]) -> tuple[dict[tuple[int, str], int], list[str]]:
    """A number for each trace of each run, the same for the same requests under one name; and what each is called.

    Of a trace that no cell replayed to its end the requests are not known: it is taken for the first of its name.
    """
    contents: list[tuple[str, pl.DataFrame | None, int]] = []
    found: dict[tuple[int, str], int] = {}
    unknown = []
    for number, side in enumerate(sides):
        for name in dict.fromkeys(cell.trace for cell in side.run.cells):
            rows = _asked(side.run, name)
            if rows is None:
                unknown.append((number, name))
                continue
            alike = (
                place
                for place, (known, held, _) in enumerate(contents)
                if known == name and held is not None and held.equals(rows)
            )
            place = next(alike, len(contents))
            if place == len(contents):
                contents.append((name, rows, number))
            found[number, name] = place
    for number, name in unknown:
        place = next((place for place, (known, _, _) in enumerate(contents) if known == name), len(contents))
        if place == len(contents):
            contents.append((name, None, number))
        found[number, name] = place
    names = [name for name, _, _ in contents]
    return found, [
        f"{name} (of {sides[number].label})" if names.count(name) > 1 else name for name, _, number in contents
    ]


def changed(sides: Sequence[Side], traces: Mapping[tuple[int, str], int], labels: Sequence[str]) -> list[str]:
    """A sentence for each name that stands for different requests."""
    notes = []
    for name in dict.fromkeys(name for _, name in traces):
        here = {number: place for (number, other), place in traces.items() if other == name}
        if len(set(here.values())) > 1:
            told = []
            for number in here:
                trace = sides[number].run.trace(name)
                facts = [f"{trace.rows:,} requests" if trace.rows is not None else "requests"]
                facts += [f"sha256 {sha[:12]}"] if (sha := _sha256(sides[number], name)) else []
                told.append(f"{named(sides[number].label)}: {', '.join(facts)}")
            notes.append(
                f"trace {named(name)} is not the same requests everywhere, so no cells of it match ({'; '.join(told)})"
            )
    return notes


def _sha256(side: Side, name: str) -> str | None:
    """Of the file that the trace was read from, if the manifest tells."""
    entries = side.run.manifest.get("traces", [])
    return next((entry.get("sha256") for entry in entries if entry.get("name") == name), None)


def _asked(run: Run, trace: str) -> pl.DataFrame | None:
    """The requests of a trace as a run replayed it, after its transforms; None where no cell of it ran to its end."""
    whole = next((cell for cell in run.cells if cell.trace == trace and cell.recorded and not cell.partial), None)
    return None if whole is None else whole.table("requests").select(ASKED).sort("row")
