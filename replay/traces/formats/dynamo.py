"""Dynamo's replay traces as JSON Lines, packed or not: Mooncake's fields, and sessions, delays, priorities, waiting.

Times are milliseconds, with fractions. Names have aliases: `input_tokens`, `output_tokens`, `created_time`, `delay_ms`.
`hash_ids` are of blocks of 512 tokens (dynamo's `--trace-block-size`), a partial last block has one, and a row without
`input_length` is as long as its blocks. Rows of one `session_id` are its turns, in the order of the file. A turn waits
`delay` (and `tool_wait_ms`) after the end of the turn before; where it has none, it waits as long as lies between the
two timestamps, because so dynamo does. A turn without a timestamp arrives that much after the turn before.

`priority` is larger for the more urgent, as here. `strict_priority` is a tier that goes before it: where the file has
it, the priority here is tier * 2^32 + priority. `policy_class` is the class, `slo`.

A row of an agent's trace names the requests that it waits for (`wait_for`). Here a turn waits for the turn before it
and for nothing else: a row without `session_id` goes on with the session of the first request that it waits for, if
nothing else does; what else it waits for only moves its arrival, which is no sooner than theirs and its delay.
`branches` say the same from the other side, and are left out, as are routing constraints and token ids of answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay.errors import TraceError
from replay.traces.faults import place_text
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import Entry, fields_left_out
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import HashTail
from replay.traces.wording import counted

BLOCK = 512
INPUT, OUTPUT = ("input_length", "input_tokens"), ("output_length", "output_tokens")
TIME, DELAY = ("timestamp", "created_time"), ("delay", "delay_ms")
READ = (*INPUT, *OUTPUT, *TIME, *DELAY, "hash_ids", "session_id", "request_id", "priority", "strict_priority")
AGENTIC = ("policy_class", "wait_for", "tool_wait_ms", "branches")
LEFT = ("routing_constraints", "output_token_ids", "request_kind", "prefix_reset", "tool_events")
MILLISECOND = 1_000_000  # nanoseconds
TIER = 2**32  # a priority has 32 bits
SCHEMA = row_schema(
    "prompt_tokens", "output_tokens", "request_id", "session", "turn", "think_time_ms", "priority", "slo",
    "prefix_hashes",
)  # fmt: skip


@formats.register("dynamo")
@dataclass(frozen=True, slots=True)
class Dynamo:
    """Dynamo's Mooncake traces (JSON Lines, times in ms, sessions, priorities, hashes of 512-token blocks)"""

    block_size: int = field(
        default=BLOCK, metadata={"help": "tokens of one block of hash_ids", "minimum": 1, "maximum": 10**9}
    )
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a partial last block has an id: ceil or floor"}
    )

    def fits(self, look: Glimpse) -> bool:
        return any(
            look.has("json lines", all_of=("hash_ids", length), may=(*READ, *AGENTIC, *LEFT)) for length in OUTPUT
        )

    def read(self, path: Path) -> Source:
        reading = Reading(path, self.block_size)
        return streamed(
            path, SCHEMA, reading.rows, block_size=self.block_size, hash_tail=self.hash_tail, notes=reading.notes
        )


@dataclass(slots=True)
class Turn:
    """A request that others follow or wait for; `turns` counts those of its session so far."""

    session: str | None
    turns: int
    arrival: int
    time: int | None
    last: bool = True


