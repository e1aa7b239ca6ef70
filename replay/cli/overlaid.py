"""An experiment file with the options of the command line laid over it, from which on it is one experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from replay.experiment.loading import Experiment


def overlaid(
    file: str | None,
    traces: tuple[str, ...],
    policies: tuple[str, ...],
    modes: tuple[str, ...],
    limit: int | None,
    settings: tuple[str, ...],
) -> Experiment:
    """The experiment file with the options laid over it. An option that names things leaves only those."""
    from dataclasses import replace

    from replay.cli.catalogue import register_policies, with_own_policies
    from replay.experiment.document import merged, parse_setting, paths_of, read_document
    from replay.experiment.loading import load_experiment, named_sections

    register_policies()
    document = read_document(Path(file)) if file else {}
    origins: dict[str, str] = {}
    for setting in settings:
        addition = parse_setting(setting)
        for section, entries in named_sections().items():  # an option of one policy does not leave the others out
            if isinstance(addition.get(section), dict) and not isinstance(document.get(section), dict):
                everything = document.get(section) == "all"
                document[section] = {name: {} for name in entries[everything]}
        document = merged(document, addition)
        origins |= dict.fromkeys(paths_of(addition), f"--set {setting}")
    origins |= {f"policies.{name}": f"--policy {name}" for name in policies}
    origins |= {f"modes.{name}": f"--mode {name}" for name in modes}
    if traces:
        origins["traces"] = "--trace"
        document["traces"] = list(traces)
    if policies:
        document["policies"] = _policies(document.get("policies"), policies)
    if modes:
        document["modes"] = _only(document.get("modes"), modes)
    if limit is not None:
        given = document.get("transforms", [])
        document["transforms"] = [*given, {"limit": limit}] if isinstance(given, list) else given
    if not file and not traces and "traces" not in document:
        raise click.UsageError("name an EXPERIMENT file, or a trace with --trace (replay init prints an experiment)")
    source = file or "command line"
    if not file:
        document.setdefault("name", Path(traces[0]).stem if traces else "run")
    folder = Path(file).parent if file else None
    named, origins = with_own_policies(document, folder, origins)
    return replace(load_experiment(named, source, folder, origins), document=document)


def _policies(section: object, names: tuple[str, ...]) -> str | dict[str, Any]:
    """As `_only`; `all` are all registered ones, with the files that are named beside it."""
    from replay.cli.own_file import is_file
    from replay.scheduler import policies

    if "all" not in names:
        return _only(section, names)
    files = tuple(filter(is_file, names))
    return _only(section, (*policies, *files)) if files else "all"


def _only(section: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The entries of a section that are named, with the settings that the file gives them."""
    given = section if isinstance(section, dict) else {}
    return {name: given.get(name, {}) for name in names}
