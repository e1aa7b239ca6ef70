"""A figure of a cell: a metric and a statistic of it, by one name such as `ttft_p99` or `output_throughput`."""

from __future__ import annotations

from dataclasses import dataclass

from replay.errors import ExperimentError
from replay.metrics import Metric, metrics
from replay.metrics.metric import Better
from replay.metrics.notation import milliseconds, number, percent, price, scaled, whole
from replay.metrics.statistics import PERCENTILES, percentile_name
from replay.registry import nearest

PERCENTS = {percentile_name(percent): percent for percent in PERCENTILES}
STATISTICS = ("mean", "min", *PERCENTS, "max", "n")
SECONDS = ("s", "s/token")


@dataclass(frozen=True, slots=True)
class Figure:
    """What stands in a summary under a metric and a statistic, of all requests of a cell."""

    metric: str
    statistic: str

    @property
    def entry(self) -> Metric:
        return metrics[self.metric]

    @property
    def name(self) -> str:
        return self.metric if self.entry.shape == "one" else f"{self.metric}_{self.statistic}"

    @property
    def unit(self) -> str:
        """As the value is kept: seconds, tokens/s, a share of 1."""
        return "" if self.statistic == "n" else self.entry.unit

    @property
    def better(self) -> Better | None:
        """Which way is for the better; None where neither is."""
        return None if self.statistic == "n" else self.entry.better

    @property
    def percent(self) -> float | None:
        """Which percentile it is; None: it is none."""
        return None if self.entry.shape == "one" else PERCENTS.get(self.statistic)

    @property
    def of_requests(self) -> bool:
        """Whether each request has a value of it."""
        return self.entry.shape == "each" and self.entry.table == "requests"

    @property
    def unit_shown(self) -> str:
        """As the value is written for people."""
        return {"s": "ms", "s/token": "ms/token", "share": "%"}.get(self.unit, self.unit)

    def write(self, value: float | None) -> str:
        """For people, in the unit that is shown."""
        if self.unit in SECONDS:
            return milliseconds(value)
        if self.unit in ("B", "B/s", "FLOP/s"):
            return scaled(value, self.unit)
        if self.unit == "price":
            return price(value)
        if self.statistic in ("n", "count"):
            return whole(value)
        return percent(value) if self.unit == "share" else number(value)

    def told(self, value: float | None) -> str:
        """With its unit, for a sentence."""
        unit = "" if value is None or self.unit in ("share", "B", "B/s", "FLOP/s") else self.unit_shown
        return f"{self.write(value)} {unit}".rstrip()

    def worse(self, difference: float) -> bool | None:
        """Whether such a change is for the worse; None where neither direction is."""
        return None if self.better is None else (difference > 0) == (self.better == "lower")


def find_figure(name: str) -> Figure:
    """The figure of a name; ExperimentError, with the nearest that there is, for one that is none."""
    if name in metrics and metrics[name].shape == "one":
        return Figure(name, metrics[name].statistic)
    metric, _, statistic = name.rpartition("_")
    if metric in metrics and metrics[metric].shape != "one" and statistic in STATISTICS:
        return Figure(metric, statistic)
    if name in metrics:
        several = ", ".join(f"{name}_{statistic}" for statistic in STATISTICS)
        raise ExperimentError(f"{name!r} has a value for each of many, so say which of its figures is meant: {several}")
    raise ExperimentError(f"there is no figure {name!r}: {nearest(name, figure_names())}")


def figure_names() -> list[str]:
    """Every name, in order of registration."""
    names = []
    for name in metrics:
        one = metrics[name].shape == "one"
        names += [name] if one else [f"{name}_{statistic}" for statistic in STATISTICS]
    return names
