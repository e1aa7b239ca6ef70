"""Trace formats from elsewhere: a file of one's own, `./mine.py:Name`, and those of installed packages.

A format is a dataclass with `fits` and `read`, and `write` if a trace can be written so (`replay.traces.formats`). It
goes by the name that it is registered under, or by its class's.
"""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from replay.cli import own_file
from replay.cli.installed import load_installed
from replay.cli.own_file import find, imported, is_file, registered, split
from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.formats import formats

OWES = "a format is a dataclass with fits(look) and read(path), as docs/writing-a-format.md has one"


def format_name(spec: str) -> str:
    """The registered name of a format that is named or given as a file; raises `ExperimentError` for a faulty one."""
    unusable = load_formats()
    if spec in unusable:
        raise ExperimentError(unusable[spec])
    if not is_file(spec):
        return spec
    path, name = split(spec)
    file = find(path, None, "format")
    module = imported(file)
    own = [key for key, value in vars(module).items() if is_format(value) and value.__module__ == module.__name__]
    if name is None and len(own) != 1:
        some = f"{len(own)} formats: say which, as {file}:{own[0]}" if own else f"no format; {OWES}"
        raise ExperimentError(f"{file}: holds {some}")
    name = name or own[0]
    if not hasattr(module, name):
        raise ExperimentError(f"{file}: there is no class {name!r}; {nearest(name, own)}")
    return register(getattr(module, name), f"{file}: {name}", name)


@cache
def load_formats() -> dict[str, str]:
    """Register the formats of installed packages; of those that cannot be used, by name, a sentence that says why."""
    return load_installed("replay.formats", "format", adopt)


def adopt(point: EntryPoint, found: object) -> None:
    """Register what an installed package has at an entry point of the group `replay.formats`."""
    if isinstance(found, ModuleType):
        if not any(formats[name].__module__.startswith(found.__name__) for name in formats):
            raise ExperimentError(f"the module {found.__name__} registers no format; put @formats.register above it")
    else:
        register(found, point.value, point.name)


def register(entry: Any, where: str, name: str) -> str:
    """The name of a format in the registry, under which it is registered now unless it was."""
    if (known := registered(formats, entry)) is not None:
        return known
    if not is_format(entry):
        raise ExperimentError(f"{where} is no format; {OWES}")
    return own_file.register(formats, entry, name, where, "what `replay trace formats` lists")


def is_format(value: object) -> bool:
    """Whether it is a class that does what a format does."""
    return inspect.isclass(value) and is_dataclass(value) and hasattr(value, "fits") and hasattr(value, "read")
