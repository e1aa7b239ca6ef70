"""AIPerf's `mooncake_trace` as JSON Lines: Mooncake's fields, and sessions, waiting times and prompts as text.

A row has `input_length`, which `hash_ids` of blocks of 512 tokens may come with, or `text_input`, or `messages`. It may
have `output_length`, `timestamp`, `delay` (both ms) and `session_id`. Rows of one session are its turns, in the order
of the file. A turn waits `delay` after the end of the turn before it; one without a `timestamp` arrives that much after
the arrival of the turn before. A row that has neither arrives at 0.

What a turn adds: AIPerf sends the earlier turns and their answers along, so a row's length is of what is *added*, and
the prompt here is all of it. That is so for `input_length` and `text_input`, and for messages whose `message_mode` is
`delta`; a row that says `context_mode: message_array_with_responses`, and messages otherwise, hold the whole prompt;
`deltas_with_responses` brings its own answers along. `context` says it for rows that do not. Such prompts share all
that came before, so hash ids are made for their whole blocks; those that the file has for an added part stand where it
begins, which is no block's edge in the prompt, and are left out but for the first turn's.

Tokens of text are counted by a tokenizer or estimated from its characters, and that is said. A `text_input` that is a
whole prompt stays in the trace; of all other text its length does, and of messages what they share, as hashes. An
answer of which the length is not given is `output_tokens` long, or its row is skipped.

An export writes lengths, never text, and each row of a session with its whole prompt, which the row says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from replay.traces.foreign.export_lines import arrivals_in, block_remarks, with_hash_ids
from replay.traces.foreign.exporting import left_out
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import HASHED, Entry, fields_left_out
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.foreign.text_tokens import Counting, counting
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import HashTail, Trace
from replay.traces.wording import counted

BLOCK = 512
WHOLE, WITH_ANSWERS = "message_array_with_responses", "deltas_with_responses"
PROMPTS = ("input_length", "text_input", "messages")
READ = (*PROMPTS, "output_length", "hash_ids", "timestamp", "delay", "session_id", "context_mode", "message_mode")
KNOWN = (*READ, "type", "tools", "extra")
MADE = 2**62  # the first hash id that is made here, beyond those of any file
TELL = "AIPerf: --isl-block-size {0}; replay: -o block_size={0}"
SCHEMA = row_schema("prompt_tokens", "output_tokens", "session", "turn", "think_time_ms", "prefix_hashes", "prompt")


@formats.register("aiperf")
@dataclass(frozen=True, slots=True)
class AIPerf:
    """AIPerf's mooncake_trace (JSON Lines, times and delays in ms, sessions, hashes of 512-token blocks)"""

    block_size: int = field(
        default=BLOCK, metadata={"help": "tokens of one block of hash_ids", "minimum": 1, "maximum": 10**9}
    )
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a partial last block has an id: ceil or floor"}
    )
    context: Literal["added", "whole"] = field(
        default="added", metadata={"help": "what a later turn's length is of, if its row does not say: added or whole"}
    )
    output_tokens: int | None = field(
        default=None,
        metadata={"help": "the answer's tokens where a row does not say; else it is skipped", "minimum": 1},
    )
    tokenizer: str | None = field(default=None, metadata={"help": "a folder with a tokenizer that counts text"})
    characters_per_token: float = field(
        default=4.0, metadata={"help": "the estimate for text, where there is no tokenizer", "minimum": 0.01}
    )
    fill: bool = field(default=False, metadata={"help": "for export: ids for every block of every prompt"})

    def fits(self, look: Glimpse) -> bool:
        return any(look.has("json lines", all_of=(prompt,), may=KNOWN) for prompt in PROMPTS)

    def read(self, path: Path) -> Source:
        reading = Reading(self, path, counting(self.tokenizer, self.characters_per_token))
        return streamed(
            path, SCHEMA, reading.rows, block_size=self.block_size, hash_tail=self.hash_tail, notes=reading.notes
        )

    def write(self, trace: Trace, file: Path) -> list[str]:
        times, remarks = arrivals_in(trace, "ms", whole=False)
        rows, more = with_hash_ids(trace, self.block_size, fill=self.fill)
        held = ["session", "turn", "think_time_ms", "prefix_hashes"]
        known = trace.values(*(pl.col(name).is_not_null().any() for name in held))
        columns = {
            "timestamp": times,
            "input_length": pl.col("prompt_tokens"),
            "output_length": pl.col("output_tokens"),
        }
        if known["session"]:
            columns["session_id"] = pl.col("session")
            columns["context_mode"] = pl.when(pl.col("session").is_not_null()).then(pl.lit(WHOLE))
            rows, again = in_turn(rows)
            remarks += again
        if known["think_time_ms"]:
            columns["delay"] = pl.col("think_time_ms")
        if known["prefix_hashes"] or self.fill:
            columns["hash_ids"] = pl.col("prefix_hashes")
        rows.select(**columns).sink_ndjson(file)
        return [*remarks, *more, *block_remarks(trace, self.block_size, TELL), *left_out(trace, *held)]


