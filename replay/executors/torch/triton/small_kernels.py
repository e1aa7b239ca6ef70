"""Kernels of our own in Triton for what lies between a decoder's matrix products: norms, gates, the largest logit.

They know pointers and strides. `TRITON_INTERPRET=1` runs them on a CPU, slowly, for tests.
"""

# mypy: ignore-errors
# ruff: noqa: N803  # compile-time constants are written in capitals, as everywhere in Triton

import triton
import triton.language as tl


@triton.jit
def norm_rows(
    x,  # [rows, WIDTH]; with ADD it is added to `residual`, in place, and the sum is normed
    residual,
    weight,
    out,
    x_stride,
    eps,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ADD: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, PADDED)
    mask = column < WIDTH
    numbers = tl.load(x + row * x_stride + column, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        numbers += tl.load(residual + row * WIDTH + column, mask=mask, other=0.0).to(tl.float32)
        rounded = numbers.to(residual.dtype.element_ty)
        tl.store(residual + row * WIDTH + column, rounded, mask=mask)
        numbers = rounded.to(tl.float32)
    inverse = 1.0 / tl.sqrt(tl.sum(numbers * numbers, 0) / WIDTH + eps)
    factor = tl.load(weight + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * WIDTH + column, (numbers * inverse * factor).to(out.dtype.element_ty), mask=mask)


@triton.jit
def silu_and_multiply(
    gate_up,  # [rows, 2 * width]
    out,  # [rows, width]
    width,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = column < width
    gate = tl.load(gate_up + row * 2 * width + column, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * width + column, (gate / (1.0 + tl.exp(-gate)) * up).to(out.dtype.element_ty), mask=mask)


@triton.jit
def largest_in_parts(
    logits,  # [rows, columns]
    values,  # [rows, parts] float32: the largest of each part
    places,  # [rows, parts] int32: its column, the lowest among equals
    columns,
    PART: tl.constexpr,
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = part * PART + tl.arange(0, PART)
    numbers = tl.load(logits + row * columns + column, mask=column < columns, other=float("-inf")).to(tl.float32)
    value, place = tl.max(numbers, 0, return_indices=True, return_indices_tie_break_left=True)
    tl.store(values + row * tl.num_programs(1) + part, value)
    # Among numbers that are none, any place may be found: one beyond the row would be no token.
    tl.store(places + row * tl.num_programs(1) + part, tl.minimum(part * PART + place, columns - 1))


@triton.jit
def largest_of_parts(values, places, out, parts, PADDED: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PADDED)
    numbers = tl.load(values + row * parts + part, mask=part < parts, other=float("-inf"))
    place = tl.max(numbers, 0, return_indices=True, return_indices_tie_break_left=True)[1]
    tl.store(out + row, tl.load(places + row * parts + place).to(tl.int64))
