"""`replay policies` and `replay modes`: what is registered, one line each, with options; of modes, batch sizes too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from replay.errors import ExperimentError
from replay.registry import Registry, nearest

BATCH_SIZES = """\
In place of a batch size's number, the name of a rule or a table of its settings:
max_running = "adaptive", or { rule = "aimd", tpot_ms = 40 }, or a list of these and of numbers."""


@click.command("policies")
@click.argument("name", required=False)
def policies_command(name: str | None) -> None:
    """List the scheduling policies, or print all that is known of one.

    \b
    Examples:
      replay policies
      replay policies hybrid
    """
    from replay.cli.catalogue import register_policies
    from replay.scheduler import policies

    register_policies()
    _list(policies, name)


class _WithBatchSizes(click.Command):
    """Its help ends with the batch sizes that adapt: they are looked up when they are asked for."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from replay.scheduler import batch_sizes

        with formatter.section("Batch sizes that adapt"):
            formatter.write_dl([(name, _summary(batch_sizes[name])) for name in batch_sizes])


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
        click.echo(f"{entry:<{width}}  {_summary(registry[entry])}")
        for line in _options(registry[entry]):
            click.echo(f"{'':<{width}}    {line}")


def _describe(name: str, entry: Callable[..., Any]) -> None:
    """The whole of it: rule, what it does badly, options, and the source that its file names."""
    click.echo(f"{name}\n\n{_documentation(entry)}")
    if options := _options(entry):
        click.echo("\nOptions:\n  " + "\n  ".join(options))
    if source := inspect.getdoc(inspect.getmodule(entry)):
        click.echo(f"\n{source}")


def _documentation(entry: Callable[..., Any]) -> str:
    return inspect.getdoc(entry) or ""


def _summary(entry: Callable[..., Any]) -> str:
    return _documentation(entry).splitlines()[0]


def _options(entry: Callable[..., Any]) -> list[str]:
    from replay.experiment.options import options_of

    lines = []
    for option in options_of(entry):
        unset = "must be given" if option.default is ... else "unset"
        default = unset if option.default in (None, ...) else _toml(option.default)
        lines.append(f"{option.name} = {default}" + (f"  # {option.help}" if option.help else ""))
    return lines


def _toml(value: object) -> str:
    import tomli_w

    document: Mapping[str, Any] = {"value": value}
    return tomli_w.dumps(document).partition(" = ")[2].strip()
