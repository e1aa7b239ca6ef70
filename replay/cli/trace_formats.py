"""`replay trace import`, `export` and `formats`: foreign formats, read and written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from replay.cli.trace_said import FILE, ListingCommand, counted, finish, first_line, force_option, remark

option_option = click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the format, which `replay trace formats FORMAT` tells of; repeat it for more.",
)


class ImportCommand(ListingCommand):
    """`trace import`, which lists the formats."""

    heading = "Formats"

    @staticmethod
    def listing() -> Iterable[tuple[str, str]]:
        from replay.traces.formats import formats

        found = [(name, first_line(formats[name].__doc__)) for name in formats]
        return [("auto", "the one of these that fits, by the file's content"), *found]


class ExportCommand(ListingCommand):
    """`trace export`, which lists the formats that can be written."""

    heading = "Formats"

    @staticmethod
    def listing() -> Iterable[tuple[str, str]]:
        from replay.traces.formats import exporting, formats

        return [(name, first_line(formats[name].__doc__)) for name in exporting()]


@click.command("import", cls=ImportCommand, short_help="Read a file in a foreign format, and write it as a trace.")
@click.argument("form", metavar="FORMAT")
@click.argument("source", type=FILE)
@click.argument("out", metavar="OUT.parquet", type=FILE)
@option_option
@click.option(
    "--map", "columns", metavar="OURS=THEIRS,...", help="What the file's columns are, for the format 'table'."
)
@click.option("--strict", is_flag=True, help="Refuse the file where a row would be skipped.")
@force_option
def import_command(
    form: str, source: Path, out: Path, options: tuple[str, ...], columns: str | None, *, strict: bool, force: bool
) -> None:
    """Read SOURCE, a file or folder in a foreign FORMAT, and write it as a trace.

    Rows that are no request, such as failed ones with 0 output tokens, are skipped and counted by reason; a value that
    cannot be read is refused. A log of your own is a table, whose columns --map names, with the unit of its times.
    FORMAT may be a file of your own, ./mine.py:Name, as docs/writing-a-format.md has one.

    \b
    Example:
      replay trace import auto AzureLLMInferenceTrace_conv.csv chat.parquet
      replay trace import table log.jsonl log.parquet \\
          --map arrival_ms=ts,prompt_tokens=in,output_tokens=out,user=tenant \\
          -o keep=status=200
    """
    from replay.cli.format_file import format_name
    from replay.cli.trace_settings import format_settings
    from replay.traces.formats import import_trace
    from replay.traces.writing import check_target

    check_target(out, force=force)
    form = format_name(form)
    settings = format_settings(form, options, columns)
    made = import_trace(form, source, strict=strict, settings=settings)
    rows = made.extent().rows
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in made.skipped.items())
    skipped = f"{made.rows_read - rows:,} skipped" + (f" ({reasons})" if reasons else "")
    click.echo(f"{source}: {counted(made.rows_read, 'row')} read, {rows:,} kept, {skipped}")
    finish(made, out, force=force, told=True)


@click.command("export", cls=ExportCommand, short_help="Write a trace in a foreign format.")
@click.argument("form", metavar="FORMAT")
@click.argument("source", type=FILE)
@click.argument("out", type=FILE)
@option_option
@force_option
def export_command(form: str, source: Path, out: Path, options: tuple[str, ...], *, force: bool) -> None:
    """Write the trace SOURCE in a foreign FORMAT, and say what that has no place for.

    \b
    Example:
      replay trace export mooncake chat.parquet chat.jsonl
    """
    from replay.cli.format_file import format_name
    from replay.cli.trace_settings import check_exporting, format_settings
    from replay.traces.formats import export_trace
    from replay.traces.reading import read_trace
    from replay.traces.writing import check_target

    form = format_name(form)
    check_exporting(form)
    check_target(out, force=force)
    settings = format_settings(form, options, None)
    found = read_trace(source)
    left_out = export_trace(form, found, out, force=force, **settings)
    click.echo(f"{out}: {counted(found.extent().rows, 'request')}")
    remark(found, left_out)


@click.command("formats", short_help="List the foreign formats, or say all of one.")
@click.argument("name", metavar="[FORMAT]", required=False)
def formats_command(name: str | None) -> None:
    """List the foreign formats, or say all of one: what it is, and its settings.

    \b
    Example:
      replay trace formats vllm
    """
    from replay.cli.format_file import format_name, load_formats
    from replay.cli.trace_settings import all_formats, one_format

    for sentence in load_formats().values():
        click.echo(f"warning: {sentence}", err=True)
    click.echo(one_format(format_name(name)) if name else all_formats())
