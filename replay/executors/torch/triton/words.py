"""A step's integers as one array, as a CUDA device is handed them, filled up to the sizes that a graph has room for.

Rows of one token come first, then those of more, cut into tiles. It knows numbers and no device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.executors.torch.layout import Integers, Layout

Words = NDArray[np.int32]
HEADER = 1  # the tables' stride
# Each part begins at 16 bytes: Triton compiles a kernel anew for each pattern of arrays that do and arrays that do not.
ALIGNED = 4


@dataclass(slots=True, frozen=True)
class Sizes:
    """How many of each a step has, or room for: `singles` rows of one token, then `rows` rows of more, cut into `tiles`
    tiles, with `tokens` tokens together."""

    singles: int
    rows: int = 0
    tokens: int = 0
    tiles: int = 0

    @property
    def all_tokens(self) -> int:
        return self.singles + self.tokens

    @property
    def all_rows(self) -> int:
        """Rows, and tokens that may be sampled."""
        return self.singles + self.rows

    @property
    def lengths(self) -> list[int]:
        """Integers in each of `Segments` but the tables."""
        tiles = self.singles + self.tiles
        return [self.all_tokens] * 5 + [self.all_rows] * 2 + [tiles] * 4 + [HEADER]

    @property
    def words(self) -> int:
        """Integers without the tables."""
        return sum(map(_aligned, self.lengths))

    def hold(self, other: Sizes) -> bool:
        """Whether a step of size `other` fits."""
        return (
            other.singles <= self.singles
            and other.rows <= self.rows
            and other.tokens <= self.tokens
            and other.tiles <= self.tiles
        )


@dataclass(slots=True)
class Segments:
    """Views of an array of `Sizes.words` integers and the tables behind them; NumPy's or PyTorch's alike."""

    ids: Words  # [tokens]
    late: Words  # [tokens] the place among the ids sampled last that is this token's id; -1: `ids` has it
    positions: Words  # [tokens]
    blocks: Words  # [tokens] where its keys and values go
    offsets: Words  # [tokens]
    sampled: Words  # [rows] the tokens whose successors are sampled
    draws: Words  # [rows] the bits of a float32 number of [0, 1) for each
    tile_first: Words  # [singles + tiles] the first token of each tile; a single token is a tile
    tile_tokens: Words  # 0: nothing to do
    tile_row: Words
    tile_context: Words  # tokens to look at
    stride: Words  # [1] blocks in a row of the tables
    tables: Words  # [rows * stride]

    @classmethod
    def of(cls, words: Words, sizes: Sizes) -> Segments:
        """The views, in this order."""
        views, at = [], 0
        for length in (*sizes.lengths, len(words) - sizes.words):
            views.append(words[at : at + length])
            at += _aligned(length)
        return cls(*views)


def _aligned(length: int) -> int:
    return -(-length // ALIGNED) * ALIGNED


def sizes_of(layout: Layout, tokens_per_tile: int) -> Sizes:
    """The sizes of a step, with nothing to spare."""
    singles, rows = layout.singles, len(layout.widths)
    tiles = int((-(-layout.widths[singles:] // tokens_per_tile)).sum())
    return Sizes(singles, rows - singles, len(layout.ids) - singles, tiles)


def write_words(
    layout: Layout, late: Integers, draws: NDArray[np.float32], sizes: Sizes, *, tokens_per_tile: int, spare_block: int
) -> Words:
    """The integers of a step, filled up to `sizes`: with tokens that write to the spare block, rows of one token that
    look at one of its tokens, and tiles without tokens. `late` [ids handed in] tells whose ids are still on the device.
    """
    singles, rows = layout.singles, len(layout.widths)
    behind = sizes.singles - singles  # how far tokens and rows of more than one token move back
    stride = layout.tables.shape[1]
    words = np.zeros(sizes.words + sizes.all_rows * stride, dtype=np.int32)
    to = Segments.of(words, sizes)
    token = np.arange(len(layout.ids))
    token[singles:] += behind
    to.ids[token] = layout.ids
    to.late[:] = -1
    to.late[token] = np.where(layout.source >= 0, late[layout.source], -1)
    to.positions[token] = layout.positions
    to.blocks[:] = spare_block
    to.blocks[token] = layout.blocks
    to.offsets[token] = layout.offsets
    to.sampled[: len(layout.sampled)] = token[layout.sampled]
    to.draws[: len(draws)] = draws.view(np.int32)

    one = slice(0, sizes.singles)
    to.tile_first[one] = to.tile_row[one] = np.arange(sizes.singles)
    to.tile_tokens[one] = to.tile_context[one] = 1
    to.tile_context[:singles] = layout.contexts[:singles]
    counts = -(-layout.widths[singles:] // tokens_per_tile)
    row = np.repeat(np.arange(singles, rows), counts)
    begin = (np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)) * tokens_per_tile
    tokens = np.minimum(layout.widths[row] - begin, tokens_per_tile)
    first = layout.firsts[row] + begin
    tile = slice(sizes.singles, sizes.singles + len(row))
    to.tile_first[tile] = first + behind
    to.tile_tokens[tile] = tokens
    to.tile_row[tile] = row + behind
    to.tile_context[tile] = layout.contexts[row] if layout.padded else layout.positions[first + tokens - 1] + 1
    to.stride[0] = stride
    tables = to.tables.reshape(-1, stride)
    tables[:] = spare_block
    tables[:singles] = layout.tables[:singles]
    tables[sizes.singles : sizes.singles + rows - singles] = layout.tables[singles:]
    return words


def idle_words(sizes: Sizes, longest_table: int, spare_block: int) -> Words:
    """The integers of a step in which all is filling, with room for tables of `longest_table` blocks."""
    words = np.zeros(sizes.words + sizes.all_rows * longest_table, dtype=np.int32)
    to = Segments.of(words, sizes)
    to.late[:] = -1
    to.blocks[:] = spare_block
    one = slice(0, sizes.singles)
    to.tile_first[one] = to.tile_row[one] = np.arange(sizes.singles)
    to.tile_tokens[one] = to.tile_context[one] = 1
    to.stride[0] = 1
    to.tables[:] = spare_block
    return words
