"""OpenTelemetry spans: OTLP documents, spans a line, and which of them are requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

START = 1_780_000_000_123_456_789  # nanoseconds since 1970: more digits than a double holds


def attribute(name: str, value: object) -> dict[str, Any]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": name, "value": {kind: str(value)}}  # OTLP writes 64-bit integers as text


def span(number: int, after: int, *, lasts: int = 1_000_000, parent: str = "", **more: Any) -> dict[str, Any]:
    """A call of a model that starts `after` nanoseconds; `more` are attributes, with __ for a point."""
    given = {
        "gen_ai__operation__name": "chat",
        "gen_ai__usage__input_tokens": 10,
        "gen_ai__usage__output_tokens": 5,
        **more,
    }
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "parentSpanId": parent,
        "startTimeUnixNano": str(START + after),
        "endTimeUnixNano": str(START + after + lasts),
        "attributes": [attribute(key.replace("__", "."), value) for key, value in given.items() if value is not None],
        "status": {},
    }


def document(*spans: dict[str, Any], **resource: Any) -> dict[str, Any]:
    attributes = [attribute(key.replace("__", "."), value) for key, value in resource.items()]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": list(spans)}]}]}


def write(folder: Path, *lines: dict[str, Any], indent: int | None = None) -> Path:
    path = folder / "spans.json"
    path.write_text("\n".join(json.dumps(line, indent=indent) for line in lines), encoding="utf-8")
    return path


def test_a_document_of_spans_to_the_nanosecond(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        document(
            span(2, 7_000_001, gen_ai__conversation__id="c", gen_ai__request__max_tokens=64),
            span(1, 0, gen_ai__conversation__id="c", gen_ai__request__model="m"),
            user__id="u",
        ),
        indent=2,
    )
    trace = import_trace("auto", path)
    assert trace.frame["arrival"].to_list() == [0, 7_000_001]
    assert trace.frame["request_id"].to_list() == ["t1:s1", "t1:s2"]
    assert trace.frame["user"].to_list() == ["u", "u"]
    assert trace.frame["session"].to_list() == ["c", "c"]
    assert trace.frame["max_tokens"].to_list() == [None, 64]
    assert trace.frame["think_time_ms"].to_list() == [None, 6.000001]  # 7.000001 ms, less the 1 ms of the call before
    assert trace.notes == ["the format is otel: no other fits", "models have no place in a trace: m"]


def test_documents_and_spans_a_line_and_spans_that_an_sdk_printed(tmp_path: Path) -> None:
    trace = import_trace("otel", write(tmp_path, document(span(1, 5)), document(span(2, 0))))
    assert trace.frame["request_id"].to_list() == ["t1:s2", "t1:s1"]
    assert import_trace("auto", write(tmp_path, span(1, 5), span(2, 0))).frame["arrival"].to_list() == [0, 5]
    printed = [
        {
            "name": "llm_request",
            "context": {"trace_id": "0x1", "span_id": f"0x{number}"},
            "parent_id": None,
            "start_time": f"2026-06-01T00:00:0{number}.{number:06d}Z",
            "end_time": "2026-06-01T00:00:09.000000Z",
            "status": {"status_code": "UNSET"},
            "attributes": {"gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": number},
        }
        for number in (1, 2)
    ]
    trace = import_trace("auto", write(tmp_path, *printed, indent=4))
    assert trace.frame["arrival"].to_list() == [0, 1_000_001_000]
    assert trace.frame.select("prompt_tokens", "output_tokens").rows() == [(7, 1), (7, 2)]


def test_what_is_no_request_is_skipped_by_reason(tmp_path: Path) -> None:
    failed = span(3, 3) | {"status": {"code": 2}}
    tool = span(4, 4, gen_ai__operation__name="execute_tool", gen_ai__usage__input_tokens=None)
    agent = span(5, 5, gen_ai__operation__name="invoke_agent")
    http = span(6, 6, gen_ai__operation__name=None, gen_ai__usage__input_tokens=None)
    http["attributes"] = [attribute("http.method", "POST")]
    streaming = span(7, 7, gen_ai__usage__input_tokens=None, gen_ai__usage__output_tokens=None)
    error = span(8, 8, error__type="timeout")
    inner = span(9, 9, parent="s10")
    between = span(10, 9, parent="s1", gen_ai__operation__name="execute_tool")
    within_agent = span(11, 11, parent="s5")
    path = write(
        tmp_path,
        document(span(1, 1), failed, tool, agent, http, streaming, error, inner, between, within_agent),
        document(span(1, 1)),
    )
    trace = import_trace("otel", path)
    assert trace.frame["request_id"].to_list() == ["t1:s1", "t1:s11"]
    assert trace.skipped == {
        "failed call": 2,
        "operation execute_tool": 2,
        "operation invoke_agent": 1,
        "no GenAI call": 1,
        "no tokens given": 1,
        "within another call": 1,
        "span given twice": 1,
    }
    assert trace.rows_read == 11
    with pytest.raises(TraceError, match="which --strict refuses"):
        import_trace("otel", path, strict=True)


def test_users_and_sessions_by_another_attribute(tmp_path: Path) -> None:
    path = write(tmp_path, document(span(1, 0, tenant="a", chat=3), span(2, 1, enduser__id="b")))
    trace = import_trace("otel", path, settings={"user": "tenant", "session": "chat"})
    assert trace.frame.select("user", "session").rows() == [("a", "3"), (None, None)]
    assert import_trace("otel", path).frame["user"].to_list() == [None, "b"]


def test_a_limit_that_the_answer_exceeds_is_none(tmp_path: Path) -> None:
    spans = [span(number, number, gen_ai__request__max_tokens=limit) for number, limit in enumerate((4, 5, 6))]
    trace = import_trace("otel", write(tmp_path, document(*spans)))
    assert trace.frame["max_tokens"].to_list() == [None, 5, 6]
    assert trace.notes == ["1 request with more output than its max_tokens: that is left out"]


def test_spans_that_are_each_others_parents_are_no_endless_loop(tmp_path: Path) -> None:
    loop = [span(1, 0, parent="s2"), span(2, 1, parent="s1", gen_ai__operation__name="execute_tool")]
    assert import_trace("otel", write(tmp_path, document(*loop))).frame.height == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"attributes": []}, "span 0 (counted from 0): has no startTimeUnixNano, so it is no span"),
        (
            span(1, 0) | {"startTimeUnixNano": "soon"},
            "column 'startTimeUnixNano': 'soon', but must be nanoseconds since",
        ),
        (span(1, 0, gen_ai__usage__input_tokens="many"), "column 'gen_ai.usage.input_tokens': 'many', but must be a"),
        ({"resourceSpans": 5}, "column 'resourceSpans': 5, but must be a list of objects"),
        (document(), "the trace holds no requests"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path: Path, line: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TraceError) as fault:
        import_trace("otel", write(tmp_path, line))
    assert sentence in str(fault.value)
