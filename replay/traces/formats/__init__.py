"""Foreign formats: one small file for each, registered by name; what it cannot do is not in its file.

A format is a dataclass whose fields are its settings; where one is one of a few words, its type says which. `read`
makes sources of a file (or of a folder): rows with canonical column names (arrivals in any form that
`arrival` knows), the hashes' block size, scope and tail, and what it left out, by reason. Types, zero outputs, rules,
order and re-basing are the same for all, so no format does them. `fits` says from a first look whether a file may be of
the format; `write`, if there is one, writes a trace.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from replay.errors import ExperimentError, TraceError
from replay.registry import Registry, nearest
from replay.traces.canonical import canonical_trace
from replay.traces.foreign.glimpse import Glimpse, glimpse
from replay.traces.reading import refuse_name, sha256_of
from replay.traces.source import Source, files_below
from replay.traces.table import Trace
from replay.traces.wording import skipped_text
from replay.traces.writing import check_target, write_whole

AUTO = "auto"


class Format(Protocol):
    """What every format does."""

    def fits(self, look: Glimpse) -> bool:
        """Whether the file may be of this format, by its names and its first row: of no other thing that it knows."""

    def read(self, path: Path) -> Source | list[Source]:
        """The rows; raises `TraceError`, a sentence that names the file and, where it can, row and column."""


@runtime_checkable
class Exporting(Protocol):
    """What a format does besides, to which a trace can be written."""

    def write(self, trace: Trace, file: Path) -> list[str]:
        """Write the trace to a file that is not there yet, and say what of it the format has no place for."""


formats: Registry[Callable[..., Format]] = Registry("trace format")


def import_trace(
    form: str, path: str | Path, *, strict: bool = False, settings: Mapping[str, Any] | None = None
) -> Trace:
    """Read a foreign file as a canonical trace, with the settings of its format; `auto` finds the format by content.

    Raises `ExperimentError` for an unknown format, else `TraceError`; if `strict`, for the first row that would be
    skipped, too.
    """
    path = Path(path)
    refuse_name(path)
    if not path.exists():
        raise TraceError(f"{path}: there is no such file")
    files = [path] if path.is_file() else files_below(path)
    for file in files:
        refuse_name(file)
    name = detected(path) if form == AUTO else form
    found = format_of(name, settings or {}).read(path)
    sources = found if isinstance(found, list) else [found]
    trace = canonical_trace(path.stem, path, sources, sha256_of(files), strict=strict)
    given = "".join(f", {key} = {value}" for key, value in (settings or {}).items())
    line = f"imported as {name}{given} from {path.name} (sha256 {trace.sha256[:16]})"
    trace.history.append(f"{line}; {skipped_text(trace.skipped)}" if trace.skipped else line)
    if form == AUTO:
        trace.notes.insert(0, f"the format is {name}: no other fits")
    return trace


def format_of(name: str, settings: Mapping[str, Any]) -> Format:
    """The format with these settings; raises `ExperimentError` for one it has not, or a word that is none of its."""
    entry = formats[name]
    kinds = get_type_hints(entry)
    for key, value in settings.items():
        if key not in kinds:
            raise ExperimentError(f"{name} has no setting {key!r}: {nearest(key, kinds)}")
        words = get_args(kinds[key]) if get_origin(kinds[key]) is Literal else ()
        if words and value not in words:
            told = f"neither {' nor '.join(words)}" if len(words) == 2 else f"none of {', '.join(words)}"
            raise ExperimentError(f"{key}: {value!r} is {told}")
    return entry(**settings)


def detected(path: Path) -> str:
    """The one format that fits; raises `TraceError` if none does, or more than one."""
    look = glimpse(path)
    found = [name for name in formats if makes(name) and formats[name]().fits(look)]
    if len(found) == 1:
        return found[0]
    if found:
        raise TraceError(
            f"{path}: may be {', '.join(sorted(found))}: name one of them in place of {AUTO}; they mean other units or "
            "blocks by the same names, as `replay trace formats NAME` says"
        )
    names = f": it has {', '.join(look.names[:12])}" if look.names and look.kind != "folder" else ""
    raise TraceError(
        f"{path}: is of no format that is known{names}; if it is a table, import it as table with "
        "--map arrival_s=...,prompt_tokens=...,output_tokens=..."
    )


def makes(name: str) -> bool:
    """Whether a format can be had without settings."""
    try:
        formats[name]()
    except (TypeError, ExperimentError):
        return False
    return True


def export_trace(form: str, trace: Trace, path: str | Path, *, force: bool = False, **settings: Any) -> list[str]:
    """Write a trace in a foreign format; returns remarks on what that has no place for.

    Raises `ExperimentError` for an unknown format or one that cannot be written, `OutputError` where it cannot be done.
    """
    exporter = format_of(form, settings)
    if not isinstance(exporter, Exporting):
        raise ExperimentError(f"a trace cannot be written as {form}; known: {', '.join(exporting())}")
    return write_whole(check_target(path, force=force), lambda file: exporter.write(trace, file))


def exporting() -> list[str]:
    """The formats to which a trace can be written."""
    return [name for name in formats if hasattr(formats[name], "write")]


for module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{module.name}")
