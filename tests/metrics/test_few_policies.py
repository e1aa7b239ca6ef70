"""Which of many policies are shown where not all can be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.arms import Values, arms
from replay.metrics.few import Few, few
from replay.results import read_run

TWELVE = {name: 100 + 10 * place for place, name in enumerate("cdefghijklm")} | {"fifo": 155}


def run_of(folder: Path, times: Mapping[str, int], mode: str = "continuous") -> Path:
    """A cell for each policy, of three requests whose first token comes after so many ms, and whose second 10 later."""
    cells = []
    for policy, first in times.items():
        rows = [request_row(row, user="ana", token_times=[first / 1000, first / 1000 + 0.01]) for row in range(3)]
        write_tables(folder / "cells" / f"{mode}-{policy}", rows, [step_row(0, 0.0, 1.0, running=3)])
        cells.append(cell_entry(f"{mode}-{policy}"))
    return write_manifest(folder, cells, rows=3)


def chosen(folder: Path) -> Few:
    run = read_run(folder)
    return few(arms(run), Values(measure(run).summary))


def test_eight_policies_are_all_shown(tmp_path: Path) -> None:
    assert chosen(run_of(tmp_path, dict.fromkeys("abcdefgh", 100))) == Few(list("abcdefgh"))


def test_of_many_fifo_the_best_four_and_the_worst_three_are_shown_in_their_order(tmp_path: Path) -> None:
    backwards = dict(reversed(TWELVE.items()))
    assert chosen(run_of(tmp_path, backwards)) == Few(
        ["fifo", "m", "l", "k", "f", "e", "d", "c"],
        "8 of 12 policies: fifo, the 4 best and the 3 worst by mean end-to-end time in continuous",
    )


def test_of_policies_that_are_alike_one_is_shown(tmp_path: Path) -> None:
    """a and b are fifo to the last digit, and d2 is d: the places go to others."""
    found = chosen(run_of(tmp_path, {"a": 155, "b": 155} | TWELVE | {"d2": 110}))
    assert found.policies == ["c", "d", "e", "f", "k", "l", "m", "fifo"]
    assert found.left_out is not None
    assert found.left_out.endswith("in continuous; of those that are alike, one")


def test_where_nearly_all_are_alike_those_that_differ_are_shown(tmp_path: Path) -> None:
    found = chosen(run_of(tmp_path, dict.fromkeys("abcdefgh", 100) | {"fifo": 100, "x": 50}, mode="static"))
    assert found == Few(
        ["fifo", "x"],
        "2 of 10 policies: of those that are alike in static, one",
    )
