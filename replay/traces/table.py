"""The canonical table of a trace: its columns, and the dataclass that carries it with what is known of its origin.

It knows no file format. Inside, a trace always has every column, in this order; null means "not known".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.wording import toml_text

HashScope = Literal["global", "session"]
HashTail = Literal["ceil", "floor"]
Kind = Literal["arrival", "whole", "number", "text", "whole list"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what a file may hold in it (`kind`), what it becomes (`dtype`), and what it means."""

    kind: Kind
    dtype: pl.DataType
    meaning: str
    required: bool = False


WHOLE, NUMBER, TEXT, WHOLES = pl.Int64(), pl.Float64(), pl.String(), pl.List(pl.Int64())

COLUMNS: dict[str, Column] = {
    "arrival": Column("arrival", WHOLE, "when it comes; inside, nanoseconds from the first request on", required=True),
    "prompt_tokens": Column("whole", WHOLE, "tokens of the prompt, at least 1", required=True),
    "output_tokens": Column("whole", WHOLE, "tokens of the answer, the length to force; at least 1", required=True),
    "request_id": Column("text", TEXT, "unique; the row number where a file has none"),
    "user": Column("text", TEXT, "whose request it is; null is nobody's"),
    "session": Column("text", TEXT, "the conversation it belongs to"),
    "turn": Column("whole", WHOLE, "its place in the session"),
    "think_time_ms": Column("number", NUMBER, "milliseconds between the end of the turn before and this one"),
    "priority": Column("whole", WHOLE, "larger is more urgent, unless the experiment says otherwise"),
    "deadline_ms": Column("number", NUMBER, "milliseconds to the first token that are allowed"),
    "slo": Column("text", TEXT, "class of service, for breakdowns"),
    "max_tokens": Column("whole", WHOLE, "what the client declared; all that a policy may see of the output"),
    "prefix_hashes": Column("whole list", WHOLES, "equal hash: equal prefix up to and including that block"),
    "prompt": Column("text", TEXT, "the prompt itself"),
    "prompt_token_ids": Column("whole list", WHOLES, "the prompt as token ids"),
}
SCHEMA = pl.Schema({name: column.dtype for name, column in COLUMNS.items()})
METADATA = {
    "block_size": "tokens of one block of prefix_hashes; needed where there are hashes",
    "hash_scope": "global, the default, or session: among which requests equal hashes are equal prefixes",
    "hash_tail": "ceil, the default, where a block that the prompt's end leaves partial has a hash; floor where not",
    "history": "what was done to the trace before it was written: a JSON list of sentences",
}
"""What a file may say of itself in its Parquet metadata, all as text."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a trace holds. `requests_per_second` is rows by span; null when all arrive at one instant."""

    rows: int
    span: float  # seconds from the first arrival to the last
    requests_per_second: float | None
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Change:
    """What one transform did: its name, its argument as declared, the extent before and after, and what else is to be
    said of it."""

    transform: str
    argument: object
    before: Extent
    after: Extent
    details: tuple[str, ...] = ()

    def sentence(self) -> str:
        """The change in words, for a log or a report: what is as it was is not told."""
        was, now = (
            {
                "rows": f"{extent.rows:,}",
                "span": f"{extent.span:,.3f} s",
                "requests/s": "none" if extent.requests_per_second is None else f"{extent.requests_per_second:.4g}",
                "prompt tokens": f"{extent.prompt_tokens:,}",
                "output tokens": f"{extent.output_tokens:,}",
            }
            for extent in (self.before, self.after)
        )
        told = [f"{name} {was[name]} -> {now[name]}" for name in was if was[name] != now[name]]
        effect = "; ".join([", ".join(told)] * bool(told) + [*self.details])
        return f"{self.transform} = {toml_text(self.argument)}: {effect or 'changes nothing'}"


@dataclass(slots=True)
class Trace:
    """Requests in order of arrival (`rows`, with `SCHEMA`), at least one, and what is known of where they are from.

    `rows` of a small trace are in memory; of a large one they are a scan of Parquet, which is read again at every
    question, so that whoever asks for sums and counts needs little memory however many rows there are.

    `block_size` is the tokens of one block of `prefix_hashes`, None where there are no hashes; `hash_tail` says whether
    a block that the prompt's end leaves partial has a hash (`ceil`) or none (`floor`). `rows_read` counts the rows of
    the source and `skipped` those of them that are not in the trace, by reason; `notes` are remarks on this reading;
    `history` says, a sentence a step, what was done to the trace before it was written. `sha256` is of the bytes of
    the source. Of a trace that is replayed in several ways, `origin` is the name that they share and `variant` what
    this one is. `scratch` keeps the temporary files that `rows` may lie in.
    """

    name: str
    path: Path
    rows: pl.LazyFrame
    block_size: int | None = None
    hash_scope: HashScope = "global"
    hash_tail: HashTail = "ceil"
    rows_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    sha256: str = ""
    origin: str = ""
    variant: dict[str, Any] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    large: bool = False
    scratch: object = field(default=None, repr=False, compare=False)
    _frame: pl.DataFrame | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def frame(self) -> pl.DataFrame:
        """All rows in memory."""
        if self._frame is None:
            self._frame = self.rows.collect()
        return self._frame

    def with_rows(self, rows: pl.LazyFrame, **changes: Any) -> Trace:
        """This trace with other rows, computed at once unless it is large; `changes` are to other fields."""
        return replace(self, rows=rows if self.large else rows.collect().lazy(), **changes)

    def values(self, *expressions: pl.Expr, **named: pl.Expr) -> dict[str, Any]:
        """The values of aggregations over the rows, by name."""
        return self.rows.select(*expressions, **named).collect(engine="streaming").row(0, named=True)

    @property
    def span_nanoseconds(self) -> int:
        """From the first arrival to the last."""
        last: int = self.values(pl.col("arrival").max())["arrival"]
        return last

    def extent(self) -> Extent:
        """Its size now; all zero where a transform has left no rows."""
        tokens = pl.col("prompt_tokens", "output_tokens").sum()
        found = self.values(tokens, rows=pl.len(), span=pl.col("arrival").max().fill_null(0) / NANOSECONDS)
        return Extent(**found, requests_per_second=found["rows"] / found["span"] if found["span"] else None)
