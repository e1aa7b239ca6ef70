"""A fit as the TOML that `replay trace generate` takes, with what people should know of it as comments.

It knows how the file looks, and nothing of how a fit comes about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeGuard

from replay.traces.wording import toml_text
from replay.traces.writing import check_target, write_whole

WIDTH = 116


def document_text(document: Mapping[str, Any], comments: Iterable[str]) -> str:
    """The file: comments, what is above the tables, the tables. Lists of tables become tables of their own."""
    head = [f"# {line}".rstrip() for line in comments]
    plain = {key: value for key, value in document.items() if not _tables(value)}
    lines = [*head, "", *(f"{key} = {toml_text(value)}" for key, value in plain.items())]
    for name, tables in document.items():
        if _tables(tables):
            for table in tables:
                lines += ["", f"[[{name}]]", *_table_lines(table, name)]
    return "\n".join(lines) + "\n"


def _table_lines(table: Mapping[str, Any], place: str) -> list[str]:
    lines = [line for key, value in table.items() if key not in SPELT_OUT for line in key_lines(key, value)]
    for name in SPELT_OUT:
        for inner in table.get(name, ()):
            lines += ["", f"[[{place}.{name}]]"]
            lines += [line for key, value in inner.items() for line in key_lines(key, value)]
    return lines


SPELT_OUT = ("classes",)  # lists of tables within a table that are too large for a line


def _tables(value: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and isinstance(value[0], Mapping)


def key_lines(key: str, value: object) -> list[str]:
    """`key = value`, over several lines where it is long: a line each of a table's keys and of a list's tables."""
    text = f"{key} = {toml_text(value)}"
    if len(text) <= WIDTH:
        return [text]
    if isinstance(value, Mapping):
        return [line for inner, each in value.items() for line in key_lines(f"{key}.{inner}", each)]
    if _tables(value):
        return [f"{key} = [", *(f"  {toml_text(table)}," for table in value), "]"]
    return wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def write_document(text: str, path: Path, *, force: bool) -> None:
    """Write the file, whole or not at all. Raises `OutputError`."""
    write_whole(check_target(path, force=force), lambda file: file.write_text(text, encoding="utf-8"))
