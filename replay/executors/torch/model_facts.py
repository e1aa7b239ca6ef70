"""What is known of a model by its name before its weights are loaded: shape, parameters, context, files.

A named shape is looked up without torch; of a folder or hub name only the configuration is read. It knows no device.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from replay.errors import EngineError
from replay.executors.model_shape import ModelShape, context_limit
from replay.executors.torch.shapes import SHAPES
from replay.registry import nearest


@dataclass(slots=True, frozen=True)
class ModelFacts:
    """A model by its numbers. `files`: bytes of weights in its folder; `origin`: what it was imported from."""

    name: str
    kind: str
    shape: ModelShape
    parameters: int
    context: int | None
    files: int | None = None
    origin: dict[str, str | None] | None = None


def model_facts(name: str) -> ModelFacts:
    """The facts of a named shape, a folder or a hub name. Raises EngineError when there is no such model."""
    if name in SHAPES:
        config = SHAPES[name]
        shape = ModelShape.of(config)
        return ModelFacts(name, config["model_type"], shape, shape.parameters, context_limit(config))
    check_name(name)
    return _read(name)


def check_name(name: str) -> None:
    """Raise EngineError for what is no named shape, no folder, and not of a hub's form owner/name."""
    if name not in SHAPES and "/" not in name and not Path(name).exists():
        raise EngineError(f"there is no model {name!r}: it is no named shape and no folder; {nearest(name, SHAPES)}")


def _read(name: str) -> ModelFacts:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from replay.executors.torch.models import check_layers

    try:
        config = AutoConfig.from_pretrained(name)
        with torch.device("meta"):  # its modules, without a number in them
            parameters = AutoModelForCausalLM.from_config(config).num_parameters()  # type: ignore[no-untyped-call]  # it has no annotations
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise EngineError(no_such_model(name, error)) from error
    check_layers(config, type(config).__name__.removesuffix("Config"))
    numbers = config.get_text_config().to_dict()
    folder = Path(name)
    files = sum(file.stat().st_size for pattern in ("*.safetensors", "*.bin") for file in folder.glob(pattern))
    return ModelFacts(
        name=name,
        kind=numbers["model_type"],
        shape=ModelShape.of(numbers),
        parameters=parameters,
        context=context_limit(numbers),
        files=files or None,
        origin=_origin(folder),
    )


def no_such_model(name: str, error: Exception) -> str:
    """The sentence for a model that transformers refuses."""
    if name.startswith((".", "/", "~")) and not Path(name).is_dir():
        return f"there is no folder {name!r} to load a model from; `replay model import` makes one from a GGUF file"
    lines = str(error).strip().splitlines()
    return (
        f"there is no model {name!r} that can be loaded: it is no named shape ({nearest(name, SHAPES)}), and as a "
        f"folder or hub name transformers refuses it: {lines[0] if lines else type(error).__name__}"
    )


def _origin(folder: Path) -> dict[str, str | None] | None:
    """What an import left in the folder about where its weights come from."""
    try:
        origin: dict[str, str | None] = json.loads((folder / "origin.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return origin
