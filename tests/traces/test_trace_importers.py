"""Importers: other people's files, with every digit of their times, and a row's number in every refusal."""

from __future__ import annotations

import gzip
import hashlib

import polars as pl
import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.canonical import canonical_trace
from replay.traces.formats import formats, import_trace
from replay.traces.source import Source

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


@pytest.fixture
def file(tmp_path):
    def write(content: str, name: str = "trace.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return write


def arrivals(trace) -> list[int]:
    return trace.frame["arrival"].to_list()


def test_seven_digits_of_a_time_in_text_survive(file):
    trace = import_trace(
        "azure", file(f"{HEADER}\r\n2023-11-16 08:00:00.1234567,1,2\r\n2023-11-16 08:00:00.1234577,3,4")
    )
    assert arrivals(trace) == [0, 1_000]  # 0.001 ms
    assert trace.frame["prompt_tokens"].to_list() == [1, 3]
    assert trace.frame["output_tokens"].to_list() == [2, 4]


def test_offsets_of_a_millisecond_survive_in_text(file):
    rows = "\n".join(f"2024-05-10 00:00:00.{millisecond:03d}+00:00,1,1" for millisecond in (1, 2, 9, 11))
    assert arrivals(import_trace("azure", file(f"{HEADER}\n{rows}\n"))) == [0, 1_000_000, 8_000_000, 10_000_000]


@pytest.mark.parametrize(
    ("time", "nanoseconds"),
    [
        ("2024-05-10 00:00:01", 10**9),
        ("2024-05-10 00:00:01+00:00", 10**9),
        ("2024-05-10T00:00:01Z", 10**9),
        ("2024-05-10T00:00:00.269Z", 269_000_000),
        ("2024-05-10 00:00:00.009930+00:00", 9_930_000),
        ("2024-05-10 00:00:00.6805900", 680_590_000),
        ("2024-05-10 00:00:00.123456789", 123_456_789),
        ("2024-05-10 09:00:01.5+09:00", 1_500_000_000),
        ("2024-05-09 19:00:02-0500", 2 * 10**9),
        ("2024-05-09 18:30:02-05:30", 2 * 10**9),
    ],
)
def test_times_with_and_without_fraction_and_zone(file, time, nanoseconds):
    trace = import_trace("azure", file(f"{HEADER}\n2024-05-10 00:00:00,1,1\n{time},1,1\n"))
    assert arrivals(trace) == [0, nanoseconds]


def test_what_azure_added_later_is_left_out_by_name(file):
    trace = import_trace(
        "azure", file(f"row,{HEADER.replace(',', ',NumImages,', 1)}\n0,2024-10-15T12:00:00.269Z,3,770,491\n")
    )
    assert trace.notes == ["columns left out: row, NumImages"]
    assert trace.frame["output_tokens"].to_list() == [491]


def test_a_failed_row_is_skipped_and_said_in_the_history(file):
    path = file(f"{HEADER}\n2024-05-10 00:00:00,1,0\n2024-05-10 00:00:07,1,1\n2024-05-10 00:00:08,1,1\n")
    trace = import_trace("azure", path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert trace.sha256 == digest
    assert arrivals(trace) == [0, 10**9]
    assert trace.history == [
        f"imported as azure from trace.csv (sha256 {digest[:16]}); 1 row skipped (zero output tokens)"
    ]


def test_blank_lines_are_no_rows_a_mark_of_byte_order_is_no_text_and_gzip_is_unpacked(file, tmp_path):
    text = f"\ufeff{HEADER}\r\n\r\n2024-05-10 00:00:00,5,1\r\n\r\n"
    assert import_trace("azure", file(text)).frame["prompt_tokens"].to_list() == [5]
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert import_trace("azure", packed).frame["prompt_tokens"].to_list() == [5]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("2024-05-10 25:00:00,1,1", "column 'TIMESTAMP': '2024-05-10 25:00:00', but must be a time"),
        ("soon,1,1", "row 1 (counted from 0), column 'TIMESTAMP': 'soon', but must be a time"),
        ("2024-05-10 00:00:01,1.5,1", "column 'ContextTokens': '1.5', but must be a whole number"),
        ("2024-05-10 00:00:01,-1,1", "row 1 (counted from 0), column 'prompt_tokens': -1, but must be a whole number"),
        ("2024-05-10 00:00:01,1,1,1", "cannot be read as CSV"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named(file, row, sentence):
    path = file(f"{HEADER}\n2024-05-10 00:00:00,1,1\n{row}\n")
    with pytest.raises(TraceError) as fault:
        import_trace("azure", path)
    assert str(fault.value).startswith(str(path))
    assert sentence in str(fault.value)


def test_files_that_are_something_else_are_a_sentence(file, tmp_path):
    with pytest.raises(TraceError, match="holds no requests"):
        import_trace("azure", file(""))
    with pytest.raises(TraceError, match="holds no requests"):
        import_trace("azure", file(HEADER))
    with pytest.raises(TraceError, match=r"column 'ContextTokens' is missing; there are: TIMESTAMP, Tokens"):
        import_trace("azure", file("TIMESTAMP,Tokens\n1,2\n"))
    with pytest.raises(TraceError, match="there is no such file"):
        import_trace("azure", tmp_path / "absent.csv")
    with pytest.raises(TraceError, match="is a folder, but this format is one file"):
        import_trace("azure", tmp_path)
    with pytest.raises(ExperimentError, match=r"there is no trace format 'azur': did you mean 'azure'\?"):
        import_trace("azur", tmp_path)
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)) * 4)
    for form in formats:
        with pytest.raises((TraceError, ExperimentError), match="binary"):  # some ask for a setting first
            import_trace(form, binary)


