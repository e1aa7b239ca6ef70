"""report.html: the whole report as one file that opens from disk, without a network, in light and in dark.

What it says stands in it as HTML and is read without its script. The script sorts, filters and draws the charts, with
Plotly packed into the same file. The same rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from replay.report.advice import Advice
from replay.report.findings import Findings
from replay.report.page.blobs import inline_json
from replay.report.page.content import content
from replay.report.page.library import plotly

__all__ = ["page"]

_HERE = Path(__file__).parent
SCRIPTS = (
    *("unpack", "element", "theme", "filter", "tables", "charts-look", "charts-key", "charts"),
    *("explorer-data", "explorer-words", "explorer-pen", "explorer-overview", "explorer-slots", "explorer-choice"),
    *("explorer-window", "explorer-panels", "explorer-request", "explorer-list", "explorer"),
    "start",
)
STYLES = ("style", "explorer")
"""In the order in which they are needed, from script/ and from here."""


def page(
    findings: Findings, advice: Sequence[Advice] = (), pictures: Sequence[str] = (), problems: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The text of report.html, and a sentence for each chart that could not be drawn.

    `pictures` are links to the static pictures, `problems` which of them could not be drawn.
    """
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found = content(findings, advice, pictures, problems)
    script = "\n".join((_HERE / "script" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    style = "\n".join((_HERE / f"{name}.css").read_text(encoding="utf-8") for name in STYLES)
    text = environment.get_template("template.html").render(
        page=found,
        style=Markup(style),  # our own files
        script=Markup(script),  # our own files
        facts=Markup(inline_json(dict(found.facts))),  # nothing in it can end the element
        blobs={"plotly": plotly(), **found.blobs} if found.blobs else {},
    )
    return text + "\n", found.undrawn
