"""The grid of cells that an experiment declares: trace x engine settings x mode x policy x repeat.

Repeats are outermost, so that a machine that drifts treats all policies alike. Cells that measure the noise floor are
one more repeat, of one policy: they run last, so that what differs is what a whole run's time makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from replay.experiment.loading import Choice, Experiment
from replay.experiment.options import Setting
from replay.experiment.settings import Engine

BASE_POLICY = "fifo"
LONGEST = 120  # bytes of a folder's name; most file systems take 255


@dataclass(slots=True, frozen=True)
class Cell:
    """One replay. `name` is a folder's name; `variant` says what differs from others of its mode and policy, and
    `policy_variant` which part of that is a setting of the policy's own."""

    name: str
    trace: int  # which of the traces as replayed
    engine: Engine
    mode: Choice
    policy: Choice
    repeat: int
    variant: str
    policy_variant: str

    def settings(self) -> dict[str, Any]:
        """All settings in force."""
        return {
            "engine": self.engine.model_dump(mode="json"),
            "mode": self.mode.settings,
            "policy": self.policy.settings,
        }


def cells(experiment: Experiment, trace_names: list[str]) -> list[Cell]:
    """The cells in the order in which they run, of the traces as replayed. Their names are unique and cannot leave a
    folder."""
    taken: set[str] = set()
    return [_cell(experiment, trace_names, taken, *place) for place in _places(experiment, len(trace_names))]


def _places(experiment: Experiment, traces: int) -> Iterator[tuple[int, int, int, Choice, Choice]]:
    for repeat in range(experiment.repeats + experiment.noise_floor):
        policies = experiment.policies if repeat < experiment.repeats else [_base(experiment.policies)]
        for engine in range(len(experiment.engines)):
            for trace in range(traces):
                for mode in experiment.modes:
                    for policy in policies:
                        yield repeat, engine, trace, mode, policy


def _base(policies: Sequence[Choice]) -> Choice:
    """The policy that a report holds the others against."""
    return next((policy for policy in policies if policy.name == BASE_POLICY), policies[0])


def _cell(
    experiment: Experiment,
    trace_names: list[str],
    taken: set[str],
    repeat: int,
    engine_number: int,
    trace: int,
    mode: Choice,
    policy: Choice,
) -> Cell:
    engine, engine_varied = experiment.engines[engine_number]
    own = _varied(policy.varied)
    variant = ", ".join(_varied(engine_varied) + _varied(mode.varied) + own)
    parts = [mode.name, policy.name, *variant.split(", ")] if variant else [mode.name, policy.name]
    if len(trace_names) > 1:
        parts.insert(0, trace_names[trace])
    if repeat == experiment.repeats:
        parts.append("again")
    elif experiment.repeats > 1:
        parts.append(f"r{repeat + 1}")
    label = name = folder_name("-".join(parts))
    number = 2
    while name in taken:
        name, number = f"{label}-{number}", number + 1
    taken.add(name)
    return Cell(name, trace, engine, mode, policy, repeat, variant, ", ".join(own))


def _varied(settings: dict[str, Setting]) -> list[str]:
    return [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items()]


def folder_name(label: str) -> str:
    """`label` as the name of one folder: no separators, no leading dot, and bytes left for a suffix."""
    safe = re.sub(r"[^\w.=+-]+", "_", label).lstrip(".")
    return safe.encode()[:LONGEST].decode(errors="ignore") or "_"
