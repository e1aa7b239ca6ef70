"""What is asked of a cell's tables: metrics by a breakdown, in few queries, and the answers of all cells made long.

Where cells are small, expressions and queries cost more than the arithmetic: expressions are made once for all cells,
the queries of a cell go together, and the answers of all cells are made long in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from replay.metrics.frames import CellFrames
from replay.metrics.groups import BREAKDOWNS
from replay.metrics.metric import TABLES, Metric, Table, metrics, of
from replay.metrics.statistics import distribution

COUNT = "n"
"""The statistic that says how many values the others rest on."""


@dataclass(frozen=True, slots=True)
class Question:
    """Metrics of one table by one breakdown; of one `pool`, where that is the name of a pooled metric."""

    by: str
    table: Table
    entries: Sequence[Metric]
    pool: str | None = None
    values: list[pl.Expr] = field(default_factory=list)

    def asked_of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """A row for each group, in the groups' own order: what the group is, and a struct for each statistic."""
        if (
            self.by == "all"
        ):  # a selection, so that a cell of no requests has its row, and windows over users are allowed
            return rows.select(pl.lit("all").alias("group"), *self.values)
        group, place = f"group_{self.by}", f"place_{self.by}"
        grouped = rows.drop_nulls(group).group_by(place, group, maintain_order=True).agg(self.values)
        return grouped.sort(place).drop(place).rename({group: "group"})


def questions() -> list[Question]:
    """Of every registered metric, in the order of the summary."""
    asked = []
    for by in BREAKDOWNS:
        known = [entry for entry in of("requests", "each", "one") if by == "all" or entry.grouped]
        asked.append(Question(by, "requests", known, values=_values(known)))
        asked += [Question(by, "requests", [entry], entry.name, _values([entry])) for entry in of("requests", "pooled")]
    for table in TABLES[1:]:
        known = [metrics[name] for name in metrics if metrics[name].table == table]
        asked.append(Question("all", table, known, values=_values(known)))
    return asked


def answers(asked: Sequence[Question], frames: CellFrames) -> list[pl.DataFrame]:
    """What one cell answers to each."""
    pools = {entry.name: _pool(frames.requests, entry) for entry in of("requests", "pooled")}
    tables: dict[str, pl.DataFrame] = {table: getattr(frames, table) for table in TABLES}
    return [question.asked_of(pools[question.pool] if question.pool else tables[question.table]) for question in asked]


def lengthen(asked: Sequence[Question], answered: Sequence[Sequence[pl.DataFrame]]) -> pl.DataFrame:
    """A row for each cell (its place), group and statistic: cell, by, group, metric, statistic, value, n, unit."""
    parts = []
    for place, question in enumerate(asked):
        tables = [answer[place].with_columns(cell=pl.lit(cell)) for cell, answer in enumerate(answered)]
        wide = pl.concat(tables, how="vertical_relaxed").with_row_index("line")
        parts.append(_long(wide, question).with_columns(question=pl.lit(place)))
    return pl.concat(parts).sort("cell", "question", "line", maintain_order=True).drop("question", "line")


def _long(wide: pl.DataFrame, question: Question) -> pl.DataFrame:
    index = ("line", "cell", "group")
    told = [(entry, statistic) for entry in question.entries for statistic in _statistics(entry)]
    keys = pl.DataFrame(
        {
            "key": [_key(entry, statistic) for entry, statistic in told],
            "metric": [entry.name for entry, _ in told],
            "statistic": [statistic for _, statistic in told],
            "unit": [entry.unit for entry, _ in told],
        }
    )
    values = wide.select(*index, pl.col(keys["key"].to_list()).cast(pl.Float64))
    counts = wide.select(
        pl.col(_key(entry, COUNT)).cast(pl.Int64).alias(_key(entry, statistic)) for entry, statistic in told
    )
    long = values.unpivot(index=index, variable_name="key").with_columns(counts.unpivot(value_name="n")["n"])
    return long.join(keys, on="key", maintain_order="left").select(
        "cell", pl.lit(question.by).alias("by"), "group", "metric", "statistic", "value", "n", "unit", "line"
    )


def _pool(requests: pl.DataFrame, entry: Metric) -> pl.DataFrame:
    """One row for each value of a pooled metric: worked out once, for a long trace has millions of tokens."""
    groups = [name for name in requests.columns if name.startswith(("group_", "place_"))]
    return requests.select(*groups, entry.expression.alias(entry.name)).explode(entry.name)


def _values(entries: Sequence[Metric]) -> list[pl.Expr]:
    return [value for entry in entries for value in _told(entry)]


@cache
def _told(entry: Metric) -> list[pl.Expr]:
    """Each statistic, and how many values it rests on, as flat columns: structs of the two would take twice as long."""
    statistics = _statistics(entry)
    if entry.shape == "one":
        statistics = statistics | {COUNT: entry.count}
    return [value.alias(_key(entry, statistic)) for statistic, value in statistics.items()]


@cache
def _statistics(entry: Metric) -> dict[str, pl.Expr]:
    if entry.shape == "one":
        return {entry.statistic: entry.expression}
    # per-request metrics are columns already
    return distribution(pl.col(entry.name) if entry.table == "requests" else entry.expression)


def _key(entry: Metric, statistic: str) -> str:
    return f"{entry.name}|{statistic}"
