"""A metric: a named Polars expression over the rows of a cell, whose docstring is its formula.

It is registered with one decorator, and from there reaches the summary, the JSON, the report and its glossary.
This module knows no metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl

from replay.registry import Registry

Expression = Callable[[], pl.Expr]
Table = Literal["requests", "steps", "spans", "windows", "backlogs"]
TABLES: tuple[Table, ...] = get_args(Table)
"""What a run wrote; then, of each cell, windows of time and the times in which users had requests waiting."""
Shape = Literal["each", "pooled", "one"]
Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """An expression in its table's columns.

    `each`: one value a row, told by its distribution. `pooled`: a list a row, told by the distribution of all.
    `one`: an aggregate, told by its value; `count` says how many rows it rests on.
    """

    name: str
    unit: str
    table: Table
    shape: Shape
    better: Better | None
    formula: str
    expression: pl.Expr
    count: pl.Expr
    grouped: bool  # whether it has a meaning for a group of requests
    module: str  # where it is declared: metrics of one theme stand in one module

    @property
    def statistic(self) -> str:
        """What an aggregate's value is filed under: a count is a whole number."""
        return "count" if self.unit in ("requests", "tokens", "evictions", "blocks", "users") else "value"


metrics: Registry[Metric] = Registry("metric")


def metric(
    name: str,
    *,
    unit: str,
    table: Table = "requests",
    shape: Shape = "each",
    better: Better | None = None,
    count: pl.Expr | None = None,
    grouped: bool = True,
) -> Callable[[Expression], Expression]:
    """Register a function that gives the expression; the function itself stays usable inside other metrics."""

    def keep(expression: Expression) -> Expression:
        entry = Metric(
            name=name,
            unit=unit,
            table=table,
            shape=shape,
            better=better,
            formula=" ".join((expression.__doc__ or "").split()),
            expression=expression(),
            count=pl.len() if count is None else count,
            grouped=grouped and table == "requests",
            module=expression.__module__,
        )
        metrics.register(name)(entry)
        return expression

    return keep


def of(table: Table, *shapes: Shape) -> list[Metric]:
    """The registered metrics of a table, of the shapes asked for."""
    return [metrics[name] for name in metrics if metrics[name].table == table and metrics[name].shape in shapes]
