"""The commands on traces, of which each is in a module of its own."""

from __future__ import annotations

import click

from replay.cli.trace_fit import fit_command
from replay.cli.trace_formats import export_command, formats_command, import_command
from replay.cli.trace_generate import generate_command
from replay.cli.trace_show import show_command
from replay.cli.trace_transform import transform_command

COMMANDS = (
    import_command,
    export_command,
    formats_command,
    show_command,
    transform_command,
    generate_command,
    fit_command,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def trace() -> None:
    """Import, export, show, transform and generate traces.

    \b
    Example:
      replay trace show traces/sample.parquet
    """


for command in COMMANDS:
    trace.add_command(command)
