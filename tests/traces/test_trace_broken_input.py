"""What no publisher meant to write: names, numbers, places and disks that are not as a reader expects them.

Each is one sentence, on one line, that names what is wrong; nothing is taken for what it is not.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from replay.errors import OutputError, TraceError
from replay.traces.formats import import_trace
from replay.traces.reading import read_trace
from replay.traces.scratch import Scratch
from replay.traces.wording import listed, named


def test_names_of_other_people_stand_in_a_sentence_on_one_line_and_short(tmp_path: Path) -> None:
    assert named("in\nout") == r"in\nout"
    assert named("\ud800") == r"\ud800"
    assert named("x" * 61) == "x" * 57 + "..."
    assert listed(map(str, range(22))) == f"{', '.join(map(str, range(20)))} and 2 more"
    assert listed(map(str, range(22)), None).endswith("20, 21")
    path = tmp_path / "a.csv"
    path.write_text('TIMESTAMP,"Context\nTokens",GeneratedTokens\n2023-11-16 18:15:46,5,5\n')
    with pytest.raises(TraceError) as fault:
        import_trace("azure", path)
    assert str(fault.value) == (
        f"{path}: the column 'ContextTokens' is missing; there are: TIMESTAMP, Context\\nTokens, GeneratedTokens"
    )


def test_a_column_that_only_says_what_to_skip_is_missed_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("request_id,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n0,0,0.5,1,5,5\n")
    with pytest.raises(TraceError, match=r"a.csv: the column 'request_type' is missing; there are: request_id, appl"):
        import_trace("splitwise-sim", path)


def test_columns_with_the_names_that_are_used_inside_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame(
        {"arrival_ms": [0, 1], "prompt_tokens": [1, 0], "output_tokens": [1, 1], "__skip": ["a", "b"], "__row": [7, 7]}
        | {"__broken": [True, True], "__file": [7, 7]}
    ).write_parquet(path)
    with pytest.raises(TraceError, match=r"a.parquet, row 1 .*, column 'prompt_tokens': 0, but must be"):
        read_trace(path)
    pl.read_parquet(path).head(1).write_parquet(path)
    trace = read_trace(path)
    assert trace.skipped == {}
    assert trace.notes == ["columns left out: __file, __row, __broken, __skip"]


def test_tokens_whose_sums_would_not_be_numbers_of_64_bits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,2147483648\n")
    with pytest.raises(TraceError, match=r"'output_tokens': 2147483648, but must be at most 2,147,483,647 tokens"):
        import_trace("vidur", path)


def test_a_packed_file_that_is_cut_off_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")  # a header and nothing after it
    with pytest.raises(TraceError, match=r"a.csv.gz: "):
        import_trace("vidur", path)


def test_a_place_for_temporary_files_that_is_none_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(OutputError, match=r"nowhere: is no folder for temporary files \(No such file or directory\)"):
        Scratch().spooled(pl.LazyFrame({"arrival": [0]}))
