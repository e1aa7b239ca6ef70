"""Temporary files of a large trace: they are there as long as a trace that needs them, and no longer."""

from __future__ import annotations

import gc
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from replay.traces import reading, scratch, source
from replay.traces.describing.describe import describe
from replay.traces.formats import import_trace
from replay.traces.table import Trace
from replay.traces.transforms import apply_transforms, declaring, parse_transforms
from replay.traces.writing import write_trace

CHAIN: list[dict[str, object]] = [
    {"merge": ["other.parquet"]},
    {"derive_priority": {"random": {"0": 1, "1": 1}}},
    {"speed": 2.0},
    {"sample": 0.9},
    {"derive_user": "session"},
    {"idle_gap_cap": "1s"},
    {"deadline": "500ms"},
    {"anonymize": True},
    {"limit": 40},
]


def write_logs(folder: Path) -> None:
    """Two files of a table, out of order, with sessions and hashes; and another trace beside them."""
    (folder / "log").mkdir()
    for name, start in (("a", 30), ("b", 0)):
        rows = [
            f"{start + (7 * n) % 30},{16 + n},{n + 1},{'xyz'[n % 3]}{name},{n % 5} {n % 7}"
            for n in range(30)
        ]  # fmt: skip
        text = "\n".join(["arrival_s,prompt_tokens,output_tokens,session,prefix_hashes", *rows])
        (folder / "log" / f"{name}.csv").write_text(text + "\n", encoding="utf-8")
    write_trace(logs(folder), folder / "other.parquet")


def logs(folder: Path) -> Trace:
    return import_trace("table", folder / "log", settings={"block_size": 8})


def files(temporary: Path) -> int:
    return sum(1 for file in temporary.rglob("*") if file.is_file())


def test_rows_outlive_the_traces_they_were_made_of_and_their_files_go_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_logs(tmp_path)
    small = apply_transforms(logs(tmp_path), parse_transforms(CHAIN, tmp_path))
    assert not small.large
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(source, "LARGE", 0)
    monkeypatch.setattr(reading, "AT_ONCE", 0)
    monkeypatch.setattr(scratch, "AT_ONCE", 20)  # rows that are sorted at once
    monkeypatch.setattr(declaring, "FEW", 0, raising=False)  # however few are left
    trace = logs(tmp_path)
    assert trace.large
    assert files(temporary) > 0
    for step in CHAIN:  # one by one, so that nothing holds what came before
        trace = apply_transforms(trace, parse_transforms([step], tmp_path))
        gc.collect()
        assert trace.rows.select(pl.len()).collect().item() > 0
    assert trace.large
    assert_frame_equal(trace.frame, small.frame)
    assert describe(trace)["users"] == describe(small)["users"]
    assert trace.history == small.history
    del trace
    gc.collect()
    assert files(temporary) == 0
