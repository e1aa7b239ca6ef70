"""How many KV blocks fit into a device's memory: a share of it, less weights and workspace, by stated arithmetic.

It counts bytes that it is told or that follow from a model's shape, so it plans for devices that are not here. How
fast they are it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

from replay.errors import EngineError
from replay.executors.model_shape import ModelShape

GIB = 2**30
BESIDE = 256 * 2**20  # what attention gathers, libraries take and an allocator cannot use, until somebody measures it
SPARE_BLOCKS = 1  # a pool has one block more than it gives out, for what padding writes


@dataclass(slots=True, frozen=True)
class PoolSize:
    """A pool by the bytes around it. `taken` is what others hold of the device already, `swap` is host memory for
    requests swapped out, where that is the device's own memory."""

    memory: int
    utilization: float
    weights: int
    workspace: int
    token_bytes: int
    block_size: int
    taken: int = 0
    swap: int = 0

    @property
    def allowed(self) -> int:
        """Bytes that the engine and everybody else may hold together."""
        return int(self.memory * self.utilization)

    @property
    def left(self) -> int:
        """Bytes for the pool; negative where not even the weights fit."""
        return self.allowed - self.taken - self.weights - self.workspace - self.swap

    @property
    def block_bytes(self) -> int:
        return self.block_size * self.token_bytes

    @property
    def blocks(self) -> int:
        """Blocks that requests can have."""
        return max(self.left // self.block_bytes - SPARE_BLOCKS, 0)

    @property
    def tokens(self) -> int:
        """Tokens that the pool holds."""
        return self.blocks * self.block_size

    def batch(self, tokens: int) -> int:
        """How many requests of `tokens` tokens each the pool holds at once."""
        return self.blocks // blocks_of(tokens, self.block_size)

    def arithmetic(self) -> str:
        """`0.9 x 80.00 GiB - 14.96 GiB of weights - 0.65 GiB of workspace = 56.39 GiB`."""
        parts = [
            (self.taken, "in use already"),
            (self.weights, "of weights"),
            (self.workspace, "of workspace"),
            (self.swap, "of swap space"),
        ]
        less = "".join(f" - {count / GIB:.2f} GiB {what}" for count, what in parts if count)
        return f"{self.utilization:g} x {self.memory / GIB:.2f} GiB{less} = {self.left / GIB:.2f} GiB"

    def require(self) -> int:
        """The blocks. Raises EngineError, with the arithmetic, when there is none."""
        if not self.blocks:
            raise EngineError(
                f"engine.memory_utilization = {self.utilization:g} leaves no room for a KV pool: {self.arithmetic()}, "
                f"and {1 + SPARE_BLOCKS} blocks of {self.block_bytes:,} bytes are the least; "
                "take a larger share, a smaller model or a narrower dtype"
            )
        return self.blocks


def size_pool(
    shape: ModelShape,
    *,
    memory: int,
    taken: int,
    utilization: float,
    weights: int,
    itemsize: int,
    kv_itemsize: int,
    block_size: int,
    step: tuple[int, int],
    swap: int = 0,
) -> PoolSize:
    """The pool beside `weights` bytes of a model whose numbers have `itemsize` bytes, those of the pool `kv_itemsize`.

    `step`: tokens of the largest step to come, and how many of them are sampled.
    """
    tokens, samples = step
    return PoolSize(
        memory=memory,
        utilization=utilization,
        weights=weights,
        workspace=workspace_bytes(shape, tokens=tokens, samples=samples, itemsize=itemsize),
        token_bytes=shape.kv_token_bytes(kv_itemsize),
        block_size=block_size,
        taken=taken,
        swap=swap,
    )


def blocks_of(tokens: int, block_size: int) -> int:
    """Blocks that hold `tokens` tokens."""
    return -(-tokens // block_size)


def workspace_bytes(shape: ModelShape, *, tokens: int, samples: int, itemsize: int) -> int:
    """What a step of `tokens` tokens, of which `samples` are sampled, needs beside weights and pool: an estimate.

    Of one layer at its widest: the residual, its normed copy and the layer's output, with either queries, keys and
    values, each twice, or the three widths of the feed-forward. Then logits, once as computed and once in float32, and
    `BESIDE` for the rest. Layers come one after another, so one layer is the peak.
    """
    attention = 2 * (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    widest = 3 * shape.hidden + max(attention, 3 * shape.intermediate)
    return tokens * widest * itemsize + samples * shape.vocabulary * (itemsize + 4) + BESIDE
