"""OpenTelemetry spans of GenAI calls: OTLP as JSON (`resourceSpans`), or a span a line, as SDKs print them.

The names are those of the semantic conventions for GenAI, older ones too. Such a span is a request, which arrives at
its start, to the nanosecond; session is `gen_ai.conversation.id`; the time between the end of one call and the start of
the next of a session is its think time. Left out, by reason: spans that say nothing of tokens, other operations than
chat, text_completion and generate_content, failed calls, a call within a call (the outer span is kept: a gateway and an
engine often both report one), and a span that was exported twice. Models, providers and texts have no place in a trace.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from replay.errors import TraceError
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.instants import A_TIME, unix_nanoseconds
from replay.traces.foreign.json_entry import Entry
from replay.traces.foreign.json_objects import objects, row_schema, table_of
from replay.traces.foreign.think_times import overlap_notes, think_times
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.wording import counted, listed, named

PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
OPERATION = "gen_ai.operation.name"
GENERATES = ("chat", "text_completion", "generate_content")
SESSIONS = ("gen_ai.conversation.id", "session.id")
USERS = ("user.id", "enduser.id", "enduser.pseudo.id")
STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
ENDS = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
SCOPES = ("scopeSpans", "instrumentationLibrarySpans")
WHOLE = re.compile("-?[0-9]{1,19}")
VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")
SCHEMA = row_schema("prompt_tokens", "output_tokens", "request_id", "user", "session", "think_time_ms", "max_tokens")


@dataclass(frozen=True, slots=True)
class Span:
    """One span: `attributes` are those of its resource, too."""

    row: int
    start: int
    end: int | None
    identity: tuple[str, str]
    parent: tuple[str, str]
    failed: bool
    attributes: Entry

    def call(self) -> bool:
        """Whether it says how many tokens a model read or wrote."""
        return any(self.attributes.fields.get(name) is not None for name in (*PROMPT, *OUTPUT))


@formats.register("otel")
@dataclass(frozen=True, slots=True)
class OpenTelemetry:
    """OpenTelemetry spans of GenAI calls (OTLP JSON, or a span a line)"""

    user: str | None = field(
        default=None, metadata={"help": f"the attribute that names users; else {', '.join(USERS)}"}
    )
    session: str | None = field(
        default=None, metadata={"help": f"the attribute that names sessions; else {' or '.join(SESSIONS)}"}
    )

    def fits(self, look: Glimpse) -> bool:
        if look.kind not in ("json", "json lines"):
            return False
        names = set(look.names)
        return "resourceSpans" in names or ("attributes" in names and not names.isdisjoint(STARTS))

    def read(self, path: Path) -> Source:
        skipped: Counter[str] = Counter()
        calls = kept_calls(spans_of(path), skipped)
        calls.sort(key=lambda call: call.start)
        sessions = self.sessions(calls)
        spans = [[(calls[number].start, calls[number].end) for number in numbers] for numbers in sessions]
        thought = {
            number: think
            for turns, each in zip(sessions, spans, strict=True)
            for number, think in zip(turns, think_times(each), strict=True)
        }
        rows = [self.row(call, thought.get(number)) for number, call in enumerate(calls)]
        table = table_of(path, SCHEMA, rows).lazy()
        beyond = pl.col("max_tokens") < pl.col("output_tokens")
        count = table.select(beyond.sum()).collect().item()
        table = table.with_columns(pl.when(~beyond).then(pl.col("max_tokens")).alias("max_tokens"))
        notes = [f"{counted(count, 'request')} with more output than its max_tokens: that is left out"] * bool(count)
        models = {call.attributes.text("gen_ai.request.model") for call in calls} - {None}
        notes += [f"models have no place in a trace: {listed(sorted(map(str, models)), None)}"] * bool(models)
        return Source(path, table, skipped=dict(skipped), notes=notes + overlap_notes(spans))

    def row(self, call: Span, think: float | None) -> tuple[Any, ...]:
        """A request, in the columns of `SCHEMA`."""
        return (
            call.row,
            call.start,
            call.attributes.whole(*PROMPT),
            call.attributes.whole(*OUTPUT),
            ":".join(filter(None, call.identity)) or None,
            call.attributes.text(*([self.user] if self.user else USERS)),
            self.session_of(call),
            think,
            call.attributes.whole("gen_ai.request.max_tokens"),
        )

    def session_of(self, call: Span) -> str | None:
        return call.attributes.text(*([self.session] if self.session else SESSIONS))

    def sessions(self, calls: list[Span]) -> list[list[int]]:
        """The numbers of the calls of each session."""
        found: dict[str, list[int]] = {}
        for number, call in enumerate(calls):
            if (session := self.session_of(call)) is not None:
                found.setdefault(session, []).append(number)
        return list(found.values())


def spans_of(path: Path) -> Iterator[Span]:
    """All spans of a file, whatever holds them."""
    row = 0
    for entry in objects(path):
        resources = entry.objects("resourceSpans") if "resourceSpans" in entry.fields else None
        for attributes, fields in [({}, entry.fields)] if resources is None else held(entry, resources):
            yield span(Entry(path, row, fields), attributes)
            row += 1


def held(entry: Entry, resources: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The spans of an OTLP document, each with the attributes of its resource."""
    for resource in resources:
        attributes = flat(Entry(entry.file, entry.row, resource).inner("resource"))
        for scope in Entry(entry.file, entry.row, resource).objects(*SCOPES):
            for found in Entry(entry.file, entry.row, scope).objects("spans"):
                yield attributes, found


