"""Lines of text with styles, cut to a width and painted for a terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

STYLES = {"bold": "1", "dim": "2", "bars": "36", "good": "32", "bad": "31"}
Piece = tuple[str, str]  # a text, and its style or ""
Line = list[Piece]


def painted(line: Line, width: int, *, colours: bool) -> str:
    """As a terminal wants it, no wider than `width`."""
    text, left = "", width
    for part, style in line:
        size = len(part) if part.isascii() else cell_len(part)
        if size > left:
            part, size = set_cell_size(part, left), left
        left -= size
        text += f"\x1b[{STYLES[style]}m{part}\x1b[0m" if style and colours and part.strip() else part
    return text.rstrip()


def fitted(text: str, width: int) -> str:
    """As wide as `width`; of a longer one, its two ends: names of cells differ in either."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    end = text[-(width // 2) :]
    while cell_len(end) > width // 2:
        end = end[1:]
    return set_cell_size(text, width - 1 - cell_len(end)) + "…" + end


def printable(text: str) -> str:
    """Without what a terminal would act on: a name may be anything."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text)
