"""Sessions of coding agents as kv-cache-tester (Weka) publishes them: a folder of JSON files, a session a file.

A file has `id`, `block_size` (64), `hash_id_scope` and `requests`, a list in order of time. A request has `t` (seconds
since the session began), `in` and `out` (tokens), `think_time` (seconds the client took before it, or null) and
`hash_ids` of the whole blocks of its prompt: a partial last block has none. A sub-agent is an entry with a time of its
own, at which it was spawned, and with its own `requests`, whose times count from there.

The session of a file is a session here, and each of its sub-agents is another, which runs beside it; all of them are
the same user's, named after the file's id. Files do not say when a session began: all begin at 0, or are spread over
so many seconds (`spread`, `seed`). Local hash ids, which the agents of one file share and other files do not, get
numbers that no other file has, so that the trace's scope is global. A file that is a copy of another is a session of
its own that shares nothing.

Lost: that a parent may have waited for its sub-agents, the models, why an answer stopped, and what it took at the time.
A request that began before the one before it had ended waits for it here, and that is counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from replay.clock import NANOSECONDS
from replay.errors import TraceError
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import Entry
from replay.traces.foreign.json_objects import objects, row_schema, table_of
from replay.traces.formats import formats
from replay.traces.source import Source, files_below
from replay.traces.wording import counted

NAMES = ("id", "block_size", "requests")
AGENT = "subagent"
LEFT_OUT = "left out: the models, why an answer stopped, and what it took at the time"
SCHEMA = row_schema("prompt_tokens", "output_tokens", "user", "session", "turn", "think_time_ms", "prefix_hashes")


@formats.register("weka")
@dataclass(frozen=True, slots=True)
class Weka:
    """Weka / kv-cache-tester sessions of coding agents (a folder of JSON files, or one; hashes of whole blocks)"""

    spread: float = field(
        default=0.0,
        metadata={
            "help": "seconds over which the sessions' starts are drawn; 0: all at once",
            "minimum": 0,
            "maximum": 1e9,
        },
    )
    seed: int = field(default=0, metadata={"help": "of the starts that are drawn", "minimum": 0})
    subagent_times: Literal["spawn", "session"] = field(
        default="spawn",
        metadata={"help": "what a sub-agent's times count from: its spawn, or the start of the session"},
    )

    def fits(self, look: Glimpse) -> bool:
        seen = look.inside if look.kind == "folder" else look
        return seen is not None and seen.includes("json", "json lines", all_of=NAMES)

    def read(self, path: Path) -> list[Source]:
        draw = random.Random(self.seed)
        names: Counter[str] = Counter()
        counts = Counts()
        sources, scopes = [], set()
        offset = 0
        for file in json_files(path):
            rows: list[tuple[Any, ...]] = []
            sizes = set()
            for document in objects(file):
                start = round(draw.uniform(0, self.spread) * NANOSECONDS) if self.spread else 0
                session = Session(self, document, start, offset, numbered(document, names, counts), counts)
                sizes.add(session.block_size)
                scopes.add(session.scope)
                rows += session.rows(len(rows))
                offset = session.next_offset
            if len(sizes) > 1:
                raise TraceError(f"{file}: has hashes of blocks of {' and '.join(map(str, sorted(sizes)))} tokens")
            frame = table_of(file, SCHEMA, rows).sort("arrival_ns", maintain_order=True)
            block = sizes.pop() if sizes else None
            sources.append(Source(file, frame.lazy(), block_size=block, hash_tail="floor", history=self.history()))
        if len(scopes) > 1:
            raise TraceError(f"{path}: some files have local hash ids and some global ones; a trace has one scope")
        sources[0].notes += [*counts.notes(), *self.starts(counts), LEFT_OUT]
        return sources

    def history(self) -> list[str]:
        """Where the starts of the sessions come from, if not from the files."""
        return [f"session starts drawn evenly over {self.spread:g} s (seed {self.seed})"] if self.spread else []

    def starts(self, counts: Counts) -> list[str]:
        """The note on sessions that all begin together."""
        if self.spread or counts.sessions < 2:
            return []
        return [f"all {counts.sessions:,} sessions begin at 0: the files do not say when; spread=1800 draws it"]


@dataclass(slots=True)
class Counts:
    """What is to be said once for all files."""

    sessions: int = 0
    agents: int = 0
    copies: int = 0
    overlaps: int = 0

    def notes(self) -> list[str]:
        notes = []
        if self.agents:
            notes.append(f"{counted(self.agents, 'sub-agent')}, each a session that runs beside its parent's")
        if self.copies:
            notes.append(f"{counted(self.copies, 'session')} with the id of an earlier one: each is one of its own")
        if self.overlaps:
            overlaps = counted(self.overlaps, "request")
            notes.append(f"{overlaps} that began before the one before had ended: here each waits for it")
        return notes


@dataclass(slots=True)
class Session:
    """One file's session and its sub-agents, as rows."""

    form: Weka
    document: Entry
    start: int
    offset: int
    name: str
    counts: Counts
    next_offset: int = 0

    @property
    def block_size(self) -> int:
        size = self.document.whole("block_size")
        if size is None or size < 1:
            raise self.document.wrong("block_size", size, "a number of tokens of at least 1")
        return size

    @property
    def scope(self) -> str:
        scope = self.document.text("hash_id_scope") or "local"
        if scope not in ("local", "global"):
            raise self.document.wrong("hash_id_scope", scope, "local or global")
        return scope

    def rows(self, row: int) -> list[tuple[Any, ...]]:
        """The rows, numbered from `row` on."""
        self.next_offset = self.offset
        found: list[tuple[Any, ...]] = []
        if self.document.fields.get("requests") is None:
            raise self.document.wrong("requests", None, "a list, as in a session of kv-cache-tester")
        for session, base, requests in self.agents(self.name, self.start, self.document.objects("requests")):
            timed = sorted(self.timed(requests, base, row + len(found)), key=lambda one: one[0])
            ended = None
            for turn, (arrival, entry) in enumerate(timed):
                if ended is not None and arrival < ended:
                    self.counts.overlaps += 1
                took = entry.span("s", "api_time")
                ended = None if took is None else arrival + took
                think = entry.number("think_time")
                lengths = entry.whole("in"), entry.whole("out")
                think_ms = None if think is None else float(think * 1_000)
                hashes = self.unique(entry)
                found.append((entry.row, arrival, *lengths, self.name, session, turn, think_ms, hashes))
        return found

    def timed(self, requests: list[dict[str, Any]], base: int, row: int) -> Iterator[tuple[int, Entry]]:
        """The requests of one agent with their arrivals."""
        for number, fields in enumerate(requests):
            entry = Entry(self.document.file, row + number, fields)
            since = entry.span("s", "t")
            if since is None or since < 0:
                raise entry.wrong("t", fields.get("t"), "0 or more seconds since the session began")
            yield base + since, entry

    def agents(
        self, name: str, base: int, requests: list[dict[str, Any]]
    ) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
        """Each agent's session, from when its times count, and its own requests; the parent first."""
        yield name, base, [one for one in requests if one.get("type") != AGENT]
        for number, fields in enumerate(one for one in requests if one.get("type") == AGENT):
            entry = Entry(self.document.file, self.document.row, fields)
            spawned = entry.span("s", "t")
            if spawned is None:
                raise entry.wrong("t", None, "the seconds at which a sub-agent was spawned")
            self.counts.agents += 1
            own = f"{name}/{entry.text('agent_id') or 'agent'}.{number}"
            since = base + spawned if self.form.subagent_times == "spawn" else self.start
            yield from self.agents(own, since, entry.objects("requests"))

    def unique(self, entry: Entry) -> list[int] | None:
        """The request's hashes, under numbers that other files do not have, unless they are the same in all files."""
        local = entry.wholes("hash_ids")
        if local is None or self.scope == "global":
            return local
        if local and min(local) < 0:
            raise entry.wrong("hash_ids", min(local), "ids of 0 and more")
        self.next_offset = max(self.next_offset, self.offset + max(local, default=-1) + 1)
        return [self.offset + each for each in local]


def numbered(document: Entry, names: Counter[str], counts: Counts) -> str:
    """The session's name: its id, with a number if an earlier one has that id."""
    name = document.text("id") or document.file.stem
    names[name] += 1
    counts.sessions += 1
    counts.copies += names[name] > 1
    return name if names[name] == 1 else f"{name}#{names[name]}"


def json_files(path: Path) -> list[Path]:
    """The file itself, or the JSON files of a folder, in order of name."""
    if not path.is_dir():
        return [path]
    files = files_below(path, "*.json*")
    if not files:
        raise TraceError(f"{path}: the folder holds no JSON file (*.json), of which each would be a session")
    return files
