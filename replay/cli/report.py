"""`replay report`: rebuild the report of a run from its Parquet files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--plots/--no-plots", default=True, help="Whether to draw the pictures; without, old ones stay.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="What is printed: the verdict in short, the main table and the advice that counts most; all of comparison.md; "
    "or all of summary.json.",
)
@click.option("--open", "in_browser", is_flag=True, help="Open report.html in the browser when it is written.")
@click.pass_obj
def report(options: dict[str, Any] | None, run: Path, plots: bool, form: str, in_browser: bool) -> None:
    """Rebuild the report of RUN, the folder of a run, and print its main table.

    Writes report.html, comparison.md, summary.parquet, summary.csv, summary.json and plots/ into RUN. It reads only the
    manifest and the Parquet files there, so a run that was interrupted or killed has a report too, which says so.
    report.html is one file that needs nothing else: send it to whom you like.

    \b
    Examples:
      replay report outputs/busy-quarter-20260102-030405
      replay report outputs/busy-quarter-20260102-030405 --open
      replay report outputs/busy-quarter-20260102-030405 --no-plots --format json
    """
    from replay.report import write_report

    written = write_report(run, plots=plots)
    if form == "text":
        click.echo("\n".join([*written.gist, "", written.table, *([""] if written.advice else []), *written.advice]))
    else:
        name = {"markdown": "comparison.md", "json": "summary.json"}[form]
        click.echo((run / name).read_text(encoding="utf-8"), nl=False)
    for problem in written.problems:
        click.echo(f"replay: {problem}", err=True)
    if not (options or {}).get("quiet"):
        for file in written.files:
            click.echo(str(file), err=True)
    if in_browser:
        click.launch(str((run / "report.html").resolve()))
