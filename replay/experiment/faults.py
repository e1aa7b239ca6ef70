"""Every fault of an experiment at once, each by its path and with what would be right.

It turns what pydantic says into sentences; it does not know what an experiment holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from replay.errors import ExperimentError
from replay.registry import nearest


class Faults:
    """Faults found so far, in order. `raise_if_any` ends the reading when there are some.

    `source` is the file; `origins` says of paths that were given elsewhere where that was (`--set`).
    """

    def __init__(self, source: str, origins: Mapping[str, str] | None = None) -> None:
        self.source = source
        self.origins = origins or {}
        self._sentences: list[str] = []

    def add(self, path: str, sentence: str) -> None:
        label = self._origin(path)
        self._sentences.append(f"{label}: {path}: {sentence}" if path else f"{label}: {sentence}")

    def _origin(self, path: str) -> str:
        """Who gave `path`: the option that gave it or what holds it, else one that gave a part of it, else the file."""
        holds = [label for place, label in self.origins.items() if _within(path, place)]
        parts = [label for place, label in self.origins.items() if _within(place, path)]
        return [self.source, *parts, *holds][-1]

    def add_validation(self, path: str, error: ValidationError, model: type[BaseModel]) -> None:
        """What pydantic refused of a `model` below `path`."""
        for fault in error.errors():
            where = _join(path, fault["loc"])
            match fault["type"]:
                case "extra_forbidden":
                    near = nearest(str(fault["loc"][-1]), _known(model, fault["loc"]))
                    self.add(where, f"there is no such setting; {near}")
                case "missing":
                    self.add(where, "is required")
                case _:
                    message = fault["msg"].removeprefix("Value error, ")
                    self.add(where, f"{message[:1].lower()}{message[1:]}, not {fault['input']!r}")

    def merge(self, others: Faults) -> None:
        """Take over what `others` found, each sentence once: a fault beside a sweep is met in each of its turns."""
        self._sentences.extend(dict.fromkeys(others._sentences))

    def raise_if_any(self) -> None:
        if self._sentences:
            raise ExperimentError("\n".join(self._sentences))


def _known(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The settings that there are beside the one at `location`, which may lie in a model within the model."""
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return []
        model = field.annotation
    return list(model.model_fields)


def _join(path: str, location: tuple[int | str, ...]) -> str:
    text = path
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _within(path: str, place: str) -> bool:
    """Whether `path` is `place` or lies below it."""
    return path == place or path.startswith((f"{place}.", f"{place}["))
