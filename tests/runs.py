"""Folders of runs for tests: hand-worked rows, or a simulated grid, written as a run writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as parquet

from replay.contract.simulation import request, simulate
from replay.executors.interface import CostModel
from replay.records import SCHEMAS, Columns

SAMPLE_COST = CostModel(fixed=0.010, prefill=0.000_05, decode=0.000_2, context=0.000_000_5)


def request_row(row: int, **fields: Any) -> dict[str, Any]:
    """A row of requests.parquet. What is not given is null; stamps that follow from `token_times` are filled in."""
    times = fields.get("token_times", [])
    completed = fields.get("status", "completed") == "completed"
    arrival = fields.get("arrival", 0.0)
    known = {
        "row": row,
        "request_id": str(row),
        "urgency": fields.get("priority") or 0,
        "prompt_tokens": 1,
        "output_tokens": max(len(times), 1),
        "max_tokens": 64,
        "arrival": 0.0,
        "due": arrival,
        "submitted": arrival,
        "lag": 0.0,
        "first_token": times[0] if times else None,
        "last_token": times[-1] if times and completed else None,
        "finished": times[-1] if times and completed else None,
        "ended": fields.get("finished", times[-1] if times else arrival),
        "status": "completed",
        "generated_tokens": len(times),
        "evictions": 0,
        "swaps": 0,
        "recomputed_tokens": 0,
        "token_times": times,
    }
    return dict.fromkeys(SCHEMAS["requests"].names) | known | fields


def step_row(step: int, start: float, end: float, **fields: Any) -> dict[str, Any]:
    """A row of steps.parquet; counts that are not given are 0, and nothing bound it."""
    counts = dict.fromkeys(SCHEMAS["steps"].names, 0)
    launched = fields.get("launched", start)
    known = {"step": step, "start": start, "launched": launched, "end": end, "planning": launched - start}
    return counts | known | {"bound": "nothing"} | fields


def span_row(row: int, slot: int, kind: str, start: float, end: float, **fields: Any) -> dict[str, Any]:
    """A row of spans.parquet."""
    known = {"row": row, "slot": slot, "kind": kind, "start": start, "end": end, "tokens": 1, "padding_tokens": 0}
    return dict.fromkeys(SCHEMAS["spans"].names) | known | fields


def write_tables(
    folder: Path,
    requests: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]] = (),
    spans: Sequence[Mapping[str, Any]] = (),
    part: int | None = None,
) -> None:
    """The three tables of a cell, whole or as a numbered part."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("requests", requests), ("steps", steps), ("spans", spans)):
        columns = Columns(SCHEMAS[name])
        for row in rows:
            columns.append(**row)
        suffix = "" if part is None else f".part-{part:04d}"
        parquet.write_table(columns.take() or SCHEMAS[name].empty_table(), folder / f"{name}{suffix}.parquet")


def cell_entry(cell: str, **fields: Any) -> dict[str, Any]:
    """A cell of the manifest; `mode-policy` when its name says no more."""
    mode, policy = cell.split("-")[:2]
    known = {"cell": cell, "trace": "sample", "mode": mode, "policy": policy, "repeat": 0, "variant": ""}
    return known | {"padded": mode != "continuous", "status": "complete", "slots": 8, "blocks": 512} | fields


def write_manifest(folder: Path, cells: Sequence[Mapping[str, Any]], **fields: Any) -> Path:
    """manifest.json; `rows` is what the one trace holds."""
    rows = fields.pop("rows", None)
    manifest: dict[str, Any] = {
        "format": 1,
        "name": "a run",
        "created": "2026-01-02T03:04:05+00:00",
        "status": "complete",
        "versions": {"replay": "0.1.0"},
        "hardware": {"cpu": "two cores"},
        "priority_order": "larger-first",
        "predictor": "max_tokens",
        "goals": {"ttft_ms": 500, "tpot_ms": 50, "e2e_ms": None},
        "seed": 0,
        "traces": [{"name": "sample", "path": "traces/sample.parquet", "rows": rows, "span_s": 1.0}],
        "cells": list(cells),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest | fields))
    return folder


