"""From a run's rows to two tables: the long summary, and every request with its metrics, which comparisons pair up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from replay.metrics.frames import CellFrames, prepare, steady_window
from replay.metrics.groups import BREAKDOWNS, roster
from replay.metrics.metric import TABLES, Metric, metrics, of
from replay.metrics.rates import good
from replay.metrics.statistics import distribution
from replay.metrics.windows import WINDOWS, window_length
from replay.results import Run

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
    summaries, requests = [pl.DataFrame(schema=SUMMARY)], [pl.DataFrame(schema=request_schema)]
    windows = [pl.DataFrame(schema=pl.Schema([*LABELS.items(), *WINDOWS.items()]))]
    for frames in cell_frames(run):
        labels = {name: pl.lit(getattr(frames.cell, name)) for name in LABELS if name != "cell"}
        labels["cell"] = pl.lit(frames.cell.name)
        summaries.append(summarise(frames).select(**labels, rest=pl.struct(pl.all())).unnest("rest"))
        requests.append(frames.requests.with_columns(**labels, good=good()).select(request_schema.names()))
        windows.append(frames.windows.with_columns(**labels))
    return Measured(_stack(summaries), _stack(requests), _stack(windows))


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


def summarise(frames: CellFrames) -> pl.DataFrame:
    """The summary of one cell: by, group, metric, statistic, value, n, unit."""
    parts = []
    pooled = {entry.name: _pool(frames.requests, entry) for entry in of("requests", "pooled")}
    for by in BREAKDOWNS:
        entries = [entry for entry in of("requests", "each", "one") if by == "all" or entry.grouped]
        parts.append(_requests_by(frames.requests, by, entries))
        parts += [_requests_by(rows, by, [metrics[name]]) for name, rows in pooled.items()]
    for table in TABLES[1:]:
        rows: pl.DataFrame = getattr(frames, table)
        entries = [metrics[name] for name in metrics if metrics[name].table == table]
        parts.append(_lengthen(rows.select(_values(entries)), entries, pl.lit("all"), pl.lit("all")))
    return pl.concat(parts)


def _pool(requests: pl.DataFrame, entry: Metric) -> pl.DataFrame:
    """One row for each value of a pooled metric: worked out once, for a long trace has millions of tokens."""
    groups = [name for name in requests.columns if name.startswith(("group_", "place_"))]
    return requests.select(*groups, entry.expression.alias(entry.name)).explode(entry.name)


def _requests_by(requests: pl.DataFrame, by: str, entries: Sequence[Metric]) -> pl.DataFrame:
    if by == "all":  # a selection, so that a cell of no requests has its row, and windows over users are allowed
        return _lengthen(requests.select(_values(entries)), entries, pl.lit("all"), pl.lit("all"))
    group, place = f"group_{by}", f"place_{by}"
    grouped = requests.drop_nulls(group).group_by(place, group, maintain_order=True).agg(_values(entries))
    return _lengthen(grouped.sort(place), entries, pl.lit(by), pl.col(group))


def _values(entries: Sequence[Metric]) -> list[pl.Expr]:
    """A struct of value and n for each metric and statistic, named by both."""
    values = []
    for entry in entries:
        if entry.shape == "one":
            statistics, count = {entry.statistic: entry.expression}, entry.count
        else:
            # per-request metrics are columns already
            column = pl.col(entry.name) if entry.table == "requests" else entry.expression
            statistics, count = distribution(column), column.count()
        for statistic, value in statistics.items():
            pair = pl.struct(value=value.cast(pl.Float64), n=count.cast(pl.Int64))
            values.append(pair.alias(f"{entry.name}|{statistic}"))
    return values


def _lengthen(wide: pl.DataFrame, entries: Sequence[Metric], by: pl.Expr, group: pl.Expr) -> pl.DataFrame:
    units = {entry.name: entry.unit for entry in entries}
    labelled = wide.select(by.alias("by"), group.alias("group"), pl.col("^.*\\|.*$"))
    long = labelled.with_row_index("line").unpivot(index=["line", "by", "group"], variable_name="key")
    key = pl.col("key").str.split_exact("|", 1)
    return (
        long.sort("line", maintain_order=True)
        .with_columns(metric=key.struct.field("field_0"), statistic=key.struct.field("field_1"))
        .with_columns(unit=pl.col("metric").replace_strict(units, return_dtype=pl.String))
        .unnest("value")
        .select("by", "group", "metric", "statistic", "value", "n", "unit")
    )
