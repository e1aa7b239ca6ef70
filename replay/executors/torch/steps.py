"""One step's forward pass on its device, from a layout to the ids sampled: in plain PyTorch, on any device.

The ids of a step stay on the device for the next one, which may be handed over before they are known on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from replay.executors.torch.attention import Paged
from replay.executors.torch.forward import Forward
from replay.executors.torch.layout import Integers, Layout

Draws = NDArray[np.float32]
Sample = Callable[[Tensor, Tensor], Tensor]  # logits [rows, vocabulary] and a number of [0, 1) for each -> ids [rows]


class Steps(Protocol):
    """What computes steps on a device, one after the other."""

    @property
    def prepared(self) -> list[str]:
        """The sizes of steps for which something was prepared, for the manifest."""

    def run(self, layout: Layout, late: Integers, draws: Draws) -> Tensor:
        """The ids sampled after the layout's `sampled` tokens, those of padding rows too: on the device, maybe still in
        work. `late` [ids handed in] says which of them the step before samples, by their places among its own; -1: the
        id is in the layout. `draws` [sampled] are numbers of [0, 1), for what is not greedy."""

    def warm_up(self, rows: int, tokens: int) -> None:
        """Prepare for steps of up to `rows` decodes and `tokens` tokens of prompts."""


class TorchSteps:
    """`Steps` whose attention `paged` prepares for each layout."""

    def __init__(
        self, forward: Forward, device: torch.device, paged: Callable[[Layout], Paged], sample: Sample
    ) -> None:
        self._forward = forward
        self._device = device
        self._paged = paged
        self._sample = sample
        self._last = torch.zeros(0, dtype=torch.int64, device=device)

    @property
    def prepared(self) -> list[str]:
        return []

    @torch.inference_mode()
    def run(self, layout: Layout, late: Integers, draws: Draws) -> Tensor:
        ids, positions, sampled = map(self._to_device, (layout.ids, layout.positions, layout.sampled))
        (waiting,) = ((layout.source >= 0) & (late[layout.source] >= 0)).nonzero()
        if len(waiting):
            ids[self._to_device(waiting)] = self._last[self._to_device(late[layout.source[waiting]])]
        logits = self._forward(ids, positions, sampled, self._paged(layout))
        self._last = self._sample(logits, torch.from_numpy(draws).to(self._device, non_blocking=True))
        return self._last

    def warm_up(self, rows: int, tokens: int) -> None:
        """Nothing is prepared."""

    def _to_device(self, numbers: Integers) -> Tensor:
        return torch.from_numpy(numbers).to(self._device, non_blocking=True)
