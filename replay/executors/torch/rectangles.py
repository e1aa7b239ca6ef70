"""The rows of a layout as rectangles, for attention that computes many rows at once: with tables and masks.

Single tokens of about the same context share a rectangle; a chunk of a prompt is one of its own; padded rows are
rectangles as they are. It knows numbers, and no device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from replay.executors.torch.layout import Booleans, Integers, Layout

GROUP_ROWS = 16  # rows of a rectangle: with fewer there are more calls, with more the short rows wait for the longest


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


def rectangles(layout: Layout, block_size: int, *, singles: bool = True) -> list[Rectangle]:
    """The rectangles of a layout, in packed order; without those of single tokens if they are attended otherwise."""
    return [_rectangle(layout, part, block_size) for part in _parts(layout) if singles or part.start >= layout.singles]


def _parts(layout: Layout) -> Iterator[slice]:
    rows = len(layout.widths)
    grouped = rows if layout.padded else layout.singles
    for first in range(0, grouped, GROUP_ROWS):
        yield slice(first, min(first + GROUP_ROWS, grouped))
    for row in range(grouped, rows):
        yield slice(row, row + 1)


def _rectangle(layout: Layout, part: slice, block_size: int) -> Rectangle:
    """The rows of `part`, which are equally wide."""
    rows, width, first = part.stop - part.start, int(layout.widths[part.start]), int(layout.firsts[part.start])
    context = int(layout.contexts[part].max())
    positions = layout.positions[first : first + rows * width].reshape(rows, width)
    pads = layout.pads[part, None]
    starts = layout.ends[part] - (width - layout.pads[part])
    keys = np.arange(context)
    allowed: Booleans
    if width == context and not starts.any():  # nothing lies before
        if rows == 1 and not pads.any():
            return Rectangle(first, rows, width, context, None, None)
        own, key = np.arange(width)[None, :, None], keys[None, None, :]
        allowed = ((key >= pads[..., None]) & (key <= own)) | (key == own)  # padding sees itself, so that it sees some
        return Rectangle(first, rows, width, context, None, allowed)
    tables = layout.tables[part, : -(-context // block_size)].astype(np.int64)
    allowed = keys <= positions[..., None]
    return Rectangle(first, rows, width, context, tables, None if allowed.all() else allowed)
