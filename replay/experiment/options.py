"""Options of registered things: policies, modes and predictors are dataclasses, and their fields are their settings.

From the fields comes a strict model that refuses unknown names, and from a list in place of a value comes a sweep.
Settings that may be a rule (`rules` in a field's metadata) are for `replay.experiment.rules`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic import Field as ModelField

from replay.experiment.faults import Faults

Model = TypeVar("Model", bound=BaseModel)
Setting = str | int | float | bool | None
BOUNDS = ("minimum", "maximum", "above", "below")


@dataclass(slots=True, frozen=True)
class Option:
    """One setting of a registered thing, for listings."""

    name: str
    kind: str
    default: Any
    help: str


def option_fields(entry: Callable[..., Any]) -> list[Field[Any]]:
    """The dataclass fields that an experiment may set."""
    assert is_dataclass(entry), f"{entry} keeps its options as dataclass fields"
    return [field for field in fields(entry) if field.init]


def options_of(entry: Callable[..., Any]) -> list[Option]:
    """The settings of a policy, mode or predictor, with their defaults and what they mean."""
    hints = get_type_hints(entry)
    found = []
    for field in option_fields(entry):
        hint = hints[field.name]
        kind = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
        default = _default(field)
        found.append(Option(field.name, kind, None if default == {} else default, _help(field)))
    return found


def _help(field: Field[Any]) -> str:
    """What an option means, and which rules it may be."""
    rules = " or ".join(f'"{rule}"' for rule in field.metadata.get("rules", ()))
    told: str = field.metadata.get("help", "")
    number = "a number, or " if "minimum" in field.metadata else ""
    return f"{told}; {number}{rules}" if rules else told


def _default(field: Field[Any]) -> Any:
    """What an option is when it is not given; Ellipsis: it must be."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return ... if field.default is MISSING else field.default


def options_model(entry: Callable[..., Any]) -> type[BaseModel]:
    """A strict pydantic model of a dataclass's settings; `minimum`, `maximum`, `above` and `below` in a field's
    metadata are bounds, of a table those of each of its values. Settings that may be rules are taken as they come."""
    hints = get_type_hints(entry)
    columns: dict[str, Any] = {}
    for field in option_fields(entry):
        if "rules" in field.metadata:
            columns[field.name] = (Any, _default(field))
            continue
        minimum, maximum, above, below = (field.metadata.get(bound) for bound in BOUNDS)
        hint = hints[field.name]
        bounds: dict[str, Any] = {"ge": minimum, "le": maximum, "gt": above, "lt": below}
        if get_origin(hint) is dict:
            names, values = get_args(hint)
            columns[field.name] = (dict[names, Annotated[values, ModelField(**bounds)]], _default(field))  # type: ignore[valid-type]  # made as it runs
        else:
            columns[field.name] = (hint, ModelField(_default(field), **bounds))
    return create_model("Options", __config__=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False), **columns)


def sweep(settings: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Setting]]]:
    """Every combination of the values that are given as lists, and of each combination what it varies."""
    swept = {name: value for name, value in settings.items() if isinstance(value, list)}
    for values in itertools.product(*swept.values()):
        varied = dict(zip(swept, values, strict=True))
        yield {**settings, **varied}, varied


def validate(model: type[Model], settings: Mapping[str, Any], path: str, faults: Faults) -> Model | None:
    """`settings` as `model`, or None with what is wrong added to `faults`. "16" never becomes 16."""
    try:
        return model.model_validate_json(json.dumps(settings, default=str))
    except ValidationError as error:
        faults.add_validation(path, error, model)
        return None


def refuse_twice(path: str, values: list[Any], faults: Faults) -> None:
    """Add the fault of a list in which a value stands twice: two cells of one name would be the same."""
    if twice := [value for at, value in enumerate(values) if value in values[:at]]:
        faults.add(path, f"{twice[0]!r} stands in the list twice")


def validate_sweep(
    model: type[Model], settings: object, path: str, faults: Faults
) -> list[tuple[Model, dict[str, Setting]]]:
    """All combinations that `settings` declares, each validated, with what each varies. Faults are said once."""
    if not isinstance(settings, Mapping):
        faults.add(path, f"is a table of settings, such as {{}}, not {settings!r}")
        return []
    for name, value in settings.items():
        if value == []:
            faults.add(f"{path}.{name}", "an empty list leaves nothing to sweep")
            settings = {other: settings[other] for other in settings if other != name}  # the others have faults too
        elif isinstance(value, list):
            refuse_twice(f"{path}.{name}", value, faults)
    seen = Faults(faults.source, faults.origins)
    found = []
    for combination, varied in sweep(settings):
        if (validated := validate(model, combination, path, seen)) is not None:
            found.append((validated, varied))
    faults.merge(seen)
    return found
