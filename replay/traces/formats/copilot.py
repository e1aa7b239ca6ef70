"""GitHub Copilot's coding agent, June 2026 (Liu et al., arXiv 2608.00101; AzurePublicDataset): a session a line, its
turns with their `llm_calls[]`, as packed JSON Lines; one shard, or a folder of them.

Each call is a request, to the millisecond or as finely as its `timestamp`; think time is from the end of the call
before (`duration_ms`) to its start. Calls with another `result` than Success are skipped. `tokens.cached` says how much
of a prompt a cache had: so many whole blocks are those of the latest earlier call of the session and model that has as
many, which is a reading of the trace and not in it, and a lower bound: what was cached across sessions is not shared.
Models, tools and what messages are made of have no place in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from replay.errors import TraceError
from replay.traces.foreign.delimited import UNITS
from replay.traces.foreign.glimpse import Glimpse, glimpse
from replay.traces.foreign.instants import A_TIME, unix_nanoseconds
from replay.traces.foreign.json_entry import Entry
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.foreign.think_times import overlap_notes, think_times
from replay.traces.formats import formats
from replay.traces.source import SKIP, Source, files_below
from replay.traces.wording import named

SHARD = ".jsonl"
SCHEMA = row_schema(
    "prompt_tokens", "output_tokens", "session", "turn", "think_time_ms", "prefix_hashes"
) | {SKIP: pl.String()}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model: when it began and ended, and what it says of tokens."""

    start: int
    end: int | None
    model: str | None
    result: str | None
    prompt: int | None
    completion: int | None
    cached: int


@formats.register("copilot")
@dataclass(frozen=True, slots=True)
class Copilot:
    """GitHub Copilot coding agent traces of 2026 (JSON Lines, a session a line; a shard or a folder)"""

    block_size: int = field(
        default=512,
        metadata={
            "help": "tokens of a block of prefix_hashes, by which cached ones are shared",
            "minimum": 1,
            "maximum": 10**9,
        },
    )

    def fits(self, look: Glimpse) -> bool:
        if look.kind == "folder":
            shards = [name for name in look.names if SHARD in Path(name).suffixes]
            return bool(shards) and self.fits(glimpse(look.path / shards[0]))
        turns = look.first.get("turns")
        first = turns[0] if isinstance(turns, list) and turns and isinstance(turns[0], dict) else {}
        return "session_id" in look.names and "llm_calls" in first

    def read(self, path: Path) -> list[Source]:
        files = [path]
        if path.is_dir():
            files = [file for file in files_below(path) if SHARD in file.suffixes]
            if not files:
                raise TraceError(f"{path}: the folder holds no shard (*.jsonl, *.jsonl.gz)")
        return [self.shard(file) for file in files]

    def shard(self, file: Path) -> Source:
        """What one file holds."""
        notes: list[str] = []
        return streamed(
            file,
            SCHEMA,
            lambda: self.rows(file, notes),
            notes=notes,
            block_size=self.block_size,
            hash_scope="session",
            hash_tail="floor",
        )

    def rows(self, file: Path, notes: list[str]) -> Iterator[tuple[Any, ...]]:
        """A row for each call, session by session; its number is that of the session's line."""
        sessions = []
        for entry in objects(file):
            session = entry.text("session_id")
            calls = sorted(calls_of(entry), key=lambda call: call.start)
            kept = [call for call in calls if call.result == "Success"]
            for call in calls:
                if call.result != "Success":
                    why = f"result {named(str(call.result))}"
                    yield entry.row, call.start, None, None, session, None, None, None, why
            sessions.append([(call.start, call.end) for call in kept])
            times, shared = think_times(sessions[-1]), prefixes(kept, self.block_size)
            for turn, (call, think, hashes) in enumerate(zip(kept, times, shared, strict=True)):
                yield entry.row, call.start, call.prompt, call.completion, session, turn, think, hashes, None
        notes += overlap_notes(sessions)


def calls_of(entry: Entry) -> Iterator[Call]:
    """The calls of a session, turn by turn."""
    for turn in entry.objects("turns"):
        for fields in Entry(entry.file, entry.row, turn).objects("llm_calls"):
            call = Entry(entry.file, entry.row, fields)
            tokens = call.inner("tokens")
            start = unix_nanoseconds(call.text("timestamp") or "")
            if start is None:
                raise call.wrong("timestamp", fields.get("timestamp"), A_TIME)
            took = call.number("duration_ms")
            yield Call(
                start,
                None if took is None else start + round(took * UNITS["ms"]),
                call.text("model"),
                call.text("result"),
                tokens.hashed("prompt"),
                tokens.whole("completion"),
                tokens.whole("cached") or 0,
            )


def prefixes(calls: list[Call], block_size: int) -> Iterator[list[int]]:
    """The hashes of each call's prompt, by what its cache had of the session's earlier prompts."""
    fresh = count()
    earlier: dict[str | None, list[list[int]]] = {}
    for call in calls:
        blocks = (call.prompt or 0) // block_size
        wanted = min(call.cached // block_size, blocks)
        held = earlier.setdefault(call.model, [])
        source = next((hashes for hashes in reversed(held) if len(hashes) >= wanted), max(held, key=len, default=[]))
        kept = source[:wanted]
        hashes = kept + [next(fresh) for _ in range(blocks - len(kept))]
        held.append(hashes)
        yield hashes
