"""`replay run`: replay an experiment and write its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from replay.experiment.loading import Experiment
    from replay.run_outcome import Run


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
      replay run experiment.toml --set open_loop=true
      replay run experiment.toml --set engine.kv_blocks=256 --set 'modes.continuous.max_running=[1, 8, 32]'

    In a terminal it shows the cell that runs and those that ended; elsewhere it prints a line now and then. SIGUSR1
    (kill -USR1 PID), and Ctrl-T where there is a SIGINFO, print a line that says where it is, with --quiet too.

    Exit status: 0 done; 1 when something failed: a trace, the engine, the place for results, a cell, or every request
    of one (with --strict: when any figure is in doubt); 2 when the experiment or an option is wrong; 130 or 143 when
    stopped, with what was measured kept.
    """
    from replay.cli.overlaid import overlaid
    from replay.cli.signals import Interrupted, RunSignals

    quiet = bool((options or {}).get("quiet"))
    signals = RunSignals()
    try:
        with signals.installed():
            loaded = overlaid(experiment, traces, policies, modes, limit, settings)
            status = _run(loaded, signals, output, quiet=quiet, dry_run=dry_run, strict=strict, plots=plots)
    except Interrupted as stopped:
        click.echo(f"replay: {stopped}", err=True)
        status = stopped.exit_status
    sys.exit(status)


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
    from replay.cli.foretold import about, forecast, in_vain, indistinct, misfits, outlook
    from replay.cli.progress import Display
    from replay.planning import engine_pools
    from replay.run_folder import check_free
    from replay.runner import Runner, open_traces

    traces = open_traces(experiment)
    with Display(quiet=quiet, signals=signals) as display:
        for warning in experiment.warnings:
            display.remark(f"warning: {warning}")
        for trace in traces:
            for line in about(trace, open_loop=experiment.open_loop):
                display.remark(line)
        for warning in [*in_vain(experiment, traces), *indistinct(experiment, traces)]:
            display.remark(f"warning: {warning}")
        runner = Runner(experiment, traces, display, signals.stop)
        display.remark(forecast(experiment, runner, traces))
        display.expect(outlook(experiment, runner, traces))
        pools = engine_pools(experiment, runner.cells, traces)
        for engine, pool in pools.items():
            display.remark(
                f"engine.memory_utilization = {engine.memory_utilization:g}: about {pool.blocks:,} KV blocks of "
                f"{pool.block_size} tokens, for {pool.arithmetic()}"
            )
        for warning in misfits(runner, traces, pools):
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
    signals.doing = "writing the report"
    return _finish(run, quiet=quiet, strict=strict, plots=plots)


def _finish(run: Run, *, quiet: bool, strict: bool, plots: bool) -> int:
    """The report, and the truth about the run as an exit status."""
    from replay.cli.progress import say
    from replay.report import write_report

    if not quiet:
        say("writing the report" + (" and its pictures" if plots else ""))
    report = write_report(run.folder, plots=plots)
    click.echo("\n".join(report.gist))
    click.echo()
    click.echo(report.table)
    if report.advice:
        click.echo("\n" + "\n".join(report.advice))
    say(f"report: {run.folder / 'report.html'}")
    for sentence in [*report.problems, *run.failures(), *run.doubts()]:
        say(f"replay: {sentence}")
    return 1 if run.failures() or (strict and run.doubts()) else 0
