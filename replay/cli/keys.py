"""`replay keys`: every key of an experiment, one a line, with what it is by default, takes and means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from replay.cli.listings import toml
from replay.cli.wrapping import hanging
from replay.errors import ExperimentError
from replay.registry import nearest

if TYPE_CHECKING:
    from replay.experiment.keys import Key, Section


@click.command("keys")
@click.argument("name", required=False)
def keys_command(name: str | None) -> None:
    """List every key of an experiment, with its default, what it takes and what it means.

    NAME is a key (kv_blocks, engine.kv_blocks), a table (engine, modes.static) or what takes keys (vtc, aimd, noisy),
    a policy of your own among them (FILE.py:CLASS).

    \b
    Examples:
      replay keys
      replay keys engine
      replay keys queue_timeout_s
      replay run experiment.toml --set engine.queue_timeout_s=30
    """
    from replay.cli.catalogue import policy_name, register_policies
    from replay.experiment.keys import sections

    register_policies()
    name = None if name is None else policy_name(name)
    found = list(sections())
    found = _once(found) if name is None else _named(found, name)
    click.echo("\n\n".join("\n".join(_told(section, section.keys)) for section in found if section.keys))


def _once(found: Sequence[Section]) -> list[Section]:
    """Keys that many policies share stand with fifo alone."""
    return [
        section if section.entry == "fifo" else replace(section, keys=[key for key in section.keys if not key.shared])
        for section in found
    ]


def _named(found: Sequence[Section], name: str) -> list[Section]:
    """The tables of that name or below it; else the keys of that name, wherever they stand."""
    if under := [section for section in found if name == section.entry or f"{section.path}.".startswith(f"{name}.")]:
        return under
    keys = [(section, [key for key in section.keys if name in (key.name, section.full(key))]) for section in found]
    if not any(chosen for _, chosen in keys):
        known = [section.full(key) for section in found for key in section.keys]
        known += [key.name for section in found for key in section.keys]
        raise ExperimentError(f"there is no key {name!r}: {nearest(name, dict.fromkeys(known))}")
    return [replace(section, keys=chosen) for section, chosen in keys if chosen]


def _told(section: Section, keys: Sequence[Key]) -> list[str]:
    """A table's heading and its keys."""
    where = f"{section.kind} {section.entry}" if section.entry else f"[{section.path}]" if section.path else "the top"
    lines = hanging("", f"# {where}: {section.meaning}")
    for key in keys:
        lines += hanging(
            "", f"{section.full(key)} = {default(key)}  # {key.meaning}; {key.takes}{example(key)}", "    "
        )
    return lines


def default(key: Key) -> str:
    """What a key is when it is not given, as TOML."""
    return "(must be given)" if key.default is ... else "(unset)" if key.default is None else toml(key.default)


def example(key: Key) -> str:
    """A value that a key takes, where its default shows none."""
    shown = key.example and key.default in (..., None, [], {}) and "such as" not in key.meaning
    return f", such as {toml(key.example)}" if shown else ""
