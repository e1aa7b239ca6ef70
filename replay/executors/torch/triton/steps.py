"""Steps on a CUDA device: one copy of integers, our Triton kernels, and whole steps as captured CUDA graphs.

A captured graph replays the kernels of a step without Python; it has room for so many decodes and so many tokens of
prompts, and a step of fewer is filled up. It does not know requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from replay.executors.torch.forward import Forward
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Integers, Layout
from replay.executors.torch.steps import Draws, Sample
from replay.executors.torch.triton.attention import Numbers, TritonPaged, tokens_per_tile
from replay.executors.torch.triton.words import Sizes, Words, idle_words, sizes_of, write_words

# Decodes for which there are graphs: close together, as a row too many is computed in every step.
DECODES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
# Prompt tokens beside them. Larger steps keep the device busy for longer than Python takes to launch them.
PROMPT_TOKENS = (16, 32, 64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 768, 1024)
DECODES_BESIDE = (8, 32, 64, 128, 256, 512)
PROMPTS_BESIDE = 16  # rows of them, at most


@dataclass(slots=True)
class Captured:
    """The graph of a step with room for `sizes`: it reads `words` and leaves its ids in the place for the last ones."""

    sizes: Sizes
    graph: torch.cuda.CUDAGraph
    words: Tensor


class TritonSteps:
    """`Steps` by kernels of our own. `positions` is the length of the longest sequence; `graphs` captures steps."""

    def __init__(
        self, forward: Forward, cache: KVCache, sample: Sample, *, heads: int, positions: int, graphs: bool
    ) -> None:
        self._forward = forward
        self._cache = cache
        self._sample = sample
        self._heads = heads
        self._per_tile = tokens_per_tile(heads, cache.heads)
        self._longest_table = -(-positions // cache.block_size)
        self._graphs = graphs
        self._captured: list[Captured] = []  # the smallest first
        self._pool: object = None
        cuda = cache.device.type == "cuda"
        self._units = torch.cuda.get_device_properties(cache.device).multi_processor_count if cuda else 1
        self._last = torch.zeros(DECODES[-1] + PROMPTS_BESIDE, dtype=torch.int64, device=cache.device)

    @property
    def prepared(self) -> list[str]:
        """The steps for which there are graphs: decodes, and prompt tokens beside them."""
        return [f"{one.sizes.singles}+{one.sizes.tokens}" for one in self._captured]

    @torch.inference_mode()
    def run(self, layout: Layout, late: Integers, draws: Draws) -> Tensor:
        self._reserve(len(layout.widths))
        exact = sizes_of(layout, self._per_tile)
        fits = layout.tables.shape[1] <= self._longest_table  # padding can look further than any sequence is long
        captured = next((one for one in self._captured if fits and one.sizes.hold(exact)), None)
        sizes = exact if captured is None else captured.sizes
        words = write_words(
            layout, late, draws, sizes, tokens_per_tile=self._per_tile, spare_block=self._cache.spare_block
        )
        if captured is None:
            self._compute(_staged(words, self._cache.device).to(self._cache.device, non_blocking=True), sizes)
        else:
            captured.words[: len(words)].copy_(_staged(words, self._cache.device), non_blocking=True)
            captured.graph.replay()
        return self._last[: len(layout.sampled)]

    @torch.inference_mode()
    def warm_up(self, rows: int, tokens: int) -> None:
        """Capture the graphs of steps of up to `rows` decodes, and of up to `tokens` prompt tokens beside them."""
        self._reserve(rows)
        if not self._graphs:
            return
        wanted = [Sizes(singles) for singles in _up_to(DECODES, rows)]
        for singles, beside in product(_up_to(DECODES_BESIDE, rows), _up_to(PROMPT_TOKENS, tokens)):
            prompts = min(PROMPTS_BESIDE, beside)
            wanted.append(Sizes(singles, prompts, beside, -(-beside // self._per_tile) + prompts))
        here = {one.sizes for one in self._captured}
        wanted.sort(key=lambda sizes: (sizes.all_tokens, sizes.singles))
        # One for all, as only one runs at a time; and cuBLAS keeps memory for each stream that it has ever seen.
        room = torch.zeros(max(map(self._room, wanted)), dtype=torch.int32, device=self._cache.device)
        stream = torch.cuda.Stream(self._cache.device)  # type: ignore[no-untyped-call]  # it has no annotations
        for sizes in reversed(wanted):  # the largest first: the others use its memory again
            if sizes not in here:
                self._captured.append(self._capture(sizes, room[: self._room(sizes)], stream))
        self._captured.sort(key=lambda one: (one.sizes.all_tokens, one.sizes.singles))

    def _reserve(self, rows: int) -> None:
        """Room for the ids that steps of so many rows sample: before graphs are captured, as they hold its address."""
        if rows > len(self._last):
            grown = torch.zeros(2 * rows, dtype=torch.int64, device=self._cache.device)
            grown[: len(self._last)] = self._last
            self._last = grown
            self._captured = []  # they read and write the one before

    def _room(self, sizes: Sizes) -> int:
        """The integers of a step of these sizes whose tables are as long as can be."""
        return sizes.words + sizes.all_rows * self._longest_table

    def _capture(self, sizes: Sizes, words: Tensor, stream: torch.cuda.Stream) -> Captured:
        device = self._cache.device
        words.copy_(torch.from_numpy(idle_words(sizes, self._longest_table, self._cache.spare_block)))
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            self._compute(words, sizes)  # kernels are compiled and libraries wake up outside the capture
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):  # type: ignore[arg-type]  # a handle of no public type
            self._compute(words, sizes)
        self._pool = self._pool or graph.pool()
        return Captured(sizes, graph, words)

    def _compute(self, words: Tensor, sizes: Sizes) -> None:
        """One step, eagerly or as it is captured; its ids go where the next one finds them."""
        numbers = Numbers.of(words, sizes)
        known = self._last[numbers.late.clamp(min=0)].to(torch.int32)
        ids = torch.where(numbers.late >= 0, known, numbers.ids)
        paged = TritonPaged(self._cache, numbers, sizes, self._heads, self._units)
        logits = self._forward(ids, numbers.positions, numbers.sampled, paged)
        self._last[: sizes.all_rows] = self._sample(logits, numbers.draws.view(torch.float32))


def _up_to(steps: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Those of `steps` that are smaller than `most`, and the next one."""
    return steps[: sum(step < most for step in steps) + 1]


def _staged(words: Words, device: torch.device) -> Tensor:
    """Numbers in memory from which a CUDA device copies without holding up the host."""
    staged = torch.from_numpy(words)
    return staged.pin_memory() if device.type == "cuda" else staged
