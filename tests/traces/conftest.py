"""What the tests on traces share: a writer of small Parquet files, a trace from columns, and the real samples."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from replay.traces.generate import generate_trace
from replay.traces.reading import read_trace
from replay.traces.table import Trace

Writer = Callable[..., Path]
Reader = Callable[..., Trace]


@pytest.fixture
def parquet(tmp_path: Path) -> Writer:
    """`parquet(name, metadata, **columns)` writes a Parquet file and gives its path; lengths default to 1."""

    def write(name: str = "trace.parquet", metadata: dict[str, str] | None = None, **columns: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        frame = pl.DataFrame(columns)
        for length in ("prompt_tokens", "output_tokens"):
            if length not in columns:
                frame = frame.with_columns(pl.lit(1, pl.Int64).alias(length))
        frame.drop([name for name in columns if columns[name] is None]).write_parquet(path, metadata=metadata)
        return path

    return write


@pytest.fixture
def trace_of(parquet: Writer) -> Reader:
    """`trace_of(**columns)` is the trace that these columns make, as it is read from a file."""
    return lambda *arguments, **columns: read_trace(parquet(*arguments, **columns))


@pytest.fixture
def generated(tmp_path: Path) -> Callable[[str], Trace]:
    """`generated(text)` is the trace of a specification of that text."""

    def generate(text: str) -> Trace:
        path = tmp_path / "spec.toml"
        path.write_text(text)
        return generate_trace(path)

    return generate


@pytest.fixture
def samples() -> Path:
    """The folder of public traces, which is not part of the project."""
    folder = os.environ.get("REPLAY_TRACES")
    if not folder:
        pytest.skip("REPLAY_TRACES names no folder of public traces")
    return Path(folder)
