"""Sentences and tables that are written in Markdown, as HTML: nothing that a name or a trace holds becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markdown_it import MarkdownIt
from markupsafe import Markup

from replay.report.escaping import escaped

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"])


def prose(parts: str | Iterable[str], names: Sequence[str] = ()) -> Markup:
    """Paragraphs, lists, headings and tables; of several parts, those that are not empty. `names`: `marked_names`."""
    text = parts if isinstance(parts, str) else "\n\n".join(part for part in parts if part)
    return Markup(_unbroken(_markdown.render(escaped(text, names))))  # raw HTML in it is escaped


def sentence(text: str, names: Sequence[str] = ()) -> Markup:
    """One line, without a paragraph around it."""
    return Markup(
        _unbroken(_markdown.renderInline(" ".join(escaped(text, names).split())))
    )  # raw HTML in it is escaped


def _unbroken(html: str) -> str:
    """No line begins with the sign of a percentage."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", html)
