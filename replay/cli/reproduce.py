"""`replay reproduce`: run a paper's claim again from a recipe, and say whether it holds."""

from __future__ import annotations

import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from replay.cli.progress import Display
    from replay.experiment.grid import Cell
    from replay.replayer import Progress
    from replay.reproduce.findings import Findings
    from replay.reproduce.recipe import Recipe
    from replay.stopping import Stop

PICTURES = Path("outputs") / "reproduce"
Table = Literal["plain", "markdown"] | None


class _WithSigns(click.Command):
    """Its help ends with what the signs of an order mean."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from replay.reproduce.orders import SIGNS

        with formatter.section("Signs in an order"):
            formatter.write_dl([(sign, meaning) for sign, (_, meaning) in SIGNS.items()])


@click.command("reproduce", cls=_WithSigns)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every recipe, and one table of them.")
@click.option("--markdown", is_flag=True, help="A table as Markdown, of all or of one.")
@click.option("--show", is_flag=True, help="Print the files that a recipe comes to; run nothing.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="FOLDER", help="Leave traces, experiments, runs here.")
@click.option("--engine", type=click.Choice(["simulated", "torch"]), default="simulated", show_default=True)
@click.option("--plots/--no-plots", default=True, help="Whether to draw the picture.")
@click.pass_obj
def reproduce(
    options: dict[str, Any],
    name: str | None,
    everything: bool,
    markdown: bool,
    show: bool,
    keep: Path | None,
    engine: str,
    plots: bool,
) -> None:
    """Run a paper's claim again, and say whether it holds here.

    NAME is a recipe of the list that comes without one, or a recipe's TOML file. What is claimed is an order of the
    policies, and must hold for every seed. Figures are of the simulated engine, whose cost model is said each time;
    with --engine torch, a model of the size of `tiny` computes every token of a smaller workload, in real time.

    \b
    Examples:
      replay reproduce
      replay reproduce sjf
      replay reproduce sjf --keep sjf-again
      replay reproduce --all --markdown

    Exit status: 0 when every outcome is the one on record (be it "not reproduced"); 1 when one differs, or a run
    failed; 2 when a recipe or an option is wrong. A real engine has no outcome on record, so with torch it is 0.
    """
    from replay.cli.catalogue import register_policies
    from replay.cli.signals import Interrupted, RunSignals
    from replay.reproduce.shelf import find_recipe, recipe_names

    register_policies()
    if name is None and not everything:
        _list()
        return
    if name is not None and everything:
        raise click.UsageError("give the NAME of a recipe, or --all")
    names = recipe_names() if name is None else [name]
    recipes = [find_recipe(one, torch=engine == "torch" and not everything) for one in names]
    if everything and engine == "torch":
        recipes = [find_recipe(one.name, torch=True) for one in recipes if one.document.torch is not None]
    if show:
        for recipe in recipes:
            _show(recipe)
        return
    signals = RunSignals()
    try:
        with signals.installed():
            quiet = bool((options or {}).get("quiet"))
            table: Table = "markdown" if markdown else "plain" if everything else None
            status = _run(recipes, keep, engine, signals, quiet=quiet, plots=plots, table=table)
    except Interrupted as stopped:
        click.echo(f"replay: {stopped}", err=True)
        status = stopped.exit_status
    sys.exit(status)


def _list() -> None:
    from replay.metrics.notation import aligned
    from replay.reproduce.shelf import find_recipe, recipe_names

    recipes = [find_recipe(name) for name in recipe_names()]
    rows = [
        [one.name, one.reference, one.document.outcome.result, "yes" if one.document.torch else "no"] for one in recipes
    ]
    head, *lines = aligned(["recipe", "paper", "outcome on record", "torch"], rows, words=4).splitlines()
    click.echo(head)
    for one, line in zip(recipes, lines, strict=True):
        click.echo(line)
        click.echo(textwrap.fill(one.paper.claim, 100, initial_indent="  ", subsequent_indent="  "))


def _show(recipe: Recipe) -> None:
    """The files that `--keep` would leave, one after the other."""
    import tomli_w

    from replay.reproduce.running import experiment_of, specifications, trace_name

    for (workload, seed), document in specifications(recipe).items():
        click.echo(f"# {trace_name(workload, seed)}.toml, for `replay trace generate`\n{tomli_w.dumps(document)}")
    for arm in recipe.arms.values():
        click.echo(f"# {arm.name}.toml, for `replay run`\n{tomli_w.dumps(experiment_of(recipe, arm))}")


def _run(
    recipes: list[Recipe],
    keep: Path | None,
    engine: str,
    signals: Any,
    *,
    quiet: bool,
    plots: bool,
    table: Table,
) -> int:
    """Run recipes one after the other, print each (unless Markdown is wanted), and the table of them at the end."""
    from replay.cli.progress import Display
    from replay.reproduce import text
    from replay.reproduce.running import Stopped

    found = []
    with Display(quiet=quiet, signals=signals) as display:
        for recipe in recipes:
            try:
                findings = _findings(recipe, keep, display, signals.stop)
            except Stopped:
                return int(signals.exit_status or 1)
            found.append(findings)
            if table != "markdown":
                click.echo(text.told(findings, engine))
            if plots:
                _draw(findings, engine, keep, aside=table == "markdown")
            click.echo(err=table == "markdown")
    if table == "markdown":
        click.echo(text.markdown([text.summary_row(findings) for findings in found]))
    elif table == "plain":
        click.echo(_short(found))
    return 0 if engine != "simulated" or all(findings.as_recorded for findings in found) else 1


def _findings(recipe: Recipe, keep: Path | None, display: Display, stop: Stop) -> Findings:
    """One recipe, run in a folder that is kept or goes away."""
    from replay.reproduce.findings import find
    from replay.reproduce.running import cells_of, run_recipe
    from replay.run_folder import check_free

    with ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="replay-reproduce-")))
        else:
            folder = keep / recipe.name
            check_free(folder)
        return find(recipe, run_recipe(recipe, folder, _Across(display, recipe.name, cells_of(recipe)), stop))


def _draw(findings: Findings, engine: str, keep: Path | None, *, aside: bool) -> None:
    """Draw the picture and say where it is: `aside`, on stderr, where standard output is a document."""
    from replay.reproduce.picture import draw

    folder = PICTURES if keep is None else keep / findings.recipe.name
    click.echo(f"picture: {draw(findings, engine, folder / f'{findings.recipe.name}.png')}", err=aside)


def _short(found: list[Findings]) -> str:
    """The table of all for a terminal, without what is said above it."""
    from replay.metrics.notation import aligned
    from replay.reproduce import text

    rows = []
    for findings in found:
        name, paper, _, figure, ours, _ = text.summary_row(findings)
        outcome = findings.result + ("" if findings.as_recorded else ", not as recorded")
        rows.append([name, paper, outcome, figure, ours])
    return aligned(["recipe", "paper", "outcome", "the paper's figure", "ours, simulated"], rows, words=5)


class _Across:
    """An observer that counts the cells of all arms of a recipe as those of one run."""

    def __init__(self, display: Display, recipe: str, total: int) -> None:
        self._display = display
        self._recipe = recipe
        self._total = total
        self._number = 0

    def cell_started(self, number: int, total: int, cell: Cell) -> None:
        self._number += 1
        self._display.cell_started(self._number, self._total, cell)

    def progressed(self, progress: Progress) -> None:
        self._display.progressed(progress)

    def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None:
        self._display.cell_ended(cell, entry)

    def remark(self, text: str) -> None:
        self._display.remark(f"{self._recipe}: {text}")
