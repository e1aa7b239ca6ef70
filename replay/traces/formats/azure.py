"""Azure LLM inference traces as CSV: one column of times, two of token counts.

2023 (Splitwise, ISCA 2024) has naive times with 7 digits, 2024 (DynamoLLM, HPCA 2025) has zones and leaves out a
fraction of zero, 2025 (ModServe) has milliseconds, `Z` and a further column: all are read the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replay.traces.delimited import instant, scan_csv, whole
from replay.traces.formats import formats
from replay.traces.glimpse import Glimpse
from replay.traces.source import Source

NAMES = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


@formats.register("azure")
@dataclass(frozen=True, slots=True)
class Azure:
    """Azure LLM inference traces of 2023, 2024 and 2025 (CSV)"""

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES)

    def read(self, path: Path) -> Source:
        time, prompt, output = NAMES
        return scan_csv(path).source(
            {"arrival": instant(time), "prompt_tokens": whole(prompt), "output_tokens": whole(output)}
        )
