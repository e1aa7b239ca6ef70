"""A policy of one's own, given as a file: `./mine.py:Name`, or `mine.py` alone where it holds exactly one.

The file is imported, as it is when Python runs it: what lies beside it can be imported too. The policy goes by the name
that it is registered under, or by its class's. What is wrong with the file is one sentence.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.scheduler import Policy, policies


def is_file(spec: str) -> bool:
    """Whether what stands where a policy's name is expected names a file."""
    return "/" in spec or "\\" in spec or _split(spec)[0].endswith(".py")


def load_policy(spec: str, folder: Path | None = None) -> str:
    """Register the policy that `spec` names, and return its name; the file is looked for in `folder` first, then here.

    Raises ExperimentError: a sentence that says what is wrong with it.
    """
    path, name = _split(spec)
    file = _find(path, folder)
    module = _imported(file)
    return register(_policy_of(module, file, name), str(file))


def register(entry: type[Policy], where: str, name: str | None = None) -> str:
    """The name of a policy in the registry, under which it is registered now unless it was: `name`, or its class's."""
    for known in policies:
        if policies[known] is entry:
            return known
    label = f"{where}: class {entry.__name__}"
    name = name or entry.__name__
    if "__dataclass_params__" not in entry.__dict__:
        raise ExperimentError(f"{label} is no dataclass, so its options would be lost; put @dataclass above it")
    if not entry.__doc__ or entry.__doc__.startswith(f"{entry.__name__}("):  # what @dataclass writes of itself
        raise ExperimentError(f"{label} has no docstring; its first line is the rule, in one sentence")
    if name in policies:
        raise ExperimentError(f"{label}: the name {name!r} is taken by another policy; give this one another")
    policies.register(name)(entry)
    return name


def where(fault: BaseException, file: Path) -> str:
    """`mine.py, line 3: name 'policy' is not defined`: of the frames, the last in the file counts."""
    if isinstance(fault, SyntaxError) and fault.filename:
        return f"{_short(fault.filename, file)}, line {fault.lineno}: {fault.msg}"
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) == file.resolve()]
    told = f"{type(fault).__name__}: {fault}" if isinstance(fault, KeyError | SystemExit) else str(fault)
    if isinstance(fault, ValueError) and told.startswith("two policy entries"):
        told += "; give this one another name"
    return f"{file}, line {own[-1].lineno}: {told}" if own else f"{file}: {told}"


def _short(name: str, file: Path) -> Path:
    """A file as it was given, if it is the one, and not one that it imports."""
    return file if Path(name) == file.resolve() else Path(name)


def _split(spec: str) -> tuple[str, str | None]:
    path, colon, name = spec.rpartition(":")
    return (path, name) if colon and path.endswith(".py") else (spec, None)


def _find(path: str, folder: Path | None) -> Path:
    if not path.endswith(".py"):
        raise ExperimentError(f"{path}: a policy of your own is a Python file and its class, such as ./mine.py:Name")
    places = list(dict.fromkeys(place / path for place in (folder, Path()) if place is not None))
    for place in places:
        if place.is_file():
            return place
    raise ExperimentError(f"{path}: there is no such file (looked for {', '.join(map(str, places))})")


def _imported(file: Path) -> ModuleType:
    """The module of a file: the one that was imported of it, if there is one, so that nothing is registered twice."""
    place = file.resolve()
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(place):
            return module
    label = name = f"own_{place.stem}"
    number = 2
    while name in sys.modules:
        name, number = f"{label}_{number}", number + 1
    found = importlib.util.spec_from_file_location(name, place)
    if found is None or found.loader is None:
        raise ExperimentError(f"{file}: cannot be imported")
    module = sys.modules[name] = importlib.util.module_from_spec(found)  # where dataclasses look for it
    try:
        with _beside(place.parent):
            found.loader.exec_module(module)
    except (Exception, SystemExit) as fault:
        del sys.modules[name]
        raise ExperimentError(where(fault, file)) from fault
    return module


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """What lies in `folder` can be imported, after everything else; nothing is written there."""
    writes = sys.dont_write_bytecode
    sys.path.append(str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes


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
