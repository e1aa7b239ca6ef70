"""`replay policies`: the policies that there are, by what they build on; or all that is known of one, or of a rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from replay.cli.listings import documentation, options_of_entry, summary, told_option
from replay.cli.wrapping import hanging, paragraphs
from replay.errors import ExperimentError
from replay.registry import nearest

GROUPS = {  # by base class, the most special first
    "Ranked": "Waiting and running requests by one key; a newcomer may take the place of one who runs (Ranked)",
    "PerUser": "User by user, to be fair between them (PerUser)",
    "Ordered": "Running requests first, then waiting ones in an order (Ordered)",
    "Policy": "In a way of their own (Policy)",
}
NAMES = "replay policies NAME says all of one: rule, options, source, and what it does badly."


@click.command("policies")
@click.argument("name", required=False)
def policies_command(name: str | None) -> None:
    """List the scheduling policies, or print all that is known of one: rule, options, source, known failings.

    NAME is a policy, a policy of your own (FILE.py:CLASS), an admission rule, or an option of many policies.

    \b
    Examples:
      replay policies
      replay policies hybrid
      replay policies ./mine.py:Mine
      replay policies past_future
    """
    from replay.cli.catalogue import policy_name, register_policies
    from replay.scheduler import admissions, policies

    register_policies()
    if name is None:
        click.echo("\n".join(_listed()))
        return
    name = policy_name(name)
    shared = _shared_options()
    if name in policies:
        click.echo("\n".join(told(name, policies[name])))
    elif name in admissions:
        click.echo("\n".join(told(name, admissions[name])))
    elif name in shared:
        click.echo("\n".join(_told_shared(shared[name])))
    else:
        known = [*policies, *admissions, *shared]
        raise ExperimentError(f"there is no policy or admission rule {name!r}: {nearest(name, known)}")


def told(name: str, entry: Callable[..., Any]) -> list[str]:
    """All that is known of a policy or a rule: what it is, its rule and failings, its options, its source."""
    module = inspect.getmodule(entry)
    about = (inspect.getdoc(module) or "").strip() if inspect.isclass(entry) and _is_policy(entry) else ""
    what, _, source = about.partition("Source:")
    title = " ".join(what.split("\n\n")[0].split())
    heading = f"{name}: {title[:1].lower()}{title[1:]}" if title else name
    lines = [*hanging("", heading), "", *paragraphs(documentation(entry))]
    own = [option for option in options_of_entry(entry) if not option.shared]
    shared = [option for option in options_of_entry(entry) if option.shared]
    if own or shared:
        told_all = [line for option in own for line in told_option(option)]
        told_all += [
            f"{option.name} = {option.default}  # {option.meaning}; replay policies {option.name} lists the rules"
            for option in shared
        ]
        lines += ["", "Options:", *(part for line in told_all for part in hanging("  ", line, "      # "))]
    if breaks := getattr(entry, "breaks", None):
        lines += ["", "On purpose:", *(f"  {promise}: {why}" for promise, why in breaks.items())]
    lines += ["", *paragraphs(f"Source: {' '.join(source.split())}")] if source else []
    return [*lines, "", f"File: {_file(entry)}"]


def _listed() -> Iterable[str]:
    """Every policy with its rule and the names of its options; those of many, and their rules, once at the end."""
    from replay.scheduler import policies

    width = max(len(name) for name in policies)
    groups: dict[str, list[str]] = {base: [] for base in GROUPS}
    for name in policies:
        groups[_base(policies[name])].append(name)
    for base in ("Ordered", "PerUser", "Ranked", "Policy"):
        if groups[base]:
            yield from hanging("", f"{GROUPS[base]}:")
        for name in groups[base]:
            own = ", ".join(option.name for option in options_of_entry(policies[name]) if not option.shared)
            yield from hanging(f"  {name:<{width}}  ", summary(policies[name]) + (f" [{own}]" if own else ""))
        if groups[base]:
            yield ""
    for option in _shared_options().values():
        yield from _told_shared(option, width)
        yield ""
    yield from hanging("", NAMES)


def _told_shared(option: Any, width: int = 0) -> list[str]:
    """An option of many policies, with the rules that it may be."""
    lines = hanging("", f"Every policy that admits in an order takes {option.name}: {option.meaning}.")
    width = max(width, *(len(name) for name in option.rules))
    for name in option.rules:
        lines += hanging(f"  {name:<{width}}  ", summary(option.rules[name]))
    return lines


def _shared_options() -> dict[str, Any]:
    from replay.scheduler import policies

    found: dict[str, Any] = {}
    for name in policies:
        for option in options_of_entry(policies[name]):
            if option.shared and (option.name not in found or policies[name].__name__ == "Fifo"):
                found[option.name] = option
    return found


def _base(entry: type[Any]) -> str:
    names = [kind.__name__ for kind in entry.__mro__]
    return next(base for base in GROUPS if base in names)


def _is_policy(entry: type[Any]) -> bool:
    from replay.scheduler import Policy

    return issubclass(entry, Policy)


def _file(entry: Callable[..., Any]) -> str:
    """Where it is, from here if it lies below."""
    file = Path(inspect.getfile(entry))
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
