"""Advice as a whole: when it is silent, its order, its words for many cells, and the page that lists it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from advised import advice, replayed, trace
from click.testing import CliRunner
from runs import simulated_run

from replay.cli.report import report as command
from replay.experiment.document import parse_setting
from replay.experiment.loading import load_experiment
from replay.metrics.notation import percent
from replay.report import write_report
from replay.report.advice import Advice, pitfalls
from replay.report.advice.registry import LEAST_REQUESTS, Case, Pitfall
from replay.report.advice.telling import MOST, MOST_IN_SHORT
from replay.report.tables import markdown

GOALS = {"ttft_ms": 500, "tpot_ms": 50}
GRID: dict[str, Any] = {
    "modes": {"static": {"batch_size": 4}, "dynamic": {"max_batch_size": 4}, "continuous": {"max_running": 4}},
    "policies": {name: {} for name in ("fifo", "sjf", "priority", "lifo", "ljf")},
    "goals": GOALS,
}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 requests of uneven lengths, fifty a second, under five policies in three modes; with its report."""
    folder = tmp_path_factory.mktemp("crowded")
    path = trace(folder, [20 * row for row in range(100)], [20, 60], [5, 10, 90], priority=[0, 1, 2])
    run = replayed(folder / "run", path, **GRID)
    write_report(run, plots=False)
    return run


@pytest.fixture(scope="module")
def found(crowded: Path) -> dict[str, Advice]:
    """What is advised of it."""
    return advice(crowded)


def section(run: Path) -> list[str]:
    """The lines of the section; none where there is none."""
    text = (run / "comparison.md").read_text()
    return text.split("## Advice\n")[1].split("\n## ")[0].splitlines() if "## Advice\n" in text else []


def test_of_a_run_that_is_well_nothing_is_said(tmp_path: Path) -> None:
    path = trace(tmp_path, [100 * row for row in range(60)], [100, 200], [20, 40])
    run = replayed(tmp_path / "run", path, goals=GOALS)
    report = write_report(run, plots=False)
    assert report.advice == []
    assert "Advice" not in (run / "comparison.md").read_text()
    assert json.loads((run / "summary.json").read_text())["advice"] == []


def test_from_few_requests_nothing_is_advised(tmp_path: Path) -> None:
    path = trace(tmp_path, list(range(LEAST_REQUESTS - 1)), [20], [60])
    slow = {"cost": {"fixed_ms": 200.0}}
    run = replayed(tmp_path / "run", path, slow, modes={"continuous": {"max_running": 1}}, goals=GOALS)
    assert advice(run) == {}


def test_a_run_without_a_manifest_of_settings_and_costs_has_a_report_all_the_same(tmp_path: Path) -> None:
    run = simulated_run(tmp_path, policies=("fifo",))
    assert all(each.cost > 0 for each in advice(run).values())
    write_report(run, plots=False)


def test_what_costs_most_comes_first(crowded: Path, found: dict[str, Advice]) -> None:
    pieces = list(found.values())
    assert len(pieces) >= 3
    arms = 15
    for each in pieces:
        assert each.cost == pytest.approx(sum(case.cost for _, case in each.cases) / arms)
        assert all(0 <= case.cost <= 1 for _, case in each.cases)
        assert each.cases[0][1].cost == max(case.cost for _, case in each.cases)
    assert [each.cost for each in pieces] == sorted((each.cost for each in pieces), reverse=True)
    numbered = [line for line in section(crowded) if re.match(r"\d+\. ", line)]
    assert [line.split("**")[1] for line in numbered] == [each.pitfall.title for each in pieces[:MOST]]
    kept = json.loads((crowded / "summary.json").read_text())["advice"]
    assert [each["pitfall"] for each in kept] == [each.pitfall.name for each in pieces]
    assert [case["cells"] for case in kept[0]["cases"]] == [arm.names for arm in pieces[0].arms]


