"""Every key that an experiment may have: what it takes, what it is by default, what it means.

It reads what settings declare and what is registered, so listings and the reference cannot tell of anything else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from replay.experiment.loading import DEFAULT_PREDICTOR
from replay.experiment.options import option_fields, options_model, options_of
from replay.experiment.settings import TORCH_ONLY, Cost, Engine, Goals, Service, Top
from replay.predictors import predictors
from replay.registry import Registry
from replay.scheduler import admissions, batch_sizes, modes, policies

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
MANY = {int: "whole numbers", float: "numbers", str: "texts", dict: "tables"}
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
TABLES: dict[str, type[BaseModel]] = {
    "": Top,
    "engine": Engine,
    "engine.cost": Cost,
    "goals": Goals,
    "service": Service,
}
"""The tables whose keys are the same for everybody, by their path in an experiment."""
SAID = "what policies may know of output lengths"


@dataclass(slots=True, frozen=True)
class Key:
    """One key. `default` is Ellipsis where it must be given and None where it is unset; `example` is a value that it
    takes, None where none is known."""

    name: str
    takes: str
    default: Any
    meaning: str
    example: Any
    torch_only: bool = False
    shared: bool = False  # by many policies: told once, for all of them


@dataclass(slots=True, frozen=True)
class Section:
    """Keys that stand together below `path`; `entry` is the registered thing that takes them, "" in a fixed table.

    The keys of a rule (`within`) stand in a table beside `rule`, as the value of the key at `path`.
    """

    path: str
    meaning: str
    keys: list[Key]
    kind: str = ""
    entry: str = ""
    within: bool = False

    def full(self, key: Key) -> str:
        """The key's path: `engine.kv_blocks`; of a rule's, which holds for many, `aimd.tpot_ms`."""
        return ".".join(part for part in (self.entry if self.within else self.path, key.name) if part)


def sections() -> Iterator[Section]:
    """All keys, in the order in which an experiment has its tables. Whatever is registered by now is among them."""
    for path, model in TABLES.items():
        if path in ("", "engine", "engine.cost"):
            yield table(path, model)
    for name in modes:
        yield Section(f"modes.{name}", summary(modes[name]), options(modes[name]), modes.kind, name)
    yield from _rules(batch_sizes, "modes.continuous.max_running")
    for name in policies:
        yield Section(f"policies.{name}", summary(policies[name]), options(policies[name]), policies.kind, name)
    yield from _rules(admissions, "policies.fifo.admission")
    names = listed([f'"{name}"' for name in predictors])
    yield Section("lengths", SAID, [Key("predictor", names, DEFAULT_PREDICTOR, SAID, DEFAULT_PREDICTOR)])
    for name in predictors:
        yield Section("lengths", summary(predictors[name]), options(predictors[name]), predictors.kind, name)
    yield table("goals", Goals)
    yield table("service", Service)


def table(path: str, model: type[BaseModel]) -> Section:
    """The keys of a fixed table."""
    keys = [
        Key(
            name,
            takes(field),
            ... if field.is_required() else _plain(field.get_default(call_default_factory=True)),
            field.description or "",
            field.examples[0] if field.examples else _plain(field.get_default(call_default_factory=True)),
            torch_only=model is Engine and name in TORCH_ONLY,
        )
        for name, field in model.model_fields.items()
    ]
    return Section(path, summary(model), keys)


def options(entry: Callable[..., Any]) -> list[Key]:
    """The keys of a registered thing: its dataclass fields."""
    known, found = options_model(entry).model_fields, []
    for field, option in zip(option_fields(entry), options_of(entry), strict=True):
        rules: Registry[Any] | None = field.metadata.get("rules")
        found.append(
            Key(
                option.name,
                takes(known[option.name]) if rules is None else _ruled(rules, field.metadata.get("minimum")),
                option.default,
                field.metadata.get("help", ""),
                field.metadata.get("example", None if option.default is ... else option.default),
                shared=bool(field.metadata.get("shared")),
            )
        )
    return found


def _rules(registry: Registry[Any], path: str) -> Iterator[Section]:
    for name in registry:
        yield Section(path, summary(registry[name]), options(registry[name]), registry.kind, name, within=True)


def _ruled(rules: Registry[Any], minimum: int | None) -> str:
    example = next(name for name in reversed(list(rules)) if option_fields(rules[name]))
    values = [*(f'"{rule}"' for rule in rules), f'a table such as {{ rule = "{example}" }}']
    return listed(values if minimum is None else [f"a whole number (at least {minimum})", *values])


def listed(values: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join([part for part in (", ".join(values[:-1]), values[-1]) if part])


def takes(field: FieldInfo) -> str:
    """What a key takes, in words: `a number, above 0 and at most 1`."""
    return ", ".join(part for part in (_kind(field.annotation), _bounds(field.metadata)) if part)


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (UnionType, Union):
        return " or ".join(_kind(one) for one in arguments if one is not type(None))
    if origin is Literal:
        return listed([f'"{value}"' for value in arguments])
    if origin is list:
        inner, metadata = _bare(arguments[0])
        bounds = _bounds(metadata)
        return f"a list of {MANY.get(get_origin(inner) or inner, 'values')}" + (f", each {bounds}" if bounds else "")
    if origin is dict:
        inner, metadata = _bare(arguments[1])
        return f"a table of {MANY[inner]}, each {_bounds(metadata)}" if inner in MANY else "a table"
    if annotation is Any:
        return "a table, or text"
    return "a table" if issubclass(annotation, BaseModel) else WORDS[annotation]


def _bare(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without what is annotated, and that."""
    metadata = getattr(annotation, "__metadata__", ())
    bounds = [bound for one in metadata for bound in (one.metadata if isinstance(one, FieldInfo) else [one])]
    return (get_args(annotation)[0], bounds) if metadata else (annotation, [])


def _bounds(metadata: list[Any]) -> str:
    found = [
        f"{word} {getattr(one, name):g}" for one in metadata for name, word in BOUNDS.items() if hasattr(one, name)
    ]
    return " and ".join(found)


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


def summary(entry: Any) -> str:
    """The first paragraph of what is said of a thing where it is declared."""
    return " ".join((inspect.getdoc(entry) or "").split("\n\n")[0].split())
