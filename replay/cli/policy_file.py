"""A policy of one's own, given as a file: `./mine.py:Name`, or `mine.py` alone where it holds exactly one.

The policy goes by the name that it is registered under, or by its class's.
"""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from replay.cli import own_file
from replay.cli.own_file import find, imported, registered, split
from replay.errors import ExperimentError
from replay.registry import nearest
from replay.scheduler import Policy, policies


def load_policy(spec: str, folder: Path | None = None) -> str:
    """Register the policy that `spec` names, and return its name; the file is looked for in `folder` first, then here.

    Raises ExperimentError: a sentence that says what is wrong with it.
    """
    path, name = split(spec)
    file = find(path, folder, "policy")
    module = imported(file)
    return register(_policy_of(module, file, name), str(file))


def register(entry: type[Policy], where: str, name: str | None = None) -> str:
    """The name of a policy in the registry, under which it is registered now unless it was: `name`, or its class's."""
    if (known := registered(policies, entry)) is not None:
        return known
    label = f"{where}: class {entry.__name__}"
    if "__dataclass_params__" not in entry.__dict__:
        raise ExperimentError(f"{label} is no dataclass, so its options would be lost; put @dataclass above it")
    return own_file.register(policies, entry, name or entry.__name__, label, "the rule, in one sentence")


def adopt(point: EntryPoint, found: object) -> None:
    """Register what an installed package has at an entry point of the group `replay.policies`."""
    if isinstance(found, ModuleType):
        if not any(policies[name].__module__.startswith(found.__name__) for name in policies):
            raise ExperimentError(f"the module {found.__name__} registers no policy; put @policy above its classes")
    elif inspect.isclass(found) and issubclass(found, Policy):
        register(found, found.__module__, point.name)
    else:
        raise ExperimentError(f"{point.value} is no policy; a policy is a class on one of replay.scheduler's bases")


def _policy_of(module: ModuleType, file: Path, name: str | None) -> type[Policy]:
    """The class `name` of a module, or the only policy that it holds."""
    own = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Policy) and value.__module__ == module.__name__
    }
    whole = [key for key, value in own.items() if not inspect.isabstract(value)]
    if name is None:
        if len(whole) == 1:
            return own[whole[0]]
        some = f"holds {len(whole)} policies: say which, as {file}:{whole[0]}" if whole else "holds no policy"
        raise ExperimentError(f"{file}: {some}{_bases(not whole)}")
    entry = getattr(module, name, None) if name else None
    if entry is None:
        raise ExperimentError(f"{file}: there is no class {name!r}; {nearest(name, whole)}")
    if not inspect.isclass(entry) or not issubclass(entry, Policy):
        raise ExperimentError(f"{file}: {name} is no policy{_bases(True)}")
    if inspect.isabstract(entry):
        missing = ", ".join(sorted(entry.__abstractmethods__))
        raise ExperimentError(f"{file}: class {name} is no whole policy: it lacks {missing}")
    return entry


def _bases(said: bool) -> str:
    return "; a policy is a class on Ordered, PerUser, Ranked or Policy of replay.scheduler" if said else ""