def static_batch(folder: Path) -> Path:
    """Two requests of 4 and 10 tokens, prompts of 5 and 20, in one static batch whose steps last 10 ms."""
    times = [round(0.01 * step, 3) for step in range(1, 11)]
    requests = [
        request_row(0, prompt_tokens=5, token_times=times[:4], admitted=0.0, finished=0.1, user="a", alone=0.04),
        request_row(1, prompt_tokens=20, token_times=times, admitted=0.0, finished=0.1, user="b", alone=0.1),
    ]
    common = {"running": 2, "used_blocks": 4, "bound": "nothing"}
    steps = [step_row(0, 0.0, 0.01, scheduled=2, prefill_tokens=25, padding_tokens=15, admitted=2, **common)]
    for step in range(1, 10):
        decodes = 2 if step < 4 else 1
        end = times[step]
        steps.append(
            step_row(
                step, times[step - 1], end, scheduled=decodes, decodes=decodes, padding_tokens=2 - decodes, **common
            )
        )
    spans = [
        span_row(0, 0, "prefill", 0.0, 0.01, tokens=5, padding_tokens=15),
        span_row(0, 0, "decode", 0.01, 0.04, tokens=3),
        span_row(0, 0, "padded", 0.04, 0.1, tokens=0, padding_tokens=6),
        span_row(1, 1, "prefill", 0.0, 0.01, tokens=20),
        span_row(1, 1, "decode", 0.01, 0.1, tokens=9),
    ]
    write_tables(folder / "cells" / "static-fifo", requests, steps, spans)
    return write_manifest(folder, [cell_entry("static-fifo", slots=2, blocks=8, simulated=True)], rows=2)


def sample_requests(count: int, *, rate: float, seed: int = 1) -> tuple[list[dict[str, Any]], list[int]]:
    """Rows and lengths of a small trace with users, priorities and a burst in the middle."""
    draw = random.Random(seed)
    rows, outputs, now = [], [], 0.0
    for row in range(count):
        burst = 3.0 if count // 3 < row < count // 2 else 1.0
        now += draw.expovariate(rate * burst) if row else 0.0
        user = draw.choices(["ana", "ben", "cem", "dia", None], [8, 4, 2, 1, 1])[0]
        output = min(120, max(2, int(draw.lognormvariate(3.0, 0.9))))
        prompt = min(400, max(3, int(draw.lognormvariate(4.0, 0.8))))
        rows.append({"row": row, "arrival": round(now, 4), "prompt": prompt, "user": user, "priority": row % 3})
        outputs.append(output)
    return rows, outputs


MODES: dict[str, dict[str, Any]] = {
    "static": {"batch_size": 8},
    "dynamic": {"max_batch_size": 8, "max_wait_ms": 50.0},
    "continuous": {"max_running": 8, "token_budget": 512},
}


def simulated_run(
    folder: Path,
    *,
    policies: Sequence[str] = ("fifo", "sjf", "priority", "fair", "hybrid"),
    modes: Mapping[str, Mapping[str, Any]] = MODES,
    count: int = 60,
    rate: float = 10.0,
    repeats: int = 1,
    **fields: Any,
) -> Path:
    """A grid of simulated cells over one trace. A mode may be named `continuous max_running=2`: a swept variant."""
    rows, outputs = sample_requests(count, rate=rate)
    cells = []
    for label, settings in modes.items():
        mode, _, variant = label.partition(" ")
        for policy in policies:
            for repeat in range(repeats):
                left = simulate(
                    [request(**row) for row in rows],
                    outputs,
                    mode=mode,
                    policy=policy,
                    cost=SAMPLE_COST,
                    blocks=128,
                    **settings,
                )
                name = "-".join(part for part in (mode, policy, variant, str(repeat)) if part)
                place = folder / "cells" / name
                place.mkdir(parents=True)
                for table in SCHEMAS:
                    rows_left: pl.DataFrame = getattr(left, table)
                    parquet.write_table(rows_left.to_arrow().cast(SCHEMAS[table]), place / f"{table}.parquet")
                slots = settings.get("batch_size") or settings.get("max_batch_size") or settings.get("max_running")
                entry = {"repeat": repeat, "variant": variant, "simulated": True, "slots": slots, "blocks": 128}
                cells.append(cell_entry(name, settings={"mode": dict(settings)}, **entry))
    return write_manifest(folder, cells, rows=count, **fields)


def load_run(folder: Path, gains: Mapping[float, float], **fields: object) -> Path:
    """At every load fifo's first tokens come after 500 ms, sjf's so many seconds sooner; `fields` are of sjf's cell at
    the last of them."""
    cells, traces = [], []
    for load, gain in gains.items():
        name = f"sample at {load:g}x"
        traces.append({"name": name, "rows": 20, "span_s": 10.0, "origin": "sample", "variant": {"load": load}})
        for policy in ("fifo", "sjf"):
            ttft = 0.5 - (gain if policy == "sjf" else 0.0)
            rows = [request_row(row, arrival=row / 2, token_times=[row / 2 + ttft]) for row in range(20)]
            cell = f"sample_at_{load:g}x-continuous-{policy}"
            write_tables(folder / "cells" / cell, rows, [step_row(0, 0.0, 1.0)])
            more = fields if (load, policy) == (max(gains), "sjf") else {}
            cells.append(cell_entry(cell, trace=name, mode="continuous", policy=policy, **more))
    return write_manifest(folder, cells, traces=traces)
