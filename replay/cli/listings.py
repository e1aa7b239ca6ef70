"""`replay modes`: what is registered, one line each, with options, and the batch sizes that adapt; and how registered
things are told, policies too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

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


@dataclass
class ToldOption:
    """One option as a listing tells it: `default` as TOML writes it; `rules` that it may be, by name."""

    name: str
    default: str
    meaning: str
    rules: Mapping[str, Callable[..., Any]]
    shared: bool  # by many: told once, for all of them


def options_of_entry(entry: Callable[..., Any]) -> list[ToldOption]:
    """The options of a registered thing, in the order in which it declares them."""
    from replay.experiment.options import option_fields, options_of

    told = []
    for field, option in zip(option_fields(entry), options_of(entry), strict=True):
        rules = field.metadata.get("rules")
        known = {name: rules[name] for name in rules} if rules is not None else {}
        unset = "must be given" if option.default is ... else "unset"
        default = unset if option.default in (None, ...) else toml(option.default)
        shared = bool(field.metadata.get("shared"))
        meaning = field.metadata.get("help", "") if shared else option.help
        told.append(ToldOption(option.name, default, meaning, known, shared))
    return told


def told_option(option: ToldOption) -> list[str]:
    """`band_s = 30.0  # seconds of waiting that one level is worth`."""
    return [f"{option.name} = {option.default}" + (f"  # {option.meaning}" if option.meaning else "")]


def documentation(entry: Callable[..., Any]) -> str:
    return inspect.getdoc(entry) or ""


def summary(entry: Callable[..., Any]) -> str:
    return documentation(entry).splitlines()[0]


def toml(value: object) -> str:
    """A value as an experiment has it, in one line."""
    import tomli_w

    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {toml(one)}' for name, one in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if not isinstance(value, str | int | float):
        return type(value).__name__
    document: Mapping[str, Any] = {"value": value}
    return tomli_w.dumps(document).partition(" = ")[2].strip()


def _options(entry: Callable[..., Any]) -> list[str]:
    return [line for option in options_of_entry(entry) for line in told_option(option)]
