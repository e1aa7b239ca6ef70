"""What runs differ in besides their cells: engine, machine, versions, seed, goals. It goes by manifests alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.compare.matching import PARTS, Matching, settings_of, text_of
from replay.compare.sides import Side

HEADS = {
    "hardware": "machine",
    "versions": "version",
    "seed": "seed",
    "goals": "goals",
    "service": "service",
    "predictor": "predictor",
    "predictor_options": "predictor",
    "priority_order": "priority order",
    "open_loop": "open loop",
    "lag_limit_ms": "lag limit, ms",
    "repeats": "repeats",
}
"""Of the manifest, and what each is called."""
ABSENT = "none"


@dataclass(frozen=True, slots=True)
class Fact:
    """What is not the same everywhere: its name, and its value in each run."""

    name: str
    values: Sequence[str]

    def __str__(self) -> str:
        return f"{self.name}: {' / '.join(self.values)}"


def differing(sides: Sequence[Side], matching: Matching) -> list[Fact]:
    """Everything in which the runs differ, the engine first."""
    told = [dict(_facts(side, matching)) for side in sides]
    names = list(dict.fromkeys(name for facts in told for name in facts))
    found = [Fact(name, [facts.get(name, ABSENT) for facts in told]) for name in names]
    order = ("engine", "step", "device", "machine", "version", "mode", "policy", "trace")
    different = [fact for fact in found if len(set(_told(fact))) > 1]

    def rank(fact: Fact) -> int:
        kind = fact.name.partition(" ")[0].partition(".")[0]
        return order.index(kind) if kind in order else len(order)

    return sorted(different, key=rank)


def _told(fact: Fact) -> Sequence[str]:
    """The values that are held against each other. Not every run has a device or a policy; that is told elsewhere."""
    optional = fact.name.startswith(("device.", "step ", "policy ", "trace "))
    return [value for value in fact.values if value != ABSENT or not optional]


def _facts(side: Side, matching: Matching) -> Iterator[tuple[str, str]]:
    for part in PARTS:
        values: dict[str, dict[str, None]] = {}
        for cell in side.run.cells:
            owner = {"engine": "engine", "mode": f"mode {cell.mode}", "policy": f"policy {cell.policy}"}[part]
            loose = {name: value for name, value in settings_of(cell, part).items() if name in matching.loose[part]}
            if not cell.simulated:
                loose.pop("cost", None)  # of the simulated engine alone
            for name, value in _flat(loose, owner):
                values.setdefault(name, {})[value] = None
        yield from ((name, ", ".join(found)) for name, found in values.items())
    for name, value in _engines(side):
        yield f"device.{name}", value
    yield from _paces(side)
    manifest = side.run.manifest
    for key, head in HEADS.items():
        for name, value in _flat(manifest.get(key)):
            yield f"{head}.{name}" if name else head, value
    for trace in manifest.get("traces") or []:
        if trace.get("sha256"):  # what is no request's own, such as shared prefixes, is in the file alone
            yield f"trace {trace.get('name')}: its file, sha256", str(trace["sha256"])[:12]
    for policy in manifest.get("policies") or []:
        yield f"policy {policy.get('name')}: its file, sha256", str(policy.get("sha256"))[:12]


def _engines(side: Side) -> Iterator[tuple[str, str]]:
    """What the engines say of themselves, but for a cost model that was given: it is among the settings."""
    found: dict[str, dict[str, None]] = {}
    for engine in side.run.manifest.get("engines") or []:
        details = dict(engine.get("details") or {})
        if engine.get("simulated"):
            details.pop("cost", None)
        for name, value in _flat(details):
            found.setdefault(name, {})[value] = None
    yield from ((name, ", ".join(values)) for name, values in found.items())


def _paces(side: Side) -> Iterator[tuple[str, str]]:
    """How long a step took at warm-up, by part: how fast the machine was on that day."""
    found: dict[str, dict[str, None]] = {}
    for cell in side.run.recorded:
        if not cell.simulated and cell.cost:
            for name, seconds in cell.cost.items():
                found.setdefault(name, {})[f"{1000 * seconds:.3g}"] = None
    yield from ((f"step at warm-up, ms.{name}", ", ".join(values)) for name, values in found.items())


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and "rule" not in value:
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else str(key))
    elif value is not None:
        yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return text_of(value)
