"""The file that resembles a trace, and the distances between the two: the specification is written, drawn, compared.

It reads no file and writes none. Of a large trace, the first `LARGE` requests are compared.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import polars as pl

from replay.clock import NANOSECONDS
from replay.errors import TraceError
from replay.traces.fitting.account import header
from replay.traces.fitting.comparison import Comparison, compare
from replay.traces.fitting.document import document_text
from replay.traces.fitting.fit import Fit, Wanted, fit_trace, span_of
from replay.traces.fitting.rows import LARGE, fit_rows
from replay.traces.fitting.sessions import with_turns
from replay.traces.generating.requests import requests
from replay.traces.generating.specification import checked_spec
from replay.traces.table import Trace

FEWEST = 10


@dataclass(frozen=True, slots=True)
class Fitted:
    """The text of the specification, the fit that it holds, and how far it is from the trace."""

    text: str
    fit: Fit
    comparison: Comparison


def fitted(trace: Trace, wanted: Wanted) -> Fitted:
    """Fit, draw from the fit twice, compare. Raises `TraceError` for a trace that has too little to fit."""
    if trace.extent().rows < FEWEST:
        raise TraceError(f"{trace.path}: {trace.extent().rows} requests are too few to fit; there must be {FEWEST}")
    fit = fit_trace(trace, wanted)
    frame = fit.rows.frame
    if fit.rows.rows > LARGE:
        frame = fit_rows(trace.rows.head(LARGE), trace.block_size, trace.hash_scope).frame
    document = tomllib.loads(document_text(fit.document, []))  # what the file will say, to the last digit
    if frame.height < fit.rows.rows:
        document["duration"] = span_of(int(frame["arrival"][-1])) / NANOSECONDS
    one, other = (drawn(document | {"seed": wanted.seed + more}) for more in (0, 1))
    found = compare(with_turns(frame), one, other)
    return Fitted(document_text(fit.document, header(fit, found)), fit, found)


def drawn(document: dict[str, Any]) -> pl.DataFrame:
    """The rows that a specification comes to, as `rows` has them."""
    spec = checked_spec(document, "the fit")
    found = (
        requests(spec)[0].rename({"arrival_ns": "arrival"}).with_columns(pl.col("arrival") - pl.col("arrival").min())
    )
    hashed = found["prefix_hashes"].count() > 0
    all_of_it = fit_rows(found.lazy(), spec.block_size if hashed else None, "global", large=found.height)
    return with_turns(all_of_it.frame)
