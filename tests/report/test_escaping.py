"""Names that look like markup stand in comparison.md and in the page's sentences as they are."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.report import write_report
from replay.report.escaping import escaped

NAMES = (
    "fifo",
    "</script><b>x</b>",
    "&amp;",
    "$a$",
    "`tick`",
    "**b**",
    "_x_",
    "[a](b)",
    "a|b",
    "new\nline",
    "max_tokens",
)


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("**a*b** wins; `a < b`", ["a*b"], r"**a\*b** wins; `a < b`"),
        ("a_b and _c", ["_c"], r"a_b and \_c"),
        ("x <i> `<i>` 1 < 2", [], r"x \<i> `<i>` 1 < 2"),
        ("| a\\|b | a|b", ["a|b"], r"| a\|b | a\|b"),
        ("two\nlines, two lines", ["two\nlines"], "two lines, two lines"),
    ],
)
def test_marks_of_names_are_escaped_and_ours_are_not(text: str, names: list[str], expected: str) -> None:
    assert escaped(text, names) == expected


def test_every_name_is_read_in_the_report_and_none_becomes_markup(tmp_path: Path) -> None:
    cells = []
    for place, policy in enumerate(NAMES):
        rows = [
            request_row(row, user=name, slo=name, admitted=0.0, token_times=[0.1 + place, 0.2 + place])
            for row, name in enumerate(NAMES)
        ]
        write_tables(tmp_path / "cells" / f"continuous-{place}", rows, [step_row(0, 0.0, 9.0, running=1)])
        cells.append(cell_entry(f"continuous-{place}", policy=policy))
    write_manifest(tmp_path, cells, name="a run\nof <i>two</i> lines")
    write_report(tmp_path, plots=False)
    written = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert written.startswith("# a run of \\<i\\>two\\</i\\> lines\n")
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").render(written)
    page = (tmp_path / "report.html").read_text(encoding="utf-8").split("<main>")[1].split("</main>")[0]
    for text in (markdown, page):
        tags = set(re.findall(r"<(\w+)", text))
        assert not tags & {"script", "b", "i"} - ({"i"} if text is page else set())
        cells_read = {html.unescape(each) for each in re.findall(r"<t[dh][^>]*>([^<]*)", text)}
        assert {" ".join(name.split()) for name in NAMES} <= cells_read
