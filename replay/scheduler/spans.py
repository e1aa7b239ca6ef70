"""Who held which slot when, and doing what: runs of steps of one kind, as rows.

It sees the residents after each step and keeps one open span for each; it decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from replay.executors.interface import Batch, Share
from replay.records import Columns
from replay.request import Request

Kind = Literal["prefill", "decode", "paused", "padded"]


@dataclass(slots=True)
class Span:
    """A resident request doing one kind of thing over consecutive steps."""

    slot: int
    kind: Kind
    first_step: int
    last_step: int
    start: float
    end: float
    tokens: int = 0
    padding_tokens: int = 0


def kind_of(request: Request, share: Share | None) -> Kind:
    """What a resident request did in a step: nothing of its own once its answer is complete."""
    if share is not None:
        return "prefill" if share.prefill else "decode"
    return "padded" if request.state == "ended" else "paused"


class Spans:
    """Open spans by row; a span becomes a row of `columns` when its request turns to something else."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._open: dict[int, Span] = {}

    def note(self, row: int, slot: int, kind: Kind, batch: Batch, step: int, start: float, end: float) -> None:
        """The request `row` was resident in the step that lasted from `start` to `end`."""
        span = self._open.get(row)
        if span is None or span.kind != kind:
            self.close(row, kind)
            span = self._open[row] = Span(slot, kind, step, step, start, end)
        span.last_step, span.end = step, end
        if batch.padding is not None:
            span.padding_tokens += batch.padding.width

    def add(self, row: int, tokens: int, *, padded: bool) -> None:
        """Of what the step computed for `row`, so many tokens were its own."""
        span = self._open[row]
        span.tokens += tokens
        if padded:
            span.padding_tokens -= tokens

    def close(self, row: int, ending: str) -> None:
        """End `row`'s span, if it has one; `ending` is what came next."""
        span = self._open.pop(row, None)
        if span is not None:
            self._columns.append(
                row=row,
                slot=span.slot,
                kind=span.kind,
                first_step=span.first_step,
                last_step=span.last_step,
                start=span.start,
                end=span.end,
                tokens=span.tokens,
                padding_tokens=span.padding_tokens,
                ending=ending,
            )

    def close_all(self, ending: str) -> None:
        """End every open span."""
        for row in list(self._open):
            self.close(row, ending)
