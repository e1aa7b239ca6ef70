"""The page on traces: the columns of a trace file, and the formats that are read as one."""

from __future__ import annotations

from replay.cli.listings import summary
from replay.cli.reference.markdown import code, own, words
from replay.traces.arrival import FORMS
from replay.traces.formats import exporting, formats
from replay.traces.table import COLUMNS, METADATA

KINDS = {"whole": "whole number", "number": "number", "text": "text", "whole list": "list of whole numbers"}
OPENING = f"""\
# Columns of a trace

A trace is a Parquet file, or a folder of them. Null means "not known", and columns that are not here are left out with
a remark. Whatever a trace holds is checked before anything runs; what cannot be replayed is refused by file, row and
column, and rows of failed requests, with 0 output tokens, are skipped and counted.

`arrival` is {FORMS}. The first is at 0, and times without a zone are UTC."""


def page() -> str:
    written = exporting()
    columns = [
        [code(name), KINDS.get(column.kind, "see above"), "yes" if column.required else "", column.meaning]
        for name, column in COLUMNS.items()
    ]
    known = [[code(name), summary(formats[name]), "yes" if name in written else ""] for name in own(formats)]
    return "\n\n".join(
        [
            OPENING,
            words(("column", "type", "required", "what it means"), columns),
            "## Metadata of the file",
            "Key-value metadata of Parquet, all as text.",
            words(("key", "what it means"), [[code(name), meaning] for name, meaning in METADATA.items()]),
            "## Formats",
            f"{len(known)} foreign formats are read by `replay trace import`, and some are written by "
            "`replay trace export`; `replay trace formats NAME` says all of one. "
            "[A log of your own](../replaying-your-own-log.md) is a `table`, by the names of its columns.",
            words(("format", "what it is", "written too"), known),
            "## Specifications",
            "What `replay trace generate` takes: [generating a trace](../generating-a-trace.md).",
        ]
    )
