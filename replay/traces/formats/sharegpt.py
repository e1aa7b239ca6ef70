"""Conversations: ShareGPT's `conversations[]{from, value}`, LMSYS's `conversation[]{role, content}`, OpenAI's
`messages[]{role, content}`, as a JSON array, JSON Lines or Parquet.

They have text and no times. Each answer is a request, whose prompt is all that was said before it; a conversation is a
session, whose first request comes as a renewal process says (`rate` sessions a second, `burstiness` as deviation by
mean of the gaps), and its later ones after think times drawn from an exponential distribution. The history says so:
these arrivals are drawn, not measured. Prompts of one conversation, and of several that begin alike, share hashes
of whole blocks; with `text` the trace keeps the prompts themselves. Tokens of a chat template are not counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError
from pyarrow import ArrowException
from pyarrow.parquet import ParquetFile

from replay.errors import ExperimentError, TraceError
from replay.traces.foreign.delimited import refuse_folder
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import Entry
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.foreign.text_tokens import Counting, Units, counting, joined
from replay.traces.formats import formats
from replay.traces.generating.renewals import Window, window_arrivals
from replay.traces.reading import no_parquet
from replay.traces.source import Source

MESSAGES = ("conversations", "conversation", "messages")
ROLES, TEXTS = ("from", "role"), ("value", "content")
ANSWERS = ("gpt", "assistant", "chatgpt", "bot", "model", "bing", "bard")
ALWAYS = 1 << 62  # nanoseconds: the process does not end before the conversations do
SCHEMA = row_schema("prompt_tokens", "output_tokens", "session", "turn", "think_time_ms", "prefix_hashes", "prompt")


@formats.register("sharegpt")
@dataclass(frozen=True, slots=True)
class Conversations:
    """Conversations without times, as ShareGPT, LMSYS and OpenAI write them; arrivals are drawn (-o rate=...)"""

    rate: float | None = field(default=None, metadata={"help": "sessions that begin in a second; needed", "above": 0})
    burstiness: float = field(
        default=1.0,
        metadata={"help": "deviation by mean of the gaps between sessions; 1 is Poisson", "above": 0, "maximum": 1e3},
    )
    think_ms: float = field(
        default=0.0, metadata={"help": "mean time between an answer and the next turn, exponential", "minimum": 0}
    )
    seed: int = field(default=0, metadata={"help": "of what is drawn"})
    tokenizer: str | None = field(default=None, metadata={"help": "a folder with a tokenizer that counts tokens"})
    characters_per_token: float = field(
        default=4.0, metadata={"help": "the estimate, where there is no tokenizer", "minimum": 0.01}
    )
    block_size: int = field(
        default=16, metadata={"help": "tokens of a block of prefix_hashes", "minimum": 1, "maximum": 10**9}
    )
    text: bool = field(default=False, metadata={"help": "keep the prompts' text"})

    def fits(self, look: Glimpse) -> bool:
        if look.kind == "parquet":
            return any(name in look.names for name in MESSAGES) and "timestamp" not in look.names
        found = next((look.first[name] for name in MESSAGES if name in look.first), None)
        turn = found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}
        return any(name in turn for name in ROLES) and any(name in turn for name in TEXTS) and not timed(look.first)

    def read(self, path: Path) -> Source:
        if self.rate is None:
            raise ExperimentError(
                f"{path}: conversations have no times: import them as sharegpt, and say how many begin in a second, "
                "such as -o rate=2"
            )
        way = counting(self.tokenizer, self.characters_per_token)
        skipped: Counter[str] = Counter()
        gaps = "Poisson arrivals" if self.burstiness == 1 else f"gaps of burstiness {self.burstiness:g}"
        think = f", think times of {self.think_ms:g} ms on average" if self.think_ms else ""
        drawn = f"arrivals are drawn, not measured: {self.rate:g} sessions a second, {gaps}{think}, seed {self.seed}"
        return streamed(
            path,
            SCHEMA,
            lambda: self.rows(path, way, skipped),
            skipped=skipped,
            notes=[drawn, way.said],
            history=[drawn, way.said],
            block_size=self.block_size,
            hash_tail="floor",
        )

    def rows(self, path: Path, way: Counting, skipped: Counter[str]) -> Iterator[tuple[Any, ...]]:
        """A row for each answer, conversation by conversation."""
        assert self.rate is not None
        window = Window(ALWAYS, self.rate, self.burstiness)
        arrivals = window_arrivals([window], random.Random(f"{self.seed}/arrivals"))
        thinking = random.Random(f"{self.seed}/think times")
        seen: Counter[str] = Counter()
        row = 0
        for entry in conversations(path):
            name = entry.text("id", "conversation_id") or str(entry.row)
            seen[name] += 1
            session = name if seen[name] == 1 else f"{name}#{seen[name]}"
            begin = 0
            for turn, (units, answer, prompt) in enumerate(requests(entry, way, skipped, text=self.text)):
                begin = begin if turn else next(arrivals, ALWAYS)
                if begin == ALWAYS:
                    raise TraceError(f"{path}: with a rate of {self.rate:g} the sessions would begin over centuries")
                think = thinking.expovariate(1 / self.think_ms) if self.think_ms and turn else None
                hashes = None if self.text else way.hashes(units, self.block_size)
                yield row, begin, way.tokens(units), answer, session, turn, think, hashes, prompt
                row += 1


def requests(
    entry: Entry, way: Counting, skipped: Counter[str], *, text: bool
) -> Iterator[tuple[Units, int, str | None]]:
    """Of each answer of a conversation: what was said before, how many tokens it has, and if asked for, the text."""
    said: list[str] = []
    units: list[Units] = []
    asked = False
    for role, words in messages(entry):
        if role in ANSWERS:
            if not said:
                skipped["answer without a question"] += 1
            else:
                yield joined(units), way.tokens(way.encode(words)), "".join(said) if text else None
        asked = role not in ANSWERS
        said.append(f"\n{words}" if said else words)
        units.append(way.encode(said[-1]))
    if asked and said:
        skipped["question without an answer"] += 1


def messages(entry: Entry) -> Iterator[tuple[str, str]]:
    """Who said what, in order."""
    for message in entry.objects(*MESSAGES):
        inner = Entry(entry.file, entry.row, message)
        _, content = inner.given(*TEXTS)
        if isinstance(content, list):  # OpenAI's parts, of which images and the like have no text
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        if content is not None and not isinstance(content, str):
            raise inner.wrong(TEXTS[1], content, "text")
        yield (inner.text(*ROLES) or "").lower(), content or ""


def timed(first: dict[str, Any]) -> bool:
    """Whether an object says when it was, so that it is of another format."""
    return any(name in first for name in ("timestamp", "delay", "input_length"))


def conversations(path: Path) -> Iterator[Entry]:
    """The conversations of a JSON or Parquet file."""
    refuse_folder(path)
    with path.open("rb") as stream:
        packed = stream.read(4) == b"PAR1"
    if not packed:
        yield from objects(path)
        return
    row = 0
    try:
        wanted = [name for name in pl.read_parquet_schema(path) if name in (*MESSAGES, "id", "conversation_id")]
        for batch in ParquetFile(path).iter_batches(batch_size=1_000, columns=wanted):
            for fields in batch.to_pylist():
                yield Entry(path, row, fields)
                row += 1
    except (PolarsError, ArrowException, OSError) as fault:
        raise no_parquet(path, fault) from fault
