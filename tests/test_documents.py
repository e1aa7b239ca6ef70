"""The documents: what they show is what there is."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.cli.reference.markdown import own
from replay.executors.torch.shapes import SHAPES
from replay.experiment.grid import cells
from replay.experiment.loading import load_experiment
from replay.predictors import predictors
from replay.registry import Registry
from replay.scheduler import admissions, policies
from replay.scheduler.listener import Listener
from replay.traces.formats import formats

DOCS = Path("docs")
PAGES = [Path("README.md"), *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("reference/*.md"))]


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a Markdown file in one language."""
    return re.findall(rf"```{language}\n(.*?)```", Path(document).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readme_is_short_and_its_experiment_is_one() -> None:
    assert len(Path("README.md").read_text(encoding="utf-8").splitlines()) < 150
    (toml,) = blocks("README.md", "toml")
    document = tomllib.loads(toml)
    assert document["traces"] == ["chat.parquet"]
    experiment = load_experiment({**document, "traces": ["traces/sample.parquet"]}, "README.md")
    assert len(cells(experiment, ["chat"])) == 3 * (1 + 3) * 2
    assert not experiment.warnings


def test_the_readme_shows_the_policy_as_it_is() -> None:
    (shown,) = blocks("README.md", "python")
    kept = Path("policies/hybrid.py").read_text(encoding="utf-8")

    def code(text: str) -> list[str]:
        """The lines of code: the docstrings are shortened for the README."""
        bare = re.sub(r'"""(.*?)"""', "", text, flags=re.DOTALL)
        return [line for line in bare.splitlines() if line.strip()]

    assert code(shown) == code(kept)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, section = link.partition("#")
        target = page.parent / name if name else page
        assert target.is_file(), link
        heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE) if section else []
        assert not section or section in {head.lower().replace(" ", "-") for head in heads}, link


def test_every_page_is_in_the_index() -> None:
    index = Path("docs/README.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(DOCS)) for page in PAGES if page.parent != Path()} - {"README.md"}
    assert set(re.findall(r"^- \[.+\]\(([^)]+)\): ", index, re.MULTILINE)) == pages


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_names_no_place_of_somebodys_machine(page: Path) -> None:
    assert not re.findall(r"(?:/work|/tmp|/home|/root|/Users)/\S*", page.read_text(encoding="utf-8"))


def test_the_policy_of_the_how_to_runs_in_every_mode(tmp_path: Path) -> None:
    (code,) = blocks("docs/writing-a-policy.md", "python")
    shutil.copytree("policies", tmp_path / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "policies" / "longest_prompt.py").write_text(code, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "replay",
        "run",
        "--trace",
        str(Path("traces/sample.parquet").resolve()),
        "--policy",
    ]
    command += ["longest_prompt", "--set", "engine.kind=simulated", "--no-plots"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for mode in ("static", "dynamic", "continuous"):
        assert f"{mode}-longest_prompt: 96 of 96 completed" in done.stderr


def test_the_how_to_tells_every_event_with_what_it_is_given() -> None:
    page = Path("docs/writing-a-policy.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(on_\w+)\((.*?)\)` \|", page, flags=re.MULTILINE)
    events = {name: event for name, event in vars(Listener).items() if name.startswith("on_")}
    assert [name for name, _ in told] == list(events)
    for name, given in told:
        assert given == ", ".join(list(inspect.signature(events[name]).parameters)[1:]), name


def test_the_page_on_the_engine_has_every_named_shape() -> None:
    page = Path("docs/engine.md").read_text(encoding="utf-8")
    models = page.partition("## Models")[2].partition("\n## ")[0]
    assert f"({', '.join(f'`{name}`' for name in SHAPES)})" in models


def test_the_readme_counts_what_there_is() -> None:
    readme = Path("README.md").read_text(encoding="utf-8")
    assert [int(count) for count in re.findall(r"(\d+) formats", readme)] == [len(list(own(formats)))]
    assert [int(count) for count in re.findall(r"(\d+) schedulers", readme)] == [len(list(own(policies)))]


def test_the_catalogue_tells_of_every_policy_rule_and_predictor() -> None:
    page = Path("docs/policies.md").read_text(encoding="utf-8")
    catalogues: tuple[Registry[Any], ...] = (policies, admissions, predictors)
    for registry in catalogues:
        for name in registry:
            if not registry[name].__module__.startswith(("policies.", "replay.")):
                continue  # another test's own
            rule = (inspect.getdoc(registry[name]) or "").splitlines()[0]
            assert f"| `{name}` | {rule} |" in page, f"docs/policies.md: {registry.kind} {name!r} and its rule"
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert set(named) <= {*policies, *admissions, *predictors}, "and of none that is not there"
