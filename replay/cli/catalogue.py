"""The policies that there are: those that come with replay, those of installed packages, and files of one's own.

All are registered by importing them, as only the command line may.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from replay.errors import ExperimentError

_unusable: dict[str, str] = {}  # policies of installed packages that cannot be imported: by name, why


def register_policies() -> None:
    """Import the package `policies`, and those of installed packages; of these, warn of what cannot be imported.

    Raises ExperimentError when a file of the package cannot be imported, naming file and line, and when it registers
    nothing.
    """
    from replay.cli.installed import load_installed
    from replay.cli.policy_file import adopt
    from replay.scheduler import policies

    try:
        import policies as package
    except Exception as fault:
        raise ExperimentError(_where(fault)) from fault

    if not len(policies):
        places = ", ".join(getattr(package, "__path__", [str(package.__file__)]))
        raise ExperimentError(
            f"{places}: this package `policies` registers no policy; it hides the one that came with replay"
        )
    _unusable.clear()
    _unusable.update(load_installed("replay.policies", "policy", adopt))
    for sentence in () if _quiet() else _unusable.values():
        click.echo(f"warning: {sentence}", err=True)


def policy_name(spec: str, folder: Path | None = None) -> str:
    """The registered name of a policy that is named or given as a file, which is looked for in `folder` first.

    A name that nobody has is left as it is. Raises ExperimentError for a file with a fault, and for a policy of an
    installed package that cannot be imported.
    """
    from replay.cli.own_file import is_file
    from replay.cli.policy_file import load_policy

    if is_file(spec):
        return load_policy(spec, folder)
    if spec in _unusable:
        raise ExperimentError(_unusable[spec])
    return spec


def with_own_policies(
    document: Mapping[str, Any], folder: Path | None, origins: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """An experiment's document, and what gave its settings, with each policy by its registered name."""
    section = document.get("policies")
    if not isinstance(section, Mapping):
        return dict(document), dict(origins or {})
    names = {spec: policy_name(spec, folder) for spec in section}
    twice = [spec for place, spec in enumerate(names) if names[spec] in list(names.values())[:place]]
    if twice:
        raise ExperimentError(f"policies.{twice[0]}: the policy {names[twice[0]]!r} is named twice")
    moved = {}
    for path, origin in (origins or {}).items():
        for spec, name in names.items():
            if path == f"policies.{spec}" or path.startswith(f"policies.{spec}."):
                path = f"policies.{name}{path.removeprefix(f'policies.{spec}')}"
                break
        moved[path] = origin
    return {**document, "policies": {names[spec]: settings for spec, settings in section.items()}}, moved


def _quiet() -> bool:
    context = click.get_current_context(silent=True)
    return bool(((context.find_root().obj if context else None) or {}).get("quiet"))


def _where(fault: Exception) -> str:
    """`policies/mine.py, line 3: name 'policy' is not defined`: of the frames, the last in the package counts."""
    if isinstance(fault, SyntaxError):
        return f"{fault.filename}, line {fault.lineno}: {fault.msg}"
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent.name == "policies"]
    place = own[-1] if own else frames[-1]
    return f"{place.filename}, line {place.lineno}: {fault}"
