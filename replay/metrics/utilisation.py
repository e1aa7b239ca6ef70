"""How much of its machine an engine used, and what the tokens cost.

Arithmetic and traffic are counted from the model's shape (`replay.executors.work`), seconds from the rows, and the
ceilings are those that `replay probe` had measured before the run: where nothing was measured, nothing is told. Work is
model FLOP: those of tokens of requests. Padding is no work, tokens computed again after an eviction are.
"""

from __future__ import annotations

import polars as pl

from replay.metrics.metric import metric
from replay.metrics.rates import COMPLETED
from replay.metrics.statistics import finite

RUN_SECONDS = pl.col("cell_end").first() - pl.col("cell_start").first()
HOUR = 3600


def _total(amounts: str) -> pl.Expr:
    """The sum of a column; null, and not 0, where no value of it is known."""
    return pl.when(pl.col(amounts).count() > 0).then(pl.col(amounts).sum())


def _ceiling(name: str) -> pl.Expr:
    return pl.col(name).first()


def _busy_rate(amounts: str) -> pl.Expr:
    """All of it, for each second in which a step was being computed."""
    return _total(amounts) / pl.col("busy").sum()


def _run_rate(amounts: str) -> pl.Expr:
    """All of it, for each second of the whole run."""
    return _total(amounts) / RUN_SECONDS


@metric("mfu", unit="share", table="steps", better="higher")
def mfu() -> pl.Expr:
    """for each step, model FLOP of its own tokens / its seconds / the arithmetic ceiling; padding is no useful work.
    FLOP: 2 for each number in the layers' matrices and token, 2 for each in the logits' matrix and token of an answer,
    and 4 for each layer, head, its width, and pair of a token and one that it attends to"""
    return finite(pl.col("flops") / pl.col("busy") / pl.col("arithmetic_ceiling"))


@metric("mfu_busy", unit="share", table="steps", shape="one", better="higher")
def mfu_busy() -> pl.Expr:
    """model FLOP of all steps / seconds in which a step was being computed / the arithmetic ceiling"""
    return finite(_busy_rate("flops") / _ceiling("arithmetic_ceiling"))


@metric("mfu_run", unit="share", table="steps", shape="one", better="higher")
def mfu_run() -> pl.Expr:
    """model FLOP of all steps / seconds of the whole run, idle ones included / the arithmetic ceiling"""
    return finite(_run_rate("flops") / _ceiling("arithmetic_ceiling"))


@metric("mbu", unit="share", table="steps", better="higher")
def mbu() -> pl.Expr:
    """for each step, the fewest bytes that it must move / its seconds / the memory bandwidth, the higher of those
    measured in reading and in copying. Bytes: the layers' matrices once, the logits' if any token of an answer comes of
    it, and keys and values of its context, read, and of its own tokens, written; none of padding"""
    return finite(pl.col("traffic") / pl.col("busy") / pl.col("bandwidth_ceiling"))


@metric("mbu_busy", unit="share", table="steps", shape="one", better="higher")
def mbu_busy() -> pl.Expr:
    """the fewest bytes of all steps / seconds in which a step was being computed / the memory bandwidth"""
    return finite(_busy_rate("traffic") / _ceiling("bandwidth_ceiling"))


@metric("mbu_run", unit="share", table="steps", shape="one", better="higher")
def mbu_run() -> pl.Expr:
    """the fewest bytes of all steps / seconds of the whole run, idle ones included / the memory bandwidth"""
    return finite(_run_rate("traffic") / _ceiling("bandwidth_ceiling"))


@metric("flop_rate", unit="FLOP/s", table="steps", shape="one", better="higher")
def flop_rate() -> pl.Expr:
    """model FLOP of all steps / seconds in which a step was being computed: needs no ceiling"""
    return finite(_busy_rate("flops"))


@metric("byte_rate", unit="B/s", table="steps", shape="one", better="higher")
def byte_rate() -> pl.Expr:
    """the fewest bytes of all steps / seconds in which a step was being computed: needs no ceiling"""
    return finite(_busy_rate("traffic"))


@metric("device_memory", unit="B", table="steps", shape="one", better="lower")
def device_memory() -> pl.Expr:
    """the most memory that was in use while the cell ran: of tensors on a GPU, of the whole process on a CPU"""
    return pl.col("device_memory").first()


@metric("device_memory_reserved", unit="B", table="steps", shape="one", better="lower")
def device_memory_reserved() -> pl.Expr:
    """the most memory of a GPU that torch had taken for tensors, whether or not it had given it out"""
    return pl.col("device_memory_reserved").first()


@metric("gpu_use", unit="share", table="steps", shape="one", count=pl.col("gpu_samples").first())
def gpu_use() -> pl.Expr:
    """share of time in which the GPU had any work, by NVML: the mean of samples taken while the cell ran"""
    return pl.col("gpu_use_mean").first()


@metric("gpu_use_max", unit="share", table="steps", shape="one", count=pl.col("gpu_samples").first())
def gpu_use_max() -> pl.Expr:
    """share of time in which the GPU had any work, by NVML: the highest of the samples"""
    return pl.col("gpu_use_max").first()


@metric("cost_per_million_tokens", unit="price", shape="one", better="lower", count=COMPLETED.sum(), grouped=False)
def cost_per_million_tokens() -> pl.Expr:
    """engine.price_per_hour * hours of the whole run / tokens of completed answers * 1,000,000; in the money of the
    price"""
    tokens = pl.col("generated_tokens").filter(COMPLETED).sum()
    return finite(pl.col("price_per_hour").first() / HOUR * RUN_SECONDS / tokens * 1_000_000)