def test_the_end_of_a_run_shows_it_in_short_and_a_report_asked_for_again_too(
    tmp_path: Path, crowded: Path, found: dict[str, Advice]
) -> None:
    run = shutil.copytree(crowded, tmp_path / "run")
    short = write_report(run, plots=False).advice
    first = next(iter(found.values()))
    assert len(short) <= MOST_IN_SHORT + 1
    assert short[0].startswith(f"advice: {first.pitfall.title.lower()} ({first.arms[0].label}): ")
    assert first.worst.what in short[0]
    shown = CliRunner().invoke(command, [str(run), "--no-plots"])
    assert shown.exit_code == 0
    assert shown.stdout.endswith("\n\n" + "\n".join(short) + "\n")


def test_every_piece_has_numbers_and_settings_that_an_experiment_takes(
    tmp_path: Path, crowded: Path, found: dict[str, Advice]
) -> None:
    path = trace(tmp_path, [0, 1], [1], [1])
    for each in found.values():
        for _, case in each.cases:
            assert re.search(r"\d", case.what)
            assert case.settings
            assert not re.search(r"[.;]$", case.what + case.why + case.remedy)
    for line in section(crowded):
        for setting in re.findall(r"Try (`.*?)(?=: )", line):
            for text in re.findall(r"`(.*?)`", setting):
                load_experiment({"traces": [path], **parse_setting(text)}, text)


def section_of(run: Path) -> list[str]:
    write_report(run, plots=False)
    return section(run)


def test_cells_with_one_finding_are_told_in_one_piece(crowded: Path, found: dict[str, Advice]) -> None:
    piece, lines = found["no_time_outs"], section(crowded)
    assert len(piece.arms) == 15
    first = piece.arms[0].setting
    others = [mode for mode in ("static", "dynamic", "continuous") if mode != first]
    figures = sorted(case.figure for _, case in piece.cases[1:])
    (late,) = [line for line in lines if "**Nobody times out**" in line]
    assert late.endswith(
        f" Found as well in {others[0]} and {others[1]} under every policy; {first} under the other 4 policies "
        f"({percent(figures[0])} to {percent(figures[-1])} of requests waited longer)."
    )
    assert len(lines) < 12, "15 cells, and no more lines than pitfalls"


def test_more_pieces_than_a_reader_takes_in_are_named_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MOST + 2):
        entry = Pitfall(
            f"own{number}",
            f"Own {number}",
            "",
            "",
            "",
            "of it",
            str,
            lambda arm, findings, number=number: Case(0.5, number / 100, "1 is wrong", "It costs 1", {}, "do less"),  # type: ignore[misc]
        )
        monkeypatch.setitem(pitfalls._entries, entry.name, entry)
    path = trace(tmp_path, [100 * row for row in range(60)], [100], [20])
    run = replayed(tmp_path / "run", path)
    lines = section_of(run)
    assert "2 more that cost less are in summary.json: own 1 and own 0." in "\n".join(lines)
    assert [line.split("**")[1] for line in lines if re.match(r"\d+\. ", line)] == [
        f"Own {number}" for number in range(MOST + 1, 1, -1)
    ]
    assert f"1. **Own {MOST + 1}** (continuous, fifo): 1 is wrong. It costs 1. Do less." in lines
    assert len(json.loads((run / "summary.json").read_text())["advice"]) == MOST + 2


def sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def test_the_page_lists_every_pitfall_as_the_code_has_it() -> None:
    entries = [pitfalls[name] for name in pitfalls]
    rows = [[each.title, sentence(each.looks_at), sentence(each.speaks), sentence(each.remedy)] for each in entries]
    heads = ["pitfall", "what is looked at", "from when on it is said", "what is advised"]
    assert markdown(heads, rows, words=4) in Path("docs/advice.md").read_text(encoding="utf-8")
    assert len(rows) == len(list(Path("replay/report/advice").glob("*.py"))) - 4, "one file each, and four of them all"
