"""docs/transforms.md: its table is that of the registry, and its experiment and its commands run."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import command
from test_documents import blocks

from replay.traces.transforms import parse_transforms, transforms

PAGE = Path("docs/transforms.md")


def replay(folder: Path, *arguments: str) -> str:
    """The output of a command, both streams."""
    done = command.replay(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_table_has_each_transform_and_examples_that_are_right() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(transforms)
    for name, shown in rows:
        examples = re.findall(r"`([^`]+)`", shown)
        assert examples
        for example in examples:
            ((key, argument),) = tomllib.loads(example).items()
            assert key == name
            parse_transforms([{key: argument}])


def test_the_experiment_and_the_commands_do_what_the_page_says(tmp_path: Path) -> None:
    (experiment,) = blocks(str(PAGE), "toml")
    (commands,) = blocks(str(PAGE), "sh")
    (tmp_path / "traces").mkdir()
    shutil.copy("traces/sample.parquet", tmp_path / "traces")
    (tmp_path / "x.toml").write_text(experiment, encoding="utf-8")
    replay(tmp_path, "run", "x.toml", "--output", "out", "--no-plots")
    report = (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")
    for entry in tomllib.loads(experiment)["transforms"]:
        assert f"  - transform {next(iter(entry))} = " in report
    assert "3 of 4 users" in report
    assert "users, sessions and ids are sample/... and sample-2/..." in report
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "replay"
        said = replay(tmp_path, *arguments)
    assert "user names replaced" in said
    history = replay(tmp_path, "trace", "show", "public.parquet")
    assert "derive_priority; the rest is left out to anonymize" in history
    assert "ada" not in history
