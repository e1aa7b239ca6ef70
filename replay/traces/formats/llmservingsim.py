"""Workloads of the simulator LLMServingSim (KAIST) as JSON Lines, times in nanoseconds.

A line is a request (`input_toks, output_toks, arrival_time_ns`), or a session of an agent: its `sub_requests` are the
turns, each of which comes `tool_duration_ns` after the end of the one before, in a closed loop; the last duration says
nothing. Both may be in one file. `input_tok_ids` are the prompt's token ids. What was answered (`output_tok_ids`) is
left out, because a replay generates its own. A workflow of several agents (`nodes` and `edges`) is no chain of turns,
and is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import Entry, fields_left_out
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.formats import formats
from replay.traces.source import Source

ARRIVAL, TURNS, AGENTS = "arrival_time_ns", "sub_requests", "nodes"
LENGTHS = ("input_toks", "output_toks")
KNOWN = (*LENGTHS, ARRIVAL, TURNS, "session_id", "input_tok_ids", "tool_duration_ns")
MILLISECOND = 1_000_000  # in nanoseconds
SCHEMA = row_schema("prompt_tokens", "output_tokens", "prompt_token_ids", "session", "turn", "think_time_ms")


@formats.register("llmservingsim")
@dataclass(frozen=True, slots=True)
class LlmServingSim:
    """Workloads of the simulator LLMServingSim (JSON Lines, ns; requests, and sessions of agents in a closed loop)"""

    def fits(self, look: Glimpse) -> bool:
        kinds = (LENGTHS, (TURNS,), (AGENTS,))
        return any(look.includes("json lines", all_of=(ARRIVAL, *names)) for names in kinds)

    def read(self, path: Path) -> Source:
        skipped: Counter[str] = Counter()
        notes: list[str] = []

        def rows() -> Iterator[tuple[Any, ...]]:
            strange: dict[str, None] = {}
            for entry in objects(path):
                yield from requests(entry, skipped, strange)
            notes.extend(fields_left_out(strange))

        return streamed(path, SCHEMA, rows, skipped=skipped, notes=notes)


def requests(entry: Entry, skipped: Counter[str], strange: dict[str, None]) -> Iterator[tuple[Any, ...]]:
    """The requests of a line as rows, and in the other two what of it is none of them."""
    if AGENTS in entry.fields:
        skipped["a workflow of several agents"] += 1
        return
    arrival = entry.whole(ARRIVAL)
    strange |= dict.fromkeys(name for name in entry.fields if name not in KNOWN)
    if TURNS not in entry.fields:
        yield (entry.row, arrival, *request(entry), None, None, None)
        return
    turns = [Entry(entry.file, entry.row, fields) for fields in entry.objects(TURNS)]
    if not turns:
        skipped["a session without requests"] += 1
    session = entry.text("session_id") or f"line {entry.row}"
    think = None
    for number, turn in enumerate(turns):
        strange |= dict.fromkeys(name for name in turn.fields if name not in KNOWN)
        yield (entry.row, arrival, *request(turn), session, number, think)
        think = (turn.whole("tool_duration_ns") or 0) / MILLISECOND


def request(entry: Entry) -> tuple[int | None, int | None, list[int] | None]:
    """The lengths and the token ids of one request."""
    prompt, output = (entry.whole(name) for name in LENGTHS)
    return prompt, output, entry.wholes("input_tok_ids")
