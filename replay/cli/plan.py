"""`replay plan`: how large a batch fits into a device's memory, and what a trace asks of it.

It gathers what options, an experiment or the device at hand say; the arithmetic is elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from replay.experiment.settings import Engine
    from replay.traces.table import Trace

DTYPES = ("float32", "bfloat16", "float16")
STEP = (2048, 256)  # tokens of the largest step, and sampled ones among them, where no experiment says
POSITIVE = click.IntRange(min=1)
SHARE = click.FloatRange(0, 1, min_open=True)
MILLISECONDS = click.FloatRange(0, min_open=True)
FILE = click.Path(path_type=Path)


UNITS = {"MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Bytes, from `80GiB` or `80 GB`: with the prefixes of 1024 or of 1000."""
    if value is None:
        return None
    text = value.strip().upper()
    unit = next((unit for unit in UNITS if text.endswith(unit)), None)
    try:
        count = float(text.removesuffix(unit or "?"))
    except ValueError:
        count = 0.0
    if unit is None or not 0 < count < float("inf"):
        raise click.BadParameter(f"{value!r} is no size; write for instance 80GiB or 80GB", context, parameter)
    return int(count * UNITS[unit])


@click.command("plan")
@click.option("--model", metavar="MODEL", help="A named shape, a folder or a hub name.")
@click.option(
    "--memory", callback=parse_size, metavar="SIZE", help="Of the device, as 80GiB; left out: the one at hand."
)
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(DTYPES), help="Of weights and KV. Repeatable.")
@click.option("--kv-dtype", type=click.Choice(DTYPES), help="Of KV alone.")
@click.option("--context", "contexts", multiple=True, type=POSITIVE, metavar="N", help="Tokens a request. Repeatable.")
@click.option("--utilization", type=SHARE, metavar="SHARE", help="Of the memory that may be in use; left out: 0.9.")
@click.option("--block-size", type=POSITIVE, metavar="N", help="Tokens in one KV block; left out: 16.")
@click.option("--trace", "trace_file", type=FILE, metavar="FILE", help="Say what this trace asks for.")
@click.option("--tpot-ms", type=MILLISECONDS, metavar="MS", help="Time for each token: what is resident over time.")
@click.option("--ttft-ms", type=MILLISECONDS, metavar="MS", help="Time to the first token; left out: as --tpot-ms.")
@click.option("--experiment", type=FILE, metavar="FILE", help="Take all this from an experiment; options override it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def plan(
    model: str | None,
    memory: int | None,
    dtypes: tuple[str, ...],
    kv_dtype: str | None,
    contexts: tuple[int, ...],
    utilization: float | None,
    block_size: int | None,
    trace_file: Path | None,
    tpot_ms: float | None,
    ttft_ms: float | None,
    experiment: Path | None,
    as_json: bool,
) -> None:
    """Say how many requests a device's memory holds at once, and how that is reckoned.

    \b
    KV pool: utilization x memory - weights - workspace (an estimate of the peak of a step).
    Batch:   blocks of the pool / blocks of a request. Nothing is shared between requests.
    Trace:   bounds, for what it holds at once hangs on the engine's speed; --tpot-ms assumes one.

    \b
    Examples:
      replay plan --model llama-3.1-8b --memory 80GiB --context 4096
      replay plan --model models/smollm2 --trace chat.parquet --ttft-ms 200 --tpot-ms 40
      replay plan --experiment experiment.toml --memory 24GiB --dtype bfloat16 --dtype float32
    """
    import json

    from replay.cli.plan_text import demand_facts, demand_text, plan_facts, plan_text
    from replay.planning import plan_pool

    if model is None and experiment is None:
        raise click.UsageError("name a --model, or an --experiment, which names one")
    if tpot_ms is not None and trace_file is None and experiment is None:
        raise click.UsageError("--tpot-ms says how long the requests of a trace stay; name a --trace too")
    if ttft_ms is not None and tpot_ms is None:
        raise click.UsageError("--ttft-ms needs a --tpot-ms beside it")
    options = {"model": model, "kv_dtype": kv_dtype, "memory_utilization": utilization, "block_size": block_size}
    given = {name: value for name, value in options.items() if value is not None}
    engines, traces = _from_experiment(experiment) if experiment else _from_options()
    if trace_file is not None:
        from replay.traces.reading import read_trace

        traces = [read_trace(trace_file)]
    speed = None if tpot_ms is None else ((ttft_ms or tpot_ms) / 1000, tpot_ms / 1000)
    texts, facts = [], []
    for engine, step in engines:
        for dtype in dtypes or (engine.dtype,):
            found = plan_pool(engine.model_copy(update={**given, "dtype": dtype}), step, memory)
            asked = engine.kv_blocks if experiment and engine.blocks else None
            blocks = asked or found.pool.blocks
            texts.append(plan_text(found, contexts, asked))
            demands = [demand_facts(trace, blocks, found.pool.block_size, speed) for trace in traces]
            texts += [demand_text(demand, asked) for demand in demands]
            facts.append({**plan_facts(found, contexts), "traces": demands})
    click.echo(json.dumps(facts, indent=2, allow_nan=False) if as_json else "\n\n".join(texts))


def _from_options() -> tuple[list[tuple[Engine, tuple[int, int]]], list[Trace]]:
    from replay.experiment.settings import Engine

    return [(Engine(), STEP)], []


def _from_experiment(file: Path) -> tuple[list[tuple[Engine, tuple[int, int]]], list[Trace]]:
    """The torch engines of an experiment, each with its largest step, and its traces as they are replayed."""
    from replay.cli.catalogue import register_policies, with_own_policies
    from replay.errors import ExperimentError
    from replay.experiment.document import read_document
    from replay.experiment.grid import cells
    from replay.experiment.loading import load_experiment
    from replay.planning import step_of
    from replay.runner import open_traces

    register_policies()
    document, _ = with_own_policies(read_document(file), file.parent)
    experiment = load_experiment(document, str(file), file.parent)
    traces = open_traces(experiment)
    grid = cells(experiment, [trace.name for trace in traces])
    engines = dict.fromkeys(engine for engine, _ in experiment.engines if engine.kind == "torch")
    if not engines:
        raise ExperimentError(f"{file}: its engine is simulated and takes no memory; there is nothing to plan")
    return [(engine, step_of(experiment, grid, traces, engine)) for engine in engines], traces
