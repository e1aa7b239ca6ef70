"""Importers: one small file for each foreign format, registered by name.

An importer is a function from a path to a `Source`: a frame with canonical column names (arrivals in any form that
`arrival` knows), the hashes' block size and scope, and what it left out, by reason. Types, zero outputs, rules, order
and re-basing are the same for all, so no importer does them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

from replay.errors import TraceError
from replay.registry import Registry
from replay.traces.canonical import Source, canonical_trace, skipped_text
from replay.traces.reading import sha256_of
from replay.traces.table import Trace

Importer = Callable[[Path], Source]
importers: Registry[Importer] = Registry("trace format")


def import_trace(form: str, path: str | Path) -> Trace:
    """Read a foreign file, or a folder where the format is one, as a canonical trace.

    Raises `ExperimentError` for an unknown format, else `TraceError`.
    """
    path = Path(path)
    importer = importers[form]
    if not path.exists():
        raise TraceError(f"{path}: there is no such file")
    sha256 = sha256_of([path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file()))
    trace = canonical_trace(path.stem, path, [importer(path)], sha256)
    line = f"imported as {form} from {path.name} (sha256 {sha256[:16]})"
    trace.history.append(f"{line}; {skipped_text(trace.skipped)}" if trace.skipped else line)
    return trace


for module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{module.name}")
