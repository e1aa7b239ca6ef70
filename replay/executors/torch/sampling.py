"""From logits to token ids: the largest, or one drawn among the most likely by a number of the request's own.

No full sort and no draw from a shared stream: a sort of a large vocabulary costs as much as half a step, and a shared
stream would let a request's neighbours change its tokens. It knows logits, and nothing of requests but two numbers.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CANDIDATES = 256  # the most likely tokens among which one is drawn; all others are never sampled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
_LOW_BITS = (1 << 64) - 1


def sample(
    logits: Tensor, uniforms: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
) -> Tensor:
    """Token ids [n] for `logits` [n, vocabulary] and one number of [0, 1) for each row, `uniforms` [n].

    At temperature 0 the largest logit's. Else one of the `top_k` largest, and of at most `CANDIDATES`: of these, the
    fewest whose probabilities reach `top_p` are kept, and the one is taken in whose share of their sum the row's
    number falls, the most likely first. Works on any device without waiting for it.
    """
    assert temperature >= 0, f"a temperature of {temperature}"
    assert top_k is None or top_k > 0, f"the {top_k} largest"
    assert 0 < top_p <= 1, f"a share of {top_p}"
    if temperature == 0:
        return logits.argmax(dim=-1)
    most = min(top_k or CANDIDATES, CANDIDATES, logits.shape[-1])
    largest, ids = logits.topk(most, dim=-1)
    # Less the largest before it is divided: a small temperature would make numbers that cannot be held.
    scaled = (largest.float() - largest[:, :1].float()) / temperature
    sums = scaled.softmax(dim=-1).cumsum(dim=-1)
    before = torch.cat([torch.zeros_like(sums[:, :1]), sums[:, :-1]], dim=-1)
    kept = (before < top_p).sum(dim=-1, keepdim=True)  # the first one always
    threshold = uniforms.unsqueeze(-1).to(sums.dtype) * sums.gather(-1, kept - 1)
    chosen = torch.minimum((sums <= threshold).sum(dim=-1, keepdim=True), kept - 1)
    return ids.gather(-1, chosen).squeeze(-1)


def uniforms(seed: int, rows: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.float32]:
    """A number of [0, 1) for the token at `positions` [n] of requests `rows` [n]: the same whenever it is asked for.

    It follows from seed, row and position alone, so that a request draws the same after an eviction, and in any batch.
    """
    with np.errstate(over="ignore"):
        start = _mix(np.array([seed & _LOW_BITS], dtype=np.uint64) + _GOLDEN)
        words = _mix(_mix(start ^ rows.astype(np.uint64)) + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return ((words >> np.uint64(40)).astype(np.float64) * 2.0**-24).astype(np.float32)  # 24 bits: exact in float32


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: each bit of the result depends on each bit of the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
