"""Awkward names and degenerate shapes: every picture and every file of the report, without a warning."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from runs import cell_entry, request_row, span_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.notation import named
from replay.plots import plots
from replay.plots.canvas import look
from replay.plots.fonts import PLAIN, families
from replay.plots.view import views
from replay.report import write_report
from replay.results import read_run

USERS = [
    "$a$",
    "_hidden",
    "<b>x</b>",
    "|",
    "a\nb\tc",
    "",
    " ",
    "x" * 300,
    "😀",
    "王小明",
    "שלום",
    "back\\slash",
    "%s {0.x} {}",
]
USERS += ["../x", "nu\0l", "no user", "all", "</script><script>alert(1)</script>", "\x1b[31mred"]
POLICIES = ["_under", "$p$ 政策", "./my policy.py:Mine", "<i>p|q</i>"]


def run(folder: Path, cells: Mapping[str, Sequence[dict[str, Any]]], trace: str = "sample", **policies: str) -> Path:
    """A run of these cells; slots are held from the first token of a request to its last."""
    entries = []
    for cell, rows in cells.items():
        ends = [row["token_times"][-1] for row in rows if row["token_times"]]
        spans = [
            span_row(row["row"], row["row"] % 8, "decode", row["token_times"][0], row["token_times"][-1])
            for row in rows
            if row["token_times"]
        ]
        steps = [step_row(0, 0.0, max(ends), running=len(ends), used_blocks=1)] if ends else []
        write_tables(folder / "cells" / cell, rows, steps, spans)
        entries.append(cell_entry(cell, trace=trace) | {"policy": policies.get(cell, cell.split("-")[1])})
    traces = [{"name": trace, "rows": max(map(len, cells.values())), "span_s": 1.0}]
    return write_manifest(folder, entries, traces=traces)


def requests(users: Sequence[str | None], seconds: float = 0.1) -> list[dict[str, Any]]:
    """Three tokens each, so many seconds apart."""
    return [
        request_row(row, user=user, admitted=0.0, alone=seconds, token_times=[seconds * (row + n) for n in (1, 2, 3)])
        for row, user in enumerate(users)
    ]


def names(folder: Path) -> Path:
    cells = {f"continuous-{place}": requests(USERS, 0.1 + place / 100) for place in range(len(POLICIES))}
    return run(folder, cells, "a/b c <t> _$x$ 追踪", **dict(zip(cells, POLICIES, strict=True)))


def nothing_much(folder: Path) -> Path:
    """In one mode nobody is answered, or all at once and at zero; in the other there is no row and one request."""
    failed = [request_row(row, user="a", status="failed", reason="a|b\n<c>", ended=0.0) for row in range(4)]
    at_zero = [request_row(row, user="a", admitted=0.0, token_times=[0.0, 0.0]) for row in range(4)]
    return run(
        folder,
        {"continuous-fifo": failed, "continuous-sjf": at_zero, "static-fifo": [], "static-sjf": requests(["a"])},
    )


def extremes(folder: Path) -> Path:
    """Steps of a nanosecond, and of 30 years; and a policy that only one mode has."""
    tiny, huge = requests(["a", "b", None], 1e-9), requests(["a", "b", None], 1e9)
    return run(folder, {"continuous-fifo": tiny, "continuous-sjf": huge, "static-hybrid": tiny})


def refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("build", [names, nothing_much, extremes])
def test_every_file_is_written_strict_and_twice_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], build: Callable[[Path], Path]
) -> None:
    folder = build(tmp_path)
    assert write_report(folder, plots=False).problems == []
    written = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    assert {"comparison.md", "summary.csv", "summary.json", "summary.parquet"} <= written.keys()
    write_report(folder, plots=False)
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == written
    json.loads(written["summary.json"], parse_constant=refuse)
    stored = pl.read_parquet(folder / "summary.parquet")
    assert stored.filter(pl.col("value").is_nan() | pl.col("value").is_infinite()).is_empty()
    with (folder / "summary.csv").open(encoding="utf-8", newline="") as file:
        told = [(row["cell"], row["group"], row["n"]) for row in csv.DictReader(file)]
    assert told == stored.select("cell", "group", pl.col("n").cast(pl.String).fill_null("")).rows()
    assert capsys.readouterr() == ("", "")
    tables = [line for line in written["comparison.md"].decode().splitlines() if line.startswith("| ")]
    assert all(line.endswith(" |") for line in tables), "no name breaks a row"


@pytest.mark.parametrize("build", [names, nothing_much, extremes])
def test_every_picture_is_drawn_with_a_mark_or_a_word_in_each_panel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], build: Callable[[Path], Path]
) -> None:
    found = read_run(build(tmp_path))
    (view,) = views(found, measure(found))
    drawn = []
    with look():
        for name in plots:
            if (figure := plots[name](view)) is None:
                continue
            drawn.append(name)
            figure.savefig(io.BytesIO(), format="png", dpi=20)
            for axes in figure.axes:
                shows = [*axes.lines, *axes.patches, *axes.collections, *axes.texts, *axes.images]
                assert shows or not axes.get_visible(), f"{name}: an empty panel without a word"
            if build is names and name in ("distributions", "tradeoff", "timeline", "users"):
                labels = {text.get_text() for text in figure.findobj(Text)}
                assert labels >= set(POLICIES), f"{name}: all policies are in the legend"
    assert {"distributions", "latency", "slots", "timeline", "tradeoff", "users"} <= set(drawn)
    assert capsys.readouterr() == ("", "")


def test_a_name_as_a_label_is_one_short_line_that_can_be_seen() -> None:
    assert [named(name) for name in ("ana", "", "  ", "a\nb\tc", "nu\0l", "\x1b[31mred")] == [
        "ana",
        '""',
        '"  "',
        "a b c",
        "nu l",
        " [31mred",
    ]
    assert named("x" * 40) == "x" * 40
    assert named("first" + "x" * 60 + "last") == "first" + "x" * 15 + "…" + "x" * 15 + "last"
    assert named("王小明") == "王小明"


def test_letters_of_another_font_are_drawn_and_change_no_picture_without_them() -> None:
    def picture(text: str, **settings: Any) -> bytes:
        file = io.BytesIO()
        with look(**settings):
            made = Figure(figsize=(2, 1))
            made.text(0.1, 0.1, text)
            made.text(0.1, 0.6, text, weight="bold")
            made.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        return file.getvalue()

    plain = {"font.family": [PLAIN]}
    assert families()[0] == PLAIN
    assert picture("Größe, 3 µs, שלום") == picture("Größe, 3 µs, שלום", **plain)
    assert (picture("王小明") != picture("王小明", **plain)) == (len(families()) > 1)
