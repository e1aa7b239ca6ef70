"""The work of a step: arithmetic and traffic that a model cannot do without, as sums over what a step counts.

All constants are taken from ModelShape, which says what is counted and what is left out. It knows no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from replay.executors.model_shape import ModelShape


@dataclass(slots=True, frozen=True)
class Work:
    """A model's shape, and the bytes that a number takes: one of a weight, and one of the KV pool."""

    shape: ModelShape
    weight_itemsize: int
    kv_itemsize: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Work:
        """From what a manifest holds: the counterpart of `facts`."""
        known = {field.name for field in fields(ModelShape)}
        shape = ModelShape(**{name: value for name, value in facts["shape"].items() if name in known})
        return cls(shape, weight_itemsize=facts["weight_itemsize"], kv_itemsize=facts["kv_itemsize"])

    def facts(self) -> dict[str, Any]:
        """All numbers, for a manifest."""
        return asdict(self)

    @property
    def token_flops(self) -> int:
        """Floating-point operations for each token, whatever it attends to."""
        return self.shape.flops(1, 0, 0)

    @property
    def sample_flops(self) -> int:
        """Those for each token that is sampled."""
        return self.shape.flops(0, 1, 0)

    @property
    def pair_flops(self) -> int:
        """Those for each pair of a token and a token that it attends to."""
        return self.shape.flops(0, 0, 1)

    @property
    def step_bytes(self) -> int:
        """Bytes that every step moves: the matrices of all layers."""
        return self.traffic(tokens=0, samples=0, context=0)

    @property
    def sampling_bytes(self) -> int:
        """Bytes that a step moves on top if it samples any token: the matrix of the logits."""
        return self.traffic(tokens=0, samples=1, context=0) - self.step_bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes for each token of context, whose keys and values are read, and each new token, whose are written."""
        return self.shape.kv_token_bytes(self.kv_itemsize)

    def flops(self, *, tokens: int, samples: int, pairs: int) -> int:
        """Floating-point operations of a step."""
        return self.shape.flops(tokens, samples, pairs)

    def traffic(self, *, tokens: int, samples: int, context: int) -> int:
        """The fewest bytes that a step must move."""
        return self.shape.traffic(
            tokens, samples, context, weight_itemsize=self.weight_itemsize, kv_itemsize=self.kv_itemsize
        )
