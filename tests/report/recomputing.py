"""The figures of a cell, worked out in plain Python from its Parquet rows and the printed definitions alone.

Nothing of `replay` is used: what a report says is held against what a reader would find with a few lines.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from statistics import median_high
from typing import Any

import numpy as np
import pyarrow.parquet as parquet

Row = dict[str, Any]
LOST = ("evicted", "swapped")


def known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    return float(np.mean(found)) if (found := known(values)) else None


def percentile(values: Iterable[float | None], share: float) -> float | None:
    return float(np.percentile(found, share)) if (found := known(values)) else None


def times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


class Replayed:
    """The rows of one cell, each request with what it felt, in seconds."""

    def __init__(self, run: Path, manifest: Row, entry: Row) -> None:
        tables = ("requests", "steps", "spans")
        folder = run / "cells" / entry["cell"]
        self.requests, self.steps, self.spans = (
            parquet.read_table(folder / f"{table}.parquet").to_pylist() for table in tables
        )
        self.entry, self.goals, self.weights = entry, manifest["goals"], manifest["service"]
        self.start = min(request["due"] for request in self.requests)
        self.end = max(*(known(row["ended"] for row in self.requests)), *(step["end"] for step in self.steps))
        self.of_row: dict[int, list[Row]] = defaultdict(list)
        for span in sorted(self.spans, key=lambda span: span["start"]):
            self.of_row[span["row"]].append(span)
        for request in self.requests:
            self.felt(request)

    def felt(self, row: Row) -> None:
        due, tokens, done = row["due"], row["generated_tokens"], row["status"] == "completed"
        row["ttft"] = None if row["first_token"] is None else row["first_token"] - due
        row["e2e"] = None if row["finished"] is None else row["finished"] - due
        row["delivered"] = row["e2e"] if self.entry["padded"] else row["ttft"]
        row["tpot"] = (row["last_token"] - row["first_token"]) / (tokens - 1) if done and tokens > 1 else None
        row["slowdown"] = None if row["e2e"] is None else row["e2e"] / row["alone"]
        row["left"] = next(iter(known((row["admitted"], row["ended"]))), self.end)
        goals = (("delivered", "ttft_ms"), ("tpot", "tpot_ms"), ("e2e", "e2e_ms"))
        kept = [
            row[felt] is None or self.goals[goal] is None or 1e3 * row[felt] <= self.goals[goal] for felt, goal in goals
        ]
        row["good"] = done and all(kept)
        in_time = row["delivered"] is not None and row["deadline"] is not None and row["delivered"] <= row["deadline"]
        row["met"] = None if row["deadline"] is None else in_time

    def waits(self, row: Row) -> list[tuple[float, float]]:
        """From due to admission or the end, and after each eviction."""
        since, found = row["due"], []
        for span in self.of_row[row["row"]]:
            if since is not None:
                found.append((since, span["start"]))
            since = span["end"] if span["ending"] in LOST else None
        ended = self.end if row["ended"] is None else row["ended"]
        return [] if row["status"] == "skipped" else found + ([] if since is None else [(since, ended)])

    def held(self, row: Row) -> list[tuple[float, float]]:
        found: list[tuple[float, float]] = []
        goes_on = False
        for span in self.of_row[row["row"]]:
            found = [*found[:-1], (found[-1][0], span["end"])] if goes_on else [*found, (span["start"], span["end"])]
            goes_on = span["ending"] not in LOST
        return found

    def passed_over(self, row: Row) -> float | None:
        lesser = [other for other in self.requests if other["urgency"] < row["urgency"]]
        if not lesser or row["status"] == "skipped":
            return None
        held: list[list[float]] = []
        for start, end in sorted(stay for other in lesser for stay in self.held(other)):
            if held and start <= held[-1][1]:
                held[-1][1] = max(held[-1][1], end)
            else:
                held.append([start, end])
        pairs = [(wait, stay) for wait in self.waits(row) for stay in held]
        return sum(max(0.0, min(wait[1], stay[1]) - max(wait[0], stay[0])) for wait, stay in pairs)

    def without_a_token(self, row: Row) -> float | None:
        if row["status"] == "skipped":
            return None
        instants = [row["due"], *row["token_times"]]
        if row["status"] != "completed":
            instants.append(self.end if row["ended"] is None else row["ended"])
        return float(max(np.diff(instants)))

    def experience(self, row: Row) -> float | None:
        if row["status"] != "completed":
            return None if row["status"] in ("skipped", "unfinished") else 0.0
        pause, read, late = 1 / self.goals["reading_tokens_per_s"], -np.inf, 0.0
        expected = [
            row["due"] + self.goals["ttft_ms"] / 1e3 + place * pause for place in range(row["generated_tokens"])
        ]
        for came, hoped in zip(row["token_times"], expected, strict=True):
            read = max(row["finished"] if self.entry["padded"] else came, read + pause)
            late += max(0.0, read - hoped)
        whole = sum(max(0.0, read - hoped) for hoped in expected)
        return 1 - late / whole if whole else 1.0

    def prompt_service(self, row: Row) -> float:
        return float(self.weights["prompt"] * (row["prompt_tokens"] - (row["cached_tokens"] or 0)))

    def apart(self) -> tuple[float | None, float | None]:
        """The service of two users: how far apart it grew at most, and on average, while both waited."""
        events: dict[int, list[tuple[int, str, float]]] = defaultdict(list)  # 0: tokens, 1: who waits, 2: prompts
        for row in (row for row in self.requests if row["user"] is not None):
            for token in row["token_times"]:
                events[nanoseconds(token)].append((0, row["user"], self.weights["output"]))
            for start, end in self.waits(row):
                events[nanoseconds(start)].append((1, row["user"], 1))
                events[nanoseconds(end)].append((1, row["user"], -1))
            if row["admitted"] is not None:
                events[nanoseconds(row["admitted"])].append((2, row["user"], self.prompt_service(row)))
        got: dict[str, float] = defaultdict(float)
        waiting: dict[str, float] = defaultdict(float)
        since: dict[tuple[str, str], float] = {}
        most, area, lasted, before = None, 0.0, 0, 0

        def furthest() -> float:
            return max(abs(got[one] - got[other] - origin) for (one, other), origin in since.items())

        for instant in sorted(events):
            if since:
                difference = furthest()
                area, lasted = area + difference * (instant - before), lasted + instant - before
                most = max(most or 0.0, difference)
            for turn in range(3):
                for _, user, amount in (event for event in events[instant] if event[0] == turn):
                    (waiting if turn == 1 else got)[user] += amount
                if turn == 0 and since:
                    most = max(most or 0.0, furthest())
                if turn == 1:
                    pairs = combinations(sorted(user for user in waiting if waiting[user] > 0), 2)
                    since = {pair: since.get(pair, got[pair[0]] - got[pair[1]]) for pair in pairs}
            before = instant
        return most, area / lasted if lasted else None

    def windows(self, length: float) -> dict[str, list[float]]:
        """Of each window of so many seconds: how much less users got than the best served, and how even it was."""
        stride, start, output = round(length * 1e8), nanoseconds(self.start), self.weights["output"]
        found: dict[str, list[float]] = defaultdict(list)
        users = [row for row in self.requests if row["user"] is not None and row["status"] != "skipped"]
        for number in range((nanoseconds(self.end) - start) // stride - 9):
            first = start + number * stride
            last = first + 10 * stride
            got: dict[str, float] = defaultdict(float)
            wanted: dict[str, float] = defaultdict(float)
            for row in (row for row in users if nanoseconds(row["due"]) < last):
                tokens = [nanoseconds(token) for token in row["token_times"]]
                prompt, admitted = self.prompt_service(row), row["admitted"]
                at = None if admitted is None else nanoseconds(admitted)
                before = output * sum(token <= first for token in tokens) + (at is not None and at < first) * prompt
                within = output * sum(first < token <= last for token in tokens)
                within += (at is not None and first <= at < last) * prompt
                gone = row["status"] != "completed" and row["ended"] is not None and nanoseconds(row["ended"]) < first
                asked = len(tokens) if row["status"] == "completed" else max(row["output_tokens"], len(tokens))
                got[row["user"]] += within
                wanted[row["user"]] += within if gone else prompt + output * asked - before
            names = [user for user in wanted if max(wanted[user], got[user]) > 0]
            if len(names) < 2:
                continue
            received = np.array([got[user] for user in names])
            demand = np.array([max(wanted[user], got[user]) for user in names])
            short = np.minimum(received.max() - received, demand - received)
            found["short"].append(float(short.sum()) / length)
            if total := float(received.sum()):
                left, shares = total, np.zeros(len(names))
                for place, user in enumerate(np.argsort(demand)):
                    shares[user] = min(demand[user], left / (len(names) - place))
                    left -= shares[user]
                found["jain"].append(total**2 / (len(names) * float((received**2).sum())))
                found["ratio"].append(float(received.min() / received.max()))
                found["gap"].append(float(np.abs(received - shares).sum()) / total)
        return found


def replayed(run: Path) -> dict[tuple[str, str, str], Replayed]:
    """The cells of a run by trace, setting and policy."""
    manifest = json.loads((run / "manifest.json").read_text())
    cells = {}
    for entry in manifest["cells"]:
        setting = entry["mode"] + (f" ({entry['variant']})" if entry["variant"] else "")
        cells[entry["trace"], setting, entry["policy"]] = Replayed(run, manifest, entry)
    return cells


def window_length(cells: Iterable[Replayed]) -> float:
    """Seconds of a window of all cells of a trace, where the experiment names none."""
    return min(60.0, round(float(median_high([cell.end - cell.start for cell in cells])) / 10, 9))
