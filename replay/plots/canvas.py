"""Figures without a display: the look, and how one becomes a PNG and an SVG of the same bytes each time.

No window toolkit is ever imported, whatever the user's settings name, and nothing is written to a home folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import ceil, floor, log10
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from replay.plots.fonts import families
from replay.whole_files import replace_file

matplotlib.use("Agg", force=True)  # should somebody have imported it before us

DPI = 150
TITLE_LETTERS = 9.5  # to the inch
INK, FAINT, GRID = "#222222", "#777777", "#e3e3e3"
DASHES: list[tuple[float, ...]] = [(), (6, 2), (4, 3), (2.5, 2.5), (1.3, 1.7), (6, 2, 1.3, 2), (4, 2, 1.3, 2, 1.3, 2)]
SIZE: ContextVar[tuple[float | None, float | None]] = ContextVar("SIZE", default=(None, None))


@cache
def _settings() -> dict[str, Any]:
    """The look of every figure."""
    import seaborn as sns  # here: with pandas it takes a second, which who draws nothing need not wait for

    return {
        **sns.axes_style("whitegrid"),
        "axes.edgecolor": "#bbbbbb",
        "axes.labelcolor": INK,
        "axes.labelsize": 9,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.titlesize": 13,
        "figure.titleweight": "bold",
        "grid.color": GRID,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "svg.hashsalt": "replay",
        "text.parse_math": False,  # a user may be called "$a$"
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
    }


@contextmanager
def look(**settings: Any) -> Iterator[None]:
    """The settings under which figures are made and saved. Glyphs (of a user's name) that no font has are boxes."""
    chosen: Any = {**_settings(), "font.family": families(), **settings}
    with matplotlib.rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@contextmanager
def sized(width: float | None, height: float | None) -> Iterator[None]:
    """Figures that are made here have so many inches instead of their own; None: their own."""
    token = SIZE.set((width, height))
    try:
        yield
    finally:
        SIZE.reset(token)


def figure(title: str, width: float, height: float) -> Figure:
    """An empty figure of so many inches with a title at its left, in as many lines as it needs."""
    asked = SIZE.get()
    width, height = asked[0] or width, asked[1] or height
    made = Figure(figsize=(width, height), layout="constrained")
    made.suptitle(fill(title, int(width * TITLE_LETTERS)), x=0.01, ha="left")
    return made


def save(made: Figure, stem: Path) -> list[Path]:
    """`stem.png` and `stem.svg`, without dates or versions in them. OutputError where they cannot be written.

    Panels are laid out once: a drawing would do so twice for each file, which takes as long as to draw.
    """
    made.set_dpi(DPI)
    made.draw_without_rendering()
    made.set_layout_engine("none")

    def writer(kind: str) -> Callable[[Path], None]:
        metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
        return lambda path: made.savefig(path, format=kind, dpi=DPI, metadata=metadata)

    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    for file in files:
        replace_file(file, writer(file.suffix[1:]))
    return files


def rows_of(count: int, across: int) -> tuple[int, int]:
    """Rows and columns for so many panels, at most `across` beside each other, as even as they come."""
    rows = -(-count // across)
    return rows, -(-count // rows)


def panels(made: Figure, count: int, across: int, *, xlabel: str, ylabel: str) -> list[Axes]:
    """So many panels in rows of at most `across`, on shared axes: the lowest of each column has its label and ticks."""
    rows, columns = rows_of(count, across)
    grid = list(made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for place, axes in enumerate(grid):
        axes.set_visible(place < count)
        if place % columns == 0:
            axes.set_ylabel(ylabel)
        if place < count <= place + columns:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(xlabel)
    return grid[:count]


def blocks(made: Figure, rows: int, count: int, across: int, *, one_x: bool) -> list[list[Axes]]:
    """`rows` of panels, each of `count`; where more than `across` would stand beside each other, they go on below, in
    a second block of all rows. A row shares its vertical axis, and its horizontal one, or all panels do: `one_x`.

    The first panel of each line has the labels of its vertical axis; with `one_x` the last row has the others'.
    """
    lines, columns = rows_of(count, across)
    grid = made.subplots(lines * rows, columns, squeeze=False)
    found: list[list[Axes]] = [[] for _ in range(rows)]
    for line in range(lines):
        for row in range(rows):
            for column, axes in enumerate(grid[line * rows + row]):
                if line * columns + column >= count:
                    axes.set_visible(False)
                    continue
                axes.tick_params(labelleft=column == 0, labelbottom=not one_x or row == rows - 1)
                if found[row]:
                    axes.sharey(found[row][0])
                if one_x and found[0]:
                    axes.sharex(found[0][0])
                elif found[row]:
                    axes.sharex(found[row][0])
                found[row].append(axes)
    return found


def no_data(axes: Axes, x: float = 0.5, y: float = 0.5, *, text: str = "no data", rotation: float = 0) -> None:
    """Say that nothing is there, at a place given in shares of the axes."""
    axes.text(x, y, text, transform=axes.transAxes, ha="center", va="center", color=FAINT, size=9, rotation=rotation)


def mark(label: str, **style: Any) -> Line2D:
    """A legend's entry: a marker, in ink unless `style` says otherwise."""
    return Line2D([], [], label=label, **{"color": INK, "linestyle": ""} | style)


def legend(made: Figure, handles: Sequence[Artist], columns: int, title: str | None) -> None:
    """One legend under all panels, in fewer columns where it would be cut; what must be said of the picture is its
    title."""
    for most in range(max(columns, 1), 0, -1):
        rows = -(-len(handles) // most)
        found = made.legend(handles=handles, loc="outside lower center", ncols=-(-len(handles) // rows), title=title)
        found.get_title().set_multialignment("center")
        if most == 1 or found.get_window_extent().width <= made.bbox.width:
            return
        found.remove()


def scale(axes: Axes, which: str, values: Sequence[float], label: str = "", *, log: bool = True) -> None:
    """Limits around all values: from zero, or logarithmic where `log` and they span more than fourfold; and the label.

    Who sees two labelled ticks takes an axis for linear: a logarithmic one has at least four, and its label says so.
    """
    set_limits = axes.set_xlim if which == "x" else axes.set_ylim
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = min(values, default=0.0), max(values, default=0.0)
    logarithmic = log and low > 0 and high > 4 * low
    if logarithmic:
        ticks = log_ticks(low, high, most=7 if which == "x" else 10)  # labels side by side need more room
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        room = (ticks[-1] / ticks[0]) ** 0.03  # so that no mark is cut
        set_limits(ticks[0] / room, ticks[-1] * room)
    elif values:
        set_limits(0.0, high * 1.08 or 1.0)
    if values:
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    if label:
        axis.set_label_text(f"{label} (log scale)" if logarithmic else label)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """At least four ticks around the values: 1-2-5, or decades where those would be more than `most`."""
    for steps in ((1, 2, 5), (1,)):
        # one place beyond the values' decades, on each side, is enough to fill up to four
        decades = range(floor(log10(low)) - 1, ceil(log10(high)) + 2)
        found = [float(f"{step}e{decade}") for decade in decades for step in steps]
        first = max(place for place, tick in enumerate(found) if tick <= low)
        last = min(place for place, tick in enumerate(found) if tick >= high)
        while last - first < 3:  # on the side where the values are nearer to the edge
            if low / found[first] < found[last] / high:
                first -= 1
            else:
                last += 1
        if last - first < most:
            break
    return found[first : last + 1]


def widths(policies: Sequence[str], *, thinnest: float = 1.2, span: float = 2.4) -> dict[str, float]:
    """Line widths that shrink with the place, so that a line under others still shows beside them."""
    step = min(0.7, span / max(len(policies) - 1, 1))
    return {policy: thinnest + (len(policies) - 1 - place) * step for place, policy in enumerate(policies)}


def dashes(policies: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Dash patterns, the first a whole line: through the gaps of those above, a line under others still shows."""
    return {policy: DASHES[place % len(DASHES)] for place, policy in enumerate(policies)}
