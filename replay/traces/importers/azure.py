"""Azure LLM inference traces as CSV: one column of times, two of token counts.

2023 (Splitwise, ISCA 2024) has naive times with 7 digits, 2024 (DynamoLLM, HPCA 2025) has zones and leaves out a
fraction of zero, 2025 (ModServe) has milliseconds, `Z` and a further column: all are read the same way.
"""

from __future__ import annotations

from pathlib import Path

from replay.traces.canonical import Source
from replay.traces.delimited import instants, read_csv, whole_numbers
from replay.traces.faults import FILE
from replay.traces.importers import importers

TIME, PROMPT, OUTPUT = "TIMESTAMP", "ContextTokens", "GeneratedTokens"


@importers.register("azure")
def azure(file: Path) -> Source:
    """Azure LLM inference traces of 2023, 2024 and 2025 (CSV)"""
    frame = read_csv(file, [TIME, PROMPT, OUTPUT])
    columns = {
        "arrival": instants(frame, TIME, file),
        "prompt_tokens": whole_numbers(frame, PROMPT, file),
        "output_tokens": whole_numbers(frame, OUTPUT, file),
    }
    return Source(file, frame.drop(TIME, PROMPT, OUTPUT, FILE).with_columns(**columns))
