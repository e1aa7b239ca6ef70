"""Several traces as one, as if their users shared a server: all begin at once or later, and share nothing.

Users, sessions and request ids are told apart by the trace's name before them, as in "chat/ada", always; requests of
nobody become those of a user with the trace's name. Hashes are moved, each trace's by a number of its own, so that no
prompt of one trace begins like one of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.drawing import draw, fnv
from replay.traces.durations import nanoseconds
from replay.traces.reading import read_trace
from replay.traces.table import Trace
from replay.traces.transforms.arguments import settings
from replay.traces.transforms.declaring import Transform, noted, settled, transforms
from replay.traces.wording import counted

EXAMPLE = '{ traces = ["batch.parquet"], offset = "5m" }'
TIE = "__tie"  # arrival, and of equal ones the trace


@dataclass(frozen=True, slots=True)
class Merge:
    """Each of `files` is looked for in `folder`, beside the trace, and here; it begins `offset` nanoseconds late."""

    files: tuple[str, ...]
    offset: int
    hashes: bool
    folder: Path | None = None

    def within(self, folder: Path) -> Transform:
        return replace(self, folder=folder)

    def __call__(self, trace: Trace) -> Trace:
        traces = [trace, *(read_trace(self.find(file, trace)) for file in self.files)]
        names = distinct([each.name for each in traces])
        if not self.hashes:
            traces = [without_hashes(each) for each in traces]
        refuse_other_blocks(traces, names)
        scopes = {each.hash_scope for each in traces if each.block_size is not None}
        already = trace.extent().rows  # so that a trace that comes twice gets other hashes each time
        parts = [
            apart(
                each,
                name,
                offset=self.offset if place else 0,
                moved=f"{name} {already}" if place else "",
                scopes=len(scopes),
            )
            for place, (each, name) in enumerate(zip(traces, names, strict=True))
        ]
        whole = as_one(traces, names)
        told = f"users, sessions and ids are {' and '.join(f'{name}/...' for name in names)}"
        notes = [note for other, name in list(zip(traces, names, strict=True))[1:] for note in remarks(other, name)]
        return noted(settled(whole.with_rows(merged(parts, trace.path))), told, *notes)

    def find(self, file: str, trace: Trace) -> Path:
        """Where the file lies."""
        places = [place / file for place in (self.folder, trace.path.parent, Path()) if place is not None]
        for place in dict.fromkeys(places):
            if place.exists():
                return place
        looked = ", ".join(str(place) for place in dict.fromkeys(places))
        raise TraceError(f"{trace.path}: merge: {file!r} does not exist (looked for {looked})")


@transforms.register("merge")
def merge(argument: object) -> Transform:
    """Other traces in between, their users kept apart: { merge = ["batch.parquet"] }"""
    given = argument if isinstance(argument, dict) else {"traces": argument}
    given = settings("merge", given, ("traces", "offset", "hashes"), EXAMPLE)
    files = given.get("traces")
    files = [files] if isinstance(files, str) else files
    if not isinstance(files, list | tuple) or not files or not all(isinstance(file, str) and file for file in files):
        raise ExperimentError(f'merge: {files!r} is not a list of traces, such as ["batch.parquet"]')
    hashes = given.get("hashes", True)
    if not isinstance(hashes, bool):
        raise ExperimentError(f"merge: hashes: {hashes!r} is neither true nor false")
    return Merge(tuple(files), nanoseconds(given.get("offset", 0), "merge: offset"), hashes)


def distinct(names: Sequence[str]) -> list[str]:
    """The names, numbered from the second of a kind on."""
    found: list[str] = []
    for name in names:
        again = 1
        while (name if again == 1 else f"{name}-{again}") in found:
            again += 1
        found.append(name if again == 1 else f"{name}-{again}")
    return found


def as_one(traces: Sequence[Trace], names: Sequence[str]) -> Trace:
    """What is known of the traces together, with the rows of the first."""
    hashed = [each for each in traces if each.block_size is not None]
    scopes = {each.hash_scope for each in hashed}
    others = list(zip(names, traces, strict=True))[1:]
    return replace(
        traces[0],
        large=any(each.large for each in traces),
        scratch=[each.scratch for each in traces],
        block_size=hashed[0].block_size if hashed else None,
        hash_scope=hashed[0].hash_scope if len(scopes) == 1 else "global",
        hash_tail="floor" if hashed and all(each.hash_tail == "floor" for each in hashed) else "ceil",
        rows_read=sum(each.rows_read for each in traces),
        skipped=dict(sum((Counter(each.skipped) for each in traces), Counter())),
        history=[*traces[0].history, *(f"{name}: {line}" for name, other in others for line in other.history)],
    )


def apart(trace: Trace, name: str, *, offset: int, moved: str, scopes: int) -> pl.LazyFrame:
    """The rows under the trace's name, its hashes moved by a number that goes by `moved`, unless that is empty.

    Hashes with the scope of a session keep it where all traces have one scope; where there are more `scopes`, they are
    moved by a number of the session's own, and are global then.
    """
    before = pl.lit(f"{name}/")
    rows = trace.rows.with_columns(
        arrival=pl.col("arrival") + offset,
        user=pl.coalesce(before + pl.col("user"), pl.lit(name)),
        session=before + pl.col("session"),
        request_id=before + pl.col("request_id"),
    )
    if trace.block_size is None:
        return rows
    if trace.hash_scope == "session" and scopes > 1:
        shift = draw(pl.col("session"), 0, f"merge {moved}").reinterpret(signed=True)
    elif moved:
        shift = pl.lit(fnv(f"merge {moved}".encode()), pl.UInt64).reinterpret(signed=True)
    else:
        return rows
    return rows.with_columns(pl.col("prefix_hashes") + shift)


def merged(parts: Sequence[pl.LazyFrame], path: Path) -> pl.LazyFrame:
    """All rows in order of arrival, those that arrive at once in order of the traces."""
    n = len(parts)
    for part in parts:
        if part.select(pl.col("arrival").max()).collect(engine="streaming").item() * n + n >= 2**63:
            raise TraceError(f"{path}: merge: the arrivals of {n} traces lie further apart than {292 // n} years")
    keyed = [part.with_columns((pl.col("arrival") * n + place).alias(TIE)) for place, part in enumerate(parts)]
    rows = keyed[0]
    for part in keyed[1:]:
        rows = rows.merge_sorted(part, TIE)
    return rows.drop(TIE)


def without_hashes(trace: Trace) -> Trace:
    """The trace as if it had never had hashes."""
    none = pl.lit(None, pl.List(pl.Int64)).alias("prefix_hashes")
    return replace(trace, rows=trace.rows.with_columns(none), block_size=None)


def refuse_other_blocks(traces: Sequence[Trace], names: Sequence[str]) -> None:
    """Refuse hashes of blocks of more than one size: a pool has one."""
    sizes = {trace.block_size: name for trace, name in zip(traces, names, strict=True) if trace.block_size is not None}
    if len(sizes) > 1:
        blocks = ", ".join(f"{name} hashes blocks of {counted(size, 'token')}" for size, name in sizes.items())
        raise TraceError(
            f"{traces[0].path}: merge: {blocks}; leave all hashes out with "
            "{ merge = { traces = [...], hashes = false } }"
        )


def remarks(trace: Trace, name: str) -> list[str]:
    """What is to be said of a trace that came in."""
    came = f"{counted(trace.extent().rows, 'request')} of {trace.path.name} (sha256 {trace.sha256[:16]})"
    return [f"{name}: {line}" for line in (came, *trace.notes)]
