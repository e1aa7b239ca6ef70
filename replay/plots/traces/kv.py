"""Tokens in GiB of KV cache, for models whose shapes are named: a second axis, and a line on all of them.

Numbers of 16 bits, nothing shared between requests; torch is not needed.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from replay.executors.model_shape import ModelShape
from replay.executors.pool_size import GIB
from replay.executors.torch.shapes import SHAPES
from replay.plots.traces.words import number_text, tick_text

MODEL = "llama-3.1-8b"  # whose GiB an axis tells
ITEMSIZE = 2


def gib(tokens: float, model: str = MODEL) -> float:
    """What so many tokens take."""
    return tokens * ModelShape.of(SHAPES[model]).kv_token_bytes(ITEMSIZE) / GIB


def size_text(tokens: float, model: str = MODEL) -> str:
    """What so many tokens take, in words."""
    size = gib(tokens, model)
    return f"{number_text(size)} GiB" if size >= 1 else f"{number_text(1024 * size)} MiB"


def gib_axis(axes: Axes, which: str) -> None:
    """A second axis at the top or on the right, of tokens in GiB."""
    one = gib(1)
    functions = (lambda tokens: tokens * one, lambda size: size / one)
    if which == "x":
        second = axes.secondary_xaxis("top", functions=functions)
        second.xaxis.set_major_formatter(tick_text)
        second.xaxis.set_minor_formatter(NullFormatter())
        second.set_xlabel(f"GiB of KV cache, {MODEL}, 16 bit")
    else:
        second = axes.secondary_yaxis("right", functions=functions)
        second.yaxis.set_major_formatter(tick_text)
        second.set_ylabel(f"GiB of KV, {MODEL}, 16 bit")


def sizes_text(tokens: float) -> str:
    """What so many tokens take in each named model: `1.2 GiB for smollm2-135m, ...`."""
    return ", ".join(f"{size_text(tokens, name)} for {name}" for name in SHAPES if name != "tiny")
