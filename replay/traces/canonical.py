"""From what a file or an importer gives to a canonical trace: types, skipped rows, rules, order, arrivals from 0.

It knows no file format. All files of a trace pass through here together, so rows keep their file and number until
nothing more can be refused.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.arrival import ArrivalForm, arrival_form, arrival_nanoseconds
from replay.traces.durations import UNITS
from replay.traces.faults import FILE, ROW
from replay.traces.table import COLUMNS, SCHEMA, HashScope, Trace
from replay.traces.validation import column_values, refuse_bad_rows
from replay.traces.wording import counted, duration_text

LONG, SHORT, MANY = 24 * UNITS["h"], UNITS["ms"], 100


@dataclass(slots=True)
class Source:
    """One file as it was read: columns by their canonical names, in whatever type and order the file has them.

    An importer that leaves rows out counts them in `skipped` and gives the others a column `ROW` with their number in
    the file, so that a later refusal names the right one.
    """

    path: Path
    frame: pl.DataFrame
    block_size: int | None = None
    hash_scope: HashScope = "global"
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)


def canonical_trace(name: str, path: Path, sources: Sequence[Source], sha256: str) -> Trace:
    """The trace that these files make together; raises `TraceError` for what cannot be replayed.

    Rows with 0 output tokens are failed requests: they are skipped and counted. Rows are sorted by arrival, equal
    ones in order of file and row; exact duplicates stay.
    """
    files = [source.path for source in sources]
    filled = [source for source in sources if source.frame.height]
    if not filled:
        raise TraceError(f"{path}: the trace holds no requests")
    forms = [arrival_form(source.frame, source.path) for source in filled]
    notes = arrival_notes(filled, forms)
    frame = pl.concat(typed(source, form, files) for source, form in zip(filled, forms, strict=True))
    notes += [note for source in sources for note in source.notes]
    if frame["request_id"].null_count() == frame.height:
        frame = frame.with_columns(pl.int_range(pl.len()).cast(pl.String).alias("request_id"))
    frame, skipped = skip_failed(frame, sources)
    if frame.is_empty():
        raise TraceError(f"{path}: the trace holds no requests that can be replayed: {skipped_text(skipped)}")
    frame = drop_loose_turns(frame, notes)
    block_size, hash_scope = hash_block(filled)
    refuse_bad_rows(frame, files, block_size, hash_scope)
    frame = in_order(frame, path, notes).select(SCHEMA.names())
    history = list(dict.fromkeys(line for source in sources for line in source.history))
    trace = Trace(name, path, frame, block_size, hash_scope, skipped, notes, history, sha256)
    notes += span_notes(trace)
    return trace


def skip_failed(frame: pl.DataFrame, sources: Sequence[Source]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows with an answer, and how many were skipped here and by the importers, by reason."""
    answered = frame.filter((pl.col("output_tokens") != 0).fill_null(True))
    skipped: Counter[str] = Counter()
    for source in sources:
        skipped.update(source.skipped)
    skipped["zero output tokens"] += frame.height - answered.height
    return answered, {reason: rows for reason, rows in skipped.items() if rows}


