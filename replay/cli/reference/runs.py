"""The page on what a run leaves: its files, the columns of its rows and of its summary, the keys of its manifest."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from replay.cli.reference.markdown import code, words
from replay.manifest import KEYS
from replay.metrics.summary import COLUMNS, SUMMARY
from replay.records import SCHEMAS
from replay.run_folder import FILES

TYPES = {"string": "text", "int64": "whole number", "double": "number", "list<item: double>": "list of numbers"}
SUMMARY_TYPES = {pl.String(): "text", pl.Int64(): "whole number", pl.Float64(): "number"}
OPENING = """\
# What a run leaves

A folder, by default `outputs/NAME-DATE-TIME`, which no other run ever overwrites. `replay report` rebuilds the report
from the manifest and the Parquet files of the cells alone."""
STAMPS = """\
Stamps are seconds from the zero of the cell's clock; null means "did not happen". In the Parquet files each column
carries its meaning as metadata: `pyarrow.parquet.read_schema(FILE).field("lag").metadata`."""
TABLES = {
    "": "At the top",
    "engines[]": "Of each engine",
    "policies[]": "Of each policy",
    "traces[]": "Of each trace",
    "cells[]": "Of each cell",
}
ABOUT = {
    "requests": "A row for each request of the trace, in its order.",
    "steps": "A row for each step of the engine.",
    "spans": "A row for each time for which a request held a batch slot and did one thing.",
}
READING = """\
```python
import polars as pl

requests = pl.read_parquet("outputs/RUN/cells/*/requests.parquet", include_file_paths="cell")
print(requests.group_by("cell").agg((pl.col("first_token") - pl.col("due")).quantile(0.99, "linear")))
```"""


def page() -> str:
    parts = [OPENING, words(("file", "what it holds"), [[code(name), about] for name, about in FILES.items()])]
    parts += ["## Rows", STAMPS, READING]
    for name, schema in SCHEMAS.items():
        parts += [f"### {name}.parquet", ABOUT[name], words(("column", "type", "what it means"), _columns(schema))]
    parts += [
        "## The summary",
        "`summary.parquet` and `summary.csv`: one figure a row. What each metric is: [metrics](metrics.md).",
        words(
            ("column", "type", "what it means"),
            [[code(name), SUMMARY_TYPES[kind], COLUMNS[name]] for name, kind in SUMMARY.items()],
        ),
        "## The manifest",
        'Null is "not known" or "there is none".',
    ]
    for table, keys in KEYS.items():
        rows = [[code(f"{table}.{name}" if table else name), meaning] for name, meaning in keys.items()]
        parts += [f"### {TABLES[table]}", words(("key", "what it means"), rows)]
    return "\n\n".join(parts)


def _columns(schema: pa.Schema) -> list[list[str]]:
    return [[code(field.name), TYPES[str(field.type)], field.metadata[b"meaning"].decode()] for field in schema]
