"""The how-to on sharing a workload: its commands do what it says, and it tells of every option."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from command import replay

from replay.cli.trace_fit import fit_command
from replay.traces.reading import read_trace

PAGE = Path("docs/sharing-a-workload.md")


def test_the_commands_make_a_trace_like_the_sample(tmp_path):
    (commands,) = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "traces").mkdir()
    shutil.copy("traces/sample.parquet", tmp_path / "traces")
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "replay"
        done = replay(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    made = read_trace(tmp_path / "like-sample.parquet")
    assert made.extent().rows == 96
    assert made.frame["user"].n_unique() == 4


def test_the_page_tells_of_every_option_that_shapes_a_fit():
    page = PAGE.read_text(encoding="utf-8")
    options = {option for parameter in fit_command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if f"`{option}`" in page} == options - {"--seed", "--force"}
