"""What is said of an experiment before it runs: its traces, how long it takes, and what in it cannot go well."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replay.cli.live.outlook import Outlook
    from replay.executors.pool_size import PoolSize
    from replay.experiment.loading import Experiment
    from replay.experiment.settings import Engine
    from replay.runner import Runner
    from replay.traces.table import Trace


def about(trace: Trace, *, open_loop: bool) -> list[str]:
    """What will be replayed, in a line, and what is to be known of how it was read."""
    from replay.traces.describing.sessions import sessions_of
    from replay.traces.wording import counted

    extent = trace.extent()
    lines = [
        f"{trace.path}: {counted(extent.rows, 'request')} over {extent.span:,.1f} s, {extent.prompt_tokens:,} prompt "
        f"and {extent.output_tokens:,} output tokens"
    ]
    lines += [f"  skipped {counted(count, 'row')}: {reason}" for reason, count in trace.skipped.items()]
    lines += [f"  note: {note}" for note in trace.notes]
    lines += [f"  {change.sentence()}" for change in trace.changes]
    if sessions := sessions_of(trace):
        lines.append("  " + sessions.sentence(open_loop=open_loop))
    unknown = [name for name in ("user", "priority", "max_tokens") if trace.frame[name].null_count() == extent.rows]
    if unknown:
        lines.append(f"  no {', no '.join(unknown)}: a policy that goes by one cannot tell these requests apart")
    return lines


def indistinct(experiment: Experiment, traces: list[Trace]) -> list[str]:
    """Traces of which a predictor that believes the client learns next to nothing."""
    if experiment.predictor.name != "max_tokens":
        return []
    values = {trace.name: trace.frame["max_tokens"].n_unique() for trace in traces}
    return [
        f"{name}: max_tokens has {'one value' if count == 1 else f'{count} values'} in all, so with the length "
        "predictor max_tokens hardly any request is expected to be longer than another"
        for name, count in values.items()
        if count < 3
    ]


def in_vain(experiment: Experiment, traces: list[Trace]) -> list[str]:
    """What is asked of the traces and is not in any of them."""
    from replay.traces.describing.sessions import sessions_of

    if experiment.open_loop and not any(sessions_of(trace) for trace in traces):
        return ["open_loop is not used: no trace has sessions, so that every request is due at its arrival anyway"]
    return []


def misfits(runner: Runner, traces: list[Trace], pools: Mapping[Engine, PoolSize]) -> list[str]:
    """Requests that no cell of an engine can serve, however it is scheduled."""
    import polars as pl

    found = {}
    for cell in runner.cells:
        engine, trace = cell.engine, traces[cell.trace]
        blocks = pools[engine].blocks if engine in pools else engine.kv_blocks
        capacity = blocks * engine.block_size
        tokens = pl.col("prompt_tokens") + pl.col("output_tokens")
        many = trace.frame.select((tokens > capacity).sum()).item()
        if many:
            found[trace.name, capacity] = (
                f"{trace.name}: {many:,} of {trace.frame.height:,} requests are larger than the whole KV pool of "
                f"{capacity:,} tokens ({blocks:,} blocks of {engine.block_size}) and will be rejected"
            )
    return list(found.values())


def outlook(experiment: Experiment, runner: Runner, traces: list[Trace]) -> Outlook:
    """What whoever watches a run knows of it before it runs."""
    from replay.cli.live.outlook import Outlook

    shortest = _shortest(experiment, runner, traces)
    names = [trace.name for trace in traces] if len(traces) > 1 else []
    return Outlook(experiment.name, runner.cells, shortest, names, experiment.repeats, experiment.lag_limit_ms)


def forecast(experiment: Experiment, runner: Runner, traces: list[Trace]) -> str:
    """How many cells, and how long at least."""
    from replay.metrics.notation import duration

    cells, seconds = runner.cells, sum(_shortest(experiment, runner, traces))
    count = f"{len(cells)} cells" if len(cells) != 1 else "1 cell"
    lasts = f"{seconds / 60:.1f} min" if seconds < 7_200 else f"{seconds / 3_600:,.1f} h"
    lasts = duration(seconds) if seconds < 60 else lasts
    length = f"in real time: at least {lasts}" if seconds else "simulated, on a virtual clock"
    return f"{count}, {length}; lengths as {experiment.predictor.name} knows them"


def _shortest(experiment: Experiment, runner: Runner, traces: list[Trace]) -> list[float]:
    """Seconds that each cell lasts at least: in real time it cannot be shorter than its trace, and than the think times
    of a session one after the other; on a virtual clock nobody waits."""
    from replay.traces.describing.sessions import last_due

    each = [last_due(trace, open_loop=experiment.open_loop) for trace in traces]
    return [0.0 if cell.engine.kind == "simulated" else each[cell.trace] for cell in runner.cells]
