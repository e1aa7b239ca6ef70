"""docs/tutorial.md: its commands run, its figures are those of the kept file, and its words are borne out by them.

All but `replay probe` run here as they stand: on the simulated engine, which gives the same figures everywhere. The
probe measures, so of it only the options are read; what it and the real engine gave is held to the claims of the text.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from benchmarks.tutorial_figures import (
    INLINE,
    MEASURED,
    ROUGH,
    RUNS,
    SIMULATED,
    TABLES,
    commands,
    filled,
    measured_claims,
    read,
    simulated_claims,
)
from test_documents import blocks

from replay.cli import main
from replay.cli.probe import probe
from replay.experiment.loading import load_experiment

PAGE = Path("docs/tutorial.md")
TRANSLATED = Path("docs/tutorial.zh-TW.md")
KEPT: dict[str, Any] = json.loads(Path("docs/tutorial/figures.json").read_text(encoding="utf-8"))
PAGES = [page for page in (PAGE, TRANSLATED) if page.exists()]


def status(arguments: list[str]) -> int:
    """Run a command in this process, which is quicker than one of its own; its exit status."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code if isinstance(ended.value.code, int) else 0


@pytest.fixture(scope="module")
def lessons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command of the page was run."""
    folder = tmp_path_factory.mktemp("lessons")
    shutil.copytree("docs/tutorial", folder / "docs" / "tutorial")
    (folder / "outputs").mkdir()
    words = commands(PAGE.read_text(encoding="utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in words:
            if line[0] == "probe":
                probe.make_context("probe", line[1:])
                continue
            arguments = ["-q", *line, *(["--no-plots"] if line[0] == "run" else [])]
            assert status(arguments) == 0, line
    return folder


def test_every_command_runs_and_gives_the_figures_of_the_page(lessons: Path) -> None:
    figures = {key: value for run in RUNS for key, value in read(lessons / "outputs" / run, run).items()}
    assert figures == pytest.approx(KEPT[SIMULATED]["figures"], rel=1e-9)
    drawn = {path.name for path in (lessons / "outputs").glob("*.png")}
    assert drawn == {path.name for path in Path("docs/tutorial").glob("*.png")}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_page_holds_the_figures_that_are_kept(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, KEPT) == text
    assert set(re.findall(r"<!-- table ([\w-]+) -->", text)) == set(TABLES)
    assert set(re.findall(r"\*\*<!-- ([\w ]+) -->", text)) == set(INLINE)
    assert text.count("<!-- machine -->") == 1


def test_what_the_page_says_in_words_is_so() -> None:
    claims = simulated_claims(KEPT[SIMULATED]["figures"])
    if ROUGH not in KEPT[MEASURED]["machine"]:
        claims |= measured_claims(KEPT[MEASURED]["figures"])
    assert [claim for claim, holds in claims.items() if not holds] == []


def test_the_plan_is_shown_as_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = blocks(str(PAGE), "text")
    (plan,) = [line for line in commands(PAGE.read_text(encoding="utf-8")) if line[0] == "plan"]
    assert status(plan) == 0
    assert capsys.readouterr().out == shown


def test_every_file_of_the_lessons_is_used_and_is_an_experiment_or_a_trace() -> None:
    used = {word for line in commands(PAGE.read_text(encoding="utf-8")) for word in line if word.endswith(".toml")}
    assert used == {path.as_posix() for path in Path("docs/tutorial").glob("*.toml")}
    for path in sorted(used):
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        if "users" not in document:
            experiment = load_experiment({**document, "traces": ["traces/sample.parquet"]}, path)
            assert not experiment.warnings, path
        assert Path(path).read_text(encoding="utf-8").startswith("# "), path


def test_pictures_are_small() -> None:
    pictures = list(Path("docs/tutorial").glob("*.png"))
    assert 0 < len(pictures) <= 10
    assert all(path.stat().st_size <= 150_000 for path in pictures)


def test_the_translation_has_the_same_code() -> None:
    if not TRANSLATED.exists():
        pytest.skip("there is no translation")
    for language in ("sh", "text"):
        assert blocks(str(TRANSLATED), language) == blocks(str(PAGE), language)
