"""`replay metrics`: every figure that a report may have, with its unit and definition; or all that is known of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from replay.cli.wrapping import hanging
from replay.errors import ExperimentError
from replay.registry import nearest

if TYPE_CHECKING:
    from replay.metrics.metric import Metric

TABLES = {
    "requests": "over the requests of a cell",
    "steps": "over the steps of a cell",
    "spans": "over the times for which requests held batch slots",
    "windows": "over windows of time of a cell",
    "backlogs": "over the times in which users had requests waiting",
}
BETTER = {"lower": "lower is better", "higher": "higher is better", None: "neither way is better"}


@click.command("metrics")
@click.argument("name", required=False)
def metrics_command(name: str | None) -> None:
    """List the metrics with their units and definitions, or print all that is known of one.

    \b
    Examples:
      replay metrics
      replay metrics ttft
    """
    from replay.metrics import metrics

    if name is None:
        width = max(len(known) for known in metrics)
        for theme, members in by_theme().items():
            click.echo("\n".join(hanging("", f"{theme}")))
            for entry in members:
                click.echo("\n".join(hanging(f"  {entry.name:<{width}}  ", f"[{entry.unit}] {entry.formula}")))
            click.echo()
        click.echo("replay metrics NAME says all of one: how it is told, and of which groups.")
        return
    if name not in metrics:
        raise ExperimentError(f"there is no metric {name!r}: {nearest(name, metrics)}")
    click.echo("\n".join(_told(metrics[name])))


def by_theme() -> dict[str, list[Metric]]:
    """The metrics by what they are about, as the modules say in which they are declared."""
    import importlib
    import inspect

    from replay.metrics import metrics

    found: dict[str, list[Metric]] = {}
    for name in metrics:
        about = inspect.getdoc(importlib.import_module(metrics[name].module)) or ""
        found.setdefault(" ".join(about.split("\n\n")[0].split()), []).append(metrics[name])
    return found


def statistics(entry: Metric) -> str:
    """Under which names its values are filed."""
    from replay.metrics.statistics import DISTRIBUTION

    return entry.statistic if entry.shape == "one" else ", ".join(DISTRIBUTION)


def _told(entry: Metric) -> list[str]:
    groups = "of all requests, and by user, priority, class and output length" if entry.grouped else "of a whole cell"
    values = {"one": "one figure", "each": "the distribution of its values", "pooled": "the distribution of all values"}
    return [
        *hanging(f"{entry.name}: ", entry.formula),
        "",
        f"Unit: {entry.unit}; {BETTER[entry.better]}.",
        f"Told: {values[entry.shape]} {TABLES[entry.table]}, {groups}.",
        f"Filed as: {statistics(entry)}.",
    ]
