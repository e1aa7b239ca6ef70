"""Where the time of a decode step on a CPU goes: matrix products, attention, the largest logit, numbers, the rest.

    python tests/benchmarks/step_parts.py --model smollm2-135m --linears native --batch-sizes 1,8,32 --context 256

Each part is computed alone, over all layers, in turn with the others; medians. What is left of the whole step is
Python, and the small operations between the parts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from replay.executors.torch import build_torch_executor
from replay.executors.torch.layout import Row, Rows, lay_out

BLOCK_SIZE = 16


def decode_rows(count: int, context: int) -> list[Row]:
    """`count` decodes over `context` tokens each, in blocks that lie scattered."""
    each = -(-context // BLOCK_SIZE)
    order = np.random.default_rng(0).permutation(count * each).reshape(count, each).tolist()
    return [Row(np.full(1, 7, dtype=np.int32), context - 1, blocks, samples=True) for blocks in order]


def parts_of(executor: Any, rows: list[Row]) -> dict[str, Callable[[], object]]:
    """The parts of a step, each as a function. It looks inside the executor, as nothing else should."""
    steps, cache = executor._steps, executor._cache
    decoder = getattr(steps._forward, "_decoder", steps._forward)
    layout = lay_out(Rows.of(rows), None, cache.block_size, cache.spare_block)
    hidden, width = decoder.embedding.shape[1], decoder.heads * decoder.head_dim
    inputs = {name: torch.randn(len(rows), hidden) for name in ("qkv", "gate_up", "head")}
    inputs["out"], inputs["down"] = torch.randn(len(rows), width), None
    gate_up = decoder.layers[0].gate_up(inputs["gate_up"])
    inputs["down"] = torch.randn(len(rows), gate_up.shape[1] // 2)
    positions = torch.from_numpy(layout.positions)
    cos, sin = decoder.cos[positions], decoder.sin[positions]
    heads = torch.randn(len(rows), decoder.heads + 2 * decoder.kv_heads, decoder.head_dim)
    paged = steps._paged(layout)
    logits = decoder.head(inputs["head"])

    def linears() -> None:
        for layer in decoder.layers:
            for name in ("qkv", "out", "gate_up", "down"):
                getattr(layer, name)(inputs[name])
        decoder.head(inputs["head"])

    def attention() -> None:
        for number in range(len(decoder.layers)):
            paged.rotate_and_attend(number, heads, cos, sin, decoder.scale)

    return {
        "whole step": lambda: executor.compute(rows).tolist(),
        "matrix products": linears,
        "attention": attention,
        "largest logit": lambda: steps._sample(logits, torch.zeros(len(rows))),
        "layout": lambda: steps._paged(lay_out(Rows.of(rows), None, cache.block_size, cache.spare_block)),
    }


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--linears", default="auto")
    parser.add_argument("--attention", default="auto")
    parser.add_argument("--batch-sizes", default="1,8,32")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    sizes = [int(size) for size in given.batch_sizes.split(",")]
    executor = build_torch_executor(
        model=given.model,
        device="cpu",
        threads=given.threads,
        blocks=max(sizes) * -(-given.context // BLOCK_SIZE),
        block_size=BLOCK_SIZE,
        linears=given.linears,
        attention=given.attention,
    )
    print(executor.describe().details)
    for size in sizes:
        parts = parts_of(executor, decode_rows(size, given.context))
        times: dict[str, list[float]] = {name: [] for name in parts}
        for _ in range(given.rounds):
            for name, part in parts.items():
                start = time.perf_counter()
                part()
                times[name].append(1000 * (time.perf_counter() - start))
        medians = {name: statistics.median(measured) for name, measured in times.items()}
        medians["rest"] = 2 * medians["whole step"] - sum(medians.values())
        print(f"batch {size}, context {given.context}:", {name: round(value, 2) for name, value in medians.items()})


if __name__ == "__main__":
    main()
