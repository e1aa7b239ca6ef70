"""The arms of a recipe: what each changes in the base experiment, and that it then is one policy in one mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.errors import ExperimentError
from replay.experiment.document import merged
from replay.experiment.faults import Faults
from replay.experiment.loading import Experiment, load_experiment
from replay.registry import nearest

WHOLE = ("modes", "policies")
"""Sections that name registered things: an arm that names others has only those."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing that is compared: an experiment document without its traces, and the workloads that it is given."""

    name: str
    document: dict[str, Any]
    experiment: Experiment
    workloads: Sequence[str]

    @property
    def policy(self) -> str:
        return self.experiment.policies[0].name

    @property
    def mode(self) -> str:
        return self.experiment.modes[0].name


def arms_of(
    base: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]], workloads: Sequence[str], faults: Faults
) -> dict[str, Arm]:
    """Each arm laid over the base; what is wrong with one is added to `faults`.

    An arm may name its `workloads`; else it is given all of them.
    """
    found = {}
    for name, differing in declared.items():
        given = differing.get("workloads", list(workloads))
        if not isinstance(given, list) or (strange := [one for one in given if one not in workloads]) or not given:
            near = f"; {nearest(str(strange[0]), workloads)}" if isinstance(given, list) and given else ""
            faults.add(f"arms.{name}.workloads", f"is a list of workloads, not {given!r}{near}")
            continue
        document = laid_over(base, {key: value for key, value in differing.items() if key != "workloads"})
        here = Path(faults.source)
        try:
            # any file will do for a trace: none is opened
            experiment = load_experiment({**document, "traces": [here.name]}, f"{here}: arms.{name}", here.parent)
        except ExperimentError as fault:
            for sentence in str(fault).splitlines():
                faults.add(f"arms.{name}", sentence.removeprefix(f"{here}: arms.{name}: "))
            continue
        if any(len(section) != 1 for section in (experiment.engines, experiment.modes, experiment.policies)):
            faults.add(f"arms.{name}", "must come to one policy in one mode with one set of settings")
            continue
        found[name] = Arm(name, document, experiment, given)
    return found


def laid_over(base: Mapping[str, Any], differing: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with what differs; of modes and policies only those that are named there, if any are."""
    document = merged(base, differing)
    for section in WHOLE:
        if isinstance(named := differing.get(section), Mapping) and isinstance(document[section], Mapping):
            document[section] = {name: document[section][name] for name in named}
    if "predictor" in differing.get("lengths", {}):
        document["lengths"] = dict(differing["lengths"])  # another predictor's settings are not its own
    return document
