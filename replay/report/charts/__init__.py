"""Interactive charts of a run: one registered function for each, drawn by the page that embeds them."""

from __future__ import annotations

from replay.report.charts import distributions
from replay.report.charts.chart import Chart, Panel, charts

__all__ = ["Chart", "Panel", "charts", "distributions"]
