"""`replay trace transform`: what an experiment may do to a trace, done once and written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replay.cli.trace_said import FILE, ListingCommand, finish, first_line, force_option

if TYPE_CHECKING:
    from replay.traces.transforms import Declared


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


@click.command("transform", cls=TransformCommand, short_help="Apply transforms to a trace, and write the result.")
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


def bare(example: str) -> str:
    """An example of a transform as `-t` takes it: without the braces that an experiment needs."""
    return example.strip().removesuffix("}").replace(" } or { ", " or ").strip()
