"""The format table: anybody's columns by the names that are given for them, times by the unit that is given."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import import_trace
from replay.traces.table import Trace

LENGTHS = "prompt_tokens=in,output_tokens=out"


def read(path: Path, columns: str = "", *, strict: bool = False, **options: object) -> Trace:
    return import_trace("table", path, strict=strict, settings={"map": columns, **options} if columns else options)


def csv(folder: Path, *lines: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def arrivals(trace: Trace) -> list[int]:
    return trace.frame["arrival"].to_list()


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("s", ("0", "10.535", "27.482")),
        ("ms", ("0", "10535", "27482")),
        ("us", ("1", "10535001", "27482001")),
        ("ns", ("1700000000000000000", "1700000010535000000", "1700000027482000000")),
    ],
)
def test_the_same_offsets_from_every_unit_when_it_is_the_right_one(
    tmp_path: Path, unit: str, times: tuple[str]
) -> None:
    lines = csv(tmp_path, "ts,in,out", *(f"{time},1,1" for time in times))
    trace = read(lines, f"arrival_{unit}=ts,{LENGTHS}")
    assert arrivals(trace) == [0, 10_535_000_000, 27_482_000_000]
    assert trace.notes == []
    objects = csv(tmp_path, *(f'{{"ts": {time}, "in": 1, "out": 1}}' for time in times), name="log.jsonl")
    assert arrivals(read(objects, f"arrival_{unit}=ts,{LENGTHS}")) == arrivals(trace)


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_bare_number_whose_unit_nobody_says_is_refused_with_the_four_right_names(tmp_path: Path, name: str) -> None:
    lines = ["ts,in,out", "10535,1,1"] if name == "log.csv" else ['{"ts": 10535, "in": 1, "out": 1}']
    with pytest.raises(TraceError) as fault:
        read(csv(tmp_path, *lines, name=name), f"arrival=ts,{LENGTHS}")
    assert "row 0 (counted from 0), column 'ts': '10535', but must be a time such as" in str(fault.value)
    assert "name it arrival_s, arrival_ms, arrival_us or arrival_ns" in str(fault.value)


def test_so_is_a_number_in_parquet_and_a_time_that_is_called_a_number(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"ts": [1], "at": [datetime(2024, 5, 10)], "in": [1], "out": [1]}).write_parquet(path)
    with pytest.raises(
        TraceError, match=r"log\.parquet: the column 'ts' is a number \(Int64\), but a bare number says"
    ):
        read(path, f"arrival=ts,{LENGTHS}")
    with pytest.raises(TraceError, match=r"'at' is a Datetime.*: map it as arrival=at"):
        read(path, f"arrival_ms=at,{LENGTHS}")
    with pytest.raises(TraceError, match=r"'2024-05-10', but must be a number \(s\); a time in text is arrival=ts"):
        read(csv(tmp_path, "ts,in,out", "2024-05-10,1,1"), f"arrival_s=ts,{LENGTHS}")


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.csv.gz"])
def test_every_digit_of_a_time_is_kept(tmp_path: Path, name: str) -> None:
    """1700000000.123456789 has more digits than a double holds."""
    times = ("1700000000.123456789", "1700000000.123456790", "1700000001.000000001")
    lines = ["ts,in,out", *(f"{time},1,1" for time in times)]
    if name == "log.jsonl":
        lines = [f'{{"ts": {time}, "in": 1, "out": 1}}' for time in times]
    path = csv(tmp_path, *lines, name=name)
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert arrivals(read(path, f"arrival_s=ts,{LENGTHS}")) == [0, 1, 876_543_212]


def test_a_number_too_large_for_its_unit_is_refused_and_not_wrapped_around(tmp_path: Path) -> None:
    """Milliseconds since 1970 that are called seconds lie beyond what 64 bits of nanoseconds hold."""
    with pytest.raises(TraceError, match=r"column 'ts': '1700000000000', but must be a number \(s\)"):
        read(csv(tmp_path, "ts,in,out", "1700000000000,1,1"), f"arrival_s=ts,{LENGTHS}")


def test_instants_in_text_and_as_parquet_has_them(tmp_path: Path) -> None:
    path = csv(tmp_path, "when,in,out", "2024-05-10T09:00:00.0000001+09:00,1,1", "2024-05-10 00:00:01,1,1")
    assert arrivals(read(path, f"arrival=when,{LENGTHS}")) == [0, 999_999_900]
    first = datetime(2024, 5, 10, tzinfo=UTC)
    frame = pl.DataFrame({"when": [first + timedelta(microseconds=7), first], "in": [1, 2], "out": [1, 1]})
    frame.write_parquet(tmp_path / "log.parquet")
    trace = read(tmp_path / "log.parquet", f"arrival=when,{LENGTHS}")
    assert (arrivals(trace), trace.frame["prompt_tokens"].to_list()) == ([0, 7_000], [2, 1])
    assert trace.notes == ["1 row out of order: sorted by arrival"]


def test_a_gateways_log_its_failures_its_nothings_and_its_times_of_ending(tmp_path: Path) -> None:
    path = csv(
        tmp_path,
        "finished,took,status,tenant,model,in,out,limit",
        "1700000002.500,2.5,200,a,big,10,5,100",
        "1700000002.100,0.1,200,-,big,11,6,-",
        "1700000003.000,0.2,500,a,big,-,-,-",
        "1700000004.000,0.2,429,b,big,7,0,-",
        "1700000005.000,0.5,200,b,small,8,0,-",
        "1700000005.000,0.5,201,b,small,9,1,-",
    )
    columns = "arrival_s=finished,prompt_tokens=in,output_tokens=out,user=tenant,slo=model,max_tokens=limit"
    trace = read(path, columns, keep="status=200|201", took="took s", null="-")
    assert arrivals(trace) == [0, 2_000_000_000, 4_500_000_000]
    shown = trace.frame.select("prompt_tokens", "user", "slo", "max_tokens").rows()
    assert shown == [(10, "a", "big", 100), (11, None, "big", None), (9, "b", "small", None)]
    assert trace.skipped == {"status is not 200 or 201": 2, "zero output tokens": 1}
    assert (trace.rows_read, trace.notes) == (6, [])
    with pytest.raises(TraceError, match=r"row 2 \(counted from 0\): status is not 200 or 201, which --strict refuses"):
        read(path, columns, strict=True, keep="status=200|201", took="took s", null="-")


def test_rows_with_an_error_are_kept_out_by_a_column_that_is_empty_otherwise(tmp_path: Path) -> None:
    path = csv(tmp_path, "arrival_s,prompt_tokens,output_tokens,error", "0,1,1,", "1,1,1,timeout", "2,1,1,")
    trace = read(path, keep="error=")
    assert (arrivals(trace), trace.skipped) == ([0, 2_000_000_000], {"error is not empty": 1})
    assert read(path, keep="error=timeout").skipped == {"error is not timeout": 2}


def test_fields_within_fields_of_json_and_what_all_of_them_are_called(tmp_path: Path) -> None:
    path = csv(
        tmp_path,
        '{"at": "2026-01-31T12:00:00Z", "usage": {"prompt_tokens": 7, "completion_tokens": "3"}, "id": 9, "ok": true}',
        "",
        '{"at": "2026-01-31T12:00:01Z", "usage": null, "id": 10, "ok": false}',
        '{"at": "2026-01-31T12:00:02Z", "usage": {"prompt_tokens": 8.0, "completion_tokens": 4}, "ok": true, "x": [1]}',
        name="log.jsonl",
    )
    columns = "arrival=at,prompt_tokens=usage.prompt_tokens,output_tokens=usage.completion_tokens"
    trace = read(path, f"{columns},user=id", keep="ok=true")
    assert trace.frame.select("prompt_tokens", "output_tokens", "user").rows() == [(7, 3, "9"), (8, 4, None)]
    assert (trace.skipped, trace.notes) == ({"ok is not true": 1}, ["columns left out: x"])
    array = csv(tmp_path, "[", ",\n".join(path.read_text().split("\n\n")[0].splitlines()), "]", name="log.json")
    assert read(array, columns).frame["prompt_tokens"].to_list() == [7]
    with pytest.raises(TraceError, match=r"no column 'usage\.prompt_token': did you mean 'usage\.prompt_tokens'\?"):
        read(path, columns.replace("usage.prompt_tokens", "usage.prompt_token"))
    frame = pl.DataFrame({"at": [5], "usage": [{"in": 3, "out": 4}]})
    frame.write_parquet(tmp_path / "log.parquet")
    nested = read(tmp_path / "log.parquet", "arrival_us=at,prompt_tokens=usage.in,output_tokens=usage.out")
    assert nested.frame.select("prompt_tokens", "output_tokens").rows() == [(3, 4)]
    assert nested.notes == []


def test_columns_with_our_names_need_no_map_and_can_be_left_out(tmp_path: Path) -> None:
    head = "arrival_s,ts,prompt_tokens,output_tokens,user,request_id"
    path = csv(tmp_path, head, "0,7,1,1,a,r", "1,5,2,2,b,r")
    trace = read(path, "request_id=")
    assert (arrivals(trace), trace.frame["user"].to_list()) == ([0, 10**9], ["a", "b"])
    assert trace.frame["request_id"].to_list() == ["0", "1"]
    assert trace.notes == ["columns left out: ts, request_id"]
    assert read(path, "request_id=,arrival_s=ts").frame["user"].to_list() == ["b", "a"]
    with pytest.raises(TraceError, match=r"row 1 .*column 'request_id': 'r', but must be unique"):
        read(path)


def test_columns_with_nearly_our_names_are_remarked_upon(tmp_path: Path) -> None:
    path = csv(tmp_path, "arrival_s,prompt_tokens,output_tokens,user_id,Session_ID,x", "0,1,1,a,b,c")
    assert read(path, "user=user_id").notes == [
        "columns left out: Session_ID, x",
        "left out, but perhaps meant: --map session=Session_ID",
    ]
    path = csv(tmp_path, "arrival_s,prompt_tokens,output_tokens,user_id,hash_ids", "0,1,1,a,[7]")
    assert read(path).notes[1] == (
        "left out, but perhaps meant: --map user=user_id,prefix_hashes=hash_ids -o block_size=..."
    )


def test_other_separators_names_with_spaces_and_files_without_a_header(tmp_path: Path) -> None:
    tabs = csv(tmp_path, "t\tPrompt, all\tout", "0\t5\t1", name="log.tsv")
    assert read(tabs, 'arrival_s=t,"prompt_tokens=Prompt, all",output_tokens=out').frame["prompt_tokens"][0] == 5
    bare = csv(tmp_path, "0;5;1", "1;6;1")
    trace = read(bare, f"arrival_s=t,{LENGTHS}", separator=";", header="t,in,out")
    assert trace.frame["prompt_tokens"].to_list() == [5, 6]
    with pytest.raises(TraceError, match=r"log\.csv: has 3 columns, but 2 names: t, in"):
        read(bare, f"arrival_s=t,{LENGTHS}", separator=";", header="t,in")
    with pytest.raises(TraceError, match=r"log\.csv: has one column, '0;5;1': is ';' its -o separator\?"):
        read(bare, f"arrival_s=t,{LENGTHS}")


def test_hashes_in_text_with_the_block_and_the_tail_that_are_given(tmp_path: Path) -> None:
    path = csv(tmp_path, "arrival_s,in,out,h,think", '0,130,1,"[5, 6]",', "1,64,1,5 6,1.5", "2,64,1,,2")
    columns = f"{LENGTHS},prefix_hashes=h,think_time_s=think"
    trace = read(path, columns, block_size=64, hash_tail="floor")
    assert trace.frame["prefix_hashes"].to_list() == [[5, 6], [5], None]
    assert trace.frame["think_time_ms"].to_list() == [None, 1_500.0, 2_000.0]
    assert (trace.block_size, trace.hash_tail, trace.hash_scope) == (64, "floor", "global")
    with pytest.raises(TraceError, match=r"log\.csv: how many tokens has a block of prefix_hashes\? Say it as -o"):
        read(path, columns)
    with pytest.raises(TraceError, match="column 'h': '1, x', but must be a list of whole numbers, such as"):
        read(csv(tmp_path, "arrival_s,in,out,h,think", '0,130,1,"1, x",'), columns, block_size=64)


def test_numbers_that_another_program_made_floats_of_are_whole_again(tmp_path: Path) -> None:
    frame = pl.DataFrame({"arrival_s": [0.0, 1.0, 2.0], "in": [7.0, float("nan"), 8.0], "out": [1.0, 1.0, None]})
    frame.write_parquet(tmp_path / "log.parquet")
    trace = read(tmp_path / "log.parquet", LENGTHS)
    assert trace.frame["prompt_tokens"].to_list() == [7]
    assert trace.skipped == {"no output tokens given": 1, "no prompt tokens given": 1}
    frame.with_columns(pl.Series("in", [7.0, 7.5, 8.0])).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\), column 'in': 7\.5, but must be a whole number"):
        read(tmp_path / "log.parquet", LENGTHS)


def test_a_folder_of_files_is_one_trace(tmp_path: Path) -> None:
    csv(tmp_path, "ts,in,out", "2024-05-11 00:00:00,2,1", name="2.csv")
    csv(tmp_path, "ts,in,out", "2024-05-10 00:00:00,1,1", name="1.csv")
    assert arrivals(read(tmp_path, f"arrival=ts,{LENGTHS}")) == [0, 86_400 * 10**9]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("prompt_token=in", "--map: a trace has no column 'prompt_token': did you mean 'prompt_tokens'?"),
        ("ts=ts", "--map: a trace has no column 'ts': a time is arrival_s, arrival_ms, arrival_us or arrival_ns"),
        ("prompt_tokens", "--map: 'prompt_tokens' is not OURS=THEIRS, such as prompt_tokens=in"),
        ("user=a,user=b", "--map: user stands there twice"),
        ("arrival_s=a,arrival_ms=b", "--map: arrival_s and arrival_ms both are the arrival; leave one of them"),
    ],
)
def test_a_wrong_map_is_refused(tmp_path: Path, columns: str, sentence: str) -> None:
    with pytest.raises(ExperimentError) as fault:
        read(csv(tmp_path, "a"), columns)
    assert sentence in str(fault.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (f"arrival_s=time,{LENGTHS}", "log.csv: there is no column 'time': did you mean 'times'?"),
        (
            "arrival_s=times,output_tokens=out",
            "log.csv: which column is prompt_tokens? Name it in --map; there are: times, in, out",
        ),
        (
            "",
            "log.csv: which columns are prompt_tokens, output_tokens and the arrival? Name them in --map, the arrival "
            "as arrival_s, arrival_ms, arrival_us or arrival_ns by its unit, or as arrival if it is a time such as",
        ),
        (LENGTHS, "log.csv: which column is the arrival? Name it in --map, as arrival_s, arrival_ms, arrival_us or"),
    ],
)
def test_a_column_that_is_missing_is_asked_for(tmp_path: Path, columns: str, sentence: str) -> None:
    with pytest.raises(TraceError) as fault:
        read(csv(tmp_path, "times,in,out", "0,1,1"), columns)
    assert sentence in str(fault.value)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"keep": "status"}, "keep: 'status' is not COLUMN=VALUE, such as status=200"),
        ({"took": "rt"}, "took: 'rt' is not a column and its unit, such as 'request_time s'"),
        ({"separator": "||"}, r"separator: '||' is not one character"),
    ],
)
def test_a_wrong_setting_is_refused(tmp_path: Path, option: dict[str, str], sentence: str) -> None:
    with pytest.raises(ExperimentError) as fault:
        read(csv(tmp_path, "a"), **option)
    assert sentence in str(fault.value)


@pytest.mark.parametrize("between", [", ", ",\n", "\n, "])
def test_an_array_is_read_element_by_element_wherever_its_lines_end(tmp_path: Path, between: str) -> None:
    breaks = [" ", "\n", " ", "\n", ""]
    rows = [f'{{"arrival_s": {at}, "prompt_tokens": 1,{end}"output_tokens": 1}}' for at, end in enumerate(breaks)]
    trace = read(csv(tmp_path, f"[{between.join(rows)}]", name="log.json"))
    assert arrivals(trace) == [time * 10**9 for time in range(5)]


def test_fields_within_fields_are_offered_as_a_map_names_them(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"ts": 1, "usage": {"in": 2, "out": 3}}\n{"ts": 1, "usage": null, "error": {"code": 429}}\n')
    with pytest.raises(TraceError, match=r"there are: ts, usage\.in, usage\.out, error\.code$"):
        read(path, "arrival_s=ts")


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    good = '{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1}'
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\): is not JSON; each line must be one object"):
        read(csv(tmp_path, good, '{"arrival_s":', name="log.jsonl"))
    with pytest.raises(TraceError, match=r"row 0 \(counted from 0\): is not JSON, or the file ends within it"):
        read(csv(tmp_path, '{"arrival_s":', name="log.jsonl"))
    with pytest.raises(TraceError, match=r"row 0 \(counted from 0\): is not a JSON object"):
        read(csv(tmp_path, "[1, 2]", name="log.json"))
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\): is not a JSON object"):
        read(csv(tmp_path, good, "[1]", name="log.jsonl"))
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\), column 'prompt_tokens': 'x', but must be a whole"):
        read(csv(tmp_path, good, good.replace('tokens": 1', 'tokens": "x"', 1), name="log.jsonl"))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(times=st.lists(st.integers(0, 10**19 // 2), min_size=1, max_size=5))
def test_nanoseconds_written_as_seconds_come_back(tmp_path: Path, times: list[int]) -> None:
    rows = [f"{time // 10**9}.{time % 10**9:09d},1,1" for time in times]
    trace = read(csv(tmp_path, "ts,in,out", *rows), f"arrival_s=ts,{LENGTHS}")
    assert arrivals(trace) == sorted(time - min(times) for time in times)


def test_the_weka_sample_is_imported_whole(samples: Path) -> None:
    (path,) = (samples / "weka").glob("*.parquet")
    trace = read(path, "user=user_id,session=session_id,prefix_hashes=hash_ids", block_size=64, hash_tail="floor")
    raw = pl.read_parquet(path)
    assert trace.frame.height == 1_579
    assert trace.span_nanoseconds == (raw["arrival_us"].max() - raw["arrival_us"].min()) * 1_000 == 8_658_686_951_000
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (106_158_952, 672_970)
    assert trace.frame["prefix_hashes"].list.len().sum() == raw["hash_ids"].list.len().sum() == 1_657_954
    assert (trace.frame["user"].n_unique(), trace.frame["session"].n_unique()) == (60, 64)
    assert trace.notes == ["columns left out: model"]