def test_the_azure_chat_trace_of_2023_is_imported_whole(samples):
    trace = import_trace("azure", samples / "azure2023" / "AzureLLMInferenceTrace_conv.csv")
    assert trace.frame.height == 19_366
    # from 18:15:46.6805900 to 19:14:08.4025270
    assert trace.span_nanoseconds == (58 * 60 + 21) * 10**9 + 721_937_000
    assert arrivals(trace)[:3] == [0, 4_314_579_000, 4_541_877_000]
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (22_361_870, 4_088_665)
    assert trace.frame["arrival"].n_unique() == distinct_times(samples)
    assert (trace.notes, trace.skipped) == ([], {})


def distinct_times(samples) -> int:
    lines = (samples / "azure2023" / "AzureLLMInferenceTrace_conv.csv").read_text().splitlines()[1:]
    return len({line.split(",")[0] for line in lines})


@pytest.mark.parametrize(
    ("name", "rows", "span"),
    [
        ("azure2024/azure2024_code_head5_tail5_from_notebook.csv", 10, 604_799_919_571_000),
        ("azure2024/azure2024_conv_head5_tail5_from_notebook.csv", 10, 604_799_994_297_000),
        ("azure2025/azure2025_lmm_head5_tail5_from_notebook.csv", 10, 604_799_695_000_000),
        ("inference-perf/trace.csv", 20, 13_025_088_000),
    ],
)
def test_later_azure_files_differ_only_in_their_times(samples, name, rows, span):
    trace = import_trace("azure", samples / name)
    assert (trace.frame.height, trace.span_nanoseconds) == (rows, span)


def test_rows_of_a_log_that_say_nothing_are_skipped_by_reason_or_refused(file):
    rows = [
        "2024-05-10 00:00:00,1,1",
        ",1,1",
        "2024-05-10 00:00:01,1,",
        "2024-05-10 00:00:02,,0",
        "2024-05-10 00:00:03,0,4",
    ]
    path = file("\n".join([HEADER, *rows]))
    trace = import_trace("azure", path)
    assert (trace.rows_read, trace.extent().rows) == (5, 1)
    assert trace.skipped == {
        "no arrival": 1,
        "no output tokens given": 1,
        "zero output tokens": 1,
        "zero prompt tokens": 1,
    }
    with pytest.raises(TraceError, match=r"trace\.csv, row 1 \(counted from 0\): no arrival, which --strict refuses"):
        import_trace("azure", path, strict=True)


def test_hashes_beside_lengths_that_are_text_are_refused_by_the_lengths(tmp_path):
    frame = pl.DataFrame({"arrival_ms": [0], "prompt_tokens": ["5"], "output_tokens": [1], "prefix_hashes": [[1]]})
    source = Source(tmp_path / "log", frame.lazy(), block_size=16)
    with pytest.raises(TraceError, match=r"column 'prompt_tokens' is String, but must be whole numbers"):
        canonical_trace("log", tmp_path / "log", [source], "")


def test_settings_that_a_format_has_not_are_sentences(file):
    path = file("arrived_at,num_prefill_tokens,num_decode_tokens", "0.5,5,5")
    with pytest.raises(ExperimentError, match=r"^vidur has no setting 'block_size': there are none$"):
        import_trace("vidur", path, settings={"block_size": 16})
    with pytest.raises(ExperimentError, match=r"^mooncake has no setting 'block': did you mean 'block_size'\?$"):
        import_trace("mooncake", path, settings={"block": 16})
    with pytest.raises(ExperimentError, match=r"^unit: 'minutes' is none of s, ms, us, ns$"):
        import_trace("lmcache", path, settings={"unit": "minutes"})
    with pytest.raises(ExperimentError, match=r"^hash_scope: 'none' is neither global nor session$"):
        import_trace("table", path, settings={"hash_scope": "none"})
