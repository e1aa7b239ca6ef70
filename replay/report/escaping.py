"""Names as they are in Markdown: what a policy, a user, a trace or a run is called never becomes markup.

Sentences and tables are written with the names as they are, for a terminal shows them too. Where they become Markdown,
the names of the run that hold marks of Markdown are found again and escaped, and no `<` is left that could begin HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from replay.metrics.groups import BREAKDOWNS
from replay.report.findings import Findings

MARKS = re.compile(r"(?<!\w)_|_(?!\w)|[\\`*\[\]<>&|~$#]")
"""What CommonMark or GitHub may read as markup; an underscore within a word is none."""
_code = re.compile(r"((?<!\\)`[^`\n]+`)")

_tag = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])")


def marked_names(findings: Findings) -> list[str]:
    """The names of a run that Markdown would not show as they are, the longest first."""
    run, summary = findings.run, findings.measured.summary
    groups = summary.filter(summary["by"].is_in(list(BREAKDOWNS[1:])))["group"].unique().to_list()
    arms = [name for arm in findings.arms for name in (arm.trace, arm.policy, arm.setting)]
    names = {run.name, *findings.traces, *arms, *groups}
    told = {name for name in names if MARKS.search(name) or name != one_line(name)}
    return sorted((name for name in told if re.search(r"\w", name)), key=lambda name: (-len(name), name))


def one_line(name: str) -> str:
    return " ".join(name.split())


def escaped(text: str, names: Iterable[str]) -> str:
    """Markdown in which each of `names` is shown as it is, and that holds no HTML."""
    shown: dict[str, str] = {}
    for name in names:
        whole = MARKS.sub(lambda mark: f"\\{mark[0]}", one_line(name))
        for form in (name, name.replace("\n", " "), name.replace("|", "\\|").replace("\n", " ")):
            if form in text:
                shown[form] = whole
    if shown:
        forms = sorted(shown, key=len, reverse=True)
        text = re.sub("|".join(map(re.escape, forms)), lambda found: shown[found[0]], text)
    parts = _code.split(text)  # every other one is code, where a backslash is one
    return "".join(part if place % 2 else _tag.sub(r"\\<", part) for place, part in enumerate(parts))
