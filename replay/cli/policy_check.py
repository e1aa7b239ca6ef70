"""`replay policy check`: hold a policy to every promise, and show the smallest trace that breaks one."""

from __future__ import annotations

import difflib
import shlex
import sys
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from replay.contract.expect import Broken
    from replay.contract.suite import Breach
    from replay.contract.trials import Subject

UNKNOWN = "Replays do not come to their end, as shown above."
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def policy() -> None:
    """Check a policy against what every policy promises."""


@policy.command("check")
@click.argument("name")
@click.option("--examples", type=click.IntRange(min=1), default=60, show_default=True, help="Traces for each promise.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Other traces for another seed.")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE", help="An option of it, as TOML. Repeatable.")
@click.option("--save", type=FILE, metavar="FILE", help="Write the first trace that breaks a promise, as Parquet.")
@click.pass_obj
def check(
    options: dict[str, Any] | None, name: str, examples: int, seed: int, settings: tuple[str, ...], save: Path | None
) -> None:
    """Hold a policy to every promise, and show the smallest trace that breaks one.

    NAME is a policy, or one of your own as FILE.py:CLASS. Small traces are drawn at random and replayed in every mode,
    on a simulated engine with and without a prefix cache, host memory and overlapping steps. The same seed draws the
    same. A policy whose rule breaks a promise on purpose says so in its `breaks`, and is not held to it.

    \b
    Examples:
      replay policy check ./mine.py:Mine
      replay policy check sjf --set ageing=2.0 --examples 500
      replay policy check ./mine.py:Mine --save broken.parquet

    Exit status: 0 when every promise is kept, 1 when one is broken, 2 when the policy or an option is wrong.
    """
    from replay.traces.writing import check_target

    if save is not None:
        check_target(save, force=True)
    subject = _subject(name, settings)
    for remark in misspelt(type(subject.make())):
        click.echo(f"replay: {remark}", err=True)
    broken = _held(subject, examples, seed, quiet=bool((options or {}).get("quiet")))
    if broken and save is not None:
        _save(broken[0], save, name, settings)
    count = f"{len(broken)} promise{'s' * (len(broken) != 1)}" if broken else "every promise that it makes"
    click.echo(f"{subject.name} {'breaks' if broken else 'keeps'} {count} ({examples} traces each, seed {seed})")
    sys.exit(1 if broken else 0)


def misspelt(entry: type) -> list[str]:
    """Methods that look like those of a base class and are none, so that nobody calls them."""
    bases = {name for base in entry.__mro__[1:] for name in vars(base) if not name.startswith("_")}
    own = {name for name, value in vars(entry).items() if isinstance(value, FunctionType) and not name.startswith("_")}
    near = {name: difflib.get_close_matches(name, bases - own, n=1) for name in sorted(own - bases)}
    return [
        f"{entry.__name__}.{name} is no method of its bases, and nobody calls it: was {meant[0]!r} meant?"
        for name, meant in near.items()
        if meant
    ]


def _held(subject: Subject, examples: int, seed: int, *, quiet: bool) -> list[Breach]:
    """The promises that are broken. A line for each as it is known; a replay that does not end is shown once."""
    from replay.contract.promises import promises
    from replay.contract.suite import hold_to
    from replay.contract.telling import told

    broken: list[Breach] = []
    width = max(map(len, promises))
    for number, promise in enumerate(promises.values(), 1):
        label = f"{promise.name:<{width}}"
        if promise.name in subject.breaks:
            _say(f"{label}  on purpose: ", subject.breaks[promise.name])
            continue
        if not quiet:
            shown = sys.stderr.isatty()  # then the next line takes its place
            click.echo(f"[{number}/{len(promises)}] {promise.name} ..." + "\r" * shown, nl=not shown, err=True)
        ends = not any(breach.of_ends for breach in broken)
        worth = _any if ends else _not_of_ends
        breach = hold_to(promise, subject, examples=examples, seed=seed, smallest=worth)
        if breach is None:
            _say(f"{label}  kept    ", promise.sentence)
        elif breach.of_ends and not ends:
            _say(f"{label}  unknown ", UNKNOWN)
        else:
            broken.append(breach)
            subject = subject.hurried() if breach.of_ends else subject
            _say(f"{label}  BROKEN  ", promise.sentence)
            sentence, *trace = told(breach)
            click.echo()
            _say("  ", sentence)
            click.echo("\n".join([*(f"  {line}" for line in trace), ""]))
    return broken


def _say(label: str, text: str) -> None:
    from replay.cli.wrapping import hanging

    click.echo("\n".join(hanging(label, text)))


def _any(fault: Broken) -> bool:
    return True


def _not_of_ends(fault: Broken) -> bool:
    """Once is enough to show that replays do not end."""
    return not fault.of_ends


def _subject(name: str, settings: tuple[str, ...]) -> Subject:
    from replay.cli.catalogue import policy_name, register_policies
    from replay.contract.trials import Subject
    from replay.errors import ExperimentError
    from replay.experiment.document import merged, parse_setting
    from replay.experiment.faults import Faults
    from replay.experiment.rules import make, validate_options
    from replay.scheduler import policies

    register_policies()
    entry = policies[policy_name(name)]
    known = next(label for label in policies if policies[label] is entry)
    document: dict[str, Any] = {}
    for setting in settings:
        document = merged(document, parse_setting(setting))
    faults = Faults("--set")
    combinations = validate_options(entry, document, known, faults)
    faults.raise_if_any()
    if len(combinations) != 1:
        raise ExperimentError(f"--set: one policy is checked at a time; {len(combinations)} settings of it are given")
    values = combinations[0][0]
    return Subject(known, lambda: make(entry, values), entry.breaks)


def _save(breach: Breach, file: Path, name: str, settings: tuple[str, ...]) -> None:
    """Write a breach's trace, and print the command that replays it."""
    from replay.contract.telling import settings as settings_of
    from replay.contract.telling import trace_frame
    from replay.errors import OutputError

    try:
        trace_frame(breach.trial.case).write_parquet(file)
    except OSError as fault:
        raise OutputError(f"{file}: cannot be written ({fault.strerror or fault})") from fault
    own = [part for one in settings for part in ("--set", f"policies.{_key(name)}.{one}")]
    command = ["replay", "run", "--trace", str(file), "--policy", name, *settings_of(breach.trial), *own]
    engine = breach.trial.engine
    lacking = ["host memory"] * bool(engine.host_blocks) + ["overlapping steps"] * engine.overlap
    if lacking:
        click.echo(f"note: {' and '.join(lacking)} cannot be had in a simulated run so small", err=True)
    click.echo(f"the trace that breaks `{breach.promise.name}` is in {file}; replay it with\n  {shlex.join(command)}")


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else f'"{name}"'
