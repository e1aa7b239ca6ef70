"""Settings that are a rule: `"adaptive"`, or a table such as `{ rule = "aimd", tpot_ms = 40 }`; some may be a number.

Such a field of a registered thing names its rules in its metadata, as a registry under `rules`; with a `minimum` a
number will do too. A rule is a dataclass, its fields are its settings, and a list of any of these forms is swept. It
does not know what the rules do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from typing import Any

from replay.errors import ExperimentError
from replay.experiment.faults import Faults
from replay.experiment.options import Setting, option_fields, options_model, validate_sweep
from replay.registry import Registry, nearest

Value = int | dict[str, Any]
"""A number, or a rule as a table of its name and all its settings."""


def validate_options(
    entry: Callable[..., Any], settings: object, path: str, faults: Faults
) -> list[tuple[dict[str, Any], dict[str, Setting]]]:
    """All combinations that `settings` declares of a registered thing, each complete, with what each varies.

    A rule is a complete table in a combination, and goes by a short name in what that varies.
    """
    read: dict[str, dict[Setting, Value]] = {}
    if isinstance(settings, Mapping):
        ruled = {field.name: field for field in option_fields(entry) if "rules" in field.metadata}
        plain = {}  # in the order given, which is that of what is varied
        for name, given in settings.items():
            if name not in ruled or given == []:
                plain[name] = given
            elif found := _values(given, ruled[name], f"{path}.{name}", faults):
                names = short_names(found)
                read[name] = dict(zip(names, found, strict=True))
                plain[name] = names if isinstance(given, list) or len(names) > 1 else names[0]
        settings = plain
    combinations = []
    for validated, varied in validate_sweep(options_model(entry), settings, path, faults):
        values = validated.model_dump()
        for name, rules in read.items():
            values[name] = rules[values[name]]
        combinations.append((values, varied))
    return combinations


def make(entry: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """What `entry` is with validated settings. Rules in them are made anew, for they may keep notes."""
    values = dict(settings)
    for field in option_fields(entry):
        if "rules" in field.metadata and isinstance(values.get(field.name), Mapping):
            table = dict(values[field.name])
            values[field.name] = field.metadata["rules"][table.pop("rule")](**table)
    return entry(**values)


def short_names(values: Sequence[Value]) -> list[Setting]:
    """Names to tell apart what is swept: numbers are their own, rules go by their name and by what differs among them.

    `[8, {rule: aimd, tpot_ms: 20, ...}, {rule: aimd, tpot_ms: 40, ...}]`: `8`, `aimd tpot_ms 20`, `aimd tpot_ms 40`.
    """
    names: list[Setting] = []
    for value in values:
        if isinstance(value, int):
            names.append(value)
            continue
        alike = [other for other in values if not isinstance(other, int) and other["rule"] == value["rule"]]
        differing = [setting for setting in value if any(other[setting] != value[setting] for other in alike)]
        names.append(" ".join([value["rule"], *(f"{setting} {_short(value[setting])}" for setting in differing)]))
    return names


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _values(given: object, field: Field[Any], path: str, faults: Faults) -> list[Value]:
    """What is swept by `given`; what is wrong with it is added to `faults` and left out."""
    if not isinstance(given, list):
        return _read(given, field, path, faults)
    return [value for place, one in enumerate(given) for value in _read(one, field, f"{path}[{place}]", faults)]


def _read(given: object, field: Field[Any], path: str, faults: Faults) -> list[Value]:
    """One number, or a rule with every combination of its settings."""
    rules: Registry[Callable[..., Any]] = field.metadata["rules"]
    numbers = "minimum" in field.metadata
    if numbers and isinstance(given, int) and not isinstance(given, bool):
        if given < field.metadata["minimum"]:
            faults.add(path, f"input should be greater than or equal to {field.metadata['minimum']}, not {given}")
            return []
        return [given]
    if not isinstance(given, str | Mapping):
        some = next(iter(rules))
        number = "a whole number, " if numbers else ""
        faults.add(path, f'is {number}"{some}" or a table such as {{ rule = "{some}" }}, not {given!r}')
        return []
    settings = {"rule": given} if isinstance(given, str) else dict(given)
    name = settings.pop("rule", None)
    if not isinstance(name, str) or name not in rules:
        near = nearest(str(name), rules) if name is not None else f"known: {', '.join(rules)}"
        number = ", or a number without quotes" if numbers and isinstance(given, str) and given.isdigit() else ""
        missing = "is required" if name is None else f"there is no {rules.kind} {name!r}"
        faults.add(path if isinstance(given, str) else f"{path}.rule", f"{missing}; {near}{number}")
        return []
    found: list[Value] = []
    for validated, _ in validate_sweep(options_model(rules[name]), settings, path, faults):
        values = validated.model_dump()
        try:
            rules[name](**values)
        except ExperimentError as fault:
            faults.add(path, str(fault))
        else:
            found.append({"rule": name, **values})
    return found
