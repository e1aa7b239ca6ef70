"""The page on metrics: name, definition, unit, and how each is told and filed."""

from __future__ import annotations

from replay.cli.metrics import TABLES, by_theme
from replay.cli.reference.markdown import code, words
from replay.metrics.metric import Metric
from replay.metrics.statistics import PERCENTILES, percentile_name

HEADS = ("metric", "definition", "unit", "better", "over", "filed as", "by group")
STATISTICS = {
    "n": "values that are defined",
    "mean": "their mean",
    "min": "the least",
    **{percentile_name(percent): f"the {percent:g}th percentile, linear-interpolated" for percent in PERCENTILES},
    "max": "the most",
    "value": "an aggregate",
    "count": "an aggregate that is a whole number",
}
OPENING = """\
# Metrics

Every figure that a report may have; `replay metrics` prints this list, and `replay metrics NAME` all of one. Seconds
count from `due`, the moment at which the trace intended a request. Null means "not defined": it is never 0.

*Filed as* says under which statistics a metric stands in [the summary](runs.md#the-summary): of a distribution all
those below, of an aggregate its `value` or `count`. *By group*: for each user, priority, class of service and bin of
output lengths too."""


def page() -> str:
    parts = [OPENING]
    for theme, members in by_theme().items():
        title, _, about = theme.partition(": ")
        own = [entry for entry in members if entry.module.startswith("replay.")]
        if own:
            parts += [f"## {title.rstrip('.')}", *([about[:1].upper() + about[1:]] if about else [])]
            parts.append(words(HEADS, map(_row, own)))
    rows = [[code(name), meaning] for name, meaning in STATISTICS.items()]
    parts += ["## Statistics", words(("statistic", "what it is"), rows)]
    parts += ["## Over what", words(("over", "what"), [[name, text] for name, text in TABLES.items()])]
    return "\n\n".join(parts)


def _row(entry: Metric) -> list[str]:
    filed = code(entry.statistic) if entry.shape == "one" else "distribution"
    grouped = "yes" if entry.grouped else ""
    return [code(entry.name), entry.formula, entry.unit, entry.better or "", entry.table, filed, grouped]
