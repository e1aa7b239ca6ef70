"""A report of many policies: tables in order, what is alike in one row, and sentences that name the first and last."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from runs import cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.metrics.notation import several
from replay.report import write_report
from replay.report.findings import find
from replay.report.tables import headline, joined
from replay.results import read_run

OWN = {f"own{place}": 100 + 10 * place for place in range(11)}


def many(folder: Path, times: Mapping[str, int] = OWN) -> list[str]:
    """Eleven policies beside fifo, which is like own4; the report's lines. First tokens after 100 to 200 ms."""
    cells = []
    for policy, first in ({"fifo": 140} | dict(reversed(times.items()))).items():
        rows = []
        for row in range(40):
            token = row + first / 1000
            user = "ana" if row % 2 else "ben"
            rows.append(request_row(row, arrival=float(row), user=user, token_times=[token, token + 0.01]))
        write_tables(
            folder / "cells" / f"continuous-{policy}", rows, [step_row(0, 0.0, 41.0, admitted=1, running=3, waiting=1)]
        )
        cells.append(cell_entry(f"continuous-{policy}", simulated=True))
    write_manifest(folder, cells, rows=40)
    return folder.joinpath("comparison.md").read_text().splitlines() if write_report(folder, plots=False) else []


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's folder, with its report."""
    folder = tmp_path_factory.mktemp("own")
    many(folder)
    return folder


@pytest.fixture
def lines(own: Path) -> list[str]:
    return own.joinpath("comparison.md").read_text().splitlines()


def section(lines: list[str], title: str) -> list[str]:
    start = lines.index(title)
    end = next((at for at, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("#")), len(lines))
    return [line for line in lines[start:end] if line.startswith("| ")]


def test_tables_of_many_policies_go_by_end_to_end_time_and_who_is_alike_shares_a_row(lines: list[str]) -> None:
    order = [row.split(" | ")[1] for row in section(lines, "### Latency")[2:]]
    latency = [row for row in lines if row.startswith("| continuous | own0 | ")]
    assert latency, "the table is there"
    assert order == ["own0", "own1", "own2", "own3", "fifo, own4", *(f"own{place}" for place in range(5, 11))]
    assert any("policies stand by their mean end-to-end time" in line for line in lines)


def test_groups_stand_across_where_policies_are_many(lines: list[str]) -> None:
    rows = section(lines, "#### By user")
    assert rows[0] == "| policy | ana (20) | ben (20) |"
    assert "| fifo, own4 | 140 / 150 | 140 / 150 |" in rows


def test_the_verdict_counts_many_policies_and_tells_the_first_and_the_last(lines: list[str]) -> None:
    said = next(line for line in lines if line.startswith("- **Policies in continuous**"))
    assert "of 11 policies, 4 have a shorter mean end-to-end time and 6 have a longer one" in said
    assert "of the other 1, no such difference can be claimed" in said
    assert "shortest: **own0** has" in said
    assert "longest: **own10** has" in said
    assert "own5" not in said


def test_where_nothing_can_be_claimed_of_many_policies_that_is_what_the_verdict_says(tmp_path: Path) -> None:
    lines = many(tmp_path, dict.fromkeys(OWN, 140))
    said = [line for line in lines if line.startswith(("- **Policies in", "- Who gains"))]
    told = "of none of 11 policies can a difference in mean end-to-end time be claimed"
    assert said == [f"- **Policies in continuous**, against fifo: {told}."]


def test_the_table_of_a_terminal_tells_how_many_it_left_out(own: Path) -> None:
    found = find(read_run(own))
    table = headline(found.of("sample"), found.values).splitlines()
    assert "the 4 best and the 3 worst" in table[0]
    told = [line.split("  ")[1].strip() for line in table[2:]]
    assert told == ["own0", "own1", "own2", "own3", "... 5 more", "own8", "own9", "own10"]


def test_few_policies_keep_their_order_and_their_rows(tmp_path: Path) -> None:
    """Here fair is fifo, which has rows of its own all the same."""
    names = ("sjf", "fifo", "fair")
    report = write_report(
        simulated_run(tmp_path, policies=names, modes={"continuous": {"max_running": 4}}), plots=False
    )
    assert [line.split()[1] for line in report.table.splitlines()[2:]] == list(names)


@pytest.mark.parametrize(
    ("words", "told"),
    [("abcdef", "a, b, c, d, e and f"), ("abcdefgh", "a, b, c, d, e and 3 more"), ("", "")],
)
def test_of_more_than_six_names_five_are_told(words: str, told: str) -> None:
    assert several(list(words)) == told


def test_rows_are_joined_only_where_all_else_is_alike() -> None:
    rows = [["m", "a", "1"], ["m", "b", "2"], ["n", "c", "1"], ["m", "d", "1"]]
    assert joined(rows) == [["m", "a, d", "1"], ["m", "b", "2"], ["n", "c", "1"]]
