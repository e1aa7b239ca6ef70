"""What a run's manifest knows of the engine of a cell, as columns of its steps: work, ceilings, use of the device.

It says what is known; what comes of it is for the metrics.
"""

from __future__ import annotations

import polars as pl

from replay.results import Cell

BUSY = pl.col("end") - pl.max_horizontal("launched", pl.col("end").shift(1))
"""Seconds of a step in which the device computed it: from when the step before was back, where that came later."""
OWN_CONTEXT = (
    pl.when(pl.col("prefill_tokens") == 0)
    .then(pl.col("attention_pairs"))  # a decode attends to all of its context: in a padded step too, to no padding
    .when(pl.col("padding_tokens") > 0)
    .then(pl.col("prefill_tokens"))  # a padded batch computes whole prompts
    .otherwise(pl.col("context_tokens"))
)
"""Tokens whose keys and values a step reads, without those of padding."""


def work_columns(cell: Cell) -> dict[str, pl.Expr]:
    """Arithmetic and traffic of each step, and the ceilings of the device; null where the manifest has none."""
    ceilings, work = cell.ceilings, cell.work
    columns = {
        "arithmetic_ceiling": _constant(None if ceilings is None else ceilings.arithmetic),
        "bandwidth_ceiling": _constant(None if ceilings is None else ceilings.bandwidth),
    }
    if work is None:
        return {"flops": _constant(None), "traffic": _constant(None), **columns}
    tokens = (pl.col("prefill_tokens") + pl.col("decodes")).cast(pl.Float64)
    samples, pairs = pl.col("new_tokens"), pl.col("attention_pairs").cast(pl.Float64)
    sampling = pl.when(samples > 0).then(work.sampling_bytes).otherwise(0)
    return {  # in floating point: a long run of a large model counts more FLOP than 64 bits hold
        "flops": work.token_flops * tokens + work.sample_flops * samples.cast(pl.Float64) + work.pair_flops * pairs,
        "traffic": work.step_bytes + sampling + work.kv_bytes * (OWN_CONTEXT + tokens),
        **columns,
    }


def use_columns(cell: Cell) -> dict[str, pl.Expr]:
    """What was seen of the device while the cell ran; null where nothing was."""
    use = cell.device_use or {}
    return {
        "device_memory": _constant(use.get("memory")),
        "device_memory_reserved": _constant(use.get("reserved")),
        "gpu_use_mean": _constant(use.get("gpu_use_mean")),
        "gpu_use_max": _constant(use.get("gpu_use_max")),
        "gpu_samples": _constant(use.get("gpu_samples")),
    }


def _constant(value: float | None) -> pl.Expr:
    return pl.lit(value, dtype=pl.Float64)
