"""The rows that a replay leaves: their columns, and how they reach the disk while the replay runs.

The engine writes rows and computes no metric. All stamps are seconds from the clock's zero; null means "did not
happen". Rows go to numbered part files and are joined when the cell ends, so a file under its final name is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

TEXT, WHOLE, REAL = pa.string(), pa.int64(), pa.float64()

REQUESTS = pa.schema(
    {
        "row": WHOLE,  # of the trace as replayed, from 0
        "request_id": TEXT,
        "user": TEXT,
        "session": TEXT,
        "turn": WHOLE,
        "priority": WHOLE,  # as the trace has it
        "urgency": WHOLE,  # the same, larger is more urgent
        "slo": TEXT,
        "deadline": REAL,  # seconds after due
        "prompt_tokens": WHOLE,
        "output_tokens": WHOLE,  # the length that was to be forced
        "max_tokens": WHOLE,
        "arrival": REAL,
        "due": REAL,
        "submitted": REAL,
        "lag": REAL,
        "admitted": REAL,  # first admission
        "first_token": REAL,
        "last_token": REAL,  # null unless the answer is complete
        "finished": REAL,  # when the answer was delivered; null unless it was
        "ended": REAL,  # when it left the engine, however it ended
        "status": TEXT,
        "reason": TEXT,  # null when completed
        "generated_tokens": WHOLE,
        "evictions": WHOLE,
        "swaps": WHOLE,  # evictions that left its tokens in host memory
        "cached_tokens": WHOLE,  # found in the prefix cache at its first admission; null without one
        "recomputed_tokens": WHOLE,
        "alone": REAL,  # seconds that it would take with the engine to itself (cost model)
        "token_times": pa.list_(REAL),  # one for each generated token
    }
)

STEPS = pa.schema(
    {
        "step": WHOLE,
        "start": REAL,  # the step boundary: arrivals are taken in, the policy decides
        "launched": REAL,  # the batch is handed to the executor; both no sooner than the end of the step before
        "end": REAL,  # its tokens are back
        "planning": REAL,  # seconds to decide and hand over, be it while the step before is computed
        "waiting": WHOLE,  # after scheduling
        "running": WHOLE,  # resident requests, those held to the end of a static batch included
        "scheduled": WHOLE,  # requests that computed tokens of their own
        "prefill_tokens": WHOLE,
        "decodes": WHOLE,
        "padding_tokens": WHOLE,
        "context_tokens": WHOLE,
        "attention_pairs": WHOLE,  # pairs of a token and a token that it attends to, without padding
        "new_tokens": WHOLE,  # tokens of answers
        "admitted": WHOLE,
        "evicted": WHOLE,  # those swapped out included; of a plan that ran nobody: in the next row
        "swapped_out": WHOLE,  # blocks copied to host memory before the step
        "swapped_in": WHOLE,  # blocks copied back
        "slots": WHOLE,  # requests that might be resident, by the batch size in force
        "used_blocks": WHOLE,
        "bound": TEXT,  # what first refused a request: gate, slots, blocks, budget, policy (its own rule); or nothing
    }
)

SPANS = pa.schema(
    {
        "row": WHOLE,
        "slot": WHOLE,
        "kind": TEXT,  # prefill, decode, paused, padded
        "first_step": WHOLE,
        "last_step": WHOLE,
        "start": REAL,
        "end": REAL,
        "tokens": WHOLE,  # of its own
        "padding_tokens": WHOLE,
        "ending": TEXT,  # what came next: prefill, decode, paused, padded, evicted, swapped, or the request's status
    }
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
