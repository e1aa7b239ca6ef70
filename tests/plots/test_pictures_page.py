"""docs/pictures.md: every picture of a run is on it, and in the order of the report."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from replay.plots import plots
from replay.plots.options import options_of
from replay.report.document import PICTURES

PAGE = Path("docs/pictures.md")


def test_every_picture_has_its_paragraph_and_its_place_in_the_report() -> None:
    named = re.findall(r"^- \*\*`(\w+)`\*\*: ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(plots)
    assert sorted(PICTURES) == sorted(plots)
    assert "(pictures.md)" in Path("docs/README.md").read_text(encoding="utf-8")


def test_the_commands_name_pictures_and_options_that_there_are() -> None:
    lines = re.findall(r"^    replay plot \S+ (\w+) (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    for name, rest in lines:
        asked = {word.removeprefix("--") for word in shlex.split(rest) if word.startswith("--")}
        assert asked <= set(options_of(plots[name]))
