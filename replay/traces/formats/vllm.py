"""vLLM's `timed_trace` (`vllm bench serve --dataset-name timed_trace`) as JSON Lines.

A line has a time, the tokens of a prompt and of an answer, and the hash ids of the prompt's blocks. What the fields are
called, how many seconds a unit of time is and how many tokens a block has are options there
(`--timed-trace-label-timestamp`, `-label-input-length`, `-label-output-length`, `-label-hash-ids`,
`--timed-trace-sec-multiplier`, `--timed-trace-chunk-hash-size`), so they are settings here, with the same defaults:
seconds and blocks of 16 tokens. A prompt is made from its ids, the last of which may be of a partial block; one with
too few ids becomes shorter there than its `input_length`. A file has no users and no sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from replay.traces.foreign.delimited import Unit
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.length_lines import LengthLines
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import HashTail, Trace

BLOCK = 16
TELL = "vLLM: --timed-trace-chunk-hash-size {0}; replay: -o block_size={0}"
MULTIPLIERS = {"ms": "0.001", "us": "0.000001", "ns": "0.000000001"}


@formats.register("vllm")
@dataclass(frozen=True, slots=True)
class TimedTrace:
    """vLLM timed_trace (JSON Lines, times in s, hashes of 16-token blocks)"""

    time_unit: Unit = field(default="s", metadata={"help": "unit of the times: s, ms, us or ns"})
    block_size: int = field(
        default=BLOCK, metadata={"help": "tokens of one block of hash ids", "minimum": 1, "maximum": 10**9}
    )
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a partial last block has an id: ceil or floor"}
    )
    timestamp: str = field(default="timestamp", metadata={"help": "the field of the times"})
    input_length: str = field(default="input_length", metadata={"help": "the field of the prompts' tokens"})
    output_length: str = field(default="output_length", metadata={"help": "the field of the answers' tokens"})
    hash_ids: str = field(default="hash_ids", metadata={"help": "the field of the hash ids"})
    fill: bool = field(default=False, metadata={"help": "for export: ids for every block of every prompt"})

    @property
    def lines(self) -> LengthLines:
        return LengthLines(self.timestamp, self.input_length, self.output_length, self.hash_ids, self.time_unit)

    def fits(self, look: Glimpse) -> bool:
        return look.has("json lines", all_of=self.lines.required, may=(self.hash_ids,))

    def read(self, path: Path) -> Source:
        return self.lines.read(path, block_size=self.block_size, hash_tail=self.hash_tail)

    def write(self, trace: Trace, file: Path) -> list[str]:
        remarks = self.lines.write(trace, file, self.block_size, TELL, whole=False, fill=self.fill)
        if self.time_unit != "s":
            told = MULTIPLIERS[self.time_unit]
            remarks.append(f"times are in {self.time_unit}: tell the reader (--timed-trace-sec-multiplier {told})")
        return remarks
