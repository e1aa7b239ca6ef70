"""GitHub Copilot's coding agent: calls of sessions, what a cache had of their prompts, and the time between them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace


def call(second: float, prompt: int = 100, cached: int = 0, **more: Any) -> dict[str, Any]:
    """A call of half a second, `second` seconds after midnight."""
    return {
        "message_id": "m",
        "timestamp": f"2026-06-01T00:00:{second:09.6f}Z",
        "duration_ms": 500.0,
        "model": "Model A",
        "result": "Success",
        "status_code": "OK",
        "tokens": {"total": prompt + 5, "prompt": prompt, "completion": 5, "cached": cached, "cached_pct": 0.5},
        **more,
    }


def session(name: str, *turns: list[dict[str, Any]]) -> dict[str, Any]:
    told = [{"turn_id": "t", "llm_calls": calls, "tool_batches": []} for calls in turns]
    return {"session_id": name, "date": "2026-06-01", "turns": told}


def write(folder: Path, *sessions: dict[str, Any], name: str = "shard-0000.jsonl.gz") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, sessions)).encode()))
    return path


def test_calls_are_turns_with_the_time_between_them(tmp_path: Path) -> None:
    talk = session("a", [call(1), call(2.25)], [call(4, result="UserCancel"), call(9), call(9.2)])
    trace = import_trace("auto", write(tmp_path, talk, session("b", [call(0.5)])))
    assert trace.frame["arrival"].to_list() == [0, 500_000_000, 1_750_000_000, 8_500_000_000, 8_700_000_000]
    assert trace.frame["session"].to_list() == ["b", "a", "a", "a", "a"]
    assert trace.frame["turn"].to_list() == [0, 0, 1, 2, 3]
    # 2.25 - 1.5; the call that was cancelled is none; 9 - 2.75; 9.2 comes before 9.5
    assert trace.frame["think_time_ms"].to_list() == [None, None, 750.0, 6_250.0, 0.0]
    assert trace.skipped == {"result UserCancel": 1}
    assert trace.notes == [
        "the format is copilot: no other fits",
        "1 turn begun before the one before had ended: a closed loop makes it wait",
        "1 row skipped of 1 session, which goes on without",
        "1 row out of order: sorted by arrival",
    ]


def test_cached_tokens_are_whole_blocks_of_an_earlier_prompt(tmp_path: Path) -> None:
    talk = session(
        "a",
        [
            call(1, prompt=40, cached=39),  # nothing came before: 4 blocks of 10 of its own
            call(2, prompt=75, cached=38),  # 3 of them, and 4 new ones
            call(3, prompt=30, cached=30, model="Model B"),  # another model has another cache
            call(4, prompt=59, cached=75),  # 5 of the second's
            call(5, prompt=90, cached=70),  # the second's 7, since the fourth has 5
            call(6, prompt=30),  # a context that was made anew
            call(7, prompt=40, cached=30),  # goes on from there
        ],
    )
    trace = import_trace("copilot", write(tmp_path, talk), settings={"block_size": 10})
    assert trace.frame["prefix_hashes"].to_list() == [
        [0, 1, 2, 3],
        [0, 1, 2, 4, 5, 6, 7],
        [8, 9, 10],
        [0, 1, 2, 4, 5],
        [0, 1, 2, 4, 5, 6, 7, 11, 12],
        [13, 14, 15],
        [13, 14, 15, 16],
    ]
    assert (trace.block_size, trace.hash_scope, trace.hash_tail) == (10, "session", "floor")


def test_a_folder_of_shards_is_one_trace(tmp_path: Path) -> None:
    write(tmp_path, session("b", [call(7)]), name="date=2026-06-01/shard-0000.jsonl.gz")
    write(tmp_path, session("a", [call(2)]), name="date=2026-06-01/shard-0001.jsonl.gz")
    (tmp_path / "date=2026-06-01" / "manifest.json").write_text('{"sessions": 2}')
    trace = import_trace("auto", tmp_path)
    assert trace.frame["session"].to_list() == ["a", "b"]
    assert trace.notes[0] == "the format is copilot: no other fits"


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"row 0 .*column 'timestamp': 'noon', but must be a time such as 2026-01-31T"):
        import_trace("copilot", write(tmp_path, session("a", [call(1, timestamp="noon")])))
    with pytest.raises(TraceError, match=r"row 1 .*column 'turns': 5, but must be a list of objects"):
        import_trace("copilot", write(tmp_path, session("a", [call(1)]), {"session_id": "b", "turns": 5}))
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="the folder holds no shard"):
        import_trace("copilot", tmp_path / "empty")