@dataclass(slots=True)
class Reading:
    """One file being read, and what is to be said of it once it is."""

    path: Path
    block_size: int
    notes: list[str] = field(default_factory=list)
    sessions: dict[str, Turn] = field(default_factory=dict)  # the last turn of each so far
    requests: dict[str, Turn] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        awaited = self.awaited()
        strange: set[str] = set()
        for entry in objects(self.path):
            if entry.fields.keys() & {"schema", "dependencies"}:
                place = place_text(self.path, entry.row)
                raise TraceError(f"{place}: is of dynamo's newer agentic format; right would be rows with wait_for")
            strange |= entry.fields.keys() - {*READ, *AGENTIC}
            identity = entry.text("request_id")
            waits = entry.texts("wait_for")
            before = self.before(entry, waits)
            session = (
                before.session if before else entry.text("session_id") or (identity if identity in awaited else None)
            )
            arrival, think = self.times(entry, before, waits)
            turn = Turn(session, before.turns + 1 if before else 1, arrival, entry.span("ms", *TIME))
            if before:
                before.last = False
            if session is not None:
                self.sessions[session] = turn
            if identity is not None:
                self.requests[identity] = turn
            place_in_session = None if session is None else turn.turns - 1
            lengths, hashes = self.lengths(entry)
            urgency, slo = self.priority(entry), entry.text("policy_class")
            yield entry.row, arrival, *lengths, identity, session, place_in_session, think, urgency, slo, hashes
        self.notes += [f"{counted(count, 'row')} {text}" for text, count in sorted(self.told.items())]
        self.notes += fields_left_out(sorted(strange))

    def awaited(self) -> set[str]:
        """The requests that a row without a session waits for before all others: it goes on with their session."""
        waits = (entry.texts("wait_for") for entry in objects(self.path) if entry.text("session_id") is None)
        return {names[0] for names in waits if names}

    def before(self, entry: Entry, waits: list[str]) -> Turn | None:
        """The turn before this one in its session, None where it is the first."""
        session = entry.text("session_id")
        if session is not None:
            return self.sessions.get(session)
        first = self.requests.get(waits[0]) if waits else None
        return first if first and first.last and first.session is not None else None

    def times(self, entry: Entry, before: Turn | None, waits: list[str]) -> tuple[int, float | None]:
        """When it arrives, in nanoseconds, and how long it waits after the turn before, in milliseconds."""
        time, delay, tool = entry.span("ms", *TIME), entry.span("ms", *DELAY), entry.span("ms", "tool_wait_ms")
        for names, value in ((TIME, time), (DELAY, delay), (("tool_wait_ms",), tool)):
            if value is not None and value < 0:
                raise entry.wrong(*entry.given(*names), "0 or more milliseconds")
        others = [self.requests[name] for name in waits if name in self.requests]
        if len(others) < len(waits):
            self.told["waiting for what is not earlier in the file: it does not count"] += 1
        if any(other is not before for other in others):
            self.told["waiting for other sessions, too: each only arrives no sooner than what it waits for"] += 1
        wait = None if delay is None and tool is None else (delay or 0) + (tool or 0)
        if wait is None and before and time is not None and before.time is not None:
            wait = time - before.time
            if wait < 0:
                raise entry.wrong(*entry.given(*TIME), "no earlier than the turn before")
            self.told["without a delay: each waits the time between the timestamps, after the turn before"] += 1
        arrived = before.arrival if before else 0
        if time is None:
            time = arrived + (wait or 0)
            self.told["without a timestamp: each arrives no sooner than the turn before and its delay"] += 1
        think = wait / MILLISECOND if before and wait is not None else None
        return max(time, arrived, *(other.arrival + (wait or 0) for other in others)), think

    def lengths(self, entry: Entry) -> tuple[tuple[int | None, int | None], list[int] | None]:
        """The tokens of prompt and answer, and the hash ids; a prompt of unknown length is as long as its blocks."""
        hashes = entry.wholes("hash_ids")
        prompt = entry.whole(*INPUT)
        if prompt is None and hashes is not None:
            prompt = len(hashes) * self.block_size
            self.told["without a length: each is as long as its blocks"] += 1
        return (prompt, entry.whole(*OUTPUT)), hashes

    def priority(self, entry: Entry) -> int | None:
        """Larger is more urgent; a tier goes before a priority."""
        tier, priority = entry.whole("strict_priority"), entry.whole("priority")
        if tier is not None and not 0 <= tier < TIER // 2:
            raise entry.wrong("strict_priority", tier, f"from 0 to {TIER // 2 - 1:,}")
        if priority is not None and not -TIER // 2 <= priority < TIER // 2:
            raise entry.wrong("priority", priority, "a number of 32 bits")
        return None if tier is None and priority is None else (tier or 0) * TIER + (priority or 0)
