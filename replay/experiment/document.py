"""The TOML of an experiment as it is typed: a file, and fragments on the command line that are laid over it.

It knows TOML, and nothing of what an experiment holds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from replay.errors import ExperimentError


def read_document(file: Path) -> dict[str, Any]:
    """The TOML of an experiment file. Raises ExperimentError when it cannot be read, with line and column."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ExperimentError(f"{file}: cannot be read ({fault.strerror})") from fault
    except UnicodeDecodeError as fault:
        if file.read_bytes()[:4] == b"PAR1":
            raise ExperimentError(
                f"{file}: is a Parquet file, not an experiment; replay it with --trace {file}"
            ) from fault
        raise ExperimentError(f"{file}: is not UTF-8 text, so it is not TOML (byte {fault.start})") from fault
    except tomllib.TOMLDecodeError as fault:
        raise ExperimentError(f"{file}: is not TOML: {fault}") from fault


def parse_setting(text: str, option: str = "--set") -> dict[str, Any]:
    """`engine.kv_blocks=4096` as TOML; a value that TOML does not know (`engine.model=tiny`) is text, so is a time."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ExperimentError(f"{option} {text}: is KEY=VALUE, such as engine.kv_blocks=4096")
    for fragment in (text, f"{key} = {_quoted(value.strip())}"):
        try:
            found = tomllib.loads(fragment)
            if fragment is text and isinstance(_innermost(found), date | time):
                continue  # as TOML it is cut to microseconds
            return found
        except tomllib.TOMLDecodeError as error:
            fault = error
    raise ExperimentError(f"{option} {text}: is not TOML: {fault}")


def merged(document: Mapping[str, Any], addition: Mapping[str, Any]) -> dict[str, Any]:
    """`document` with `addition` laid over it, table by table."""
    result = dict(document)
    for key, value in addition.items():
        under = result.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        result[key] = merged(under, value) if both else value  # type: ignore[arg-type]  # both are mappings
    return result


def paths_of(document: Mapping[str, Any], above: str = "") -> list[str]:
    """The paths of a document's values: `engine.kv_blocks`."""
    found = []
    for key, value in document.items():
        path = f"{above}.{key}" if above else key
        found += paths_of(value, path) if isinstance(value, Mapping) and value else [path]
    return found


def _innermost(value: Any) -> Any:
    """The one value of tables with one key each."""
    while isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return value


def _quoted(text: str) -> str:
    """`text` as a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
