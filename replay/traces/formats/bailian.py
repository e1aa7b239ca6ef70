"""Qwen-Bailian usage traces (Alibaba) as JSON Lines: requests that say which request of the same chat they continue.

`timestamp` is in seconds, `input_length` and `output_length` are tokens, `hash_ids` are of blocks of 16 tokens, the
same in the whole file. `parent_chat_id` is -1 for the first request of a chat.

A session is what hangs together by parents, and a turn is its place there, from 0; the file's own `turn` counts also
what is not in the file. A session here is a sequence, so three kinds of row begin one of their own: those whose parent
is not in the file, or not earlier; and those whose parent has been continued already, by an earlier row, because both
were asked from there. Think times are unknown: a turn is due when it was logged, or when the turn before has ended, if
that is later. The type of a request (text, search, image, file) is its class, `slo`. The file has no users.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from replay.traces.faults import ROW
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import fields_left_out
from replay.traces.foreign.json_lines import given, scan_json_lines
from replay.traces.foreign.json_objects import first_names
from replay.traces.foreign.length_lines import HASHES, as_written, refuse_without, time_field
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import HashTail
from replay.traces.wording import counted

ROOT = "-1"
FIELDS = {
    "chat_id": pl.String(),
    "parent_chat_id": pl.String(),
    "timestamp": pl.Float64(),
    "input_length": pl.Int64(),
    "output_length": pl.Int64(),
    "hash_ids": HASHES,
    "type": pl.String(),
}
NAMES = ("chat_id", "parent_chat_id", "timestamp", "input_length", "output_length")


@formats.register("bailian")
@dataclass(frozen=True, slots=True)
class Bailian:
    """Qwen-Bailian traces (JSON Lines, times in s, sessions by parent, hashes of 16-token blocks)"""

    block_size: int = field(
        default=16, metadata={"help": "tokens of one block of hash_ids", "minimum": 1, "maximum": 10**9}
    )
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a partial last block has an id: ceil or floor"}
    )

    def fits(self, look: Glimpse) -> bool:
        return look.has("json lines", all_of=NAMES, may=("hash_ids", "type", "turn"))

    def read(self, path: Path) -> Source:
        there = first_names(path)
        refuse_without(path, there, NAMES)
        raw = as_written(scan_json_lines(path, FIELDS), "timestamp")
        try:
            links = raw.rows.select(ROW, "chat_id", "parent_chat_id", time_field("timestamp", "s").value.alias("time"))
            sessions, notes = sessions_by_parent(links.collect(engine="streaming"))
        except (pl.exceptions.PolarsError, OSError) as fault:
            raise raw.misread(fault) from fault
        rows = raw.rows.join(sessions.lazy(), on=ROW, how="left", maintain_order="left")
        source = replace(raw, rows=rows, names=[*raw.names, "session", "place"]).source(
            {
                "arrival_ns": time_field("timestamp", "s"),
                "prompt_tokens": given("input_length"),
                "output_tokens": given("output_length"),
                "request_id": given("chat_id"),
                "session": given("session"),
                "turn": given("place"),
                "slo": given("type"),
                "prefix_hashes": given("hash_ids"),
            },
            known=("parent_chat_id",),
            block_size=self.block_size,
            hash_tail=self.hash_tail,
        )
        source.notes += notes + fields_left_out(there, (*FIELDS, "turn"))
        return source


def sessions_by_parent(links: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """For each row its session, named after the first request there, and its place in it; and notes on cuts."""
    place: dict[str, tuple[str, int]] = {}  # of each request so far: its session, and where it stands there
    continued: set[str] = set()
    outside = branches = 0
    found = []
    for row, chat, parent, _ in links.sort("time", ROW, nulls_last=True).iter_rows():
        name = f"row {row}" if chat is None else chat
        at = (f"{name} in row {row}" if name in place else name, 0)
        if parent not in (None, ROOT):
            if parent not in place:
                outside += 1
            elif parent in continued:
                branches += 1
            else:
                continued.add(parent)
                session, turn = place[parent]
                at = (session, turn + 1)
        place[name] = at
        found.append((row, *at))
    notes = []
    if outside:
        notes.append(f"{counted(outside, 'row')} with a parent that is not earlier in the file: each begins a session")
    if branches:
        notes.append(f"{counted(branches, 'row')} with a parent that an earlier row continued: each begins a session")
    schema = pl.Schema({ROW: links.schema[ROW], "session": pl.String(), "place": pl.Int64()})
    return pl.DataFrame(found, schema=schema, orient="row"), notes
