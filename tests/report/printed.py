"""The tables of comparison.md and of report.html as text, and what a printed figure may stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

MINUS, NOT_DEFINED = "\u2212", "\u2013"
UNITS = {"s": 1e3, "ms": 1.0, "µs": 1e-3, "GFLOP/s": 1e9, "GB/s": 1e9, "TFLOP/s": 1e12, "TB/s": 1e12}
FIGURE = re.compile(r"([-\d,.]+) ?(%|[µm]?s|[GT]FLOP/s|[GT]B/s)?")


@dataclass
class Table:
    """A table with the headings over it: `part` is that of the second rank, `lead` the sentence before it."""

    part: str
    title: str
    lead: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)
    of_arms: bool = False


def agrees(text: str, value: float | None) -> bool:
    """Whether a figure is what is printed, to its last digit. Times are in milliseconds, whatever their unit."""
    if text == NOT_DEFINED:
        return value is None
    found = FIGURE.fullmatch(text.replace(MINUS, "-"))
    if found is None or value is None:
        return False
    digits, scale = found[1].replace(",", ""), UNITS.get(found[2], 1.0)
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    return abs(float(digits) - value / scale) <= half * (1 + 1e-6)


def plain(text: str) -> str:
    return " ".join(re.sub(r"\*\*|`|\\(?=[|\\<_*])", "", text).split())


def tables_of_markdown(text: str) -> list[Table]:
    found: list[Table] = []
    part = title = lead = ""
    inside = False
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not inside:
                found.append(Table(part, title, lead, cells))
            elif set(line) - set("|-: "):
                found[-1].rows.append(cells)
        elif line.startswith("## "):
            part = title = line.removeprefix("## ")
        elif line.startswith("#"):
            title = line.lstrip("# ")
        elif line:
            lead = line
        inside = line.startswith("|")
    return found


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.part, self.text, self.unseen = "", "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style") or given.get("class") == "said":
            self.unseen += 1
        if tag == "section":
            self.part = given.get("data-trace") or self.part
        if tag == "table":
            self.tables.append(Table(self.part, "", "", [], of_arms="arms" in (given.get("class") or "")))
        if tag == "tr" and self.tables:
            self.tables[-1].rows.append([])
        if tag in ("td", "th"):
            self.text = ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style") or (tag == "span" and self.unseen):
            self.unseen -= 1
        if tag in ("td", "th"):
            self.tables[-1].rows[-1].append(plain(self.text))

    def handle_data(self, data: str) -> None:
        self.text += "" if self.unseen else data


def tables_of_page(text: str) -> list[Table]:
    """`part` is the number of the trace that a table is of."""
    page = _Page()
    page.feed(text)
    for table in page.tables:
        table.head = table.rows.pop(0)
    return page.tables
