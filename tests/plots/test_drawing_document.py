"""docs/drawing.md: its commands and its lines of Python run, and leave what the page says."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from replay.cli import main

PAGE = Path("docs/drawing.md")


def blocks(language: str) -> list[str]:
    return [part.split("```")[0] for part in PAGE.read_text(encoding="utf-8").split(f"```{language}\n")[1:]]


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (commands,) = blocks("sh")
    python = blocks("python")[0]
    (tmp_path / "traces").mkdir()
    shutil.copy("traces/sample.parquet", tmp_path / "traces")
    monkeypatch.chdir(tmp_path)
    for command in commands.splitlines():
        program, *arguments = shlex.split(command)
        plain = ["--no-plots"] if arguments[0] == "run" else []
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *plain])
        assert (program, ended.value.code) == ("replay", 0), capsys.readouterr().err
    exec(compile(python, str(PAGE), "exec"), {})
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*") if file.parts[-2] != "cells"} >= {
        *("slots.svg", "heat_map.png", "heat_map.svg", "slots.pdf"),
        *(f"pictures/{name}.{kind}" for name in ("latency", "users") for kind in ("png", "svg")),
    }
