"""What no publisher meant to write: names, numbers, places and disks that are not as a reader expects them.

Each is one sentence, on one line, that names what is wrong; nothing is taken for what it is not.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from replay.cli.trace_settings import format_settings
from replay.errors import ExperimentError, OutputError, TraceError
from replay.traces.formats import formats, import_trace
from replay.traces.reading import read_trace
from replay.traces.scratch import Scratch
from replay.traces.wording import listed, named
from replay.traces.writing import check_target


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


LINES = {
    "aiperf": {"timestamp": 0, "input_length": 5, "output_length": 5, "session_id": "a"},
    "copilot": {
        "session_id": "a",
        "turns": [{"llm_calls": [{"timestamp": "2026-06-01T00:00:00Z", "result": "Success", "tokens": {"prompt": 5}}]}],
    },
    "dynamo": {"timestamp": 0, "input_length": 5, "output_length": 5, "session_id": "a"},
    "mooncake": {"timestamp": 0, "input_length": 5, "output_length": 5},
    "otel": {
        "startTimeUnixNano": "1",
        "spanId": "s",
        "attributes": [{"key": "user.id", "value": {"stringValue": "u"}}],
    },
    "sharegpt": {"id": "a", "conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]},
    "table": {"arrival_ms": 0, "prompt_tokens": 5, "output_tokens": 5, "user": "a"},
    "weka": {"id": "a", "block_size": 64, "requests": [{"t": 0, "in": 70, "out": 5}]},
}
NEEDED = {"sharegpt": {"rate": 1.0, "text": True}}
DEEP = "[" * 3_000 + "]" * 3_000


@pytest.mark.parametrize(
    ("form", "old", "new", "said"),
    [
        *[(form, "}", f', "more": {DEEP}}}', "row 0 .*: has lists or objects that lie too deep") for form in LINES],
        ("aiperf", '"input_length": 5', f'"input_length": {2**62}', "'input_length': 461.*, but must be at most 16,"),
        ("copilot", '"prompt": 5', f'"prompt": {2**62}', "'prompt': 4611.*, but must be at most 16,777,216"),
        ("dynamo", '"timestamp": 0', '"timestamp": 1e1000000000', r"'timestamp': 1E\+1000000000, but must be a number"),
        ("weka", '"t": 0', '"t": 1e1000000000', r"'t': 1E\+1000000000, but must be a number of less than 300 digits"),
        ("weka", '"id": "a"', r'"id": "\ud800"', "'id': .*ud800', but must be text in UTF-8"),
        ("dynamo", '"session_id": "a"', r'"session_id": "\ud800"', "'session_id': .*ud800', but must be text in UTF-8"),
        ("table", '"user": "a"', r'"user": "\ud800"', "'user': .*ud800', but must be text in UTF-8"),
        ("sharegpt", "hello", r"\ud800", "'prompt': .*ud800', but must be text in UTF-8"),
        ("copilot", "2026", "9999", "'timestamp': '9999-06-01T00:00:00Z', but must be .* of the years 1678 to 2261"),
        ("copilot", '{"prompt": 5}', '"x"', "'tokens': 'x', but must be an object"),
        ("otel", '"1"', f'"{2**63}"', f"'arrival_ns': {2**63}, but must be within Int64"),
        ("otel", '{"stringValue": "u"}', '"u"', "'value': 'u', but must be an object"),
        ("otel", '"user.id"', "[]", "'key': .*, but must be text"),
        ("otel", "[{", '"x", "y": [{', "'attributes': 'x', but must be a list of objects"),
        ("otel", '"spanId"', '"context": 1, "spanId"', "'context': 1, but must be an object"),
    ],
)  # fmt: skip
def test_json_that_nobody_meant_is_refused_with_its_row(
    tmp_path: Path, form: str, old: str, new: str, said: str
) -> None:
    path = tmp_path / "a.jsonl"
    written = json.dumps(LINES[form])
    assert old in written
    if form == "otel":
        written = (
            written.replace('"user.id"', '"gen_ai.usage.input_tokens"')
            .replace("stringValue", "intValue")
            .replace('"u"', '"3"')
            if "arrival" in said
            else written
        )
    head, _, tail = written.rpartition(old)
    path.write_text(f"{head}{new}{tail}\n")
    with pytest.raises(TraceError, match=f"a.jsonl, .*{said}") as fault:
        import_trace(form, path, settings=NEEDED.get(form))
    assert "\n" not in str(fault.value)


def test_where_a_conversation_is_a_folder_or_no_parquet_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is a folder, but this format is one file"):
        import_trace("sharegpt", tmp_path, settings={"rate": 1.0})
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(TraceError, match=r"a.parquet: cannot be read as Parquet"):
        import_trace("sharegpt", path, settings={"rate": 1.0})


def test_a_session_that_grows_beyond_all_bounds_is_refused_before_hashes_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    turn = LINES["aiperf"]
    path.write_text(f"{json.dumps(turn | {'output_length': 2**62})}\n{json.dumps(turn)}\n")
    with pytest.raises(
        TraceError, match=r"row 1 .*'input_length': 461\d+, but must be at most 16,777,216 with the turns"
    ):
        import_trace("aiperf", path)


def test_a_name_that_is_not_text_is_refused_in_a_sentence_that_can_be_printed(tmp_path: Path) -> None:
    path = tmp_path / "a\udcff.csv"
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,1\n")
    for read in (lambda: import_trace("vidur", path), lambda: read_trace(path), lambda: import_trace("auto", tmp_path)):
        with pytest.raises(TraceError, match=r"a\\udcff.csv: has a name that is not UTF-8; rename it"):
            read()
    with pytest.raises(OutputError, match="is a name that is not UTF-8; give another"):
        check_target(tmp_path / "b\udcff.csv", force=False)


@pytest.mark.parametrize("size", ["9" * 11, "9" * 5_000, "0", "1.5"])
def test_a_size_of_blocks_in_the_metadata_that_is_none_is_refused(tmp_path: Path, size: str) -> None:
    path = tmp_path / "a.parquet"
    rows = pl.DataFrame({"arrival_ms": [0], "prompt_tokens": [1], "output_tokens": [1], "prefix_hashes": [[1]]})
    rows.write_parquet(path, metadata={"block_size": size})
    with pytest.raises(TraceError, match=r"block_size is '[0-9.]+('|\.\.\.), but must be a number of tokens of at"):
        read_trace(path)


@pytest.mark.parametrize("separator", ["é", "\n", '"', "ab", ""])
def test_a_separator_that_is_none_is_refused(separator: str) -> None:
    with pytest.raises(ExperimentError, match=r"separator: .* is not one character such as"):
        formats["table"](separator=separator)


def test_sessions_that_would_begin_over_centuries_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([LINES["sharegpt"]]))
    with pytest.raises(TraceError, match="with a rate of 1e-300 the sessions would begin over centuries"):
        import_trace("sharegpt", path, settings={"rate": 1e-300})


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (["start=2023-11-16T18:15:46.1234567"], {"start": "2023-11-16T18:15:46.1234567"}),
        (["start=2023-11-16 18:15:46.123456789+01:00"], {"start": "2023-11-16 18:15:46.123456789+01:00"}),
        (['start="2023-11-16 18:15:46"'], {"start": "2023-11-16 18:15:46"}),
    ],
)
def test_a_time_among_the_settings_keeps_all_digits(options: list[str], given: dict[str, str]) -> None:
    assert format_settings("azure", options, None) == given


def test_a_setting_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ExperimentError, match="-o: block_size stands there twice"):
        format_settings("vllm", ["block_size=16", "block_size=32"], None)
