"""`replay reproduce` as a person types it: what it prints, what it leaves, and what its exit status says."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from recipes import write_recipe

from replay.cli import main
from replay.cli.progress import Display
from replay.reproduce.findings import find
from replay.reproduce.running import run_recipe
from replay.reproduce.shelf import find_recipe, recipe_names
from replay.stopping import Stop

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `replay` in a folder of its own: its exit status, and what it printed on both streams."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("order", "recorded", "status", "told"),
    [
        ('["sjf", "<", "fifo"]', "holds", 0, "small: holds, as recorded"),
        ('["fifo", "<", "sjf"]', "holds", 1, "small: not reproduced, which differs from the record (holds;"),
        ('["fifo", "<", "sjf"]', "fails", 0, "small: not reproduced, as recorded\n  for a test"),
        ('["sjf", "<", "fifo"]', "fails", 1, "small: holds, which differs from the record (not reproduced;"),
    ],
)
def test_the_exit_status_says_whether_the_outcome_is_the_one_on_record(
    tmp_path: Path, replay: Command, order: str, recorded: str, status: int, told: str
) -> None:
    ended, out, error = replay("reproduce", write_recipe(tmp_path, order, recorded), "--no-plots")
    assert ended == status, error
    assert told in out
    assert "measured on: simulated engine, no hardware: a step takes 15 ms + 0.25 ms a prefill token" in out
    assert ("holds (2 of 2 seeds)" if order.startswith('["sjf"') else "fails (0 of 2 seeds)") in out
    assert "  the paper's figure: none on record\n" in out  # beside ours, even where there is none
    assert "slots 9" in out  # the regime: one slot is what everybody waits for
    assert not (tmp_path / "outputs").exists()


def test_a_table_for_a_document_is_all_that_is_printed(tmp_path: Path, replay: Command) -> None:
    ended, out, error = replay("reproduce", write_recipe(tmp_path), "--markdown")
    assert ended == 0, error
    head, line, row = out.splitlines()
    assert head.startswith("| recipe | paper | what it claims | the paper's figure | ours, on a cost model | outcome |")
    assert line == "| --- | --- | --- | --- | --- | --- |"
    assert row.startswith("| small | Smith, NRLQ, 1956 | shortest first has the smallest mean | none on record | 0.")
    assert row.endswith("mean e2e of sjf over fifo | holds (1 of 1 claim) |")
    assert "picture: outputs/reproduce/small.png" in error


def test_where_nobody_waits_that_is_said(tmp_path: Path, replay: Command) -> None:
    file = write_recipe(tmp_path, changes={"max_running = 1": "max_running = 64", '"10ms"': '"60s"'})
    told = "no queueing: policies cannot be told apart"
    assert told in replay("reproduce", file, "--no-plots")[1]
    assert told not in replay("reproduce", write_recipe(tmp_path), "--no-plots")[1]


def test_what_is_kept_can_be_run_and_reported_again(tmp_path: Path, replay: Command) -> None:
    ended, out, error = replay("reproduce", write_recipe(tmp_path), "--keep", "kept")
    assert ended == 0, error
    assert "picture: kept/small/small.png" in out
    folder = tmp_path / "kept" / "small"
    assert {file.name for file in folder.iterdir()} == {
        *("fifo.toml", "sjf.toml", "runs", "small.png"),
        *(f"seed-{seed}.{kind}" for seed in (1, 2) for kind in ("toml", "parquet")),
    }
    assert tomllib.loads((folder / "sjf.toml").read_text()) == {
        "name": "small-sjf",
        "traces": ["seed-1.parquet", "seed-2.parquet"],
        "engine": {"kind": "simulated"},
        "modes": {"continuous": {"max_running": 1}},
        "policies": {"sjf": {}},
    }
    assert replay("run", folder / "sjf.toml", "--output", "again", "--no-plots")[0] == 0
    assert replay("report", folder / "runs" / "sjf", "--no-plots")[0] == 0
    ended, _, error = replay("reproduce", tmp_path / "small.toml", "--keep", "kept")
    assert ended == 1
    assert "kept/small: holds files already" in error


def test_the_files_are_shown_without_running_them(tmp_path: Path, replay: Command) -> None:
    ended, out, _ = replay("reproduce", write_recipe(tmp_path), "--show")
    assert ended == 0
    assert "# seed-2.toml, for `replay trace generate`\nseed = 2\n" in out
    assert "# sjf.toml, for `replay run`" in out


def test_without_a_name_the_recipes_are_listed(replay: Command) -> None:
    ended, out, _ = replay("reproduce")
    assert ended == 0
    lines = out.splitlines()[1:]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == recipe_names()
    for name in recipe_names():
        (place,) = [place for place, line in enumerate(lines) if line.startswith(f"{name} ")]
        assert find_recipe(name).paper.claim.startswith(lines[place + 1].strip()), "what it claims is told below it"


def test_what_is_typed_wrong_ends_with_status_2(tmp_path: Path, replay: Command) -> None:
    ended, _, error = replay("reproduce", write_recipe(tmp_path, changes={"[outcome]": "[outcom]"}))
    assert ended == 2
    assert "outcom: there is no such setting" in error
    assert replay("reproduce", "sjf", "--all")[0] == 2


def test_a_recipe_that_comes_with_replay_holds_as_recorded(tmp_path: Path) -> None:
    whole = find_recipe("orca")
    recipe = replace(whole, document=whole.document.model_copy(update={"seeds": [1]}))  # one seed: seconds
    found = find(recipe, run_recipe(recipe, tmp_path, Display(quiet=True), Stop()))
    assert [finding.kept for finding in found.claims] == [[True], [True]]
    assert (found.result, found.as_recorded) == ("holds", True)
    assert found.figures.bounds("orca", "")["blocks"] > 0.9  # the regime that it is meant to show
