"""The settings of a foreign format as they are typed, and what there is to say of a format.

A format is a dataclass, and its fields are its settings, as they are of a policy or a mode.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from replay.cli.listings import summary
from replay.cli.wrapping import hanging, paragraphs
from replay.errors import ExperimentError
from replay.experiment.document import parse_setting
from replay.experiment.faults import Faults
from replay.experiment.options import options_model, options_of, validate
from replay.traces.formats import AUTO, exporting, formats

MORE = "replay trace formats NAME says all of one: what it is, what is lost, and its settings."
TABLES = ("csv", "tsv", "json", "jsonl", "ndjson", "parquet", "log")  # what people call them


def check_exporting(form: str) -> None:
    """Refuse a format to which no trace can be written."""
    if form not in exporting():
        raise ExperimentError(f"a trace cannot be written as {form}; known: {', '.join(exporting())}")


def format_settings(form: str, options: Sequence[str], columns: str | None) -> dict[str, Any]:
    """The settings of a format from `-o` and `--map`, checked. Raises `ExperimentError` with every fault."""
    given: dict[str, Any] = {}
    for option in options:
        setting = parse_setting(option, "-o")
        if twice := given.keys() & setting.keys():
            raise ExperimentError(f"-o: {', '.join(sorted(twice))} stands there twice")
        given |= setting
    if form == AUTO:
        if given or columns:
            raise ExperimentError("auto takes no settings: name the format")
        return {}
    if form.lower() in TABLES:
        raise ExperimentError(
            f"there is no trace format {form!r}: a log of your own is a 'table', named column by column"
        )
    entry = formats[form]
    if columns is not None:
        if "map" not in {option.name for option in options_of(entry)}:
            raise ExperimentError(f"--map: {form} knows its columns; it goes with the format 'table'")
        if "map" in given:
            raise ExperimentError("--map and -o map are the same: leave one of them")
        given["map"] = columns
    faults = Faults(form)
    validated = validate(options_model(entry), given, "", faults)
    faults.raise_if_any()
    assert validated is not None, "no faults"
    entry(**validated.model_dump())  # a format may refuse what does not go together
    return validated.model_dump(include=set(given))


def all_formats() -> str:
    """A line a format."""
    width = max(len(name) for name in formats)
    written = exporting()
    lines = []
    for name in formats:
        export = "; export too" if name in written else ""
        lines += hanging(f"{name:<{width}}  ", summary(formats[name]) + export)
    return "\n".join([*lines, "", *hanging("", MORE)])


def one_format(name: str) -> str:
    """All of one format: what it is, what its file says of it, and its settings with their defaults."""
    entry = formats[name]
    module = inspect.getdoc(inspect.getmodule(entry)) or ""
    lines = [*hanging("", f"{name}: {summary(entry)}"), "", *paragraphs(module)]
    settings = options_of(entry)
    if settings:
        lines += ["", "Settings:"]
    for option in settings:
        lines += hanging("  ", f"{option.name}: {option.help}{default_text(option.default)}", "      ")
    return "\n".join(lines)


def default_text(default: object) -> str:
    """What a setting is when it is not given; nothing where that is nothing."""
    if default is ...:
        return " (must be given)"
    if default is None or default == "":
        return ""
    return f" (default: {str(default).lower() if isinstance(default, bool) else default})"
