"""`replay run`: replay an experiment and write its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replay.executors.pool_size import PoolSize
    from replay.experiment.loading import Experiment
    from replay.experiment.settings import Engine
    from replay.run_outcome import Run
    from replay.runner import Runner
    from replay.traces.table import Trace


@click.command("run")
@click.argument("experiment", required=False, type=click.Path(dir_okay=False))
@click.option("--trace", "traces", multiple=True, metavar="FILE", help="Replay this trace instead. Repeatable.")
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME", help="Only this policy, `all`, or FILE.py:NAME. Repeatable."
)
@click.option("--mode", "modes", multiple=True, metavar="NAME", help="Only this mode. Repeatable.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N requests, after transforms.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any setting, as TOML. Repeatable.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="Where to; a new folder by default.")
@click.option("--dry-run", is_flag=True, help="Check everything and print the cells; run nothing.")
@click.option("--strict", is_flag=True, help="End with status 1 when a cell is invalid or a request did not complete.")
@click.option("--plots/--no-plots", default=True, help="Whether to draw the pictures.")
@click.pass_obj
def run(
    options: dict[str, Any],
    experiment: str | None,
    traces: tuple[str, ...],
    policies: tuple[str, ...],
    modes: tuple[str, ...],
    limit: int | None,
    settings: tuple[str, ...],
    output: Path | None,
    dry_run: bool,
    strict: bool,
    plots: bool,
) -> None:
    """Replay traces against an engine, under every policy and mode, and write the report.

    EXPERIMENT is a TOML file (`replay init` prints one). All of it can also be said by options: --trace alone is an
    experiment. Traces are looked for beside the experiment file, then in the current folder.

    \b
    Examples:
      replay run experiment.toml
      replay run --trace traces/sample.parquet --mode continuous --policy fifo --policy sjf
      replay run experiment.toml --set 'loads=[0.5, 1, 2, 4]'
      replay run experiment.toml --set 'without_users=["ana"]'
      replay run experiment.toml --set engine.kv_blocks=256 --set 'modes.continuous.max_running=[1, 8, 32]'

    Exit status: 0 done; 1 when something failed: a trace, the engine, the place for results, a cell, or every request
    of one (with --strict: when any figure is in doubt); 2 when the experiment or an option is wrong; 130 or 143 when
    stopped, with what was measured kept.
    """
    from replay.cli.signals import Interrupted, StopSignals

    quiet = bool((options or {}).get("quiet"))
    signals = StopSignals()
    try:
        with signals.installed():
            loaded = _load(experiment, traces, policies, modes, limit, settings)
            status = _run(loaded, signals, output, quiet=quiet, dry_run=dry_run, strict=strict, plots=plots)
    except Interrupted as stopped:
        click.echo(f"replay: {stopped}", err=True)
        status = stopped.exit_status
    sys.exit(status)


def _load(
    file: str | None,
    traces: tuple[str, ...],
    policies: tuple[str, ...],
    modes: tuple[str, ...],
    limit: int | None,
    settings: tuple[str, ...],
) -> Experiment:
    """The experiment file with the options laid over it. An option that names things leaves only those."""
    from dataclasses import replace

    from replay.cli.catalogue import register_policies, with_own_policies
    from replay.experiment.document import merged, parse_setting, paths_of, read_document
    from replay.experiment.loading import load_experiment, named_sections

    register_policies()
    document = read_document(Path(file)) if file else {}
    origins: dict[str, str] = {}
    for setting in settings:
        addition = parse_setting(setting)
        for section, entries in named_sections().items():  # an option of one policy does not leave the others out
            if isinstance(addition.get(section), dict) and not isinstance(document.get(section), dict):
                everything = document.get(section) == "all"
                document[section] = {name: {} for name in entries[everything]}
        document = merged(document, addition)
        origins |= dict.fromkeys(paths_of(addition), f"--set {setting}")
    origins |= {f"policies.{name}": f"--policy {name}" for name in policies}
    origins |= {f"modes.{name}": f"--mode {name}" for name in modes}
    if traces:
        origins["traces"] = "--trace"
        document["traces"] = list(traces)
    if policies:
        document["policies"] = _policies(document.get("policies"), policies)
    if modes:
        document["modes"] = _only(document.get("modes"), modes)
    if limit is not None:
        given = document.get("transforms", [])
        document["transforms"] = [*given, {"limit": limit}] if isinstance(given, list) else given
    if not file and not traces and "traces" not in document:
        raise click.UsageError("name an EXPERIMENT file, or a trace with --trace (replay init prints an experiment)")
    source = file or "command line"
    if not file:
        document.setdefault("name", Path(traces[0]).stem if traces else "run")
    folder = Path(file).parent if file else None
    named, origins = with_own_policies(document, folder, origins)
    return replace(load_experiment(named, source, folder, origins), document=document)


def _policies(section: object, names: tuple[str, ...]) -> str | dict[str, Any]:
    """As `_only`; `all` are all registered ones, with the files that are named beside it."""
    from replay.cli.policy_file import is_file
    from replay.scheduler import policies

    if "all" not in names:
        return _only(section, names)
    files = tuple(filter(is_file, names))
    return _only(section, (*policies, *files)) if files else "all"


def _only(section: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The entries of a section that are named, with the settings that the file gives them."""
    given = section if isinstance(section, dict) else {}
    return {name: given.get(name, {}) for name in names}


