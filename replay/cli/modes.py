"""`replay modes`: the batching modes and the batch sizes that adapt, one line each, with options; or all of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import click

from replay.cli.listings import documentation, options_of_entry, summary, told_option
from replay.errors import ExperimentError
from replay.registry import Registry, nearest

BATCH_SIZES = """\
In place of a batch size's number, the name of a rule or a table of its settings:
max_running = "adaptive", or { rule = "aimd", tpot_ms = 40 }, or a list of these and of numbers."""


class _WithBatchSizes(click.Command):
    """Its help ends with the batch sizes that adapt: they are looked up when they are asked for."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from replay.scheduler import batch_sizes

        with formatter.section("Batch sizes that adapt"):
            formatter.write_dl([(name, summary(batch_sizes[name])) for name in batch_sizes])


@click.command("modes", cls=_WithBatchSizes)
@click.argument("name", required=False)
def modes_command(name: str | None) -> None:
    """List the batching modes and the batch sizes that adapt, or print all that is known of one.

    A mode's batch size is a number, the name of a rule, or a table of the rule's settings; a list of any of these is
    swept.

    \b
    Examples:
      replay modes
      replay modes continuous
      replay modes aimd
      replay run --trace chat.parquet --set 'modes.continuous.max_running=[8, "adaptive"]'
    """
    from replay.scheduler import batch_sizes, modes

    if name is None:
        _list(modes, None)
        click.echo(f"\n{BATCH_SIZES}")
    elif name not in modes and name not in batch_sizes:
        raise ExperimentError(f"there is no mode or batch size {name!r}: {nearest(name, [*modes, *batch_sizes])}")
    _list(modes if name in modes else batch_sizes, name)


def _list(registry: Registry[Any], name: str | None) -> None:
    if name is not None:
        _describe(name, registry[name])
        return
    width = max(len(entry) for entry in registry)
    for entry in registry:
        click.echo(f"{entry:<{width}}  {summary(registry[entry])}")
        for line in _options(registry[entry]):
            click.echo(f"{'':<{width}}    {line}")


def _describe(name: str, entry: Callable[..., Any]) -> None:
    """The whole of it: rule, what it does badly, options, and the source that its file names."""
    click.echo(f"{name}\n\n{documentation(entry)}")
    if options := _options(entry):
        click.echo("\nOptions:\n  " + "\n  ".join(options))
    if source := inspect.getdoc(inspect.getmodule(entry)):
        click.echo(f"\n{source}")


def _options(entry: Callable[..., Any]) -> list[str]:
    return [line for option in options_of_entry(entry) for line in told_option(option)]
