"""`replay probe`: what this machine can do at most, and what an engine makes of it at several batch sizes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from replay.errors import ReplayError

if TYPE_CHECKING:
    from replay.ceilings import Ceilings
    from replay.executors.roofline import Roofline
    from replay.executors.torch.probing.batch_sizes import BatchSizes

GIB = 2**30
PASSED = (
    "More than 100 %: the weights fit into a cache, which is faster than memory, or something else was running when "
    "the ceilings were measured."
)


def _sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    """`1,8,32` as numbers, each once, in ascending order."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise click.BadParameter(f"{value!r} must be whole numbers from 1 on, with commas between: 1,8,32", ctx, param)
    return sorted({int(part) for part in parts})


@click.command("probe")
@click.option("--device", default="auto", show_default=True, metavar="NAME", help="cpu, cuda, cuda:N or auto.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="As engine.threads; torch's own by default.")
@click.option("--dtype", default="auto", show_default=True, metavar="NAME", help="float32, bfloat16, float16 or auto.")
@click.option("--model", metavar="NAME", help="Also time decode steps of this model, as engine.model.")
@click.option("--linears", metavar="NAME", help="With --model: native, onednn, fp16, plain or auto.  [default: auto]")
@click.option("--batch-sizes", callback=_sizes, metavar="N,N,...", help="With --model: which.  [default: 1,8,32]")
@click.option("--context", type=click.IntRange(min=1), metavar="TOKENS", help="With --model: of each.  [default: 256]")
@click.option("--price-per-hour", type=float, metavar="PRICE", help="With --model: tell the cost of tokens too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def probe(
    options: dict[str, Any] | None,
    device: str,
    threads: int | None,
    dtype: str,
    model: str | None,
    linears: str | None,
    batch_sizes: list[int] | None,
    context: int | None,
    price_per_hour: float | None,
    as_json: bool,
) -> None:
    """Measure how fast this machine reads memory and multiplies matrices, and keep that for later runs.

    Takes about ten seconds, on a machine that does nothing else meanwhile. The figures are kept by device, threads and
    number type; a run finds those of its engine and tells how much of them each step used. Without them it tells none.

    With --model, decode steps of that model are timed at several batch sizes: what batching gains, and whether memory
    or arithmetic is what holds it back.

    \b
    Examples:
      replay probe
      replay probe --model smollm2-135m --batch-sizes 1,8,32 --price-per-hour 0.10
    """
    given = {
        "--linears": linears,
        "--batch-sizes": batch_sizes,
        "--context": context,
        "--price-per-hour": price_per_hour,
    }
    if model is None and (stray := [name for name, value in given.items() if value is not None]):
        raise click.UsageError(f"{stray[0]} says how a model is timed: name one with --model")
    if price_per_hour is not None and not 0 < price_per_hour < float("inf"):
        raise click.UsageError(f"--price-per-hour {price_per_hour:g}: must be more than 0")
    say = _quiet if (options or {}).get("quiet") else _remark
    if model is not None:
        from replay.executors.torch.model_facts import check_name

        check_name(model)  # before anything is measured
    say("measuring memory and arithmetic")
    from replay.ceilings import cache_file, keep_ceilings
    from replay.executors.torch.probing.ceilings import measure_ceilings

    ceilings, remarks = measure_ceilings(device=device, threads=threads, dtype=dtype)
    if not as_json:
        click.echo(_ceilings(ceilings))
    for remark in remarks:
        click.echo(f"warning: {remark}; measure again when nothing else runs", err=True)
    fault: ReplayError | None = None
    try:
        keep_ceilings(cache_file(), ceilings)
        say(f"kept in {cache_file()}, where `replay run` finds them")
    except ReplayError as unkept:  # what was asked for is printed all the same
        fault = unkept
    timed = None
    if model is not None:
        from replay.executors.torch.probing.batch_sizes import time_batch_sizes

        say(f"timing decode steps of {model}")
        timed = time_batch_sizes(
            ceilings[0],
            model=model,
            device=device,
            threads=threads,
            dtype=dtype,
            linears=linears or "auto",
            batch_sizes=batch_sizes or [1, 8, 32],
            context=context or 256,
            price_per_hour=price_per_hour,
        )
    if as_json:
        document = {"format": 1, "ceilings": [asdict(found) for found in ceilings]}
        document |= {} if timed is None else {"model": timed.facts()}
        click.echo(json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False))
    elif timed is not None:
        click.echo("\n" + _batch_sizes(timed))
    if fault is not None:
        raise fault