def drop_loose_turns(frame: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """The frame without turns that belong to no session, and a note if there were any."""
    loose = frame.filter(pl.col("turn").is_not_null() & pl.col("session").is_null()).height
    if not loose:
        return frame
    notes.append(f"{counted(loose, 'row')} with a turn but no session: the turn is left out")
    return frame.with_columns(pl.when(pl.col("session").is_not_null()).then(pl.col("turn")).alias("turn"))


def in_order(frame: pl.DataFrame, path: Path, notes: list[str]) -> pl.DataFrame:
    """The frame by arrival, ties as they were, the first at 0; a note if a file was not in order."""
    misplaced = frame.select((pl.col("arrival") < pl.col("arrival").shift().over(FILE)).sum()).item()
    if misplaced:
        notes.append(f"{counted(misplaced, 'row')} out of order: sorted by arrival")
    frame = frame.sort("arrival", maintain_order=True)
    first, last = frame["arrival"].item(0), frame["arrival"].item(-1)
    if last - first >= 2**63:
        raise TraceError(f"{path}: the arrivals lie more than 292 years apart; is their unit what the column says?")
    return frame.with_columns(pl.col("arrival") - first)


def _with_hint(name: str, present: Sequence[str]) -> str:
    """A column that nobody knows, and the one that may have been meant."""
    close = difflib.get_close_matches(name.removesuffix("_id"), set(COLUMNS) - set(present), n=1, cutoff=0.75)
    return f"{name} (was {close[0]!r} meant?)" if close else name


def typed(source: Source, form: ArrivalForm, files: Sequence[Path]) -> pl.DataFrame:
    """The file's rows with canonical columns and types, null where it has none, and with `FILE` and `ROW`."""
    frame = source.frame if ROW in source.frame.columns else source.frame.with_row_index(ROW)
    for name, column in COLUMNS.items():
        if column.required and name != "arrival" and name not in frame.columns:
            raise TraceError(
                f"{source.path}: the column {name!r} is missing; there are: "
                f"{', '.join(each for each in source.frame.columns if each != ROW)}"
            )
    unknown = [name for name in frame.columns if name not in (*COLUMNS, form.column, ROW)]
    if unknown:
        source.notes.append(f"columns left out: {', '.join(_with_hint(name, frame.columns) for name in unknown)}")
    frame = frame.with_columns(pl.col(ROW).cast(pl.Int64), pl.lit(files.index(source.path), pl.Int32).alias(FILE))
    values = {"arrival": arrival_nanoseconds(frame, form, files)}
    for name in SCHEMA:
        if name in frame.columns and name != "arrival":
            values[name] = column_values(frame, name, files)
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in SCHEMA.items() if name not in values]
    return frame.select(FILE, ROW).with_columns(**values).with_columns(absent).select(FILE, ROW, *SCHEMA)


def arrival_notes(sources: Sequence[Source], forms: Sequence[ArrivalForm]) -> list[str]:
    """Remarks on how the arrivals are given; refuses files of which some have instants and others offsets."""
    first, *others = zip(sources, forms, strict=True)
    for source, form in others:
        if form.kind != first[1].kind:
            raise TraceError(
                f"{first[0].path} and {source.path}: one has {first[1].text}, the other {form.text}; "
                "the files of a trace must all have instants, or all times since the start"
            )
    notes = []
    if any(form.naive for form in forms) and not all(form.naive for form in forms):
        notes.append("arrivals without a zone are read as UTC, because other files of the trace have one")
    return notes


def hash_block(sources: Sequence[Source]) -> tuple[int | None, HashScope]:
    """The block size and scope of the hashes, of which all files must say the same; None where there are no hashes."""
    hashed = [s for s in sources if "prefix_hashes" in s.frame.columns and s.frame["prefix_hashes"].is_not_null().any()]
    if not hashed:
        return None, "global"
    first, *others = hashed
    if first.block_size is None:
        raise TraceError(f"{first.path}: there are prefix_hashes, but the file's metadata has no block_size")
    for other in others:
        if (other.block_size, other.hash_scope) != (first.block_size, first.hash_scope):
            raise TraceError(
                f"{first.path} and {other.path}: one hashes blocks of {first.block_size} tokens with "
                f"{first.hash_scope} scope, the other of {other.block_size} with {other.hash_scope} scope"
            )
    return first.block_size, first.hash_scope


def span_notes(trace: Trace) -> list[str]:
    """A warning where the span looks as if the unit of the arrivals were not what the file says."""
    span, rows = trace.span_nanoseconds, trace.frame.height
    if span > LONG or (span < SHORT and rows > MANY):
        return [f"warning: {rows:,} requests span {duration_text(span)}: is the unit of the arrivals right?"]
    return []


def skipped_text(skipped: dict[str, int]) -> str:
    """The skipped rows in words: "2 rows skipped (zero output tokens)"."""
    return ", ".join(f"{counted(rows, 'row')} skipped ({reason})" for reason, rows in skipped.items())
