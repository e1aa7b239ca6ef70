"""The command `replay`: a group whose commands are imported only when they are called, so that help is instant."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from typing import Any

import click

from replay import __version__
from replay.errors import ReplayError

COMMANDS = {  # name: where it is, and its line in the help of the group
    "run": ("replay.cli.run:run", "Replay traces under every policy and mode, and write the report."),
    "report": ("replay.cli.report:report", "Rebuild the report of a run from its Parquet files."),
    "plot": ("replay.cli.plot:plot", "Draw a picture of a run: some cells, a window of time, another metric."),
    "compare": ("replay.cli.compare:compare", "Hold runs or machines against each other, cell by cell; fail if worse."),
    "trace": ("replay.cli.trace:trace", "Import, show, transform or generate a trace."),
    "probe": ("replay.cli.probe:probe", "Measure this machine's ceilings, and a model at several batch sizes."),
    "model": ("replay.cli.model:model", "Import, show or try a model."),
    "plan": ("replay.cli.plan:plan", "Say how large a batch fits into a device's memory."),
    "policies": ("replay.cli.policies:policies_command", "List the scheduling policies, or say all of one."),
    "policy": ("replay.cli.policy_check:policy", "Check a policy against what every policy promises."),
    "modes": ("replay.cli.modes:modes_command", "List the batching modes, with their settings."),
    "keys": ("replay.cli.keys:keys_command", "List every key of an experiment, or say all of one."),
    "metrics": ("replay.cli.metrics:metrics_command", "List every metric with its definition, or say all of one."),
    "reproduce": ("replay.cli.reproduce:reproduce", "Run a paper's claim again, and say whether it holds here."),
    "init": ("replay.cli.init:init", "Print a commented experiment file to start from."),
}
STATUSES = {
    0: "done",
    1: "failed: a trace, a model, a place for results, a cell, a check that was asked for",
    2: "misused: an experiment, an option or a name is wrong",
    130: "interrupted (Ctrl-C), with what was measured kept",
    143: "terminated (SIGTERM), with what was measured kept",
}
"""What a process ends with."""
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from replay.registry import nearest

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="replay")
@click.option("-q", "--quiet", is_flag=True, help="Only results, advice included, and faults: no progress, no remarks.")
@click.option("-v", "--verbose", is_flag=True, help="Say more, tracebacks of failed cells included.")
@click.pass_context
def group(ctx: click.Context, quiet: bool, verbose: bool) -> None:
    """Replay a trace of LLM requests, in real time, under every scheduling policy and batching mode, and compare.

    \b
    Example:
      replay run --trace traces/sample.parquet
    """
    ctx.obj = {"quiet": quiet, "verbose": verbose}
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, format="%(message)s")
    logging.getLogger("replay").setLevel(logging.DEBUG if verbose else logging.ERROR)
    if verbose:
        logging.getLogger().setLevel(logging.WARNING)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with one of `STATUSES`."""
    try:
        status: Any = group.main(args=arguments, prog_name="replay", standalone_mode=False)
    except click.exceptions.Abort:
        status = 130
    except click.ClickException as fault:
        fault.show()
        status = fault.exit_code
    except ReplayError as fault:
        for sentence in str(fault).splitlines():
            click.echo(f"replay: {sentence}", err=True)
        status = fault.exit_status
    except BrokenPipeError:  # whoever read the output has closed it
        sys.stderr.close()
        status = 1
    sys.exit(status if isinstance(status, int) else 0)
