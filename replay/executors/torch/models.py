"""Models by name: named shapes with dummy weights, and real weights from a folder or a hub, through transformers.

A replay's cost depends on shapes and not on values, so dummy weights measure as well as real ones. It knows nothing
of batches.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import cast

import torch
import transformers
from torch import nn
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from replay.errors import EngineError
from replay.executors.model_shape import context_limit
from replay.executors.torch.attention import IMPLEMENTATION
from replay.executors.torch.model_facts import no_such_model
from replay.executors.torch.shapes import SHAPES, shape_config
from replay.registry import nearest

DRAWN = 2**20 - 3  # weights drawn for one parameter; a larger one repeats them, its rows different as this is a prime


def load_model(
    name: str, *, device: torch.device, dtype: torch.dtype, seed: int = 0, attention: str = IMPLEMENTATION
) -> PreTrainedModel:
    """A model for `name`: a named shape with dummy weights drawn from `seed`, or real weights by folder or hub name.

    Raises EngineError when there is no such model, or its weights cannot be read.
    """
    if name in SHAPES:
        return dummy_model(shape_config(name), device=device, dtype=dtype, seed=seed, attention=attention)
    if not Path(name).exists() and difflib.get_close_matches(name, SHAPES, n=1, cutoff=0.8):
        raise EngineError(f"there is no model {name!r}: {nearest(name, SHAPES)}")
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # it has no annotations
    try:
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, attn_implementation=attention)
    except KeyError as error:
        if error.args != (attention,):
            raise
        raise EngineError(
            f"the model {name!r} cannot be paged: its attention, as transformers has it, cannot be replaced by another"
        ) from error
    except (OSError, ValueError, ImportError) as error:
        raise EngineError(no_such_model(name, error)) from error
    return cast(PreTrainedModel, cast(nn.Module, model).to(device).requires_grad_(False).eval())


def dummy_model(
    config: PretrainedConfig, *, device: torch.device, dtype: torch.dtype, seed: int, attention: str = IMPLEMENTATION
) -> PreTrainedModel:
    """A model of this configuration with normal weights of its `initializer_range`: the same ones for the same seed.

    They are drawn on the CPU, so that they are the same on every device too.
    """
    with no_init_weights(), torch.device(device):
        untyped = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention)  # type: ignore[no-untyped-call]  # it has no annotations
    model = cast(PreTrainedModel, untyped)
    model.requires_grad_(False).eval()  # type: ignore[no-untyped-call]  # it has no annotations
    deviation = getattr(config.get_text_config(), "initializer_range", None) or 0.02
    generator = torch.Generator().manual_seed(seed)
    model.tie_weights()
    drawn: set[nn.Parameter] = set()  # a tied matrix belongs to two modules, and is drawn once
    with torch.no_grad():
        for module in model.modules():
            own = list(module.parameters(recurse=False))
            if own and all(parameter.ndim < 2 for parameter in own):
                # norms: ones or zeros, as the architecture has it
                model._init_weights(module)  # type: ignore[no-untyped-call]  # it has no annotations
                continue
            for parameter in own:
                if parameter not in drawn:
                    _fill(parameter, deviation, generator)
            drawn.update(own)
    return model


def _fill(parameter: nn.Parameter, deviation: float, generator: torch.Generator) -> None:
    """Normal numbers, the first ones over again where the parameter is large."""
    flat = parameter.view(-1)
    drawn = torch.randn(min(DRAWN, len(flat)), generator=generator).mul_(deviation).to(flat)
    whole = len(flat) // len(drawn)
    flat[: whole * len(drawn)].view(whole, -1).copy_(drawn.expand(whole, -1))
    rest = len(flat) - whole * len(drawn)
    flat[len(flat) - rest :].copy_(drawn[:rest])


def max_context(model: PreTrainedModel) -> int | None:
    """`context_limit` of a model. Raises EngineError for one with layers that are no attention at all."""
    check_layers(model.config, type(model).__name__)
    return context_limit(model.config.get_text_config().to_dict())


def check_layers(config: PretrainedConfig, name: str) -> None:
    """Raise EngineError for a model with layers that are no attention at all; `name` stands for it in the sentence."""
    layers = set(getattr(config.get_text_config(), "layer_types", None) or ())
    strange = sorted(layers - {"full_attention", "sliding_attention", "chunked_attention"})
    if strange:
        raise EngineError(
            f"{name} has layers of type {strange[0]}, which keep no paged keys and values; "
            "a model is needed whose layers are all attention"
        )
