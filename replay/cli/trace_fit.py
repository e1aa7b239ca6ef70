"""`replay trace fit`: the specification that resembles a trace, and how far the two are apart."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.command("fit", short_help="Write the specification that resembles a trace.")
@click.argument("source", metavar="TRACE", type=FILE)
@click.argument("out", metavar="SPEC.toml", type=FILE)
@click.option("--windows", type=click.IntRange(1, 10_000), help="Windows of constant rate, of equal length.")
@click.option("--users", type=click.IntRange(0, 1_000), default=10, show_default=True, help="Users fitted one by one.")
@click.option("--quantiles", type=click.IntRange(2, 10_001), help="Quantiles of each length.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The specification's seed.")
@click.option("--force", is_flag=True, help="Replace SPEC.toml if it is there already.")
def fit_command(
    source: Path, out: Path, *, windows: int | None, users: int, quantiles: int | None, seed: int, force: bool
) -> None:
    """Write the specification that resembles TRACE, and print how far the two are apart.

    What `replay trace generate` makes of SPEC.toml is a workload like the trace's, without its names and texts: share
    the file where the log must not be shared. The distances go into the file, too, as comments.

    \b
    Windows and quantiles: as many as are needed, unless you say how many.
    Users beyond the busiest: one population, with shares by Zipf's law.
    KS: the largest difference of two distribution functions, from 0 to 1.
    chance: KS between two fits that differ in the seed only.

    \b
    Example:
      replay trace fit chat.parquet like-chat.toml
      replay trace generate like-chat.toml like-chat.parquet
    """
    from replay.errors import OutputError
    from replay.traces.fitting.account import table
    from replay.traces.fitting.document import write_document
    from replay.traces.fitting.fit import Wanted
    from replay.traces.fitting.fitted import fitted
    from replay.traces.reading import read_trace
    from replay.traces.writing import check_target

    check_target(out, force=force)
    if out.exists() and source.exists() and out.samefile(source):
        raise OutputError(f"{out}: is the trace itself; give the specification another name")
    found = fitted(read_trace(source), Wanted(users, windows, quantiles, seed))
    write_document(found.text, out, force=force)
    click.echo("\n".join([f"{out}: {found.fit.sentence()}", "", *table(found.comparison)]))
    if not (click.get_current_context().obj or {}).get("quiet"):
        for line in found.fit.lost:
            click.echo(line, err=True)
