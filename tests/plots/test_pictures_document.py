"""docs/pictures-of-a-trace.md: its commands run, and its table has every picture that there is."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from command import replay

from replay.plots.traces import trace_pictures

PAGE = Path("docs/pictures-of-a-trace.md")


def test_the_commands_draw_what_the_table_names(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(named) == sorted(trace_pictures)
    shutil.copy("traces/sample.parquet", tmp_path / "chat.parquet")
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^    (replay .*)$", page, re.MULTILINE)]
    assert len(commands) == 2
    for _, *arguments in commands:
        assert replay(*arguments, cwd=tmp_path).returncode == 0
    for folder in ("outputs/chat-plots", "pictures"):
        files = {file.name for file in (tmp_path / folder).iterdir()}
        assert files == {f"{name}.{kind}" for name in named for kind in ("png", "svg")}
