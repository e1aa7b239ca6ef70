"""What a fit has to say of itself: what was found, how far it is from the trace, what is not in it, what it gives away.

It makes lines of text, for the terminal and for the specification's comments alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from replay.traces.fitting.comparison import Comparison, Figure, Line
from replay.traces.fitting.distances import Sample
from replay.traces.fitting.fit import Fit
from replay.traces.fitting.lengths import EACH
from replay.traces.wording import counted

WIDTH = 114
GIVES_AWAY = (
    "No name, identifier or text of the trace is in this file: users, classes of service and prefixes are numbered. "
    "A phase's count is how many requests there were in those seconds, exactly: a small one tells of single requests. "
    f"Lengths are quantiles, with {EACH} requests or more between any two of "
    "them where a group has that many. The first and the last are the shortest and the longest there were, rounded to "
    "two digits unless several requests had them: who must not tell how long the longest was, changes it."
)
NOT_IN_IT = (
    "What is not in it: lengths of a user that change over time (halves tells how much), and long answers that come "
    "together; bursts that outlast a gap but not a window, and users who come at the same time; what a request has to "
    "do with the one before, but for the turns of a session; when a user is there, among the others who share a rate; "
    "which of a prefix's copies is popular, and how soon one comes again."
)
HEAD = ("", "KS", "chance", "halves", "n trace", "n fit", "mean", "of fit", "p50", "of fit", "p99", "of fit")
EXPLAINED = (
    "KS: the largest difference of the two distribution functions, from 0 to 1. chance: KS of two fits that differ in "
    "the seed only. halves: KS of the trace's first half and its second."
)


def table(found: Comparison) -> list[str]:
    """The distances, a line a subject, and the figures that no distribution shows."""
    rows = [HEAD, *(line_cells(line) for line in found.lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    figures = [("", "trace", "fit", "another seed"), *(figure_cells(figure) for figure in found.figures)]
    width = max(len(cells[0]) for cells in figures)
    lines += ["", *(f"{name:<{width}}  {one:>8}  {two:>8}  {other:>12}" for name, one, two, other in figures)]
    return [line.rstrip() for line in lines]


def line_cells(line: Line) -> tuple[str, ...]:
    """A subject's line."""
    sizes = f"{line.trace.size:,}", f"{line.fit.size:,}"
    distances = (distance_text(each) for each in (line.distance, line.chance, line.halves))
    return (line.subject, *distances, *sizes, *statistics(line.trace, line.fit))


def statistics(trace: Sample, fit: Sample) -> Iterator[str]:
    """Means, medians and 99th percentiles, of the trace and the fit by turns."""
    for one, two in ((trace.mean(), fit.mean()), *((trace.quantile(p), fit.quantile(p)) for p in (0.5, 0.99))):
        yield from (number_text(one), number_text(two))


def figure_cells(figure: Figure) -> tuple[str, str, str, str]:
    """A figure's line."""
    return figure.subject, number_text(figure.trace), number_text(figure.fit), number_text(figure.chance)


def distance_text(distance: float | None) -> str:
    """Three digits, as many as a sample of a thousand can bear."""
    return "-" if distance is None else f"{distance:.3f}"


def number_text(number: float | None) -> str:
    """Whole numbers from a hundred on; three digits below."""
    if number is None:
        return "-"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def header(fit: Fit, found: Comparison) -> list[str]:
    """The comments at the top of the specification."""
    of = "" if found.trace_rows == fit.rows.rows else f", over the first {found.trace_rows:,} requests"
    paragraphs = [
        f"A fit to a trace of {counted(fit.rows.rows, 'request')}, made by `replay trace fit`; `replay trace generate` "
        "makes a trace like it.",
        GIVES_AWAY,
        *fit.said,
        f"How far the two are apart{of}. {EXPLAINED}",
    ]
    lines = [line for paragraph in paragraphs for line in [*wrap(paragraph, WIDTH), ""]]
    lines += [*table(found), ""]
    return lines + [line for paragraph in [NOT_IN_IT, *fit.lost] for line in wrap(paragraph, WIDTH)]
