"""The rows that a replay leaves: their columns, and how they reach the disk while the replay runs.

The engine writes rows and computes no metric. All stamps are seconds from the clock's zero; null means "did not
happen". What a column means stands in its schema, and so in the Parquet files. Rows go to numbered part files and are
joined when the cell ends, so a file under its final name is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

TEXT, WHOLE, REAL = pa.string(), pa.int64(), pa.float64()


def _schema(**columns: tuple[pa.DataType, str]) -> pa.Schema:
    """A schema from each column's type and meaning, which its field keeps as metadata, in Parquet files too."""
    return pa.schema([pa.field(name, kind, metadata={"meaning": meaning}) for name, (kind, meaning) in columns.items()])


REQUESTS = _schema(
    row=(WHOLE, "row of the trace as replayed, from 0"),
    request_id=(TEXT, "as the trace has it"),
    user=(TEXT, "whose it is; null: nobody's"),
    session=(TEXT, "the conversation that it belongs to"),
    turn=(WHOLE, "its place in the session"),
    priority=(WHOLE, "as the trace has it"),
    urgency=(WHOLE, "the priority, larger is more urgent"),
    slo=(TEXT, "class of service"),
    deadline=(REAL, "seconds after due that the first token may take"),
    prompt_tokens=(WHOLE, "tokens of its prompt"),
    output_tokens=(WHOLE, "tokens of its answer as they were to be forced"),
    max_tokens=(WHOLE, "tokens of an answer that the client declared: all that a policy may see of its length"),
    arrival=(REAL, "when the trace has it arrive"),
    due=(REAL, "when the trace intended it: its arrival, or later where a session waits for the turn before"),
    submitted=(REAL, "when the scheduler was told of it"),
    lag=(REAL, "seconds from due, or from the first step boundary after it, to submitted: how late it was taken in"),
    admitted=(REAL, "first admission"),
    first_token=(REAL, "its first token was computed"),
    last_token=(REAL, "its last token was computed; null unless the answer is complete"),
    finished=(REAL, "when the answer was delivered; null unless it was"),
    ended=(REAL, "when it left the engine, however it ended"),
    status=(TEXT, "completed, rejected, timed_out, cancelled, failed, skipped or unfinished"),
    reason=(TEXT, "why it ended so; null when completed"),
    generated_tokens=(WHOLE, "tokens of its answer that were computed"),
    evictions=(WHOLE, "times that it lost its KV blocks"),
    swaps=(WHOLE, "evictions that left its tokens in host memory"),
    cached_tokens=(WHOLE, "prompt tokens found in the prefix cache at its first admission; null without a cache"),
    recomputed_tokens=(WHOLE, "tokens that were computed again after evictions"),
    alone=(REAL, "seconds that it would take with the engine to itself, by the cost model"),
    token_times=(pa.list_(REAL), "when each token of its answer was computed"),
)

STEPS = _schema(
    step=(WHOLE, "number of the step"),
    start=(REAL, "the step boundary: arrivals are taken in, the policy decides"),
    launched=(REAL, "the batch is handed to the executor; like start no sooner than the end of the step before"),
    end=(REAL, "its tokens are back"),
    planning=(REAL, "seconds to decide and hand over, be it while the step before is computed"),
    waiting=(WHOLE, "requests that wait after scheduling"),
    running=(WHOLE, "resident requests, those held to the end of a static batch included"),
    scheduled=(WHOLE, "requests that computed tokens of their own"),
    prefill_tokens=(WHOLE, "tokens of prompts, those computed again included, without padding"),
    decodes=(WHOLE, "requests that computed one token of their answer"),
    padding_tokens=(WHOLE, "tokens that were computed and mean nothing"),
    context_tokens=(WHOLE, "tokens whose keys and values the step reads, those of padding included"),
    attention_pairs=(WHOLE, "pairs of a token and a token that it attends to, without padding"),
    new_tokens=(WHOLE, "tokens of answers"),
    admitted=(WHOLE, "requests that joined"),
    evicted=(WHOLE, "requests that lost their blocks, those swapped out included; of a plan that ran nobody: next row"),
    swapped_out=(WHOLE, "blocks copied to host memory before the step"),
    swapped_in=(WHOLE, "blocks copied back"),
    slots=(WHOLE, "requests that might be resident, by the batch size in force"),
    used_blocks=(WHOLE, "KV blocks in use"),
    bound=(TEXT, "what first refused a request: gate, slots, blocks, budget, policy (its own rule); or nothing"),
)

SPANS = _schema(
    row=(WHOLE, "row of the trace as replayed: whose span it is"),
    slot=(WHOLE, "the batch slot that it held"),
    kind=(TEXT, "what it did there: prefill, decode, paused or padded"),
    first_step=(WHOLE, "the step with which it began"),
    last_step=(WHOLE, "the step with which it ended"),
    start=(REAL, "start of the first step"),
    end=(REAL, "end of the last step"),
    tokens=(WHOLE, "tokens of its own that were computed"),
    padding_tokens=(WHOLE, "tokens of padding that were computed for it"),
    ending=(TEXT, "what came next: prefill, decode, paused, padded, evicted, swapped, or the request's status"),
)

SCHEMAS = {"requests": REQUESTS, "steps": STEPS, "spans": SPANS}


class Columns:
    """Rows kept as columns, which is what both Parquet and the loop's time budget want."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}

    def append(self, **row: Any) -> None:
        """Add a row; a missing or unknown column is a bug and raises."""
        if row.keys() != self._columns.keys():
            raise KeyError(f"columns differ: {sorted(row.keys() ^ self._columns.keys())}")
        for name, value in row.items():
            self._columns[name].append(value)

    def __len__(self) -> int:
        return len(self._columns[self.schema.names[0]])

    def take(self) -> pa.Table | None:
        """All rows since the last call, as a table; None when there are none."""
        if not len(self):
            return None
        columns, self._columns = self._columns, {name: [] for name in self.schema.names}
        return pa.table(columns, schema=self.schema)


class Records:
    """The three tables of a cell as the engine fills them."""

    def __init__(self) -> None:
        self.requests = Columns(REQUESTS)
        self.steps = Columns(STEPS)
        self.spans = Columns(SPANS)

    def items(self) -> Iterator[tuple[str, Columns]]:
        yield from (("requests", self.requests), ("steps", self.steps), ("spans", self.spans))
