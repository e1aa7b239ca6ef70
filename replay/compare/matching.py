"""Which cells of different runs are the same cell: same requests, mode, policy, and settings of both.

Settings of the engine are what runs may differ in, unless a run swept them: then each is a cell. What is found in one
run only is kept apart, and listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.compare.sides import Side
from replay.compare.traces import changed, traces_of
from replay.errors import ExperimentError
from replay.metrics.arms import Arm
from replay.metrics.notation import enumerate_words
from replay.results import Cell
from replay.traces.wording import named

PARTS = ("engine", "mode", "policy")
SETTINGS = "a setting of mode or policy"


@dataclass(frozen=True, slots=True)
class Place:
    """A cell in one run, its repeats together. `arm` is None where it left no rows, which `why` tells."""

    arm: Arm | None
    cell: Cell  # that stands for the others
    why: str = ""
    left_out: int = 0  # repeats that did not run to their end, beside others that did

    @property
    def doubt(self) -> str | None:
        """Why its figures are not to be relied on; None where they are."""
        if self.arm is None:
            return self.why
        if not self.arm.valid:
            reasons = [cell.invalid_reason for cell in self.arm.cells if not cell.valid and cell.invalid_reason]
            return f"invalid: {reasons[0]}" if reasons else "invalid"
        return "partial" if self.arm.mark else None

    @property
    def mark(self) -> str:
        return " (no rows)" if self.arm is None else self.arm.mark


@dataclass(frozen=True, slots=True)
class Row:
    """A cell, with its place in each run that has it, by the number of the run."""

    trace: str
    setting: str
    policy: str
    places: Mapping[int, Place]

    @property
    def cell(self) -> Cell:
        return next(iter(self.places.values())).cell


@dataclass(frozen=True, slots=True)
class Matching:
    """`rows` are cells that some two runs share (all, of a single run); `lone` those that one run alone has."""

    rows: Sequence[Row]
    lone: Sequence[Row]
    traces: Sequence[str]
    notes: Sequence[str]
    loose: Mapping[str, frozenset[str]]  # settings of the engine that no run swept, and of the rest those left out


@dataclass(frozen=True, slots=True)
class _Names:
    """Settings by kind and by the mode or policy that they are of: those that tell cells apart; those that vary."""

    known: Mapping[tuple[str, str], frozenset[str]]
    varied: Mapping[tuple[str, str], frozenset[str]]


def match(sides: Sequence[Side], across: Sequence[str] = ()) -> Matching:
    """The cells of all sides, matched. `across` names settings in which they may differ, as runs may in the engine's.

    ExperimentError when no two runs share a cell, or a run has two cells that only such a setting tells apart.
    """
    names, notes = _names(sides, frozenset(across))
    traces, labels = traces_of(sides)
    notes += changed(sides, traces, labels)
    found: dict[tuple[Any, ...], dict[int, list[Cell]]] = {}
    for number, side in enumerate(sides):
        for cell in side.run.cells:
            key = (traces[number, cell.trace], cell.mode, cell.policy, *(_key(cell, part, names) for part in PARTS))
            found.setdefault(key, {}).setdefault(number, []).append(cell)
    rows = []
    for (trace, *_), places in found.items():
        cell = next(iter(places.values()))[0]
        own = _varied(cell, "engine", names) + _varied(cell, "mode", names)
        policy = cell.policy + (f" ({', '.join(varied)})" if (varied := _varied(cell, "policy", names)) else "")
        arm = Arm(labels[trace], cell.mode, policy, ", ".join(own), cells=())
        for number, cells in places.items():
            _check_apart(sides[number], cells, across)
        kept = {number: _place(arm, cells) for number, cells in sorted(places.items())}
        rows.append(Row(arm.trace, arm.setting, policy, kept))
    shared = [row for row in rows if len(row.places) > 1 or len(sides) == 1]
    lone = [row for row in rows if row not in shared]
    if not shared:
        raise ExperimentError(_nothing_shared(sides, lone, notes))
    loose = {part: _loose(sides, part, names, frozenset(across)) for part in PARTS}
    return Matching(shared, lone, list(dict.fromkeys(row.trace for row in rows)), notes, loose)


def settings_of(cell: Cell, part: str) -> Mapping[str, Any]:
    """The settings in force of its `engine`, `mode` or `policy`."""
    return cell.settings.get(part) or {}


def text_of(value: Any) -> str:
    """A setting as it is written in a name: a rule by its name and its own settings."""
    if isinstance(value, Mapping) and "rule" in value:
        return " ".join([str(value["rule"]), *(f"{name} {each}" for name, each in value.items() if name != "rule")])
    return value if isinstance(value, str) else json.dumps(value)


def _owner(cell: Cell, part: str) -> tuple[str, str]:
    return part, {"engine": "", "mode": cell.mode, "policy": cell.policy}[part]


def _names(sides: Sequence[Side], across: frozenset[str]) -> tuple[_Names, list[str]]:
    """Which settings tell cells apart: those of a mode or policy that every run knows; of the engine, those swept."""
    values: dict[tuple[str, str], list[dict[str, set[str]]]] = {}
    for number, side in enumerate(sides):
        for cell in side.run.cells:
            for part in PARTS:
                each = values.setdefault(_owner(cell, part), [{} for _ in sides])
                for name, value in settings_of(cell, part).items():
                    each[number].setdefault(name, set()).add(_canonical(value))
    known, varied, notes = {}, {}, []
    for owner, each in values.items():
        having = [found for found in each if found]
        everywhere = frozenset.intersection(*(frozenset(found) for found in having)) if having else frozenset()
        if owner[0] == "engine":
            swept = frozenset(name for found in having for name, tried in found.items() if len(tried) > 1)
            known[owner] = varied[owner] = (swept & everywhere) - across
            continue
        known[owner] = everywhere - across
        varied[owner] = frozenset(
            name for name in known[owner] if len(set.union(*(found[name] for found in having))) > 1
        )
        if odd := frozenset(name for found in having for name in found) - everywhere:
            notes.append(
                f"{owner[0]} {owner[1]}: not every run knows {enumerate_words(sorted(odd))}: not matched by it"
            )
    return _Names(known, varied), notes


def _loose(sides: Sequence[Side], part: str, names: _Names, across: frozenset[str]) -> frozenset[str]:
    """Settings in which matched cells may differ."""
    cells = [cell for side in sides for cell in side.run.cells]
    held = {name for cell in cells for name in names.known[_owner(cell, part)]}
    used = {name for cell in cells for name in settings_of(cell, part)}
    return frozenset(used - held if part == "engine" else used & across)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _key(cell: Cell, part: str, names: _Names) -> str:
    known = names.known[_owner(cell, part)]
    settings = {name: value for name, value in settings_of(cell, part).items() if name in known}
    return _canonical(settings)


def _varied(cell: Cell, part: str, names: _Names) -> list[str]:
    """`max_running=8`: the settings that tell it from cells of its mode or policy, of whichever run."""
    varied = names.varied[_owner(cell, part)]
    return [f"{name}={text_of(value)}" for name, value in settings_of(cell, part).items() if name in varied]


def _check_apart(side: Side, cells: Sequence[Cell], across: Sequence[str]) -> None:
    """Cells that are taken for repeats must be repeats."""
    if len({cell.variant for cell in cells}) > 1:
        tried = enumerate_words(list(dict.fromkeys(cell.variant or cell.mode for cell in cells)))
        blame = f"; do not give --across {enumerate_words(list(across))}" if across else ""
        raise ExperimentError(f"{side.run.folder}: nothing but {tried} tells some of its cells apart{blame}")


def _place(arm: Arm, cells: Sequence[Cell]) -> Place:
    """Of the repeats those that ran to their end, or else what there is."""
    recorded = [cell for cell in cells if cell.recorded]
    if not recorded:
        first = next((cell for cell in cells if cell.error), cells[0])
        return Place(None, first, f"{first.status}, and left no rows" + (f": {first.error}" if first.error else ""))
    whole = [cell for cell in recorded if not cell.partial]
    kept = whole or recorded
    left_out = len(cells) - len(kept)
    return Place(Arm(arm.trace, arm.mode, arm.policy, arm.variant, kept), kept[0], left_out=left_out)


def _differing(lone: Sequence[Row]) -> list[str]:
    """The settings in which cells of one trace, mode and policy differ between runs; none where no more matches."""
    alike: dict[tuple[str, str, str], list[Cell]] = {}
    for row in lone:
        alike.setdefault((row.trace, row.cell.mode, row.cell.policy), []).append(row.cell)
    names: dict[str, None] = {}
    for cells in alike.values():
        for part in ("mode", "policy"):
            known = [settings_of(cell, part) for cell in cells]
            names |= {
                name: None
                for name in known[0]
                if len({_canonical(settings[name]) for settings in known if name in settings}) > 1
            }
    return list(names)


def _nothing_shared(sides: Sequence[Side], lone: Sequence[Row], notes: Sequence[str]) -> str:
    """What each run has, and what may be done."""
    told = []
    for number, side in enumerate(sides):
        mine = [f"{named(row.trace)}: {row.setting}, {row.policy}" for row in lone if number in row.places]
        more = f" and {len(mine) - 3} more" if len(mine) > 3 else ""
        told.append(f"{named(side.label)} has {'; '.join(mine[:3])}{more}")
    differ = _differing(lone)
    options = " ".join(f"--across {name}" for name in differ) if differ else "--across SETTING"
    remedy = f"{options} matches cells that differ in {'it' if len(differ) == 1 else 'them' if differ else SETTINGS}"
    return "\n".join([f"no two of these runs have a cell in common ({remedy})", *told, *notes])
