"""From what a file or an importer gives to a canonical trace: types, skipped rows, rules, order, arrivals from 0.

It knows no file format. All files of a trace pass through here together, so rows keep their file and number until
nothing more can be refused. Nothing here needs all rows in memory but the sessions' turns, if there are sessions.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from replay.errors import TraceError
from replay.traces.arrival import NUMBERS, ArrivalForm, arrival_form, arrival_nanoseconds
from replay.traces.durations import UNITS
from replay.traces.faults import FILE, ROW, place_text, refuse_broken
from replay.traces.hashes import hash_block, leave_out_surplus
from replay.traces.scratch import Scratch
from replay.traces.source import BROKEN, SKIP, Source
from replay.traces.table import COLUMNS, SCHEMA, Trace
from replay.traces.validation import column_values, refuse_bad_ids, refuse_bad_rows, row_rules
from replay.traces.wording import counted, duration_text, listed, named, skipped_text

LONG, SHORT, MANY = 24 * UNITS["h"], UNITS["ms"], 100


def canonical_trace(name: str, path: Path, sources: Sequence[Source], sha256: str, *, strict: bool = False) -> Trace:
    """The trace that these files make together; raises `TraceError` for what cannot be replayed.

    Rows with 0 output tokens are failed requests: they are skipped and counted, or refused if `strict`. Rows are sorted
    by arrival, equal ones in order of file and row; exact duplicates stay.
    """
    source = sources[0]
    scratch = Scratch()
    try:
        for source in sources:
            settle(source, scratch)
        return joined(name, path, sources, sha256, scratch, strict=strict)
    except (PolarsError, PanicException, OSError) as fault:
        raise source.explain(fault) from fault


def settle(source: Source, scratch: Scratch) -> None:
    """Read the file once: its rows are in memory then, or in a file that is quick to read; refuse unreadable values."""
    names = source.rows.collect_schema().names()
    if not source.large:
        source.rows = source.rows.collect().lazy()
    elif BROKEN in names:
        source.rows = scratch.spooled(source.rows)
    if BROKEN in names:
        if source.rows.select(pl.col(BROKEN).any()).collect(engine="streaming").item():
            source.check()
        source.rows = source.rows.drop(BROKEN)
    if source.log:
        leave_out_surplus(source)


def joined(name: str, path: Path, sources: Sequence[Source], sha256: str, scratch: Scratch, *, strict: bool) -> Trace:
    """The trace that settled sources make."""
    files = [source.path for source in sources]
    heights = [source.rows.select(pl.len()).collect(engine="streaming").item() for source in sources]
    filled = [source for source, height in zip(sources, heights, strict=True) if height]
    if not filled:
        raise TraceError(f"{path}: the trace holds no requests")
    forms = [arrival_form(source.rows.collect_schema(), source.path) for source in filled]
    notes = arrival_notes(filled, forms)
    rows = pl.concat([typed(source, form, files) for source, form in zip(filled, forms, strict=True)])
    large = any(source.large for source in sources)
    rows = rows if large else rows.collect().lazy()
    notes += [note for source in sources for note in source.notes]
    rows, numbered = with_ids(rows)
    notes += skipped_turns(rows)
    rows, skipped = skip_rows(rows, files, sources, strict=strict)
    trace = Trace(
        name,
        path,
        rows,
        *hash_block(filled),
        rows_read=sum(heights) + sum(sum(source.skipped.values()) for source in sources),
        skipped=skipped,
        notes=notes,
        history=list(dict.fromkeys(line for source in sources for line in source.history)),
        sha256=sha256,
        large=large,
        scratch=scratch,
    )
    if not trace.values(rows=pl.len())["rows"]:
        raise TraceError(f"{path}: the trace holds no requests that can be replayed: {skipped_text(skipped)}")
    rows = drop_loose_turns(rows, notes)
    refuse_bad_rows(rows, files, row_rules(trace.block_size, trace.hash_scope, trace.hash_tail))
    if not numbered:
        refuse_bad_ids(rows, files)
    trace = trace.with_rows(in_order(trace.with_rows(rows), scratch))
    if any(form.column in NUMBERS for form in forms):
        notes += span_notes(trace)
    return trace


def with_ids(rows: pl.LazyFrame) -> tuple[pl.LazyFrame, bool]:
    """The rows, numbered where they have no ids (as text only at the end, for that is long), and whether that is so."""
    if rows.select(pl.col("request_id").is_not_null().any()).collect(engine="streaming").item():
        return rows, False
    return rows.drop("request_id").with_row_index("request_id"), True


def skip_rows(
    rows: pl.LazyFrame, files: Sequence[Path], sources: Sequence[Source], *, strict: bool
) -> tuple[pl.LazyFrame, dict[str, int]]:
    """The rows that are requests, and how many were skipped here and by the importers, by reason."""
    skipped: Counter[str] = Counter()
    for source in sources:
        skipped.update(source.skipped)
    found = rows.filter(pl.col(SKIP).is_not_null()).group_by(SKIP).len().sort(SKIP).collect(engine="streaming")
    if strict and (found.height or skipped.total()):
        refuse_skipped(rows, files, skipped)
    skipped.update(dict(found.iter_rows()))
    return rows.filter(pl.col(SKIP).is_null()).drop(SKIP), {reason: n for reason, n in skipped.items() if n}


def skipped_turns(rows: pl.LazyFrame) -> list[str]:
    """A remark on the skipped rows that belong to sessions: the turns after them no longer wait for them."""
    turns = pl.col(SKIP).is_not_null() & pl.col("session").is_not_null()
    found = rows.select(turns.sum(), sessions=pl.col("session").filter(turns).hash().n_unique())
    count, sessions = found.collect(engine="streaming").row(0)
    told = "1 session, which goes" if sessions == 1 else f"{sessions:,} sessions, which go"
    return [f"{counted(count, 'row')} skipped of {told} on without"] if count else []


def refuse_skipped(rows: pl.LazyFrame, files: Sequence[Path], skipped: Counter[str]) -> None:
    """Raise `TraceError` for the first row that would have been skipped."""
    if skipped.total():
        raise TraceError(f"{files[0]}: {skipped_text(skipped)}, which --strict refuses")
    first = rows.filter(pl.col(SKIP).is_not_null()).select(FILE, ROW, SKIP).sort(FILE, ROW).head(1).collect()
    file, row, reason = first.row(0)
    raise TraceError(f"{place_text(files[file], row)}: {reason}, which --strict refuses")


def drop_loose_turns(rows: pl.LazyFrame, notes: list[str]) -> pl.LazyFrame:
    """The rows without turns that belong to no session, and a note if there were any."""
    loose = pl.col("turn").is_not_null() & pl.col("session").is_null()
    count = rows.select(loose.sum()).collect(engine="streaming").item()
    if not count:
        return rows
    notes.append(f"{counted(count, 'row')} with a turn but no session: the turn is left out")
    return rows.with_columns(pl.when(pl.col("session").is_not_null()).then(pl.col("turn")).alias("turn"))


def in_order(trace: Trace, scratch: Scratch) -> pl.LazyFrame:
    """The rows by arrival, ties as they were, the first at 0; a note if a file was not in order."""
    arrival = pl.col("arrival")
    back = arrival < arrival.shift()
    within = back & (pl.col(FILE) == pl.col(FILE).shift())
    found = trace.values(back=back.sum(), within=within.sum(), first=arrival.min(), last=arrival.max())
    if found["within"]:
        trace.notes.append(f"{counted(found['within'], 'row')} out of order: sorted by arrival")
    if found["last"] - found["first"] >= 2**63:
        raise TraceError(
            f"{trace.path}: the arrivals lie more than 292 years apart; is their unit what the column says?"
        )
    rows = trace.rows.select(SCHEMA.names())
    if found["back"]:
        rows = scratch.by_arrival(rows) if trace.large else rows.sort("arrival", maintain_order=True)
    return rows.with_columns(arrival - found["first"], pl.col("request_id").cast(pl.String))


def _with_hint(name: str, present: Sequence[str]) -> str:
    """A column that nobody knows, and the one that may have been meant."""
    close = difflib.get_close_matches(name.removesuffix("_id"), set(COLUMNS) - set(present), n=1, cutoff=0.75)
    return f"{named(name)} (was {close[0]!r} meant?)" if close else named(name)


def typed(source: Source, form: ArrivalForm, files: Sequence[Path]) -> pl.LazyFrame:
    """The file's rows with canonical columns and types, null where it has none, and with `FILE`, `ROW` and `SKIP`."""
    schema = source.rows.collect_schema()
    for name, column in COLUMNS.items():
        if column.required and name != "arrival" and name not in schema:
            there = listed(each for each in schema if each not in (ROW, SKIP))
            raise TraceError(f"{source.path}: the column {name!r} is missing; there are: {there}")
    unknown = [name for name in schema if name not in (*COLUMNS, form.column, ROW, SKIP)]
    if unknown:
        source.notes.append(f"columns left out: {', '.join(_with_hint(name, list(schema)) for name in unknown)}")
    arrival, rules = arrival_nanoseconds(form)
    values = {"arrival": arrival}
    for name in SCHEMA:
        if name in schema and name != "arrival":
            values[name], more = column_values(name, schema[name], source.path)
            rules += more
        elif name not in values:
            values[name] = pl.lit(None, SCHEMA[name])
    rows = source.rows if ROW in schema else source.rows.with_row_index(ROW)
    rows = rows.with_columns(
        pl.col(ROW).cast(pl.Int64),
        pl.lit(files.index(source.path), pl.Int32).alias(FILE),
        reason(source, form, SKIP in schema).alias(SKIP),
    )
    refuse_broken(rows.filter(pl.col(SKIP).is_null()), files, rules)
    return rows.select(FILE, ROW, SKIP, **values)


def reason(source: Source, form: ArrivalForm, given: bool) -> pl.Expr:
    """Why a row is no request that could be replayed, null where it is one; the first reason that holds counts.

    A trace of our own may hold failed requests, which have no output; nulls in it are faults.
    """
    prompt, output = pl.col("prompt_tokens"), pl.col("output_tokens")
    reasons = {"zero output tokens": output == 0}
    if source.log:
        reasons |= {
            "zero prompt tokens": prompt == 0,
            "no arrival": pl.col(form.column).is_null(),
            "no prompt tokens given": prompt.is_null(),
            "no output tokens given": output.is_null(),
        }
    found = [pl.when(holds).then(pl.lit(text)) for text, holds in reasons.items()]
    return pl.coalesce([pl.col(SKIP), *found] if given else found)


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


def span_notes(trace: Trace) -> list[str]:
    """A warning where the span of arrivals that are numbers looks as if their unit were not what the file says."""
    span, rows = trace.span_nanoseconds, trace.values(rows=pl.len())["rows"]
    if span > LONG or (span < SHORT and rows > MANY):
        return [f"warning: {rows:,} requests span {duration_text(span)}: is the unit of the arrivals right?"]
    return []
