"""From a run's rows to two tables: the long summary, and every request with its metrics, which comparisons pair up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from replay.metrics.frames import CellFrames, prepare, steady_window
from replay.metrics.groups import BREAKDOWNS, roster
from replay.metrics.metric import of
from replay.metrics.questions import Question, answers, lengthen, questions
from replay.metrics.rates import good
from replay.metrics.windows import WINDOWS, window_length
from replay.results import Cell, Run

LABELS = {
    **dict.fromkeys(("cell", "trace", "mode", "policy", "variant"), pl.String),
    "repeat": pl.Int64,
}
SUMMARY = pl.Schema(
    {
        **LABELS,
        **dict.fromkeys(("by", "group", "metric", "statistic"), pl.String),
        "value": pl.Float64,
        "n": pl.Int64,
        "unit": pl.String,
    }
)
COLUMNS = {
    "cell": "name of the cell",
    "trace": "name of the trace as replayed",
    "mode": "name of the batching mode",
    "policy": "name of the policy",
    "variant": "the settings that a sweep gave the cell",
    "repeat": "which repeat it is, from 0",
    "by": "what the requests are grouped by: all, user, priority, class or length",
    "group": "which group of these it is",
    "metric": "name of the metric",
    "statistic": "what is said of its values: value or count of an aggregate, else one of a distribution",
    "value": "the figure, in the metric's unit; null: not defined",
    "n": "the values that it rests on",
    "unit": "the metric's unit",
}
"""What each column of the summary means."""
FACTS = {
    **{"row": pl.Int64, "user": pl.String, "arrival": pl.Float64, "due": pl.Float64, "status": pl.String},
    **{f"group_{by}": pl.String for by in BREAKDOWNS[1:]},
    **{f"place_{by}": pl.Int32 for by in BREAKDOWNS[1:]},
}


@dataclass(frozen=True, slots=True)
class Measured:
    """`summary` is long, one value a row; `requests` has a row for each request of each cell, with its metrics, and
    `windows` one for each window of time in which fairness is measured."""

    summary: pl.DataFrame
    requests: pl.DataFrame
    windows: pl.DataFrame


def measure(run: Run) -> Measured:
    """Every registered metric of every cell that left rows, in the order of the manifest."""
    each = {entry.name: pl.Float64 for entry in of("requests", "each")}
    request_schema = pl.Schema({**LABELS, **FACTS, **each, "good": pl.Float64})
    asked, cells, answered = questions(), [], []
    requests = [pl.DataFrame(schema=request_schema)]
    windows = [pl.DataFrame(schema=pl.Schema([*LABELS.items(), *WINDOWS.items()]))]
    for frames in cell_frames(run):
        cells.append(frames.cell)
        answered.append(answers(asked, frames))
        labels = {name: pl.lit(value) for name, value in _labels(frames.cell).items()}
        requests.append(frames.requests.with_columns(**labels, good=good()).select(request_schema.names()))
        windows.append(frames.windows.with_columns(**labels))
    return Measured(_summary(cells, asked, answered), _stack(requests), _stack(windows))


def _summary(
    cells: Sequence[Cell], asked: Sequence[Question], answered: Sequence[Sequence[pl.DataFrame]]
) -> pl.DataFrame:
    if not cells:
        return pl.DataFrame(schema=SUMMARY)
    labels = pl.DataFrame([_labels(cell) for cell in cells], schema=LABELS).with_row_index("place")
    long = lengthen(asked, answered).rename({"cell": "place"})
    placed = labels.with_columns(pl.col("place").cast(long.schema["place"]))
    return long.join(placed, on="place", maintain_order="left").select(SUMMARY.names()).cast(SUMMARY)


def _labels(cell: Cell) -> dict[str, str | int]:
    return {"cell": cell.name, **{name: getattr(cell, name) for name in LABELS if name != "cell"}}


def _stack(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    schema = tables[0].schema
    return pl.concat([table.select(schema.names()).cast(schema) for table in tables])


def cell_frames(run: Run) -> Iterator[CellFrames]:
    """The frames of each cell that left rows, one at a time: token times are large."""
    for trace in dict.fromkeys(cell.trace for cell in run.recorded):
        cells = [cell for cell in run.recorded if cell.trace == trace]
        tables = {cell.name: cell.table("requests") for cell in cells}
        expected = run.trace(trace).rows if all(cell.partial for cell in cells) else None
        known = roster(list(tables.values()), run.length_bins, expected)
        window, length = steady_window(known), window_length(list(tables.values()), run.service.window)
        for cell in cells:
            yield prepare(cell, tables.pop(cell.name), known, run.goals, window, run.service, length)
