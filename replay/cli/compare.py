"""`replay compare`: several runs side by side, and checks that fail a build."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--baseline", metavar="RUN", help="The run that the others are held against; the first, unless said.")
@click.option("--metric", "names", multiple=True, metavar="FIGURE", help="Show this, such as ttft_p99. Repeatable.")
@click.option(
    "--fail-if", "texts", multiple=True, metavar="CHECK", help="End with status 1 where it holds. Repeatable."
)
@click.option("--allow-invalid", is_flag=True, help="Let checks judge cells that are invalid or partial.")
@click.option("--across", multiple=True, metavar="SETTING", help="Match cells that differ in it. Repeatable.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "csv", "json"]),
    default="table",
    show_default=True,
    help="What is printed; values in csv and json are in seconds and shares of 1.",
)
def compare(
    runs: tuple[Path, ...],
    baseline: str | None,
    names: tuple[str, ...],
    texts: tuple[str, ...],
    allow_invalid: bool,
    across: tuple[str, ...],
    form: str,
) -> None:
    """Hold runs, or the same run on other hardware, against each other, cell by cell.

    A RUN is a folder of outputs/, finished or interrupted. Cells match where the trace's requests, the mode, the
    policy and the settings of both are the same; those of the engine may differ, and so may the machine: what differs
    is said first. --across SETTING lets a setting of a mode or policy differ as well.

    A figure is a metric with a statistic (ttft_p99, tpot_mean, itl_p99.9), or a metric that is one number
    (output_throughput, goodput, completed). A CHECK holds one against a bound, in every run but the baseline:

    \b
      ttft_p99 > 1.05 * baseline          more than 5 % above the baseline's
      ttft_p99 > 200ms                    times need a unit: s, ms or us
      goodput < baseline - 0.02           shares are of 1, or 90%
      e2e_mean > baseline and seen        only a difference that is seen, request by request
      completed < baseline where mode = continuous and policy != sjf

    \b
    Examples:
      replay compare outputs/before outputs/after
      replay compare outputs/laptop outputs/h200 --metric ttft_p99 --metric output_throughput --format markdown
      replay compare outputs/new --baseline outputs/released --fail-if "ttft_p99 > 1.05 * baseline"

    Exit status: 0 done, and no check failed; 1 when a check holds in some cell, or cannot be decided there (a figure
    that is not defined, a cell that is invalid, partial or left no rows); 2 when runs cannot be compared, or an
    option is wrong.
    """
    from replay.compare import compare_runs, judge, read_check
    from replay.compare.forms import csv_text, json_text
    from replay.compare.tables import document, table, verdict

    checks = [read_check(text) for text in texts]
    comparison = compare_runs(runs, baseline, names, across, [check.figure for check in checks])
    outcomes = [judge(comparison, check, allow_invalid=allow_invalid) for check in checks]
    if form == "table":
        click.echo(table(comparison))
        for outcome in outcomes:
            click.echo("\n" + "\n".join(verdict(comparison, outcome)))
    elif form == "markdown":
        click.echo(document(comparison, outcomes))
    else:
        click.echo(csv_text(comparison) if form == "csv" else json_text(comparison, outcomes), nl=False)
        for outcome in outcomes:
            click.echo("\n".join(f"replay: {line}" for line in verdict(comparison, outcome)), err=True)
    sys.exit(0 if all(outcome.passed for outcome in outcomes) else 1)
