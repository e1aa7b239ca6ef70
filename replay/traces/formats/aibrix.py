"""AIBrix workloads as JSON Lines: `timestamp` in milliseconds, and `requests[]`, which all come at that time.

A request has `Prompt Length`, `Output Length` and `prompt`, or in later files `prompt_length`, `output_length` and
`session_id`. A workload may leave outputs to the model: such rows are skipped, unless `-o output_tokens=128` says how
long they are to be. Other fields are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import Entry
from replay.traces.foreign.json_objects import objects, row_schema, streamed
from replay.traces.formats import formats
from replay.traces.source import Source

SCHEMA = row_schema("prompt_tokens", "output_tokens", "session", "prompt")


@formats.register("aibrix")
@dataclass(frozen=True, slots=True)
class AIBrix:
    """AIBrix workloads (JSON Lines, several requests a line, times in ms)"""

    output_tokens: int | None = field(
        default=None,
        metadata={"help": "how long an answer is where the file does not say; else it is skipped", "minimum": 1},
    )

    def fits(self, look: Glimpse) -> bool:
        return look.has("json lines", all_of=("timestamp", "requests"))

    def read(self, path: Path) -> Source:
        return streamed(path, SCHEMA, lambda: self.rows(path))

    def rows(self, path: Path) -> Iterator[tuple[Any, ...]]:
        """A row for each request; its number is that of its line."""
        for line in objects(path):
            for fields in line.objects("requests"):
                request = Entry(path, line.row, fields)
                output = request.whole("Output Length", "output_length")
                yield (
                    line.row,
                    line.span("ms", "timestamp"),
                    request.whole("Prompt Length", "prompt_length"),
                    self.output_tokens if output is None else output,
                    request.text("session_id"),
                    request.text("prompt"),
                )
