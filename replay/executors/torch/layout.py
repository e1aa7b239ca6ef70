"""Where each token of a step goes: the rows of a step packed one after the other, all in plain numbers.

Decodes come first, those of short context before those of long; then chunks of prompts. The padded layout has rows as
wide and as deep as `Padding` says. It knows block tables and positions, and no model and no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.executors.interface import Padding, TokenIds

Integers = NDArray[np.int64]
Tables = NDArray[np.int32]
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
class Rows:
    """The rows of a step as arrays, an entry each; `ids` holds the rows' tokens one after the other.

    `tables` [rows, blocks] may be wider than a row's own blocks: what lies beyond them is never looked at. `owners`
    are numbers of the rows' requests, from which their draws follow.
    """

    ids: TokenIds
    owners: Integers
    starts: Integers
    lengths: Integers
    samples: Booleans
    tables: Tables

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rows:
        """Rows one by one as arrays."""
        tables = np.zeros((len(rows), max(len(row.blocks) for row in rows)), dtype=np.int32)
        for table, row in zip(tables, rows, strict=True):
            table[: len(row.blocks)] = row.blocks
        return cls(
            ids=np.concatenate([row.ids for row in rows]),
            owners=np.arange(len(rows)),
            starts=np.array([row.start for row in rows], dtype=np.int64),
            lengths=np.array([len(row.ids) for row in rows], dtype=np.int64),
            samples=np.array([row.samples for row in rows], dtype=np.bool_),
            tables=tables,
        )


@dataclass(slots=True)
class Layout:
    """All tokens of a step in packed order, and the rows that they belong to, in the order in which they are packed.

    Of each token: `ids`, `positions`, `blocks` and `offsets` (the place of its keys and values), and `source`, its
    index among the ids handed in, or -1 for padding. Of each row: `firsts` (the packed index of its first token),
    `widths` (its packed tokens, the first `pads` of them padding), `contexts` (tokens that it attends over, padding
    included), `ends` (its own tokens among these) and `tables`. `sampled` are the packed indices of tokens whose
    successor is sampled: first `samples` real ones, in the order of the rows handed in, then those of padding rows,
    which are thrown away. `singles` rows at the front are one token wide.
    """

    ids: Integers
    positions: Integers
    blocks: Integers
    offsets: Integers
    source: Integers
    sampled: Integers
    samples: int
    firsts: Integers
    widths: Integers
    pads: Integers
    contexts: Integers
    ends: Integers
    tables: Tables
    singles: int
    padded: bool


def lay_out(rows: Rows, padding: Padding | None, block_size: int, spare_block: int) -> Layout:
    """The layout of one step. What padding writes goes to `spare_block`, which belongs to nobody."""
    lengths, ends = rows.lengths, rows.starts + rows.lengths
    own = len(lengths)
    if padding is None:
        single = lengths == 1
        order = np.lexsort((np.where(single, ends, np.arange(own)), ~single))
        widths, contexts = lengths[order], ends[order]
        dummies = 0
    else:
        order = np.arange(own)
        dummies = padding.rows - own
        widths = np.full(padding.rows, padding.width, dtype=np.int64)
        contexts = np.full(padding.rows, padding.context, dtype=np.int64)
    lengths = np.concatenate([lengths[order], widths[own:]])  # a row whose answer is complete is as wide as the rest
    ends = np.concatenate([ends[order], contexts[own:]])  # and as deep
    pads = widths - lengths
    firsts = np.cumsum(widths) - widths

    row_of = np.repeat(np.arange(len(widths)), widths)
    column = np.arange(len(row_of)) - firsts[row_of]
    # Where nobody is, a context can be deeper than any that a model takes: no position lies beyond the last real one.
    positions = np.clip(ends[row_of] - widths[row_of] + column, 0, ends[:own].max() - 1)
    real = (column >= pads[row_of]) & (row_of < own)
    handed_in = np.concatenate([(np.cumsum(rows.lengths) - rows.lengths)[order], np.zeros(dummies, dtype=np.int64)])
    source = np.where(real, handed_in[row_of] + column - pads[row_of], -1)
    ids = np.where(real, rows.ids[source], 0).astype(np.int64)

    tables = np.full((len(widths), max(rows.tables.shape[1], -(-int(contexts.max()) // block_size))), spare_block)
    tables = tables.astype(np.int32)
    held = np.arange(rows.tables.shape[1]) * block_size < ends[:own, None]
    tables[:own, : rows.tables.shape[1]] = np.where(held, rows.tables[order], spare_block)
    blocks = np.where(real, tables[row_of, positions // block_size], spare_block).astype(np.int64)

    last = np.empty(len(widths), dtype=np.int64)
    last[np.concatenate([order, np.arange(own, len(widths))])] = firsts + widths - 1
    sampling = np.concatenate([rows.samples, np.ones(dummies, dtype=np.bool_)])
    return Layout(
        ids=ids,
        positions=positions,
        blocks=blocks,
        offsets=positions % block_size,
        source=source,
        sampled=last[sampling],
        samples=int(rows.samples.sum()),
        firsts=firsts,
        widths=widths,
        pads=pads,
        contexts=contexts,
        ends=ends,
        tables=tables,
        singles=int((widths == 1).sum()) if padding is None or padding.width == 1 else 0,
        padded=padding is not None,
    )
