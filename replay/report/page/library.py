"""The plotting library that the page carries: Plotly's JavaScript, as its Python package ships it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from replay.report.page.blobs import packed


@cache
def plotly() -> str:
    """The whole library, packed: a fifth of its size."""
    return packed((files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"), level=6)
