"""Interactive charts of a run: one registered function for each, drawn by the page that embeds them."""

from __future__ import annotations

# In their order on the page: what a reader with a minute looks at comes first.
# isort: off
from replay.report.charts import (
    tradeoff,
    heat_map,
    differences,
    loads,
    arrivals,
    distributions,
    lengths,
    service,
    efficiency,
    timeline,
)

# isort: on
from replay.report.charts.chart import Chart, Key, Panel, charts

__all__ = [
    "Chart",
    "Key",
    "Panel",
    "arrivals",
    "charts",
    "differences",
    "distributions",
    "efficiency",
    "heat_map",
    "lengths",
    "loads",
    "service",
    "timeline",
    "tradeoff",
]
