"""Packed files that are cut off, or damaged: whoever reads them, it is one sentence that names the file."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

FORMS = ["auto", "aiperf", "bailian", "copilot", "dynamo", "lmcache", "llmservingsim", "mooncake", "otel", "table"]


def packed() -> bytes:
    """A thousand rows of numbers that do not pack well, so that a cut or a wrong byte lies within them."""
    draw = random.Random(0)
    rows = (
        {"timestamp": n, "input_length": draw.randrange(10**6), "output_length": draw.randrange(10**6)}
        for n in range(1_000)
    )
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", ["cut off", "damaged at once", "damaged later"])
def test_a_packed_file_that_cannot_be_unpacked_is_a_sentence(tmp_path: Path, form: str, fault: str) -> None:
    content = bytearray(packed())
    if fault == "cut off":
        content = content[: len(content) // 2]
    else:
        place = 30 if fault == "damaged at once" else len(content) // 2
        content[place : place + 20] = b"\xff" * 20
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"trace\.jsonl\.gz"):
        import_trace(form, path)
