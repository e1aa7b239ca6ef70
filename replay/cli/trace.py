"""The commands on traces: import, export, formats, show, transform, generate.

They print and nothing else here does; what they do is in `replay.traces`, which is imported only once a command runs,
so that help comes at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replay.cli.trace_fit import fit_command

if TYPE_CHECKING:
    from replay.traces.table import Trace
    from replay.traces.transforms import Declared

Listing = Callable[[], Iterable[tuple[str, str]]]
FILE = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="Replace OUT if it is there already.")
option_option = click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the format, which `replay trace formats FORMAT` tells of; repeat it for more.",
)


class ListingCommand(click.Command):
    """A command whose help ends with what is registered, looked up only when the help is asked for."""

    listing: Listing
    heading: str

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(self.heading):
            formatter.write_dl(list(self.listing()))


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


class TransformCommand(ListingCommand):
    """`trace transform`, which lists the transforms."""

    heading = "Transforms, each with an example for -t"

    @staticmethod
    def listing() -> Iterable[tuple[str, str]]:
        from replay.traces.transforms import transforms

        rows = []
        for name in transforms:
            told, _, example = first_line(transforms[name].__doc__).partition(": {")
            rows += [(name, told), ("", bare(example))]
        return rows


class GenerateCommand(click.Command):
    """`trace generate`, which lists the forms of lengths and what makes a rate rise and fall."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from replay.traces.generating.lengths import FORMS
        from replay.traces.generating.patterns import Patterns

        with formatter.section("Lengths (prompt, output, turns, think_ms)"):
            formatter.write_dl([(form.example, form.meaning) for form in FORMS.values()])
        with formatter.section("Patterns, which multiply a rate; they combine"):
            fields = Patterns.model_fields.items()
            formatter.write_dl(
                [(f"{name} = {(field.examples or [''])[0]}", field.description or "") for name, field in fields]
            )


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def trace() -> None:
    """Import, export, show, transform and generate traces.

    \b
    Example:
      replay trace show traces/sample.parquet
    """


@trace.command("import", cls=ImportCommand, short_help="Read a file in a foreign format, and write it as a trace.")
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


@trace.command("export", cls=ExportCommand, short_help="Write a trace in a foreign format.")
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


@trace.command("formats", short_help="List the foreign formats, or say all of one.")
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


@trace.command("show", short_help="Say what a trace is like, and draw pictures of it.")
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option(
    "--plot",
    "folder",
    is_flag=False,
    flag_value="",
    metavar="[FOLDER]",
    help="Draw pictures of it too, into FOLDER; without one, into outputs/NAME-plots.",
)
@click.option("--force", is_flag=True, help="Replace pictures that are in FOLDER already.")
def show_command(file: Path, *, as_json: bool, folder: str | None, force: bool) -> None:
    """Say what the trace FILE (or a folder of Parquet files) is like, and draw it with --plot.

    \b
    Rate: requests by span; the peak counts the arrivals of each whole second.
    Burstiness: standard deviation by mean of the gaps between arrivals.
    Prefixes: what an endless cache would save.

    \b
    Example:
      replay trace show traces/sample.parquet
      replay trace show traces/sample.parquet --plot pictures
    """
    from replay.traces.describing.describe import describe, description_text
    from replay.traces.reading import read_trace

    if folder is None and force:
        raise click.UsageError("--force replaces pictures; name --plot too")
    found = read_trace(file)
    if folder is None:
        click.echo(json.dumps(describe(found), indent=2, allow_nan=False) if as_json else description_text(found))
    else:
        show_pictures(found, Path(folder or f"outputs/{found.name}-plots"), as_json=as_json, force=force)
    remark(found)


def show_pictures(found: Trace, folder: Path, *, as_json: bool, force: bool) -> None:
    """Say what a trace is like, draw it, and say which pictures there are now, and why others are not."""
    from replay.plots.traces import check_folder, draw_trace
    from replay.traces.describing.describe import describe, description_text

    check_folder(folder, force=force)
    if not as_json:
        click.echo(description_text(found))
    drawn = draw_trace(found, folder, force=force)
    if as_json:
        pictures = {"pictures": [str(file) for file in drawn.files], "not_drawn": drawn.left_out}
        click.echo(json.dumps(describe(found) | pictures, indent=2, allow_nan=False))
        return
    names = ", ".join(dict.fromkeys(file.stem for file in drawn.files))
    click.echo(f"{'pictures':<14}{folder}: {names} (each as PNG and SVG)")
    for name, reason in drawn.left_out.items():
        click.echo(f"{'':<14}no {name}: {reason}")


