"""How registered things are told: their options, their words, values as TOML."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class ToldOption:
    """One option as a listing tells it: `default` as TOML writes it; `rules` that it may be, by name."""

    name: str
    default: str
    meaning: str
    rules: Mapping[str, Callable[..., Any]]
    shared: bool  # by many: told once, for all of them


def options_of_entry(entry: Callable[..., Any]) -> list[ToldOption]:
    """The options of a registered thing, in the order in which it declares them."""
    from replay.experiment.options import option_fields, options_of

    told = []
    for field, option in zip(option_fields(entry), options_of(entry), strict=True):
        rules = field.metadata.get("rules")
        known = {name: rules[name] for name in rules} if rules is not None else {}
        unset = "must be given" if option.default is ... else "unset"
        default = unset if option.default in (None, ...) else toml(option.default)
        shared = bool(field.metadata.get("shared"))
        meaning = field.metadata.get("help", "") if shared else option.help
        told.append(ToldOption(option.name, default, meaning, known, shared))
    return told


def told_option(option: ToldOption) -> list[str]:
    """`band_s = 30.0  # seconds of waiting that one level is worth`."""
    return [f"{option.name} = {option.default}" + (f"  # {option.meaning}" if option.meaning else "")]


def documentation(entry: Callable[..., Any]) -> str:
    return inspect.getdoc(entry) or ""


def summary(entry: Callable[..., Any]) -> str:
    return documentation(entry).splitlines()[0]


def toml(value: object) -> str:
    """A value as an experiment has it, in one line."""
    import tomli_w

    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {toml(one)}' for name, one in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if not isinstance(value, str | int | float):
        return type(value).__name__
    document: Mapping[str, Any] = {"value": value}
    return tomli_w.dumps(document).partition(" = ")[2].strip()
