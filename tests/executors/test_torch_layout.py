"""Where the tokens of a step go, worked out by hand for small blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replay.executors.interface import Padding
from replay.executors.torch.layout import Layout, Row, Rows
from replay.executors.torch.layout import lay_out as lay_out_rows
from replay.executors.torch.rectangles import GROUP_ROWS, Rectangle, rectangles
from replay.executors.torch.triton.words import Segments, Sizes

SPARE = 99


def row(ids: list[int], start: int, blocks: list[int], *, samples: bool = True) -> Row:
    return Row(np.array(ids, dtype=np.int32), start, blocks, samples)


@dataclass
class Laid:
    """A layout, with its rectangles."""

    layout: Layout
    rectangles: list[Rectangle]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.layout, name)


def lay_out(rows: list[Row], padding: Padding | None, block_size: int, spare_block: int) -> Laid:
    layout = lay_out_rows(Rows.of(rows), padding, block_size, spare_block)
    return Laid(layout, rectangles(layout, block_size))


def test_a_decode_and_a_chunk() -> None:
    # Blocks of 4. The chunk is tokens 3, 4, 5 of its request, in blocks 7 and 2; the decode is token 4, in block 5.
    layout = lay_out([row([30, 31, 32], 3, [7, 2], samples=False), row([40], 4, [6, 5])], None, 4, SPARE)
    decode, chunk = layout.rectangles
    assert layout.ids.tolist() == [40, 30, 31, 32]
    assert layout.positions.tolist() == [4, 3, 4, 5]
    assert layout.blocks.tolist() == [5, 7, 2, 2]
    assert layout.offsets.tolist() == [0, 3, 0, 1]
    assert (layout.sampled.tolist(), layout.samples) == ([0], 1)
    assert (decode.first, decode.rows, decode.width, decode.context, decode.allowed) == (0, 1, 1, 5, None)
    assert (chunk.first, chunk.rows, chunk.width, chunk.context) == (1, 1, 3, 6)
    assert chunk.tables is not None
    assert chunk.tables.tolist() == [[7, 2]]
    assert chunk.allowed is not None
    assert chunk.allowed[0].astype(int).tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]


def test_a_whole_prompt_needs_neither_table_nor_mask() -> None:
    (prompt,) = lay_out([row([1, 2, 3], 0, [4])], None, 4, SPARE).rectangles
    assert prompt.tables is None
    assert prompt.allowed is None


def test_decodes_are_grouped_by_length_and_sampled_in_their_own_order() -> None:
    ends = [5, 40, 6, 39] * 5  # twenty decodes: a full group and one of four
    rows = [row([100 + i], end - 1, [i] * 10) for i, end in enumerate(ends)]
    layout = lay_out(rows, None, 4, SPARE)
    assert [(part.rows, part.context) for part in layout.rectangles] == [(GROUP_ROWS, 40), (4, 40)]
    assert layout.ids[layout.sampled].tolist() == [100 + i for i in range(20)]
    assert layout.positions.tolist() == sorted(end - 1 for end in ends)
    shorter = layout.rectangles[0].allowed
    assert shorter is not None
    assert shorter.sum(axis=2).reshape(-1).tolist() == sorted(ends)[:GROUP_ROWS]


def test_padded_prompts_stand_to_the_right() -> None:
    # Two prompts of 3 and 1 tokens and a dummy row, three tokens wide.
    layout = lay_out([row([1, 2, 3], 0, [8]), row([7], 0, [9])], Padding(rows=3, width=3, context=3), 4, SPARE)
    (part,) = layout.rectangles
    assert layout.ids.reshape(3, 3).tolist() == [[1, 2, 3], [0, 0, 7], [0, 0, 0]]
    assert layout.positions.reshape(3, 3).tolist() == [[0, 1, 2], [0, 0, 0], [0, 1, 2]]
    assert layout.blocks.reshape(3, 3).tolist() == [[8, 8, 8], [SPARE, SPARE, 9], [SPARE, SPARE, SPARE]]
    assert (layout.sampled.tolist(), layout.samples) == ([2, 5, 8], 2)  # the dummy's logits are computed all the same
    assert part.tables is None
    assert part.allowed is not None
    assert part.allowed[1].astype(int).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
    ]  # padding sees itself, 7 only itself


def test_padded_decodes_read_the_whole_context() -> None:
    layout = lay_out([row([5], 2, [8])], Padding(rows=2, width=1, context=9), 4, SPARE)
    (part,) = layout.rectangles
    assert (part.rows, part.width, part.context) == (2, 1, 9)
    assert part.tables is not None
    assert part.tables.tolist() == [[8, SPARE, SPARE], [SPARE, SPARE, SPARE]]
    assert part.allowed is not None
    assert part.allowed.sum(axis=2).tolist() == [[3], [3]]
    assert layout.positions.tolist() == [2, 2]  # never beyond the last real one, as the model may have none


@given(
    sizes=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20), st.booleans()), min_size=1, max_size=40),
    block_size=st.integers(1, 9),
    spare_rows=st.integers(0, 20),
    padded=st.booleans(),
)
def test_every_token_once_and_padding_apart(
    sizes: list[tuple[int, int, bool]], block_size: int, spare_rows: int, padded: bool
) -> None:
    rows, block = [], 0
    for start, tokens, samples in sizes:
        held = -(-(start + tokens) // block_size)
        rows.append(row([1 + len(rows)] * tokens, start, list(range(block, block + held)), samples=samples or padded))
        block += held
    width, context = max(len(r.ids) for r in rows), max(r.end for r in rows)
    context = max(context, width)
    padding = Padding(len(rows) + spare_rows, width, context) if padded else None
    layout = lay_out(rows, padding, block_size, spare_block=block)
    real = layout.blocks != block
    places = (layout.blocks * block_size + layout.offsets)[real]
    assert len(set(places.tolist())) == real.sum() == sum(len(r.ids) for r in rows)
    expected = {  # (place in the pool, position, id)
        (r.blocks[position // block_size] * block_size + position % block_size, position, int(r.ids[0]))
        for r in rows
        for position in range(r.start, r.end)
    }
    assert (
        set(zip(places.tolist(), layout.positions[real].tolist(), layout.ids[real].tolist(), strict=True)) == expected
    )
    sampling = [r for r in rows if r.samples]
    assert layout.ids[layout.sampled[: layout.samples]].tolist() == [int(r.ids[0]) for r in sampling]
    assert layout.positions[layout.sampled[: layout.samples]].tolist() == [r.end - 1 for r in sampling]
    if padding is not None:  # the padded work is really done
        assert len(layout.ids) == padding.rows * padding.width
        assert sum(part.rows * part.context for part in layout.rectangles) == padding.rows * padding.context
        assert len(layout.sampled) == padding.rows
    for part in layout.rectangles:
        assert part.allowed is None or part.allowed.any(axis=2).all()  # each token sees something


def test_the_parts_of_a_steps_integers_begin_at_16_bytes_and_do_not_overlap() -> None:
    sizes = Sizes(singles=3, rows=2, tokens=7, tiles=5)
    words = np.arange(sizes.words + sizes.all_rows * 3, dtype=np.int32)
    parts = [getattr(Segments.of(words, sizes), field.name) for field in fields(Segments)]
    assert [len(part) for part in parts] == [10] * 5 + [5] * 2 + [8] * 4 + [1, 15]
    assert all(part[0] % 4 == 0 for part in parts)
    assert all(before[-1] < after[0] for before, after in pairwise(parts))
