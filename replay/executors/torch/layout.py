"""Where each token of a step goes: a step as rectangles of rows by tokens, all in plain numbers.

Decodes of about the same context share a rectangle one token wide; a chunk of a prompt is a rectangle of one row; the
padded layout is rectangles as wide and as deep as `Padding` says. It knows block tables and positions, and no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.executors.interface import Padding

GROUP_ROWS = 16  # rows of a rectangle: with fewer there are more calls, with more the short rows wait for the longest

Integers = NDArray[np.int64]
TokenIds = NDArray[np.int32]
Booleans = NDArray[np.bool_]


@dataclass(slots=True)
class Row:
    """One sequence's part in a step: `ids` at positions `start` on, kept in `blocks`, and whether it samples."""

    ids: TokenIds
    start: int
    blocks: Sequence[int]
    samples: bool

    @property
    def end(self) -> int:
        """Tokens of context when the step is done."""
        return self.start + len(self.ids)


@dataclass(slots=True)
class Rectangle:
    """`rows` x `width` packed tokens from `first` on, each row attending over `context` tokens.

    `tables` [rows, blocks] are the blocks that hold the context, or None when nothing lies before the rectangle's own
    tokens: then their keys and values serve as they come. `allowed` [rows, width, context] says which token may look
    at which, or is None where that is every one (one token wide) or plain causal order (`tables` None).
    """

    first: int
    rows: int
    width: int
    context: int
    tables: Integers | None
    allowed: Booleans | None


@dataclass(slots=True)
class Layout:
    """All tokens of a step in packed order, and the rectangles that they form.

    `ids`, `positions`, `blocks` and `offsets` (the place of its keys and values) have one entry for each token.
    `sampled` are the packed indices of tokens whose successor is sampled: first `samples` real ones, in the order of
    the rows handed in, then those of padding rows, which are thrown away.
    """

    ids: Integers
    positions: Integers
    blocks: Integers
    offsets: Integers
    sampled: Integers
    samples: int
    rectangles: list[Rectangle]


def lay_out(rows: Sequence[Row], padding: Padding | None, block_size: int, spare_block: int) -> Layout:
    """The layout of one step. What padding writes goes to `spare_block`, which belongs to nobody."""
    samples = sum(row.samples for row in rows)
    if padding is None:
        groups = _groups(rows)
        shapes = [(len(rows[group[0]].ids), max(rows[i].end for i in group)) for group in groups]
    else:
        rows = [*rows, *[_dummy(padding)] * (padding.rows - len(rows))]
        groups = [list(range(i, min(i + GROUP_ROWS, len(rows)))) for i in range(0, len(rows), GROUP_ROWS)]
        shapes = [(padding.width, padding.context)] * len(groups)

    sizes = [len(group) * width for group, (width, _) in zip(groups, shapes, strict=True)]
    tokens = sum(sizes)
    ids, positions, blocks = (np.zeros(tokens, dtype=np.int64) for _ in range(3))
    last = np.zeros(len(rows), dtype=np.int64)  # the packed index of each row's last token
    rectangles = []
    first = 0
    for group, size, (width, context) in zip(groups, sizes, shapes, strict=True):
        shape, part = (len(group), width), slice(first, first + size)
        rectangles.append(
            _fill(
                [rows[i] for i in group],
                Rectangle(first, len(group), width, context, None, None),
                ids[part].reshape(shape),
                positions[part].reshape(shape),
                blocks[part].reshape(shape),
                block_size,
                spare_block,
            )
        )
        last[group] = first + width * np.arange(1, len(group) + 1) - 1
        first += size
    sampled = last[np.array([row.samples for row in rows], dtype=bool)]
    return Layout(ids, positions, blocks, positions % block_size, sampled, samples, rectangles)


def _groups(rows: Sequence[Row]) -> list[list[int]]:
    """Rows that share a rectangle: single tokens by length of context, each chunk by itself."""
    single = sorted((i for i, row in enumerate(rows) if len(row.ids) == 1), key=lambda i: rows[i].end)
    chunks = [[i] for i, row in enumerate(rows) if len(row.ids) > 1]
    return [single[i : i + GROUP_ROWS] for i in range(0, len(single), GROUP_ROWS)] + chunks


def _dummy(padding: Padding) -> Row:
    """A row whose answer is complete: as wide and deep as the rest, in no block of its own."""
    ids = np.zeros(padding.width, dtype=np.int32)
    return Row(ids, padding.context - padding.width, (), samples=True)


def _fill(
    rows: Sequence[Row],
    rectangle: Rectangle,
    ids: Integers,
    positions: Integers,
    blocks: Integers,
    block_size: int,
    spare_block: int,
) -> Rectangle:
    """Write the rows' tokens, right-aligned, into [rows, width] views of packed arrays; the rectangle, completed."""
    width, context = rectangle.width, rectangle.context
    tables = np.full((len(rows), -(-context // block_size)), spare_block, dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, width - len(row.ids) :] = row.ids
        held = row.blocks[: -(-row.end // block_size)]
        tables[i, : len(held)] = held
    starts = np.array([row.start for row in rows])[:, None]
    pads = np.array([width - len(row.ids) for row in rows])[:, None]
    columns = np.arange(width)[None, :]
    positions[:] = np.maximum(starts + columns - pads, 0)
    blocks[:] = np.where(columns >= pads, np.take_along_axis(tables, positions // block_size, axis=1), spare_block)

    keys = np.arange(context)
    if width == context and not starts.any():  # nothing lies before
        if len(rows) > 1 or pads.any():
            own, key = columns[..., None], keys[None, None, :]  # a padding token sees itself, so that it sees something
            rectangle.allowed = ((key >= pads[..., None]) & (key <= own)) | (key == own)
    else:
        rectangle.tables = tables
        allowed = keys <= positions[..., None]
        rectangle.allowed = None if allowed.all() else allowed
    return rectangle
