"""Reading and refusing: what becomes of a file, and the one sentence for each that cannot be replayed."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from itertools import permutations
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from replay.errors import TraceError
from replay.traces.reading import read_trace
from replay.traces.table import SCHEMA
from replay.traces.writing import write_trace

NOON = datetime(2024, 5, 10, 12)


def arrivals(trace) -> list[int]:
    return trace.frame["arrival"].to_list()


def test_naive_and_zoned_files_give_the_same_offsets_in_every_order(parquet, tmp_path):
    tokyo = pl.Series([datetime(2024, 5, 10, 21, 0, 1, 500_000)]).dt.replace_time_zone("Asia/Tokyo")
    kinds = {
        "naive": [NOON, NOON + timedelta(seconds=2)],
        "utc": [(NOON + timedelta(seconds=1)).replace(tzinfo=UTC)],
        "tokyo": tokyo,
    }
    for chosen, seconds in ((("naive", "utc"), [0, 1, 2]), (("naive", "utc", "tokyo"), [0, 1, 1.5, 2])):
        for order in permutations(chosen):
            folder = "-".join(order)
            for place, kind in enumerate(order):
                parquet(f"{folder}/{place}.parquet", arrival=kinds[kind])
            trace = read_trace(tmp_path / folder)
            assert arrivals(trace) == [second * 1e9 for second in seconds]
            assert "arrivals without a zone are read as UTC, because other files of the trace have one" in trace.notes


def test_a_zone_with_summer_time_does_not_bend_gaps(trace_of):
    # clocks in Berlin went from 02:00 to 03:00 on 2024-03-31: these two are one second apart
    berlin = ZoneInfo("Europe/Berlin")
    trace = trace_of(arrival=[datetime(2024, 3, 31, 1, 59, 59, tzinfo=berlin), datetime(2024, 3, 31, 3, tzinfo=berlin)])
    assert arrivals(trace) == [0, 1_000_000_000]


def test_files_with_instants_and_files_with_offsets_are_refused_naming_both(parquet, tmp_path):
    parquet("mixed/a.parquet", arrival=[NOON])
    parquet("mixed/b.parquet", arrival_s=[0.5])
    with pytest.raises(
        TraceError, match=r"a\.parquet and .*b\.parquet: one has arrival \(Datetime.*arrival_s \(Float64"
    ):
        read_trace(tmp_path / "mixed")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("kind", [pl.Datetime, pl.Duration])
def test_offsets_of_less_than_a_millisecond_apart_survive(trace_of, unit, kind):
    size = {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit]
    times = pl.Series([n * size for n in (1, 2, 9, 11)]).cast(kind(unit))
    assert arrivals(trace_of(arrival=times)) == [0, 1_000_000, 8_000_000, 10_000_000]


def test_no_nanosecond_is_lost(trace_of):
    assert arrivals(
        trace_of(arrival=pl.Series([1_700_000_000_123_456_789 + n for n in (0, 1, 7)]).cast(pl.Datetime("ns")))
    ) == [0, 1, 7]
    assert arrivals(trace_of(arrival_ns=[2**62, 2**62 + 1])) == [0, 1]
    assert arrivals(trace_of(arrival_us=pl.Series([3, 2**32 - 1], dtype=pl.UInt32))) == [0, 4_294_967_292_000]


def test_whole_and_fractional_numbers_in_their_units_give_the_same_offsets(trace_of):
    right = [0, 10_535_000_000, 27_482_000_000]
    assert arrivals(trace_of(arrival_ms=[0, 10_535, 27_482])) == right
    assert arrivals(trace_of(arrival_s=[0.0, 10.535, 27.482])) == right
    assert arrivals(trace_of(arrival_s=[1_000_000.0, 1_000_010.535, 1_000_027.482])) == pytest.approx(right, abs=1)
    assert arrivals(trace_of(arrival_s=pl.Series(["0", "10.535", "27.482"]).cast(pl.Decimal(20, 6)))) == right


def test_a_float_since_1970_is_rounded_once_at_the_nanosecond(trace_of):
    # a float of this size holds 2**-22 s, but times 1e9 only 256 ns; 123 * 2**-20 s are 117,301.94 ns
    assert arrivals(trace_of(arrival_s=[1.7e9, 1.7e9 + 123 * 2**-20])) == [0, 117_302]
    assert arrivals(trace_of(arrival_s=pl.Series([0.0, 1.5], dtype=pl.Float32))) == [0, 1_500_000_000]


@pytest.mark.parametrize("numbers", [[0, 10_535], [0.0, 10.535]])
def test_a_number_without_a_unit_is_refused_with_what_would_be_right(parquet, numbers):
    with pytest.raises(TraceError) as fault:
        read_trace(parquet(arrival=numbers))
    assert "trace.parquet: the column 'arrival' does not say its unit" in str(fault.value)
    for form in ("Duration", "Datetime", "arrival_s", "arrival_ms", "arrival_us", "arrival_ns"):
        assert form in str(fault.value)


def test_an_absurd_span_draws_a_warning(trace_of):
    day = 24 * 3600
    assert not trace_of(arrival_s=[0, day]).notes
    (note,) = trace_of(arrival_s=[0, day + 1]).notes
    assert note == "warning: 2 requests span 86,401 s (24.0 h): is the unit of the arrivals right?"
    assert not trace_of(arrival_ns=[*range(99), 999_999]).notes  # 100 rows
    (note,) = trace_of(arrival_ns=[*range(100), 999_999]).notes  # 101
    assert note == "warning: 101 requests span 0.000999999 s: is the unit of the arrivals right?"
    assert not trace_of(arrival_ns=[*range(100), 1_000_000]).notes


def test_a_trace_without_rows_is_one_sentence(parquet, tmp_path):
    path = parquet(arrival_s=pl.Series([], dtype=pl.Float64))
    with pytest.raises(TraceError) as fault:
        read_trace(path)
    assert str(fault.value) == f"{path}: the trace holds no requests"
    parquet("folder/a.parquet", arrival_s=pl.Series([], dtype=pl.Float64))
    parquet("folder/b.parquet", arrival_s=[1.0])
    assert read_trace(tmp_path / "folder").frame.height == 1


def test_rows_with_no_output_are_skipped_and_counted(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2, 3, 4], output_tokens=[3, 0, 5, 0, 1])
    assert trace.frame["output_tokens"].to_list() == [3, 5, 1]
    assert trace.frame["request_id"].to_list() == ["0", "2", "4"]  # their row numbers in the file
    assert trace.skipped == {"zero output tokens": 2}
    assert trace.extent().output_tokens == 9


def test_time_begins_with_the_first_row_that_is_replayed(trace_of):
    assert arrivals(trace_of(arrival_s=[5, 7, 8], output_tokens=[0, 1, 1])) == [0, 1_000_000_000]


def test_nothing_but_failed_rows_is_refused(parquet):
    with pytest.raises(TraceError, match=r"can be replayed: 2 rows skipped \(zero output tokens\)"):
        read_trace(parquet(arrival_s=[0, 1], output_tokens=[0, 0]))


def test_every_canonical_column_is_there_and_null_where_nothing_is_known(trace_of):
    trace = trace_of(arrival_s=[0, 1], user=["a", None])
    assert trace.frame.schema == SCHEMA
    assert trace.frame["user"].to_list() == ["a", None]
    assert trace.frame["session"].null_count() == 2


def test_duplicates_stay_and_ties_keep_the_order_of_the_file(trace_of):
    trace = trace_of(arrival_s=[1, 0, 1, 0, 1], prompt_tokens=[10, 20, 10, 40, 50])
    assert trace.frame["prompt_tokens"].to_list() == [20, 40, 10, 10, 50]
    assert trace.frame["request_id"].to_list() == ["1", "3", "0", "2", "4"]
    assert trace.notes == ["2 rows out of order: sorted by arrival"]
    assert not trace_of(arrival_s=[0, 0, 1]).notes
    many = trace_of(arrival_s=[row % 3 for row in range(6_000)], prompt_tokens=range(1, 6_001))
    assert many.frame["prompt_tokens"].to_list() == [*range(1, 6_001, 3), *range(2, 6_001, 3), *range(3, 6_001, 3)]


def test_columns_that_are_not_known_are_named(trace_of):
    assert trace_of(arrival_s=[0], model=["m"], colour=[1]).notes == ["columns left out: model, colour"]


def test_numbers_as_names_are_text_and_categories_too(trace_of):
    trace = trace_of(
        arrival_s=[0, 1], request_id=[7, 8], user=pl.Series(["a", "b"], dtype=pl.Categorical), session=[1, 2]
    )
    assert trace.frame["request_id"].to_list() == ["7", "8"]
    assert trace.frame["user"].to_list() == ["a", "b"]
    assert trace.frame["session"].to_list() == ["1", "2"]


def test_large_unsigned_hashes_keep_their_equality(trace_of):
    hashes = pl.Series([[2**64 - 1, 5], [2**64 - 1, 6]], dtype=pl.List(pl.UInt64))
    trace = trace_of(metadata={"block_size": "16"}, arrival_s=[0, 1], prompt_tokens=[32, 32], prefix_hashes=hashes)
    first, second = trace.frame["prefix_hashes"].to_list()
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert (trace.block_size, trace.hash_scope) == (16, "global")


FAULTS = {
    "prompt_tokens": [
        ([5, None], 1, "null, but must be a whole number of at least 1"),
        ([5, 0], 1, "0, but must be a whole number of at least 1"),
        ([-5, -6], 0, "-5, but must be a whole number of at least 1 (1 more row like it)"),
        ([5.0, 6.0], None, "is Float64, but must be whole numbers (Int64)"),
        (["5", "6"], None, "is String, but must be whole numbers (Int64)"),
        (pl.Series([1, 2**63], dtype=pl.UInt64), 1, "9223372036854775808, but must be within Int64"),
    ],
    "output_tokens": [
        ([5, None], 1, "null, but must be a whole number of at least 1"),
        ([-1, 5], 0, "-1, but must be a whole number of at least 1"),
    ],
    "request_id": [
        (["a", "a"], 1, "'a', but must be unique: an earlier row has the same"),
        (["a", None], 1, "null, but must be given in every row, or in none"),
        ([1.5, 2.5], None, "is Float64, but must be text (String)"),
    ],
    "max_tokens": [([1, 0], 1, "0, but must be at least the output_tokens of its row")],
    "turn": [([-1, 0], 0, "-1, but must be 0 or more")],
    "think_time_ms": [
        ([1.0, -2.0], 1, "-2.0, but must be 0 or more milliseconds"),
        ([1.0, float("nan")], 1, "nan, but must be 0 or more milliseconds"),
    ],
    "deadline_ms": [
        ([1, 0], 1, "0.0, but must be more than 0 milliseconds"),
        ([float("inf"), 1], 0, "inf, but must be more than 0 milliseconds"),
    ],
    "priority": [([0.5, 1.0], None, "is Float64, but must be whole numbers (Int64)")],
    "user": [([[1], [2]], None, "is List(Int64), but must be text (String)")],
    "prompt_token_ids": [
        ([[1], [1, 2]], 1, "[1, 2], but must be as many ids as its prompt_tokens says"),
        ([[1], [-1]], 1, "[-1], but must be ids of 0 or more"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "values", "row", "fault"),
    [(column, *case) for column, cases in FAULTS.items() for case in cases],
)
def test_what_cannot_be_replayed_is_refused_by_file_row_and_column(parquet, column, values, row, fault):
    sessions = {"session": ["s", "s"]} if column == "turn" else {}
    path = parquet(arrival_s=[0, 1], **sessions, **{column: values})
    with pytest.raises(TraceError) as refusal:
        read_trace(path)
    of_row = f"{path}, row {row} (counted from 0), column {column!r}: {fault}"
    assert str(refusal.value) == (f"{path}: the column {column!r} {fault}" if row is None else of_row)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"arrival_s": [0.0, None]}, "row 1 (counted from 0), column 'arrival_s': null, but must be given"),
        ({"arrival": [NOON, None]}, "row 1 (counted from 0), column 'arrival': null, but must be given"),
        ({"arrival_s": [0.0, float("nan")]}, "row 1 (counted from 0), column 'arrival_s': nan, but must be a finite"),
        ({"arrival_ms": [0, -3]}, "row 1 (counted from 0), column 'arrival_ms': -3, but must be 0 or later"),
        ({"arrival": [timedelta(0), timedelta(-1)]}, "timedelta(days=-1), but must be 0 or later"),
        ({"arrival_s": [0, 1_700_000_000_000]}, "but must be within 9.22e+09 of zero: is its unit what the name says?"),
        ({"arrival": ["12:00", "12:01"]}, "the column 'arrival' is String; right would be a Duration or Datetime"),
        ({"arrival": [date(2024, 1, 1), date(2024, 1, 2)]}, "the column 'arrival' is Date; right would be"),
        ({"arrival_s": [timedelta(0), timedelta(1)]}, "the column 'arrival_s' is Duration"),
        ({"arrival_s": [0, 1], "arrival_ms": [0, 1000]}, "the columns arrival_s and arrival_ms both hold arrivals"),
        ({"time": [0, 1]}, "no column holds the arrivals; right would be a Duration or Datetime named arrival"),
    ],
)  # fmt: skip
def test_arrivals_that_are_none_are_refused(parquet, columns, sentence):
    path = parquet(**columns)
    with pytest.raises(TraceError) as fault:
        read_trace(path)
    assert str(fault.value).startswith(str(path))
    assert sentence in str(fault.value)


def test_a_missing_required_column_is_named_not_taken_for_skipped_rows(parquet, tmp_path):
    pl.DataFrame({"arrival_s": [0], "prompt_tokens": [1], "output_len": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        TraceError, match=r"'output_tokens' is missing; there are: arrival_s, prompt_tokens, output_len$"
    ):
        read_trace(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("turns", "times", "sentence"),
    [
        ([0, 1, 1], [0, 1, 2], "row 2 (counted from 0), column 'turn': 1, but must be there once in its session"),
        ([0, 2, 1], [0, 1, 2], "row 1 (counted from 0), column 'turn': 2, but must be in order of arrival"),
        ([0, None, 1], [0, 1, 2], "row 1 (counted from 0), column 'turn': null, but must be given in every row"),
    ],
)  # fmt: skip
def test_turns_that_cannot_follow_each_other_are_refused(parquet, turns, times, sentence):
    with pytest.raises(TraceError) as fault:
        read_trace(parquet(arrival_s=times, session=["a"] * 3, turn=turns))
    assert sentence in str(fault.value)


def test_turns_may_start_late_leave_gaps_and_arrive_together(trace_of):
    trace = trace_of(arrival_s=[0, 0, 1, 1], session=["a", "a", "b", None], turn=[3, 5, 0, None])
    assert trace.frame["turn"].to_list() == [3, 5, 0, None]


def test_the_turns_of_one_session_say_nothing_of_another(trace_of):
    # by session and turn: a0 at 0 s, a1 at 5 s, then b1 at 1 s, b2 at 6 s
    trace = trace_of(arrival_s=[0, 1, 5, 6], session=["a", "b", "a", "b"], turn=[0, 1, 1, 2])
    assert trace.frame["turn"].to_list() == [0, 1, 1, 2]


def test_a_turn_without_a_session_is_left_out_with_a_note(trace_of):
    trace = trace_of(arrival_s=[0, 1], turn=[0, 1])
    assert trace.frame["turn"].to_list() == [None, None]
    assert trace.notes == ["2 rows with a turn but no session: the turn is left out"]


@pytest.mark.parametrize(
    ("metadata", "columns", "sentence"),
    [
        ({}, {}, "there are prefix_hashes, but the file's metadata has no block_size"),
        ({"block_size": "zero"}, {}, "the metadata's block_size is 'zero', but must be a number of tokens"),
        ({"block_size": "16", "hash_scope": "user"}, {}, "hash_scope is 'user', but must be global or session"),
        ({"block_size": "16", "hash_scope": "session"}, {}, "column 'session': null, but must be given where"),
        ({"block_size": "16"}, {"prompt_tokens": [17, 16]}, "row 1 (counted from 0), column 'prefix_hashes'"),
        ({"block_size": "16"}, {"prefix_hashes": [[1], [None]]}, "'prefix_hashes': [None], but must be without"),
    ],
)  # fmt: skip
def test_hashes_that_mean_nothing_are_refused(parquet, metadata, columns, sentence):
    columns = {"arrival_s": [0, 1], "prompt_tokens": [32, 32], "prefix_hashes": [[1, 2], [1, 2]], **columns}
    with pytest.raises(TraceError) as fault:
        read_trace(parquet(metadata=metadata, **columns))
    assert sentence in str(fault.value)


def test_a_fault_in_a_folder_names_the_file_and_its_row_there(parquet, tmp_path):
    parquet("folder/a.parquet", arrival_s=[5, 6, 7])
    bad = parquet("folder/b.parquet", arrival_s=[0, 1], prompt_tokens=[1, -1])
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\)") as fault:
        read_trace(tmp_path / "folder")
    assert str(fault.value).startswith(f"{bad}, row 1")


def test_the_files_of_a_folder_are_one_trace_in_order_of_name(parquet, tmp_path):
    late = parquet("folder/a.parquet", arrival_ms=[3000, 4000], prompt_tokens=[3, 4])
    early = parquet("folder/b.parquet", arrival_s=[1.0, 3.0], prompt_tokens=[1, 5], user=["x", "y"])
    (tmp_path / "folder" / "_notes.parquet").write_text("not data")
    trace = read_trace(tmp_path / "folder")
    assert trace.frame["prompt_tokens"].to_list() == [1, 3, 5, 4]
    assert trace.frame["user"].to_list() == ["x", None, "y", None]
    assert trace.notes == []  # each file is in order by itself
    assert trace.sha256 == hashlib.sha256(late.read_bytes() + early.read_bytes()).hexdigest()


def test_ids_must_be_unique_over_a_folder_and_hashes_of_one_kind(parquet, tmp_path):
    parquet("ids/a.parquet", arrival_s=[0], request_id=["x"])
    second = parquet("ids/b.parquet", arrival_s=[1], request_id=["x"])
    with pytest.raises(TraceError, match="unique") as fault:
        read_trace(tmp_path / "ids")
    assert str(fault.value).startswith(f"{second}, row 0")
    for name, size in (("a", "16"), ("b", "32")):
        parquet(f"hashes/{name}.parquet", {"block_size": size}, arrival_s=[0], prefix_hashes=[[1]])
    with pytest.raises(TraceError, match=r"a\.parquet and .*b\.parquet: one hashes blocks of 16 tokens"):
        read_trace(tmp_path / "hashes")


def test_what_is_no_parquet_is_a_sentence(tmp_path, parquet):
    with pytest.raises(TraceError, match="there is no such file or folder"):
        read_trace(tmp_path / "absent.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match=r"the folder holds no Parquet file \(\*\.parquet\)"):
        read_trace(tmp_path / "empty")
    text = tmp_path / "trace.csv"
    text.write_text("TIMESTAMP,ContextTokens\n")
    with pytest.raises(TraceError, match=r"trace\.csv: cannot be read as Parquet .*`replay trace import`$"):
        read_trace(text)
    whole = parquet(arrival_s=[0, 1]).read_bytes()
    torn = tmp_path / "torn.parquet"
    for size in range(0, len(whole), 50):
        torn.write_bytes(whole[:size])
        with pytest.raises(TraceError, match=r"torn\.parquet: cannot be read as Parquet"):
            read_trace(torn)


def test_reading_leaves_the_file_and_says_what_it_read(parquet):
    path = parquet(arrival_s=[0.25, 1.0])
    before = path.read_bytes()
    trace = read_trace(str(path))
    assert path.read_bytes() == before
    assert (trace.name, trace.path) == ("trace", Path(path))
    assert trace.sha256 == hashlib.sha256(before).hexdigest()


def test_reading_what_was_written_changes_nothing(trace_of, tmp_path):
    trace = trace_of(
        metadata={"block_size": "16"}, arrival_s=[4, 2, 3], prompt_tokens=[40, 40, 40], prefix_hashes=[[1], None, []]
    )
    write_trace(trace, tmp_path / "again.parquet")
    again = read_trace(tmp_path / "again.parquet")
    assert_frame_equal(again.frame, trace.frame)
    assert (again.block_size, again.hash_scope, again.notes) == (16, "global", [])


def test_sessions_without_turns_may_be_out_of_order_in_the_file(trace_of):
    trace = trace_of(arrival_s=[3, 1, 2], session=["a", "a", "a"], request_id=["late", "first", "then"])
    assert trace.frame["request_id"].to_list() == ["first", "then", "late"]
    assert trace.notes == ["1 row out of order: sorted by arrival"]
