"""AIBrix workloads: several requests a line, all at its time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "workload.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def request(prompt: object = 10, output: object = 5, text: str = "hello") -> dict[str, Any]:
    return {"Prompt Length": prompt, "Output Length": output, "prompt": text}


def test_all_requests_of_a_line_come_at_its_time(tmp_path: Path) -> None:
    later = {"prompt_length": 7, "output_length": 8, "prompt": None, "session_id": 3, "model": "m"}
    path = write(
        tmp_path,
        {"timestamp": 1500.5, "requests": [request(), later]},
        {"timestamp": 0, "requests": [request(1, 2), request(3, 0)]},
        {"timestamp": 9, "requests": []},
    )
    trace = import_trace("auto", path)
    assert trace.frame["arrival"].to_list() == [0, 1_500_500_000, 1_500_500_000]
    shown = trace.frame.select("prompt_tokens", "output_tokens", "session", "prompt").rows()
    assert shown == [(1, 2, None, "hello"), (10, 5, None, "hello"), (7, 8, "3", None)]
    assert trace.skipped == {"zero output tokens": 1}


def test_outputs_that_are_left_to_the_model_are_skipped_or_given(tmp_path: Path) -> None:
    path = write(tmp_path, {"timestamp": 0, "requests": [request(output=None), request()]})
    assert import_trace("aibrix", path).skipped == {"no output tokens given": 1}
    given = import_trace("aibrix", path, settings={"output_tokens": 64})
    assert given.frame["output_tokens"].to_list() == [64, 5]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            {"timestamp": 1, "requests": {}},
            "row 1 (counted from 0), column 'requests': {}, but must be a list of objects",
        ),
        ({"timestamp": "1", "requests": [request()]}, "row 1 (counted from 0), column 'timestamp': '1', but must be a"),
        ({"timestamp": 1, "requests": [request(1.5)]}, "row 1 (counted from 0), column 'Prompt Length': 1.5, but must"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, line: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TraceError) as fault:
        import_trace("aibrix", write(tmp_path, {"timestamp": 0, "requests": [request()]}, line))
    assert sentence in str(fault.value)
