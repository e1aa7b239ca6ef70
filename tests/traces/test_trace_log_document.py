"""docs/replaying-your-own-log.md: its commands, what they print, and its table of formats."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command import replay
from test_trace_auto import EXAMPLES, NEEDED

from replay.traces.foreign.mapping import OURS
from replay.traces.formats import exporting, formats, import_trace
from replay.traces.reading import read_trace

PAGE = Path("docs/replaying-your-own-log.md")
CARRIES = {"users": "user", "sessions": "session", "shared prefixes": "prefix_hashes", "text": "prompt"}


def blocks() -> list[tuple[str, str]]:
    """The fenced blocks of the page with their languages, in order."""
    return re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def format_rows() -> dict[str, dict[str, str]]:
    """The page's table of formats: what its columns say of each."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    head = next(line for line in lines if line.startswith("| format |"))
    names = [name.strip() for name in head.split("|")[1:-1]]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[lines.index(head) + 2 :]]
    return {row[0].strip("`"): dict(zip(names, row, strict=True)) for row in cells if row}


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    files = {"csv": "gateway.csv", "json": "calls.jsonl"}
    printed: list[str] = []
    for language, content in blocks():
        if language in files:
            (tmp_path / files[language]).write_text(content, encoding="utf-8")
        elif language == "text":
            assert printed[-1] == content
        else:
            for command in content.replace("\\\n", "").splitlines():
                program, *arguments = shlex.split(command)
                assert program == "replay"
                more = ["--no-plots"] if arguments[0] == "run" else []
                done = replay(*arguments, *more, cwd=tmp_path)
                assert done.returncode == 0, done.stderr
                printed.append(done.stdout + done.stderr)
    assert len(printed) == 5
    assert (tmp_path / "gateway-run" / "comparison.md").is_file()
    trace = read_trace(tmp_path / "gateway.parquet")
    # ended less took: 0, 0.6, 0.4, 2.6 and 5.5 s after 1767225600
    assert trace.frame["arrival"].to_list() == [0, 400_000_000, 600_000_000, 2_600_000_000, 5_500_000_000]
    assert trace.frame["slo"].to_list() == ["small", "large", "large", "small", "large"]


def test_the_table_of_formats_is_whole() -> None:
    assert sorted(format_rows()) == list(format_rows()) == sorted(formats)
    assert {name for name, row in format_rows().items() if row["export"] == "yes"} == set(exporting())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_table_says_what_a_format_carries(tmp_path: Path, name: str) -> None:
    path = EXAMPLES[name].write(tmp_path)
    trace = import_trace(name, path, settings=NEEDED.get(name))
    for heading, column in CARRIES.items():
        expected = ("yes",) if trace.frame[column].is_not_null().any() else ("-", "on request")
        assert format_rows()[name][heading] in expected, heading


def test_the_page_names_our_columns() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in OURS:
        stem, _, unit = name.rpartition("_")
        assert f"`{name}`" in page or f"`_{unit}`" in page, name
        assert stem in page
