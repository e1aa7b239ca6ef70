"""The settings in force: every key of engine, mode and policy with its value, defaults included, and where it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replay.report.findings import Findings
from replay.report.tables import markdown
from replay.traces.wording import toml_text

EVERYWHERE = "everywhere"


def settings_in_force(findings: Findings) -> str:
    """A table: the key as an experiment has it, its value, and in which cells, where it is not the same in all."""
    cells = findings.run.cells
    rows = _rows("engine", [(cell.setting, cell.settings.get("engine")) for cell in cells])
    for mode in dict.fromkeys(cell.mode for cell in cells):
        here = [(cell.setting, cell.settings.get("mode")) for cell in cells if cell.mode == mode]
        rows += _rows(f"modes.{mode}", here)
    for policy in dict.fromkeys(cell.policy for cell in cells):
        here = [(cell.named_policy, cell.settings.get("policy")) for cell in cells if cell.policy == policy]
        rows += _rows(f"policies.{policy}", here)
    return markdown(["key", "value", "where"], rows, words=3) if rows else ""


def _rows(prefix: str, found: Sequence[tuple[str, Mapping[str, Any] | None]]) -> list[list[str]]:
    """A row for each key and value; `found` is what each cell is called there, and its settings."""
    values: dict[str, dict[str, list[str]]] = {}
    for name, settings in found:
        for key, value in _flat(settings or {}).items():
            values.setdefault(key, {}).setdefault(_text(value), []).append(name)
    return [
        [f"`{prefix}.{key}`", f"`{value}`" if value else "not set", _where(names, len(by_value))]
        for key, by_value in values.items()
        for value, names in by_value.items()
    ]


def _where(names: Sequence[str], values: int) -> str:
    return EVERYWHERE if values == 1 else ", ".join(dict.fromkeys(names))


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables by dotted keys: `cost.fixed_ms`."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": each for inner, each in _flat(value).items()}
        else:
            flat[key] = value
    return flat


def _text(value: Any) -> str:
    return "" if value is None else toml_text(value)