@trace.command("transform", cls=TransformCommand, short_help="Apply transforms to a trace, and write the result.")
@click.argument("source", type=FILE)
@click.argument("out", metavar="OUT.parquet", type=FILE)
@click.option(
    "-t",
    "--transform",
    "fragments",
    multiple=True,
    required=True,
    metavar="TOML",
    help="A transform as an experiment declares it; repeat it for more, applied in order.",
)
@force_option
def transform_command(source: Path, out: Path, fragments: tuple[str, ...], *, force: bool) -> None:
    """Apply transforms to the trace SOURCE and write the result.

    \b
    Example:
      replay trace transform chat.parquet busy.parquet \\
          -t 'window = ["20m", "35m"]' -t 'speed = 2.0'
    """
    from replay.traces.reading import read_trace
    from replay.traces.transforms import apply_transforms
    from replay.traces.writing import check_target

    declared = parse_fragments(fragments)
    check_target(out, force=force)
    changed = apply_transforms(read_trace(source), declared)
    changed.history += [change.sentence() for change in changed.changes]
    for change in changed.changes:
        click.echo(change.sentence())
    finish(changed, out, force=force)


@trace.command("generate", cls=GenerateCommand, short_help="Make the trace that a specification describes.")
@click.argument("spec", metavar="SPEC.toml", type=FILE)
@click.argument("out", metavar="[OUT.parquet]", type=FILE, required=False)
@force_option
def generate_command(spec: Path, out: Path | None, *, force: bool) -> None:
    """Make the trace that SPEC.toml describes: users, when they come, what they ask for, how urgent it is.

    The same file makes the same trace every time, on every machine. Without OUT.parquet it lies beside SPEC.toml, by
    the same name. docs/generating-a-trace.md goes through it, example by example.

    \b
    Above the users  seed, duration, block_size; diurnal, spikes for all of them
    [[prefixes]]     name, tokens, parent, copies, share = { zipf }
    [[users]]        name, copies, share = { zipf }, start, stop, nobody
      when           count, or rate, or phases = [{ rate or count, rate_at_end,
                     lasts, burstiness, gaps }, ...], or closed_loop =
                     { clients, ramp, and as sessions }
      gaps           gaps = "gamma" or "weibull", burstiness (the coefficient of
                     variation; 1 is Poisson), stationary
      patterns       diurnal, spikes, on_off
      lengths        prompt, output; or both at once: lengths = { trace }
      urgency        priority, slo, deadline_ms, max_tokens, or some of each in
                     classes = [{ slo, priority, ..., prompt, output,
                     prefix, share }, ...]
      prefixes       prefix, prefix_share
      sessions       sessions = { turns, first, think_ms, grows, context }

    \b
    Example:
      replay trace generate traces/sample.toml sample.parquet
      replay trace generate busy.toml
    """
    from replay.traces.generate import generate_trace
    from replay.traces.writing import check_target

    out = out or spec.with_suffix(".parquet")
    check_target(out, force=force)
    finish(generate_trace(spec), out, force=force)


trace.add_command(fit_command)


def parse_fragments(fragments: Iterable[str]) -> list[Declared]:
    """The transforms in `-t` options, each TOML of one or more keys, in braces as in an experiment or bare."""
    import tomllib

    from replay.errors import ExperimentError
    from replay.traces.transforms import parse_transforms

    declared = []
    for fragment in fragments:
        try:
            in_braces = fragment.lstrip().startswith("{")
            entries = tomllib.loads(f"it = {fragment}")["it"] if in_braces else tomllib.loads(fragment)
        except tomllib.TOMLDecodeError as fault:
            raise ExperimentError(f"-t {fragment!r}: is not TOML such as 'speed = 2.0' ({fault})") from fault
        if not entries:
            raise ExperimentError(f"-t {fragment!r}: names no transform; write for instance 'speed = 2.0'")
        try:
            declared += parse_transforms({name: argument} for name, argument in entries.items())
        except ExperimentError as fault:
            raise ExperimentError(f"-t {fragment!r}: {fault}") from fault
    return declared


def finish(made: Trace, out: Path, *, force: bool, told: bool = False) -> None:
    """Write the trace, say what it holds, and remark on what was noted, and on what was skipped unless that is told."""
    from replay.traces.wording import duration_text
    from replay.traces.writing import write_trace

    write_trace(made, out, force=force)
    click.echo(f"{out}: {counted(made.extent().rows, 'request')}, span {duration_text(made.span_nanoseconds)}")
    remark(made, told=told)


def remark(made: Trace, further: Iterable[str] = (), *, told: bool = False) -> None:
    """What was skipped and noted, and what is `further` to say, on stderr, unless the group was told to be quiet."""
    from replay.traces.canonical import skipped_text

    if (click.get_current_context().obj or {}).get("quiet"):
        return
    skipped = [skipped_text(made.skipped)] if made.skipped and not told else []
    for line in [*skipped, *made.notes, *further]:
        click.echo(line, err=True)


def counted(count: int, noun: str) -> str:
    """ "1 row", "1,024 rows"."""
    from replay.traces.wording import counted

    return counted(count, noun)


def bare(example: str) -> str:
    """An example of a transform as `-t` takes it: without the braces that an experiment needs."""
    return example.strip().removesuffix("}").replace(" } or { ", " or ").strip()


def first_line(text: str | None) -> str:
    """The first line of a docstring."""
    return (text or "").strip().splitlines()[0]