def _remark(text: str) -> None:
    click.echo(text, err=True)


def _quiet(text: str) -> None:
    """Nothing."""


def _ceilings(found: list[Ceilings]) -> str:
    """Each figure with how it was measured."""
    from replay.metrics.notation import aligned, scaled

    own = found[0]
    threads = "" if own.threads is None else f", {own.threads} {'thread' if own.threads == 1 else 'threads'}"
    rows = [
        ["read", scaled(own.read, "B/s"), own.how["read"]],
        ["copy", scaled(own.copy, "B/s"), f"{own.how['copy']}; a byte counts twice, read and written"],
        *([one.dtype, scaled(one.arithmetic, "FLOP/s"), one.how["arithmetic"]] for one in found),
    ]
    table = aligned(["ceiling", "best sustained", "measured as"], rows, words=3)
    return f"{own.device}{threads}, torch {own.versions['torch']}\n{table}"


def _batch_sizes(timed: BatchSizes) -> str:
    """The table, and under it the arithmetic of each row's roofline."""
    from replay.metrics.notation import UNDEFINED, aligned, milliseconds, number, percent, price

    heads = [
        "batch size",
        "step, ms",
        "tokens/s",
        "arithmetic used",
        "bandwidth used",
        "nearest ceiling",
        "memory, GiB",
    ]
    priced = timed.price_per_hour is not None
    rows = [
        [
            f"{row.decoded.batch_size:,}",
            milliseconds(row.decoded.seconds),
            number(row.decoded.tokens_per_second),
            percent(row.arithmetic_used),
            percent(row.bandwidth_used),
            UNDEFINED if row.roofline is None else row.roofline.bound,
            number(None if row.memory is None else row.memory / GIB),
            *([price(row.cost_per_million)] if priced else []),
        ]
        for row in timed.rows
    ]
    title = f"{timed.model}, decode steps over about {timed.context:,} tokens each, medians"
    table = aligned(heads + (["cost of 1M tokens"] if priced else []), rows, words=0)
    sums = [_sum(row.decoded.batch_size, row.decoded.seconds, row.roofline) for row in timed.rows if row.roofline]
    none = ["The arithmetic of a model of this shape is not counted, so what it used of the machine cannot be told."]
    passed = any((row.bandwidth_used or 0) > 1 or (row.arithmetic_used or 0) > 1 for row in timed.rows)
    return "\n".join([title, table, "", *(sums or none), *([PASSED] if passed else [])])


def _sum(batch_size: int, seconds: float, roof: Roofline) -> str:
    """How a step's least time comes about."""
    from replay.metrics.notation import milliseconds, percent, scaled

    reached = percent(roof.least_seconds / seconds)
    return (
        f"batch {batch_size}: {scaled(roof.flops, 'FLOP')} / {scaled(roof.ceilings.arithmetic, 'FLOP/s')} = "
        f"{milliseconds(roof.arithmetic_seconds)} ms of arithmetic, {scaled(roof.traffic, 'B')} / "
        f"{scaled(roof.ceilings.bandwidth, 'B/s')} = {milliseconds(roof.memory_seconds)} ms of memory; a step takes "
        f"{milliseconds(roof.least_seconds)} ms at best, which is {reached} of what it took"
    )