def in_turn(rows: pl.LazyFrame) -> tuple[pl.LazyFrame, list[str]]:
    """The rows with each session's turns in order, which is all that tells them there, and a remark if that is new."""
    turns = rows.select("session", "turn").filter(pl.col("turn").is_not_null()).collect()
    apart = pl.col("turn").diff().over("session")
    found = turns.select(
        back=(apart < 0).any(), gaps=(apart != 1).any(), first=(pl.col("turn").first().over("session") != 0).any()
    )
    if found.item(0, "back"):  # turns that arrive at one instant
        rows = rows.sort("arrival", "turn", maintain_order=True, nulls_last=True)
    if found.item(0, "gaps") or found.item(0, "first"):
        return rows, ["turns are numbered from 0 in each session, as they come: the format holds their order"]
    return rows, []


@dataclass(slots=True)
class Conversation:
    """A session so far: how many turns, when the last arrived, and all that a turn that adds to it sends along."""

    turns: int = 0
    arrival: int = 0
    tokens: int = 0
    blocks: list[int] = field(default_factory=list)  # ids of the whole blocks of the longest prompt so far


@dataclass(slots=True)
class Reading:
    """One file being read, and what is to be said of it."""

    form: AIPerf
    path: Path
    way: Counting
    notes: list[str] = field(default_factory=list)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    made: int = MADE
    told: Counter[str] = field(default_factory=Counter)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        strange: set[str] = set()
        for entry in objects(self.path):
            strange |= entry.fields.keys() - set(READ)
            session = entry.text("session_id")
            talk = Conversation() if session is None else self.conversations.setdefault(session, Conversation())
            arrival, delay = self.arrival(entry, talk)
            tokens, text, hashes = self.prompt(entry)
            output = entry.whole("output_length")
            output = self.form.output_tokens if output is None else output
            if session is not None and self.adds(entry):
                self.told["with text of which only the length is kept, because it is a part of a session"] += (
                    text is not None
                )
                text = None
                if talk.turns:
                    self.told["with hash ids of what is added to a session: they are left out"] += hashes is not None
                    self.told["made longer by the turns before and their answers, as AIPerf sends them"] += 1
                    tokens, hashes = talk.tokens + tokens, None
                if tokens > HASHED:
                    raise entry.wrong(PROMPTS[0], tokens, f"at most {HASHED:,} with the turns before: hashes are made")
                hashes = self.shared(talk, tokens, hashes)
                talk.tokens = tokens + (0 if entry.text("context_mode") == WITH_ANSWERS else output or 0)
            turn = None if session is None else talk.turns
            talk.turns, talk.arrival = talk.turns + 1, arrival
            yield entry.row, arrival, tokens, output, session, turn, delay, hashes, text
        self.notes += [f"{counted(count, 'row')} {text}" for text, count in sorted(self.told.items()) if count]
        self.notes += fields_left_out(sorted(strange))

    def arrival(self, entry: Entry, talk: Conversation) -> tuple[int, float | None]:
        """When it arrives, in nanoseconds, and how long it waits after the turn before, in milliseconds."""
        time, wait, delay = entry.span("ms", "timestamp"), entry.span("ms", "delay"), entry.number("delay")
        for name, value in (("timestamp", time), ("delay", wait)):
            if value is not None and value < 0:
                raise entry.wrong(name, entry.fields[name], "0 or more milliseconds")
        if time is None:
            self.told["without a timestamp: at 0, or as much after the turn before as it is delayed"] += 1
            time = talk.arrival + (wait or 0)
        return time, None if delay is None else float(delay)

    def prompt(self, entry: Entry) -> tuple[int, str | None, list[int] | None]:
        """The tokens of what the row holds, its text if that is a prompt as it stands, and its hash ids."""
        length, text, messages = entry.whole("input_length"), entry.text("text_input"), entry.objects("messages")
        if length is not None:
            return length, None, entry.wholes("hash_ids")
        if text is None and not messages:
            raise entry.wrong("input_length", None, "given, or text_input or messages; other prompts are not read")
        self.told["with text: " + self.way.said] += 1
        if text is not None:
            return self.way.tokens(self.way.encode(text)), text, None
        said = self.way.encode("".join(spoken(message.get("content")) for message in messages))
        hashes = None if self.adds(entry) else self.way.hashes(said, self.form.block_size)
        return self.way.tokens(said), None, hashes

    def adds(self, entry: Entry) -> bool:
        """Whether the row holds what is added to the turns before, rather than all."""
        mode = entry.text("context_mode")
        if mode is not None:
            return mode != WHOLE
        if entry.fields.get("messages") is not None:
            return entry.text("message_mode") == "delta"
        return self.form.context == "added"

    def shared(self, talk: Conversation, tokens: int, hashes: list[int] | None) -> list[int]:
        """The prompt's hash ids: those that came before, and new ones for the whole blocks that are new."""
        whole = tokens // self.form.block_size
        if hashes is not None:
            talk.blocks = hashes[:whole]
        for _ in range(whole - len(talk.blocks)):
            talk.blocks.append(self.made)
            self.made += 1
        return hashes if hashes is not None else talk.blocks[:whole]


def spoken(content: Any) -> str:
    """The text of a message: itself, or its parts that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
