"""One picture of a run on demand: for a paper, a close look, a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from replay.errors import ExperimentError, OutputError
from replay.metrics import Measured, measure
from replay.plots.canvas import look, sized
from replay.plots.chosen import Chosen, chosen_views
from replay.plots.options import read_options
from replay.plots.registry import plots
from replay.results import Run, read_run

NARROWEST, WIDEST = 1.0, 100.0  # inches


def draw(
    run: Run | Path | str,
    picture: str,
    *,
    trace: str | None = None,
    mode: str | Iterable[str] = (),
    policy: str | Iterable[str] = (),
    width: float | None = None,
    height: float | None = None,
    measured: Measured | None = None,
    **options: object,
) -> Figure:
    """A picture of a run as a matplotlib figure, to show or save: `draw("outputs/busy", "slots", window=(12, 20))`.

    `run` is the folder of a run, or what `read_run` made of it; with `measured`, which `measure(run)` gives, several
    pictures of a large run are drawn without reading it again. `mode` and `policy` are one name or several; what is
    not named is left out, and the rest keeps its colours. `trace` may be left out where the run has one. `width` and
    `height` are inches. `options` are the picture's own, as in `replay plot --list`.

    Raises ExperimentError for a name, option or value that is none, and OutputError where there is no run, or nothing
    in it for this picture.
    """
    found = run if isinstance(run, Run) else read_run(Path(run))
    chosen = Chosen((trace,) if trace is not None else (), _several(mode), _several(policy))
    drawn = figures(found, measured or measure(found), picture, chosen, options, (width, height))
    if len(drawn) > 1:
        known = ", ".join(repr(name) for name in drawn)
        raise ExperimentError(f"the run has a picture {picture!r} of each of its traces; name one, as trace=: {known}")
    return next(iter(drawn.values()))


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def figures(
    run: Run,
    measured: Measured,
    picture: str,
    chosen: Chosen,
    options: Mapping[str, Any],
    size: tuple[float | None, float | None] = (None, None),
) -> dict[str, Figure]:
    """The picture of each trace that is asked for and has it, by the trace's name; at least one.

    Raises what `draw` does.
    """
    plot = plots[picture]
    given = read_options(picture, plot, options)
    for name, inches in zip(("width", "height"), size, strict=True):
        if inches is not None and not NARROWEST <= inches <= WIDEST:
            raise ExperimentError(f"{name}: {inches:g} inches; a picture has {NARROWEST:g} to {WIDEST:g}")
    found = chosen_views(run, measured, chosen)
    if not found:
        raise OutputError(f"{run.folder}: no cell left any row, so there is nothing to draw")
    with look(), sized(*size):
        made = {view.trace: plot(view, **given) for view in found}
    drawn = {trace: figure for trace, figure in made.items() if figure is not None}
    if not drawn:
        raise OutputError(f"{run.folder}: nothing in it for the picture {picture!r}")
    return drawn