def _run(
    experiment: Experiment,
    signals: Any,
    output: Path | None,
    *,
    quiet: bool,
    dry_run: bool,
    strict: bool,
    plots: bool,
) -> int:
    from replay.cli.progress import Display
    from replay.planning import engine_pools
    from replay.run_folder import check_free
    from replay.runner import Runner, open_traces

    traces = open_traces(experiment)
    with Display(quiet=quiet) as display:
        for warning in experiment.warnings:
            display.remark(f"warning: {warning}")
        for trace in traces:
            for line in _about(trace):
                display.remark(line)
        for warning in _indistinct(experiment, traces):
            display.remark(f"warning: {warning}")
        runner = Runner(experiment, traces, display, signals.stop)
        display.remark(_forecast(experiment, runner, traces))
        pools = engine_pools(experiment, runner.cells, traces)
        for engine, pool in pools.items():
            display.remark(
                f"engine.memory_utilization = {engine.memory_utilization:g}: about {pool.blocks:,} KV blocks of "
                f"{pool.block_size} tokens, for {pool.arithmetic()}"
            )
        for warning in _misfits(runner, traces, pools):
            display.remark(f"warning: {warning}")
        if dry_run:
            check_free(output)
            for cell in runner.cells:
                click.echo(cell.name)
            return 0
        try:
            run = runner.run(output)
        finally:
            if signals.stop.is_set() and runner.folder is not None:
                display.remark(f"what was measured is in {runner.folder}; its report: replay report {runner.folder}")
    if run.interrupted:
        return int(signals.exit_status or 1)
    signals.forget()
    return _finish(run, quiet=quiet, strict=strict, plots=plots)


def _finish(run: Run, *, quiet: bool, strict: bool, plots: bool) -> int:
    """The report, and the truth about the run as an exit status."""
    from replay.cli.progress import say
    from replay.report import write_report

    if not quiet:
        say("writing the report" + (" and its pictures" if plots else ""))
    report = write_report(run.folder, plots=plots)
    click.echo("\n".join(report.verdict))
    click.echo()
    click.echo(report.table)
    say(f"report: {run.folder / 'comparison.md'}")
    for sentence in [*report.problems, *run.failures(), *run.doubts()]:
        say(f"replay: {sentence}")
    return 1 if run.failures() or (strict and run.doubts()) else 0


def _about(trace: Trace) -> list[str]:
    """What will be replayed, in a line, and what is to be known of how it was read."""
    extent = trace.extent()
    lines = [
        f"{trace.path}: {extent.rows:,} requests over {extent.span:.1f} s, {extent.prompt_tokens:,} prompt and "
        f"{extent.output_tokens:,} output tokens"
    ]
    lines += [f"  skipped {count:,} rows: {reason}" for reason, count in trace.skipped.items()]
    lines += [f"  note: {note}" for note in trace.notes]
    lines += [f"  {change.sentence()}" for change in trace.changes]
    unknown = [name for name in ("user", "priority", "max_tokens") if trace.frame[name].null_count() == extent.rows]
    if unknown:
        lines.append(f"  no {', no '.join(unknown)}: a policy that goes by one cannot tell these requests apart")
    return lines


def _indistinct(experiment: Experiment, traces: list[Trace]) -> list[str]:
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


def _misfits(runner: Runner, traces: list[Trace], pools: Mapping[Engine, PoolSize]) -> list[str]:
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


def _forecast(experiment: Experiment, runner: Runner, traces: list[Trace]) -> str:
    """How many cells, and how long at least: a cell in real time cannot be shorter than its trace."""
    cells = runner.cells
    seconds = sum(traces[cell.trace].extent().span for cell in cells if cell.engine.kind != "simulated")
    count = f"{len(cells)} cells" if len(cells) != 1 else "1 cell"
    length = f"in real time: at least {seconds / 60:.1f} min" if seconds else "simulated, on a virtual clock"
    return f"{count}, {length}; lengths as {experiment.predictor.name} knows them"
