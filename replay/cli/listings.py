"""`replay policies` and `replay modes`: what is registered, one line each, with options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from replay.registry import Registry


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


@click.command("modes")
@click.argument("name", required=False)
def modes_command(name: str | None) -> None:
    """List the batching modes, or print all that is known of one.

    \b
    Examples:
      replay modes
      replay modes continuous
    """
    from replay.scheduler import modes

    _list(modes, name)


def _list(registry: Registry[Any], name: str | None) -> None:
    if name is not None:
        _describe(name, registry[name])
        return
    width = max(len(entry) for entry in registry)
    for entry in registry:
        click.echo(f"{entry:<{width}}  {_documentation(registry[entry]).splitlines()[0]}")
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
