"""Traces of agents in LMCache's collection, as JSON Lines: `timestamp, input, output, session_id`.

Times are microseconds since 1970 in most of its files, and seconds in some: `-o unit=s`. Input and output are text, so
tokens are counted by a tokenizer or estimated. Most files are not in order. What inputs share from their beginning on
is in the hashes of whole blocks; with `text` the trace keeps the inputs themselves. Rows with an empty input or output
are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay.traces.foreign.delimited import Unit
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.foreign.text_tokens import Counting, counting
from replay.traces.formats import formats
from replay.traces.source import Source

NAMES = ("timestamp", "input", "output", "session_id")
SCHEMA = row_schema("prompt_tokens", "output_tokens", "session", "prefix_hashes", "prompt")


@formats.register("lmcache")
@dataclass(frozen=True, slots=True)
class LMCache:
    """LMCache's traces of agents (JSON Lines of inputs and outputs as text, times in µs)"""

    unit: Unit = field(default="us", metadata={"help": "of timestamp: s, ms, us or ns"})
    tokenizer: str | None = field(default=None, metadata={"help": "a folder with a tokenizer that counts tokens"})
    characters_per_token: float = field(
        default=4.0, metadata={"help": "the estimate, where there is no tokenizer", "minimum": 0.01}
    )
    block_size: int = field(
        default=16, metadata={"help": "tokens of a block of prefix_hashes", "minimum": 1, "maximum": 10**9}
    )
    text: bool = field(default=False, metadata={"help": "keep the inputs' text"})

    def fits(self, look: Glimpse) -> bool:
        return look.includes("json lines", all_of=NAMES) and isinstance(look.first["input"], str)

    def read(self, path: Path) -> Source:
        way = counting(self.tokenizer, self.characters_per_token)
        return streamed(
            path,
            SCHEMA,
            lambda: self.rows(path, way),
            notes=[way.said],
            history=[way.said],
            block_size=self.block_size,
            hash_tail="floor",
        )

    def rows(self, path: Path, way: Counting) -> Iterator[tuple[Any, ...]]:
        """A row for each line."""
        for entry in objects(path):
            prompt = entry.text("input") or ""
            units = way.encode(prompt)
            yield (
                entry.row,
                entry.span(self.unit, "timestamp"),
                way.tokens(units),
                way.tokens(way.encode(entry.text("output") or "")),
                entry.text("session_id"),
                None if self.text else way.hashes(units, self.block_size),
                prompt if self.text else None,
            )
