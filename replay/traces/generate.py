"""Generated traces: users with appetites, declared in a small TOML file, made into the same trace every time.

It measures nothing and copies nobody's traffic; a trace made here says in its history that it is generated. What can be
declared, and how it is drawn, is in `replay.traces.generating`.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from replay.errors import ExperimentError
from replay.traces.canonical import canonical_trace
from replay.traces.generating.requests import requests
from replay.traces.generating.samples import Traces
from replay.traces.generating.specification import read_spec
from replay.traces.reading import sha256_of
from replay.traces.source import Source
from replay.traces.table import Trace


def generate_trace(path: str | Path) -> Trace:
    """The trace that a specification file describes; raises `ExperimentError` where the file does not describe one."""
    path = Path(path)
    traces = Traces(path.parent)
    spec = read_spec(path, traces)
    try:
        rows, notes = requests(spec)
    except ExperimentError as fault:
        raise ExperimentError(f"{path}: {fault}") from fault
    if rows.is_empty():
        raise ExperimentError(f"{path}: no user has a request within the duration; raise a rate or the duration")
    whole = any(user.conversation and user.conversation.grows for user in spec.users)
    source = Source(
        path,
        rows.lazy().with_columns(arrival=pl.col("arrival_ns").cast(pl.Duration("ns"))).drop("arrival_ns"),
        block_size=spec.block_size,
        hash_tail="floor" if whole else "ceil",
        log=False,
        notes=notes,
        history=traces.history(),
    )
    trace = canonical_trace(path.stem, path, [source], sha256_of([path]))
    trace.history.append(
        f"generated from {path.name} (sha256 {trace.sha256[:16]}), seed {spec.seed}: not measured traffic"
    )
    return trace
