"""What it takes to import JSON of several formats: some are read by Polars, nested ones object by object in Python.

400,000 requests each, made here, of eight hashes where the format has hashes. Seconds of a processor, a process each.

python tests/benchmarks/json_formats.py
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import markdown
from trace_size import measure

Line = Callable[[int], dict[str, Any]]
HASHES = 8
draw = random.Random(1)


def hashes() -> list[int]:
    return [draw.randrange(10**6) for _ in range(HASHES)]


def attribute(name: str, value: dict[str, str]) -> dict[str, Any]:
    return {"key": f"gen_ai.{name}", "value": value}


def mooncake(row: int) -> dict[str, Any]:
    return {"timestamp": row * 10, "input_length": 512 * HASHES, "output_length": 100, "hash_ids": hashes()}


def session(row: int) -> dict[str, Any]:
    return {**mooncake(row), "session_id": f"session {row}"}


def bailian(row: int) -> dict[str, Any]:
    of_16 = {"input_length": 16 * HASHES, "output_length": 100, "type": "text", "turn": 1, "hash_ids": hashes()}
    return {"chat_id": row, "parent_chat_id": -1, "timestamp": row / 100, **of_16}


def log(row: int) -> dict[str, Any]:
    return {"ts": row / 100, "usage": {"in": 128, "out": 100}, "tenant": f"tenant {row % 9}"}


def span(row: int) -> dict[str, Any]:
    start = 10**18 + row * 10**7
    return {
        "name": "chat",
        "spanId": f"{row:016x}",
        "traceId": f"{row:032x}",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 10**9),
        "attributes": [
            attribute("operation.name", {"stringValue": "chat"}),
            attribute("usage.input_tokens", {"intValue": "128"}),
            attribute("usage.output_tokens", {"intValue": "28"}),
        ],
    }


LOG = ("--map", "arrival_s=ts,prompt_tokens=usage.in,output_tokens=usage.out,user=tenant")
FORMATS: dict[str, tuple[Line, tuple[str, ...]]] = {
    "mooncake": (mooncake, ()),
    "table": (log, LOG),
    "bailian": (bailian, ()),
    "otel": (span, ()),
    "aiperf": (session, ()),
    "dynamo": (session, ()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    rows = parser.parse_args().rows
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (line, options) in FORMATS.items():
            file = Path(folder) / f"{name}.jsonl"
            with file.open("w") as lines:
                lines.writelines(json.dumps(line(row)) + "\n" for row in range(rows))
            out = str(Path(folder) / f"{name}.parquet")
            command = [sys.executable, "-m", "replay", "-q", "trace", "import", name, str(file), out, *options]
            need = measure(name, command)
            speed = f"{rows / need.processor:,.0f}"
            cells.append([name, f"{need.seconds:.1f}", f"{need.processor:.1f}", speed, f"{need.memory:.2f}"])
    print(markdown(["format", "seconds", "of processors", "requests a second of them", "GiB"], cells))


if __name__ == "__main__":
    main()
