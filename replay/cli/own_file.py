"""Something of one's own, given as a file: `./mine.py:Name`, wherever the name of a registered thing is expected.

The file is imported, as it is when Python runs it: what lies beside it can be imported too. It knows not what is in it;
what is wrong with the file is one sentence.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from replay.errors import ExperimentError
from replay.registry import Registry


def is_file(spec: str) -> bool:
    """Whether what stands where a policy's name is expected names a file."""
    return "/" in spec or "\\" in spec or split(spec)[0].endswith(".py")


def split(spec: str) -> tuple[str, str | None]:
    """The file that is named, and what in it."""
    path, colon, name = spec.rpartition(":")
    return (path, name) if colon and path.endswith(".py") else (spec, None)


def find(path: str, folder: Path | None, kind: str) -> Path:
    """Where the file lies: in `folder`, or here; `kind` is what it should hold."""
    if not path.endswith(".py"):
        raise ExperimentError(f"{path}: a {kind} of your own is a Python file and its class, such as ./mine.py:Name")
    places = list(dict.fromkeys(place / path for place in (folder, Path()) if place is not None))
    for place in places:
        if place.is_file():
            return place
    raise ExperimentError(f"{path}: there is no such file (looked for {', '.join(map(str, places))})")


def imported(file: Path) -> ModuleType:
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


def registered(registry: Registry[Any], entry: Any) -> str | None:
    """The name under which it is registered already."""
    return next((name for name in registry if registry[name] is entry), None)


def register(registry: Registry[Any], entry: Any, name: str, label: str, docstring: str) -> str:
    """Register it under `name`; `label` tells where it is, and `docstring` what the first line of that is for."""
    if not entry.__doc__ or entry.__doc__.startswith(f"{entry.__name__}("):  # what @dataclass writes of itself
        raise ExperimentError(f"{label} has no docstring; its first line is {docstring}")
    if name in registry:
        kind = registry.kind.split()[-1]
        raise ExperimentError(f"{label}: the name {name!r} is taken by another {kind}; give this one another")
    registry.register(name)(entry)
    return name


def where(fault: BaseException, file: Path) -> str:
    """`mine.py, line 3: name 'policy' is not defined`: of the frames, the last in the file counts."""
    if isinstance(fault, SyntaxError) and fault.filename:
        return f"{_short(fault.filename, file)}, line {fault.lineno}: {fault.msg}"
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) == file.resolve()]
    told = f"{type(fault).__name__}: {fault}" if isinstance(fault, KeyError | SystemExit) else str(fault)
    if isinstance(fault, ValueError) and re.match("two .* entries are named", told):
        told += "; give this one another name"
    return f"{file}, line {own[-1].lineno}: {told}" if own else f"{file}: {told}"


def _short(name: str, file: Path) -> Path:
    """A file as it was given, if it is the one, and not one that it imports."""
    return file if Path(name) == file.resolve() else Path(name)


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
