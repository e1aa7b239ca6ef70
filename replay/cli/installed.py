"""Policies of installed packages: each entry point of the group `replay.policies` is a policy's class, or a module that
registers some.

A package that cannot be imported stops nobody who does not ask for its policy.
"""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from replay.cli.policy_file import register, where
from replay.errors import ExperimentError
from replay.scheduler import Policy, policies

GROUP = "replay.policies"


def register_installed() -> dict[str, str]:
    """Register them all; of each that cannot be, by the name of its entry point, a sentence that says why."""
    faults = {}
    for point in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        try:
            _adopt(point, point.load())
        except Exception as fault:  # whatever it is, the others are there
            faults[point.name] = f"{_package(point)}: its policy {point.name!r} cannot be used: {_why(fault)}"
    return faults


def _adopt(point: EntryPoint, found: object) -> None:
    if isinstance(found, ModuleType):
        if not any(policies[name].__module__.startswith(found.__name__) for name in policies):
            raise ExperimentError(f"the module {found.__name__} registers no policy; put @policy above its classes")
    elif inspect.isclass(found) and issubclass(found, Policy):
        register(found, found.__module__, point.name)
    else:
        raise ExperimentError(f"{point.value} is no policy; a policy is a class on one of replay.scheduler's bases")


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"


def _why(fault: Exception) -> str:
    """The fault, with the last place where it was in a file that is not Python's own."""
    if isinstance(fault, ExperimentError):
        return str(fault)
    frame, last = fault.__traceback__, Path()
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not name.startswith("<frozen") and Path(name).parent.name not in ("importlib", "metadata", "cli"):
            last = Path(name)
        frame = frame.tb_next
    return where(fault, last) if last.name else str(fault)
