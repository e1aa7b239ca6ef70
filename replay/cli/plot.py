"""`replay plot`: pictures of a run on demand, each with the options that it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from matplotlib.figure import Figure

from replay.errors import ExperimentError, OutputError
from replay.metrics import measure
from replay.plots import figures, plots
from replay.plots.chosen import Chosen
from replay.plots.options import Option, options_of
from replay.plots.picture_files import check_file, check_free, write_picture
from replay.report.document import PICTURES
from replay.results import read_run


def picture_options() -> list[click.Option]:
    """What pictures declare; of an option that several have, one, which names them all."""
    takers: dict[str, list[str]] = {}
    declared: dict[str, Option] = {}
    for picture in plots:
        for name, option in options_of(plots[picture]).items():
            takers.setdefault(name, []).append(picture)
            declared.setdefault(name, option)
    return [
        click.Option(
            [flag(name)],
            multiple=option.repeatable,
            nargs=option.count,
            metavar=option.metavar,
            help=f"{', '.join(takers[name])}: {option.help}" + (" Repeatable." if option.repeatable else ""),
        )
        for name, option in declared.items()
    ]


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def show_list(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print every picture with what it shows and the options that it takes, and end."""
    if not wanted or ctx.resilient_parsing:
        return
    width = max(len(name) for name in plots) + 2
    for name in plots:
        takes = [f"{flag(option)} {declared.metavar}" for option, declared in options_of(plots[name]).items()]
        click.echo(f"{name:<{width}}{PICTURES.get(name, name)}." + (f" Takes {', '.join(takes)}." if takes else ""))
    ctx.exit()


@click.command("plot")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("pictures", nargs=-1, metavar="NAME...")
@click.option("-o", "--output", multiple=True, metavar="FILE", help="A .png, .svg or .pdf, or a folder. Repeatable.")
@click.option("--force", is_flag=True, help="Replace a file that this command did not draw.")
@click.option("--policy", multiple=True, metavar="POLICY", help="Show this policy alone. Repeatable.")
@click.option("--mode", multiple=True, metavar="MODE", help="Show this mode alone. Repeatable.")
@click.option("--trace", multiple=True, metavar="TRACE", help="Show this trace alone. Repeatable.")
@click.option("--width", type=float, metavar="INCHES", help="Instead of the picture's own width.")
@click.option("--height", type=float, metavar="INCHES", help="Instead of the picture's own height.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=show_list, help="List the pictures.")
def plot(
    run: Path,
    pictures: tuple[str, ...],
    output: tuple[str, ...],
    force: bool,
    policy: tuple[str, ...],
    mode: tuple[str, ...],
    trace: tuple[str, ...],
    width: float | None,
    height: float | None,
    **asked: Any,
) -> None:
    """Draw pictures of RUN, the folder of a run, by NAME, and print which files were written.

    Without -o, NAME.png and NAME.svg in this folder. A file that this command drew is replaced; any other is left
    alone, unless --force. A policy, mode or trace that is not named is left out; what is shown keeps the colours it
    has in the report, and its figures.

    An option that begins with a picture's name is taken by that picture. Times are written like 12.5s or 1m30s.

    \b
    Examples:
      replay plot --list
      replay plot outputs/busy slots --cell continuous-fifo --cell static-fifo --window 12s 20s -o slots.svg
      replay plot outputs/busy distributions users --policy fifo --policy fair --width 7 -o pictures/

    Exit status: 0 done; 1 when the run has nothing for a picture, or a file cannot be written; 2 when a name or an
    option is wrong.
    """
    if not pictures:
        raise click.UsageError(f"name a picture of {run}; --list has them all")
    names = list(dict.fromkeys(name.replace("-", "_") for name in pictures))
    options = {name: value for name, value in asked.items() if value not in (None, ())}
    given = options_by_picture(names, options)
    places = destinations(names, output, force=force)
    drawn = draw_pictures(run, given, Chosen(trace, mode, policy), (width, height))
    files = named_files(drawn, places)
    for file in files:
        check_free(file, force=force)
    for file, figure in files.items():
        if not file.parent.exists():
            file.parent.mkdir()
        write_picture(figure, file)
        click.echo(str(file))


plot.params += picture_options()


def options_by_picture(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each picture the options that it takes. ExperimentError for one that none of them does."""
    known = {name: options_of(plots[name]) for name in names}
    for option in options:
        if not any(option in takes for takes in known.values()):
            takers = [name for name in plots if option in options_of(plots[name])]
            raise ExperimentError(f"{flag(option)} is an option of {', '.join(takers)}, not of {', '.join(names)}")
    return {name: {key: options[key] for key in takes if key in options} for name, takes in known.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a folder that may have to be made."""

    path: Path
    is_folder: bool


def destinations(names: Sequence[str], output: Sequence[str], *, force: bool) -> list[Place]:
    """Where pictures go: checked before anything is read."""
    places = [Place(path := Path(text), path.is_dir() or text.endswith("/")) for text in output or ("./",)]
    for place in places:
        if place.is_folder:
            if not place.path.parent.is_dir():
                raise OutputError(f"{place.path}: there is no folder {place.path.parent}")
        else:
            check_file(place.path, force=force)
            if len(names) > 1:
                raise ExperimentError(f"{place.path}: {len(names)} pictures are asked for; name a folder for them")
    return places


def draw_pictures(
    run: Path, asked: Mapping[str, Mapping[str, Any]], chosen: Chosen, size: tuple[float | None, float | None]
) -> dict[str, Figure]:
    """Figures by the name of their file; of a run of several traces, each with its number."""
    found = read_run(run)
    measured = measure(found)
    numbers = {trace: number for number, trace in enumerate(dict.fromkeys(cell.trace for cell in found.recorded), 1)}
    drawn: dict[str, Figure] = {}
    for name, options in asked.items():
        for trace, figure in figures(found, measured, name, chosen, options, size).items():
            drawn[name if len(numbers) == 1 else f"{name}-{numbers[trace]}"] = figure
    return drawn


def named_files(drawn: Mapping[str, Figure], places: Sequence[Place]) -> dict[Path, Figure]:
    """Which figure goes into which file. ExperimentError where several would go into one."""
    files: dict[Path, Figure] = {}
    for place in places:
        if place.is_folder:
            kinds = (".png", ".svg")
            files |= {place.path / f"{name}{kind}": figure for name, figure in drawn.items() for kind in kinds}
        elif len(drawn) > 1:
            raise ExperimentError(
                f"{place.path}: there is a picture of each trace; choose one with --trace, or a folder"
            )
        else:
            files[place.path] = next(iter(drawn.values()))
    return files
