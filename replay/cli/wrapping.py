"""Text for people, wrapped to their terminal; what is not shown on one is not wrapped, so that it can be searched."""

from __future__ import annotations

import shutil
import sys
import textwrap


def width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000


def hanging(label: str, text: str, later: str | None = None) -> list[str]:
    """A text behind its label; what follows on stands under it, or behind `later`."""
    blank = " " * len(label) if later is None else later
    return textwrap.wrap(text, width(), initial_indent=label, subsequent_indent=blank, break_on_hyphens=False)


def paragraphs(text: str) -> list[str]:
    """Paragraphs, each of lines that are not too long to read; those that are indented are left as they are."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        plain = not any(line.startswith(" ") for line in paragraph.splitlines())
        text = " ".join(paragraph.split())
        lines += ["", *(textwrap.wrap(text, min(width(), 100)) if plain else paragraph.splitlines())]
    return lines[1:]