def span(entry: Entry, resource: dict[str, Any]) -> Span:
    """One span from its JSON."""
    fields = entry.fields
    start = instant(entry, STARTS)
    if start is None:
        raise TraceError(f"{entry.file}, span {entry.row} (counted from 0): has no startTimeUnixNano, so it is no span")
    context = entry.inner("context").fields
    trace = str(fields.get("traceId") or fields.get("trace_id") or context.get("trace_id") or "")
    identity = str(fields.get("spanId") or fields.get("span_id") or context.get("span_id") or "")
    parent = str(fields.get("parentSpanId") or fields.get("parent_span_id") or fields.get("parent_id") or "")
    status = fields.get("status") or {}
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
    attributes = Entry(entry.file, entry.row, resource | flat(entry))
    failed = code in (2, "2", "STATUS_CODE_ERROR", "ERROR") or attributes.fields.get("error.type") is not None
    return Span(entry.row, start, instant(entry, ENDS), (trace, identity), (trace, parent), failed, attributes)


def flat(entry: Entry) -> dict[str, Any]:
    """Its attributes by name, from OTLP's list of keys and typed values or a table; whole numbers in text, too."""
    if isinstance(entry.fields.get("attributes"), dict):
        return entry.inner("attributes").fields
    found = {}
    for pair in entry.objects("attributes"):
        attribute = Entry(entry.file, entry.row, pair)
        value = attribute.inner("value").fields
        kind = next((kind for kind in VALUES if kind in value), None)
        inner = value.get(kind) if kind else None
        found[attribute.text("key") or ""] = (
            int(str(inner)) if kind == "intValue" and WHOLE.fullmatch(str(inner)) else inner
        )
    return found


def instant(entry: Entry, names: tuple[str, ...]) -> int | None:
    """Nanoseconds since 1970, given as such or as a time in text."""
    name, value = entry.given(*names)
    if value is None:
        return None
    if "nano" in name.lower() and WHOLE.fullmatch(str(value)):
        return int(value)
    found = unix_nanoseconds(value) if isinstance(value, str) else None
    if found is None:
        raise entry.wrong(name, value, f"nanoseconds since 1970, or {A_TIME}")
    return found


def kept_calls(spans: Iterator[Span], skipped: Counter[str]) -> list[Span]:
    """The spans that are requests; the others are counted by reason."""
    parents: dict[tuple[str, str], tuple[str, str]] = {}
    calls: dict[tuple[str, str], Span] = {}
    unnamed: list[Span] = []
    for each in spans:
        if each.identity[1] and each.identity in parents:
            skipped["span given twice"] += 1
            continue
        parents[each.identity] = each.parent
        operation = each.attributes.fields.get(OPERATION)
        if operation is not None and operation not in GENERATES:
            skipped[f"operation {named(str(operation))}"] += 1
        elif each.failed:
            skipped["failed call" if each.call() or operation else "no GenAI call"] += 1
        elif not each.call():
            skipped["no tokens given" if operation else "no GenAI call"] += 1
        elif each.identity[1]:
            calls[each.identity] = each
        else:
            unnamed.append(each)
    kept = []
    for identity, each in calls.items():
        if any(above in calls for above in ancestors(identity, parents)):
            skipped["within another call"] += 1
        else:
            kept.append(each)
    return kept + unnamed


def ancestors(identity: tuple[str, str], parents: dict[tuple[str, str], tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The spans within which a span lies, as far as the file has them."""
    seen = {identity}
    above = parents[identity]
    while above not in seen:
        yield above
        seen.add(above)
        above = parents.get(above, above)
