"""Mooncake traces (Qin et al., FAST 2025) as JSON Lines: conversation, tool and agent, and synthetic requests.

`timestamp` is in milliseconds since the start of the trace, `input_length` and `output_length` are tokens, `hash_ids`
are of blocks of 512 tokens, the same in the whole file, and the last, partial block of a prompt has one. Many rows
share an instant, because the arrivals were recorded in ticks; exact duplicates are requests of their own. A file has
no users and no sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.length_lines import LengthLines
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import HashTail, Trace

BLOCK = 512
LINES = LengthLines("timestamp", "input_length", "output_length", "hash_ids", unit="ms")
TELL = "vLLM: --timed-trace-chunk-hash-size {0}; AIPerf: --isl-block-size {0}; replay: -o block_size={0}"


@formats.register("mooncake")
@dataclass(frozen=True, slots=True)
class Mooncake:
    """Mooncake traces (JSON Lines, times in ms, hashes of 512-token blocks)"""

    block_size: int = field(
        default=BLOCK, metadata={"help": "tokens of one block of hash_ids", "minimum": 1, "maximum": 10**9}
    )
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a partial last block has an id: ceil or floor"}
    )
    whole_ms: bool = field(default=False, metadata={"help": "for export: round times to whole milliseconds"})
    fill: bool = field(default=False, metadata={"help": "for export: ids for every block of every prompt"})

    def fits(self, look: Glimpse) -> bool:
        return look.has("json lines", all_of=LINES.required, may=(LINES.hashes,))

    def read(self, path: Path) -> Source:
        return LINES.read(path, block_size=self.block_size, hash_tail=self.hash_tail)

    def write(self, trace: Trace, file: Path) -> list[str]:
        return LINES.write(trace, file, self.block_size, TELL, whole=self.whole_ms, fill=self.fill)
