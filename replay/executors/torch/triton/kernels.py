"""Kernels of our own in Triton for paged attention over block tables: what is written, what is read, what is joined.

They know pointers and strides. `TRITON_INTERPRET=1` runs them on a CPU, slowly, for tests.
"""

# mypy: ignore-errors
# ruff: noqa: N803, N806  # compile-time constants are written in capitals, as everywhere in Triton

import triton
import triton.language as tl


@triton.jit
def attend_tiles(
    query,  # [tokens, >= HEADS, HEAD_DIM], `query_stride` numbers from token to token
    keys,  # the layer's keys [blocks, KV_HEADS, BLOCK_SIZE, HEAD_DIM]
    values,
    out,  # [tokens, HEADS, HEAD_DIM]; with SPLITS > 1 not written
    partial,  # [SPLITS, tiles, HEADS, HEAD_DIM] float32: used with SPLITS > 1, and then a tile is one token
    partial_stats,  # [SPLITS, tiles, HEADS, 2] float32: the largest score (base 2) and the sum of the weights
    tile_first,  # [tiles] the first token of each tile
    tile_tokens,  # [tiles] its tokens
    tile_row,  # [tiles] its row in `tables`
    tile_context,  # [tiles] positions to look at; those after a token's own count for nothing
    positions,  # [tokens]
    tables,  # [rows, stride]
    table_stride,  # [1], in memory, so that a captured graph can be fed wider tables
    query_stride,
    tiles,
    scale,  # of the scores, times log2(e)
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,  # HEAD_DIM, up to a power of 2
    BLOCK_SIZE: tl.constexpr,
    QUERIES: tl.constexpr,  # rows of the score matrix: tokens of the tile x query heads of a KV head, at least 16
    KEYS: tl.constexpr,  # positions in one turn of the loop
    SPLITS: tl.constexpr,  # programs that share a tile's context
    PRECISION: tl.constexpr,
):
    tile, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    GROUP: tl.constexpr = HEADS // KV_HEADS
    first = tl.load(tile_first + tile)
    count = tl.load(tile_tokens + tile)
    context = tl.load(tile_context + tile)
    table = tables + tl.load(tile_row + tile).to(tl.int64) * tl.load(table_stride)

    index = tl.arange(0, QUERIES)
    token, head = index // GROUP, kv_head * GROUP + index % GROUP
    live = token < count
    dim = tl.arange(0, PADDED_DIM)
    whole = dim < HEAD_DIM
    places = (first + token).to(tl.int64) * query_stride + head * HEAD_DIM
    q = tl.load(query + places[:, None] + dim[None, :], mask=live[:, None] & whole[None, :], other=0.0)
    position = tl.load(positions + first + token, mask=live, other=0)

    each = tl.cdiv(tl.cdiv(context, KEYS), SPLITS) * KEYS
    begin = split * each
    end = tl.minimum(begin + each, context)
    largest = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    attended = tl.zeros([QUERIES, PADDED_DIM], tl.float32)
    for at in range(begin, end, KEYS):
        key = at + tl.arange(0, KEYS)
        inside = key < end
        block = tl.load(table + key // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)
        rows = ((block * KV_HEADS + kv_head) * BLOCK_SIZE + key % BLOCK_SIZE) * HEAD_DIM
        k = tl.load(keys + rows[None, :] + dim[:, None], mask=inside[None, :] & whole[:, None], other=0.0)
        scores = tl.dot(q, k.to(q.dtype), input_precision=PRECISION) * scale
        seen = inside[None, :] & (key[None, :] <= position[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(largest, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # nothing seen yet: keep 0 - inf away
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(values + rows[:, None] + dim[None, :], mask=inside[:, None] & whole[None, :], other=0.0)
        attended = attended * shrink[:, None] + tl.dot(weights.to(q.dtype), v.to(q.dtype), input_precision=PRECISION)
        largest = higher

    if SPLITS == 1:
        result = attended / tl.where(total == 0.0, 1.0, total)[:, None]  # a row of filling saw nothing
        target = ((first + token).to(tl.int64) * HEADS + head) * HEAD_DIM
        tl.store(
            out + target[:, None] + dim[None, :],
            result.to(out.dtype.element_ty),
            mask=live[:, None] & whole[None, :],
        )
    else:
        line = (split * tiles + tile).to(tl.int64) * HEADS + head
        tl.store(partial + (line * HEAD_DIM)[:, None] + dim[None, :], attended, mask=live[:, None] & whole[None, :])
        tl.store(partial_stats + line * 2, largest, mask=live)
        tl.store(partial_stats + line * 2 + 1, total, mask=live)


@triton.jit
def join_splits(
    partial,  # as `attend_tiles` leaves them
    partial_stats,
    out,  # [tokens, HEADS, HEAD_DIM]
    tile_first,
    tiles,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    SPLITS: tl.constexpr,
):
    tile, head = tl.program_id(0), tl.program_id(1)
    line = (tl.arange(0, SPLITS) * tiles + tile).to(tl.int64) * HEADS + head
    largest = tl.load(partial_stats + line * 2)
    total = tl.load(partial_stats + line * 2 + 1)
    weights = tl.exp2(largest - tl.max(largest, 0))
    dim = tl.arange(0, PADDED_DIM)
    parts = tl.load(partial + (line * HEAD_DIM)[:, None] + dim[None, :], mask=(dim < HEAD_DIM)[None, :], other=0.0)
    result = tl.sum(parts * weights[:, None], 0) / tl.sum(total * weights, 0)
    target = (tl.load(tile_first + tile).to(tl.int64) * HEADS + head) * HEAD_DIM
    tl.store(out + target + dim, result.to(out.dtype.element_ty), mask=dim < HEAD_DIM)


@triton.jit
def rotate_and_write(
    heads,  # [tokens, HEADS + 2 * KV_HEADS, HEAD_DIM]: queries (rotated in place), keys, values
    cos,  # [tokens, HEAD_DIM / 2] float32
    sin,
    blocks,  # [tokens] where keys and values go
    offsets,
    keys,
    values,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_HALF: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    AT_ONCE: tl.constexpr,  # heads that one program takes
):
    token = tl.program_id(0).to(tl.int64)
    HALF: tl.constexpr = HEAD_DIM // 2
    head = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
    dim = tl.arange(0, PADDED_HALF)
    inside = (dim < HALF)[None, :]
    line = ((token * (HEADS + 2 * KV_HEADS) + head) * HEAD_DIM)[:, None] + dim[None, :]
    given = (head < HEADS + 2 * KV_HEADS)[:, None] & inside
    first = tl.load(heads + line, mask=given, other=0.0)
    second = tl.load(heads + line + HALF, mask=given, other=0.0)
    c = tl.load(cos + token * HALF + dim, mask=dim < HALF, other=0.0)[None, :]
    s = tl.load(sin + token * HALF + dim, mask=dim < HALF, other=0.0)[None, :]
    a, b = first.to(tl.float32), second.to(tl.float32)
    turned_first = (a * c - b * s).to(heads.dtype.element_ty)
    turned_second = (b * c + a * s).to(heads.dtype.element_ty)
    is_query = (head < HEADS)[:, None] & inside
    tl.store(heads + line, turned_first, mask=is_query)
    tl.store(heads + line + HALF, turned_second, mask=is_query)
    block, offset = tl.load(blocks + token).to(tl.int64), tl.load(offsets + token)
    kept = (head - HEADS) % KV_HEADS
    place = (((block * KV_HEADS + kept) * BLOCK_SIZE + offset) * HEAD_DIM)[:, None] + dim[None, :]
    is_key = ((head >= HEADS) & (head < HEADS + KV_HEADS))[:, None] & inside
    tl.store(keys + place, turned_first.to(keys.dtype.element_ty), mask=is_key)
    tl.store(keys + place + HALF, turned_second.to(keys.dtype.element_ty), mask=is_key)
    is_value = ((head >= HEADS + KV_HEADS) & (head < HEADS + 2 * KV_HEADS))[:, None] & inside
    tl.store(values + place, first.to(values.dtype.element_ty), mask=is_value)
    tl.store(values + place + HALF, second.to(values.dtype.element_ty), mask=is_value)


@triton.jit
def write_kv(
    key,  # [tokens, KV_HEADS, HEAD_DIM]
    value,
    blocks,
    offsets,
    keys,
    values,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    dim = tl.arange(0, PADDED_DIM)
    mask = dim < HEAD_DIM
    line = (token * KV_HEADS + head) * HEAD_DIM
    block, offset = tl.load(blocks + token).to(tl.int64), tl.load(offsets + token)
    place = ((block * KV_HEADS + head) * BLOCK_SIZE + offset) * HEAD_DIM
    k = tl.load(key + line + dim, mask=mask)
    v = tl.load(value + line + dim, mask=mask)
    tl.store(keys + place + dim, k.to(keys.dtype.element_ty), mask=mask)
    tl.store(values + place + dim, v.to(values.dtype.element_ty), mask=mask)
