"""Every number in the tables of a report is worked out again from the Parquet files to its last digit."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as parquet
import pytest
from figured import Figures, figures
from printed import MINUS, NOT_DEFINED, Table, agrees, tables_of_markdown, tables_of_page
from recomputing import Replayed, Row, mean, replayed, times, window_length
from silent import Silent

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.experiment.loading import load_experiment
from replay.report import write_report
from replay.runner import Runner, open_traces
from replay.stopping import Stop

EXPERIMENT = """
loads = [1.0, 2.0]
[engine]
kind = "simulated"
kv_blocks = 40
max_waiting = 24
queue_timeout_s = 2.5
timeout_s = 6.0
prefix_cache = true
swap_gb = 0.0003
price_per_hour = 2.5
[modes]
static = { batch_size = 4 }
dynamic = { max_batch_size = 4, max_wait_ms = 50 }
continuous = { max_running = [3, 8], token_budget = 128 }
[policies]
fifo = {}
priority_preempt = {}
[goals]
ttft_ms = 1500
tpot_ms = 45
reading_tokens_per_s = 20
"""
WORK = {
    "shape": {
        **{"layers": 6, "hidden": 256, "heads": 8, "kv_heads": 2, "head_dim": 32, "intermediate": 768},
        **{"vocabulary": 4096, "tied": True, "gated": True, "vectors": 3328},
    },
    "weight_itemsize": 4,
    "kv_itemsize": 2,
}
CEILINGS = {
    **{"device": "a processor", "threads": 1, "dtype": "float32", "arithmetic": 3.0e10, "read": 2.0e9, "copy": 3.0e9},
    "how": {"arithmetic": "a product", "read": "a sum", "copy": "a copy"},
    **{"measured": "2026-01-02T03:04:05+00:00", "versions": {"replay": "0.1.0"}},
}
MEASURED = {"memory": 580_521_984, "memory_source": "of the process", "gpu_samples": 0}
TITLES = (  # every table that has figures of cells: a new one is to be worked out here too
    *("The regime", "Latency", "Throughput, goodput and fairness", "Fairness between users", "Starvation", "Sessions"),
    *(
        "Goals by class of service",
        "How requests ended",
        "Settings compared",
        "Policies against fifo, within each mode",
    ),
    *("Modes against each other, under each policy", "By user", "By priority", "By class", "By output length"),
    *("What the engine did", "Utilisation"),
)
GROUPS = {"user": "user", "priority": "priority", "class": "slo"}


def mixed_trace(path: Path) -> None:
    """48 requests with users, priorities, classes, deadlines; some in conversations that share the beginning of their
    prompts, one too long for any pool, some answers of one token."""
    draw, rows, now = random.Random(5), list[Row](), 0.0
    for row in range(48):
        now += draw.expovariate(12.0) if row else 0.0
        session = f"s{row % 5}" if row % 4 == 3 else None
        prompt = 900 if row == 20 else min(160, max(3, int(draw.lognormvariate(3.8, 0.8))))
        rows.append(
            {
                "arrival_s": round(now, 4),
                "prompt_tokens": 96 if session else prompt,
                "output_tokens": 1 if row % 13 == 5 else min(60, max(2, int(draw.lognormvariate(2.7, 0.8)))),
                "user": draw.choices(["ana", "ben", "cem", None], [6, 3, 2, 1])[0],
                "priority": draw.choice([0, 1, 2, None]),
                "slo": draw.choice(["gold", "bronze", None]),
                "deadline_ms": draw.choice([300.0, 2000.0, None]),
                "session": session,
                "think_time_ms": 100.0 if session else None,
                "prefix_hashes": [1, 2 + row % 5] if session else [],
                "max_tokens": 64,
            }
        )
    table = pl.DataFrame(rows, infer_schema_length=None).to_arrow()
    parquet.write_table(table.replace_schema_metadata({"block_size": "32", "hash_scope": "global"}), path)


@dataclass(frozen=True)
class Report:
    """What is printed of a run, and its rows."""

    markdown: list[Table]
    page: list[Table]
    cells: dict[tuple[str, str, str], Replayed]
    figures: dict[tuple[str, str, str], Figures]

    @property
    def traces(self) -> list[str]:
        return list(dict.fromkeys(trace for trace, _, _ in self.cells))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("recomputed")
    mixed_trace(folder / "mixed.parquet")
    run = folder / "run"
    document = tomllib.loads(EXPERIMENT) | {"traces": [str(folder / "mixed.parquet")]}
    experiment = load_experiment(document, "mixed.toml")
    Runner(experiment, open_traces(experiment), Silent(), Stop()).run(run)
    manifest = json.loads((run / "manifest.json").read_text())
    for cell in manifest["cells"]:  # as a real engine leaves them
        cell |= {"work": WORK, "ceilings": CEILINGS, "device_use": MEASURED}
    (run / "manifest.json").write_text(json.dumps(manifest))
    write_report(run, plots=False)
    cells = replayed(run)
    lengths = {trace: window_length(cell for key, cell in cells.items() if key[0] == trace) for trace, _, _ in cells}
    return Report(
        tables_of_markdown((run / "comparison.md").read_text()),
        tables_of_page((run / "report.html").read_text()),
        cells,
        {key: figures(cell, lengths[key[0]]) for key, cell in cells.items()},
    )


Figure = tuple[str, str, float | None]  # where it stands, what is printed, what it is


def told_of_arms(report: Report, trace: str, table: Table) -> Iterator[Figure]:
    """Tables with a row for each setting and policy."""
    for setting, policy, *texts in table.rows:
        found = report.figures[trace, setting, policy]
        for column, text in zip(table.head[2:], texts, strict=True):
            where = f"{setting}, {policy}: {column}"
            if column == "regime":
                bounds = {"gate-bound": "gate", "slot-bound": "slots", "block-bound": "blocks", "unbound": "nothing"}
                for name, share in re.findall(r"([\w-]+) (\d+ %)", text):
                    yield where, share, found[f"by {bounds.get(name, name.removesuffix('-bound'))}"]
            elif column.startswith("by "):
                share, steps = re.fullmatch(r"([\d.]+ %)(?: \(([\d.]+ %)\))?", text).groups("0 %")  # type: ignore[union-attr]
                yield where, share, found[column]
                yield f"{where}, steps", steps, found[f"{column}, steps"]
            else:
                yield where, text, found[column]


def told_of_settings(report: Report, trace: str, table: Table) -> Iterator[Figure]:
    for mode, policy, setting, *texts in table.rows:
        found = report.figures[trace, f"{mode} ({setting})", policy]
        for column, text in zip(table.head[3:], texts, strict=True):
            yield f"{setting}, {policy}: {column}", text, found[column.removesuffix(", ms")]


def told_of_groups(report: Report, trace: str, table: Table) -> Iterator[Figure]:
    setting, _, what = table.lead.partition(": ")
    for group, count, *texts in table.rows:
        mine = _of_group(table.head[0], group)
        for policy, text in zip(table.head[2:], texts, strict=True):
            rows = [row for row in report.cells[trace, setting, policy].requests if mine(row)]
            where = f"{setting}, {policy}: {group}"
            yield f"{where}: requests", count, len(rows)
            columns, scale = (("ttft", "e2e"), 1e3) if what.startswith("mean TTFT") else (("good", "met"), 100)
            for column, figure in zip(columns, text.split(" / "), strict=True):
                yield f"{where}: {column}", figure, times(scale, mean(row[column] for row in rows))


def _of_group(by: str, group: str) -> Callable[[Row], bool]:
    if by != "length":
        return lambda row: (f"no {by}" if row[GROUPS[by]] is None else str(row[GROUPS[by]])) == group
    low, high = re.findall(r"\d+", group) if "-" in group else (int(re.findall(r"\d+", group)[0]) + 1, 10**9)
    return lambda row: int(low) <= row["output_tokens"] <= int(high)


def told_of_differences(report: Report, trace: str, table: Table) -> Iterator[Figure]:
    columns = {"TTFT": "ttft", "delivered TTFT": "delivered", "TPOT": "tpot", "E2E": "e2e", "goodput": "good"}
    for same, names, *texts in table.rows:
        keys = [
            (trace, *((same, name) if table.head[0] == "mode" else (name, same))) for name in names.split(f" {MINUS} ")
        ]
        other, base = (report.cells[key] for key in keys)
        for column, text in zip(table.head[2:], texts, strict=True):
            where, first = f"{same}, {names}: {column}", text.partition(" ")[0]
            felt = columns.get(column.partition(", ")[0].removeprefix("mean "), "e2e")
            pairs = [(one[felt], two[felt]) for one, two in zip(other.requests, base.requests, strict=True)]
            apart = [float(one) - float(two) for one, two in pairs if one is not None and two is not None]
            if column == "pairs":
                yield where, text, len(apart)
            elif column.startswith("output tokens/s"):
                value, less = (report.figures[key]["output tokens/s"] for key in keys)
                assert value is not None
                assert less is not None
                yield where, first, value - less
            elif column.startswith("E2E"):
                shorter, longer = text.split(" / ")
                yield where, f"{shorter} %", 100 * sum(each < -5e-10 for each in apart) / len(apart)
                yield where, longer, 100 * sum(each > 5e-10 for each in apart) / len(apart)
            else:
                yield where, first, times(100 if felt == "good" else 1e3, mean(apart))


def told(report: Report, trace: str, table: Table) -> Iterator[Figure]:
    if table.title == "Settings compared":
        return told_of_settings(report, trace, table)
    if table.head[1] == "difference":
        return told_of_differences(report, trace, table)
    return (told_of_arms if table.head[:2] == ["mode", "policy"] else told_of_groups)(report, trace, table)


@pytest.mark.parametrize("title", TITLES)
def test_every_number_of_a_table_is_worked_out_again(report: Report, title: str) -> None:
    found = [
        (trace, *figure)
        for table in report.markdown
        if table.title == title and (trace := table.part.partition("Results: ")[2])
        for figure in told(report, trace, table)
    ]
    assert {trace for trace, *_ in found} == set(report.traces)
    assert [each for each in found if not agrees(each[2], each[3])] == []


def test_no_table_of_results_is_left_out(report: Report) -> None:
    results = {table.title for table in report.markdown if table.part.startswith("Results")}
    assert results == set(TITLES)


def test_the_run_has_what_can_go_wrong(report: Report) -> None:
    ends = Counter(row["status"] for cell in report.cells.values() for row in cell.requests)
    assert {"completed", "rejected", "timed_out", "skipped"} <= set(ends)
    rows = [row for cell in report.cells.values() for row in cell.requests]
    assert any(row["evictions"] for row in rows)
    assert any(row["cached_tokens"] for row in rows)
    assert any(row["recomputed_tokens"] for row in rows)
    assert any(row["swaps"] for row in rows)


def test_every_number_of_the_tables_of_loads_is_worked_out_again(report: Report) -> None:
    tables = [table for table in report.markdown if table.part == "Loads: mixed"]
    assert [table.title for table in tables] == list(dict.fromkeys(setting for _, setting, _ in report.cells))
    for table in tables:
        for row in table.rows:
            trace = f"mixed at {row[0]}"
            found = [report.figures[trace, table.title, policy] for policy in table.head[5:]]
            requests = report.cells[trace, table.title, "fifo"].requests
            span = max(request["arrival"] for request in requests) - min(request["arrival"] for request in requests)
            assert agrees(row[3], len(requests) / span)
            assert agrees(row[4], max(each["waited beyond a step"] or 0.0 for each in found))
            for policy, text in zip(table.head[5:], row[5:], strict=True):
                rows = report.cells[trace, table.title, policy].requests
                assert agrees(text, times(1e3, mean(request["ttft"] for request in rows)))


def test_the_page_prints_the_numbers_of_the_markdown(report: Report) -> None:
    shown: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for table in report.markdown:
        if table.part.startswith("Results") and table.head[:2] == ["mode", "policy"]:
            for row in table.rows:
                shown[table.part, row[0], row[1]] |= dict(zip(table.head[2:], row[2:], strict=True))
    bodies = [(table.head, table.rows) for table in report.markdown]
    arms = 0
    for table in report.page:
        if table.of_arms:
            arms += 1
            part = f"Results: {report.traces[int(table.part)]}"
            for setting, policy, *texts in table.rows:
                known = shown[part, setting, policy]
                assert texts == [known[column] for column in table.head[2:]]
        elif table.head != ["key", "value", "where"]:
            bodies.remove((table.head, table.rows))
    assert arms == 10  # five of each trace
    named = {table.title for table in report.markdown if (table.head, table.rows) in bodies}
    assert named == {"Latency", "Throughput, goodput and fairness", "How requests ended", "What the engine did"}


def test_a_number_that_is_off_by_one_digit_is_seen() -> None:
    assert agrees("1,234", 1234.4)
    assert not agrees("1,234", 1234.6)
    assert agrees(f"{MINUS}0.12", -0.124)
    assert not agrees(f"{MINUS}0.12", 0.12)
    assert agrees("1.55 s", 1_545.1)
    assert not agrees(NOT_DEFINED, 0.0)
    assert not agrees("0 %", None)
