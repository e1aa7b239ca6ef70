"""`replay trace show`: what a trace is like, in words, as JSON and in pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replay.cli.trace_said import FILE, remark

if TYPE_CHECKING:
    from replay.traces.table import Trace


@click.command("show", short_help="Say what a trace is like, and draw pictures of it.")
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
