"""Nested JSON in files that nobody holds in memory: the same rows, remarks and refusals as in small ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from replay.errors import TraceError
from replay.traces import source
from replay.traces.canonical import canonical_trace
from replay.traces.faults import ROW
from replay.traces.foreign.json_objects import ROWS, objects, streamed
from replay.traces.table import Trace

SCHEMA = {ROW: pl.Int64(), "arrival_s": pl.Int64(), "prompt_tokens": pl.Int64(), "output_tokens": pl.Int64()}


def read(path: Path) -> Trace:
    """Rows of three numbers; those without a first are counted as skipped while the others are made."""
    skipped: Counter[str] = Counter()
    notes: list[str] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        for entry in objects(path):
            if entry.fields.get("at") is None:
                skipped["no time"] += 1
            else:
                yield entry.row, entry.whole("at"), entry.whole("in"), 1
        notes.append("all were looked at")

    return canonical_trace("trace", path, [streamed(path, SCHEMA, rows, skipped=skipped, notes=notes)], "")


@pytest.fixture(params=[False, True], ids=["small", "large"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(source, "LARGE", 0)
    return bool(request.param)


def write(folder: Path, *entries: object) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return path


def test_rows_and_what_was_counted_on_the_way(tmp_path: Path, *, large: bool) -> None:
    count = ROWS + 5
    times = [None if at == 7 else at for at in range(count)]
    trace = read(write(tmp_path, *({"at": at, "in": index + 1} for index, at in enumerate(times))))
    assert trace.large == large
    assert trace.extent().rows == count - 1
    assert trace.frame["prompt_tokens"].to_list() == [index + 1 for index in range(count) if index != 7]
    assert (trace.skipped, trace.notes) == ({"no time": 1}, ["all were looked at"])


@pytest.mark.usefixtures("large")
def test_a_refusal_on_the_way_is_the_sentence_that_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, {"at": 0, "in": 1}, {"at": "x", "in": 1})
    with pytest.raises(TraceError) as fault:
        read(path)
    assert str(fault.value) == f"{path}, row 1 (counted from 0), column 'at': 'x', but must be a whole number"


@pytest.mark.usefixtures("large")
def test_a_file_without_objects_holds_no_requests(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="the trace holds no requests"):
        read(write(tmp_path))
