"""Trace formats from elsewhere: the page on writing one, what is wrong with a file, and installed packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from replay.cli.format_file import format_name
from replay.cli.trace import trace
from replay.errors import ExperimentError
from replay.traces.formats import formats

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-format.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
FORMAT, LOG, PRINTED = (text for _, text in BLOCKS)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(formats, "_entries", dict(formats._entries))


def test_the_page_s_format_reads_the_page_s_log_and_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pipes.py").write_text(FORMAT, encoding="utf-8")
    Path("gateway.txt").write_text(LOG, encoding="utf-8")
    made = CliRunner().invoke(
        trace, ["import", "./pipes.py:Pipes", "gateway.txt", "gateway.parquet"], catch_exceptions=False
    )
    assert made.output == PRINTED
    shown = CliRunner().invoke(trace, ["formats", "pipes.py"], catch_exceptions=False)
    assert shown.output.startswith("Pipes: Logs of our gateway, separated by bars (times in ms)\n")
    assert "separator: what stands between two columns (default: |)" in shown.output
    refused = CliRunner().invoke(trace, ["export", "./pipes.py:Pipes", "gateway.parquet", "back.txt"])
    assert str(refused.exception).startswith("a trace cannot be written as Pipes; known: aiperf, azure, ")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (None, "", "mine.py: holds no format; a format is a dataclass with fits(look) and read(path)"),
        (None, FORMAT + FORMAT.replace("class Pipes", "class Other"), "mine.py: holds 2 formats: say which, as "),
        ("Pipe", FORMAT, "mine.py: there is no class 'Pipe'; did you mean 'Pipes'?"),
        ("NAMES", FORMAT, "mine.py: NAMES is no format; a format is a dataclass with "),
        ("Pipes", FORMAT.replace("@dataclass(frozen=True, slots=True)\n", ""), "mine.py: Pipes is no format; "),
        ("Pipes", FORMAT.replace('    """Logs of our', '    x = """Logs of our'), "mine.py: Pipes has no docstring; "),
        ("vidur", FORMAT.replace("class Pipes", "class vidur"), "mine.py: vidur: the name 'vidur' is taken by another"),
        ("Pipes", "import nowhere_at_all\n", "mine.py, line 1: No module named 'nowhere_at_all'"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, name: str | None, text: str, sentence: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ExperimentError) as fault:
        format_name(str(file) if name is None else f"{file}:{name}")
    assert sentence in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_name_is_left_as_it_is_and_a_file_that_is_not_there_is_a_sentence() -> None:
    assert format_name("vidur") == "vidur"
    with pytest.raises(ExperimentError, match=r"^\./nowhere\.py: there is no such file"):
        format_name("./nowhere.py:Pipes")
    with pytest.raises(ExperimentError, match=r"a format of your own is a Python file and its class, such as \./mine"):
        format_name("./pipes:Pipes")


def install(place: Path, name: str, text: str) -> None:
    """An installed package: a module, and the metadata that an installer leaves, with an entry point."""
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    metadata = place / f"{name}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[replay.formats]\n{name} = {name}:Pipes\n")
    (metadata / "RECORD").write_text("")


def test_formats_of_installed_packages_are_there_for_auto_too_and_a_broken_one_stops_nobody(tmp_path: Path) -> None:
    install(tmp_path, "piped", FORMAT)
    install(tmp_path, "broken", "import nowhere_at_all\n")
    log = tmp_path / "gateway.txt"
    log.write_text(LOG, encoding="utf-8")

    def replay(*words: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "replay", "trace", *words]
        return subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False
        )

    made = replay("import", "auto", str(log), str(tmp_path / "out.parquet"))
    assert (made.returncode, made.stderr.splitlines()[0]) == (0, "the format is piped: no other fits")
    listed = replay("formats")
    assert "\npiped " in listed.stdout
    assert "its format 'broken' cannot be used: " in listed.stderr
    asked = replay("import", "broken", str(log), str(tmp_path / "other.parquet"))
    assert asked.returncode == 2
    assert asked.stderr.count("its format 'broken' cannot be used: ") == 1
    assert "Traceback" not in asked.stderr
