"""`auto`: a small file of every format, and which formats a first look finds it to be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.foreign.glimpse import glimpse
from replay.traces.formats import AUTO, detected, formats, import_trace


@dataclass(frozen=True)
class Example:
    """A file of a format as its publishers write it, or a folder of them, and the other formats it may be as well."""

    files: dict[str, str | pl.DataFrame]
    also: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            else:
                content.write_parquet(path)
        return folder / next(iter(self.files)) if len(self.files) == 1 else folder


def lines(*objects: dict[str, object]) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def table(*rows: str) -> str:
    return "\n".join(rows) + "\n"


SPAN = {
    "traceId": "t",
    "spanId": "s",
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
    "attributes": [
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "3"}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "4"}},
        {"key": "gen_ai.conversation.id", "value": {"stringValue": "a"}},
        {"key": "user.id", "value": {"stringValue": "u"}},
    ],
}
WEKA = {
    "id": "a",
    "models": ["m"],
    "block_size": 64,
    "hash_id_scope": "local",
    "tool_tokens": 0,
    "system_tokens": 0,
    "requests": [{"t": 0.0, "type": "n", "model": "m", "in": 70, "out": 5, "hash_ids": [1], "stop": "end_turn"}],
}
CALL = {
    "message_id": "m",
    "timestamp": "2026-06-01T00:00:00Z",
    "duration_ms": 5.0,
    "model": "Model A",
    "result": "Success",
    "tokens": {"prompt": 600, "completion": 5, "cached": 0},
}
TALK = [{"from": "human", "value": "hello " * 20}, {"from": "gpt", "value": "hi"}]
LENGTHS = {"timestamp": 0, "input_length": 600, "output_length": 5}

EXAMPLES = {
    "aibrix": Example(
        {
            "a.jsonl": lines(
                {
                    "timestamp": 0,
                    "requests": [{"Prompt Length": 5, "Output Length": 5, "prompt": "hi", "session_id": 1}],
                }
            )
        }
    ),
    "aiperf": Example(
        {
            "a.jsonl": lines(
                {"timestamp": 0, "text_input": "hello", "output_length": 5},
                {**LENGTHS, "hash_ids": [1, 2], "session_id": "a"},
            )
        }
    ),
    "azure": Example({"a.csv": table("TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46.6805900,5,5")}),
    "bailian": Example({"a.jsonl": lines({"chat_id": 1, "parent_chat_id": -1, **LENGTHS, "hash_ids": [1], "turn": 1})}),
    "baseten": Example(
        {
            "a.parquet": pl.DataFrame(
                {
                    "timestamp_start_unix_ms": [1],
                    "input_tokens": [70],
                    "output_tokens": [5],
                    "prompt": ["hello"],
                    "total_hashes": [[1]],
                    "org_id": ["o"],
                    "provided_session_id": ["a"],
                }
            )
        }
    ),
    "burstgpt": Example(
        {
            "a.csv": table(
                "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
                "5,1,0.5,GPT-4,5,5,10,Conversation log",
            )
        }
    ),
    "copilot": Example({"a.jsonl": lines({"session_id": "a", "date": "2026-06-01", "turns": [{"llm_calls": [CALL]}]})}),
    "dynamo": Example({"a.jsonl": lines({**LENGTHS, "hash_ids": [1, 2], "session_id": "a", "request_id": "r"})}),
    "guidellm": Example(
        {"a.jsonl": lines({"timestamp": 0, "input_length": 600, "output_length": 5, "duration": 1, "hash_ids": [1, 2]})}
    ),
    "llmservingsim": Example(
        {
            "a.jsonl": lines(
                {"session_id": "a", "arrival_time_ns": 5, "sub_requests": [{"input_toks": 5, "output_toks": 5}]}
            )
        }
    ),
    "lmcache": Example({"a.jsonl": lines({"timestamp": 0, "input": "hello " * 20, "output": "hi", "session_id": "a"})}),
    # The same names with other units: nothing in the file says which, so a person has to.
    "mooncake": Example(
        {"a.jsonl": lines({**LENGTHS, "hash_ids": [1, 2]})}, also=("aiperf", "dynamo", "guidellm", "vllm")
    ),
    "otel": Example({"a.json": json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}, indent=1)}),
    "servegen": Example(
        {
            "chunk-0-trace.csv": "0,0.5,1.0,Gamma,1.0,2.0\n600,0,0,,0,0\n",
            "chunk-0-dataset.json": json.dumps({"0": {"input_tokens": "{5: 1.0}", "output_tokens": "{5: 1.0}"}}),
        }
    ),
    "sharegpt": Example({"a.json": json.dumps([{"id": "a", "conversations": TALK}])}),
    "splitwise-sim": Example(
        {
            "a.csv": table(
                "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size",
                "0,2,0,0.5,1,5,5",
            )
        }
    ),
    "table": Example(
        {
            "a.csv": table(
                "arrival_ms,prompt_tokens,output_tokens,user,session,prompt,prefix_hashes", "0,5,5,a,b,hello,1"
            )
        }
    ),
    "tracelab": Example(
        {
            "a.csv": table(
                "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms", "a,0,0,0,5,5,0"
            )
        }
    ),
    "vidur": Example({"a.csv": table("arrived_at,num_prefill_tokens,num_decode_tokens", "0.5,5,5")}),
    "vllm": Example(
        {"a.jsonl": lines({**LENGTHS, "hash_ids": [1, 2]})}, also=("aiperf", "dynamo", "guidellm", "mooncake")
    ),
    "vtc": Example({"a.csv": table("req_id,req_time_s,adapter_dir,model_dir,prompt_len,output_len", "0,0.5,a,m,5,5")}),
    "weka": Example({"a.json": json.dumps(WEKA), "b.json": json.dumps(WEKA | {"id": "b"})}),
}
NEEDED = {"sharegpt": {"rate": 1.0}, "table": {"block_size": 16}}  # settings without which an example is refused


def test_every_format_has_an_example() -> None:
    assert set(EXAMPLES) == set(formats)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_is_of_its_format_or_it_is_said_of_which_it_may_be(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    path = example.write(tmp_path)
    if not example.also:
        assert detected(path) == name
        return
    candidates = ", ".join(sorted([name, *example.also]))
    with pytest.raises(TraceError) as fault:
        import_trace(AUTO, path)
    assert str(fault.value).startswith(f"{path}: may be {candidates}: name one of them in place of auto; ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_files_that_their_formats_read(tmp_path: Path, name: str) -> None:
    trace = import_trace(name, EXAMPLES[name].write(tmp_path), settings=NEEDED.get(name))
    assert trace.frame.height >= 1
    assert trace.skipped == {}


@pytest.mark.parametrize("form", formats)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_of_another_format_is_read_or_refused_with_a_sentence(tmp_path: Path, name: str, form: str) -> None:
    path = EXAMPLES[name].write(tmp_path)
    try:
        import_trace(form, path)
    except (TraceError, ExperimentError) as fault:
        assert str(tmp_path) in str(fault)  # noqa: PT017  # whether it is refused depends on the pair


def test_a_table_of_nobodys_is_shown_by_its_columns_and_the_way_to_import_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,in,out\n0,1,1\n")
    with pytest.raises(TraceError, match=r"of no format that is known: it has ts, in, out; .* --map arrival_s=\.\.\."):
        import_trace(AUTO, path)


@pytest.mark.parametrize("content", [b"", b"\n\n", bytes(range(256)), b"PAR1 and no more", b'{"cut', b"[]", b"[1, 2]"])
def test_what_is_no_table_at_all_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="thing: is of no format that is known"):
        import_trace(AUTO, path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(TraceError, match="folder: is of no format that is known"):
        import_trace(AUTO, tmp_path / "folder")


def test_a_first_look_reads_the_beginning_only(tmp_path: Path) -> None:
    array, long = tmp_path / "array.json", tmp_path / "long.jsonl"
    array.write_text("[" + ",\n".join(['{"a": 1}'] * 100_000))  # cut off: nobody looks at its end
    long.write_text(json.dumps({"a": "x" * 200_000}) + "\n" + '{"b": 1}\n')  # one line longer than the first piece
    look = glimpse(array)
    assert (look.kind, look.names, look.lines) == ("json", ("a",), True)
    look = glimpse(long)
    assert (look.kind, look.names, look.lines) == ("json lines", ("a",), True)
    one = tmp_path / "one.jsonl"
    one.write_text('{"a": 1}')
    assert (glimpse(one).kind, glimpse(one).lines) == ("json lines", False)
    one.write_text('{\n"a": 1\n}\n')
    assert glimpse(one).kind == "json"
