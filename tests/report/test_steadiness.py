"""Whether the machine kept one speed: told where it did not, between the repeats of one cell too."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.report.findings import find
from replay.report.health import steadiness
from replay.results import read_run


def told(folder: Path, second: float) -> list[str]:
    """Two repeats of one cell: the first at the cost model's pace, the second at this one."""
    cost = {"fixed": 0.010, "prefill": 0.0, "decode": 0.0, "context": 0.0}
    cells = []
    for repeat, pace in enumerate((1.0, second)):
        name = f"continuous-fifo-r{repeat + 1}"
        write_tables(
            folder / "cells" / name,
            [request_row(0, token_times=[0.1])],
            steps=[step_row(0, start=0.0, end=0.010 * pace)],
        )
        cells.append(cell_entry(name, repeat=repeat, cost=cost))
    return steadiness(find(read_run(write_manifest(folder, cells, rows=1))))


@pytest.mark.parametrize("second", [1.0, 1.04])
def test_a_steady_machine_is_not_spoken_of(tmp_path: Path, second: float) -> None:
    assert told(tmp_path, second) == []


def test_repeats_at_unequal_paces_are_named(tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, 1.2)
    assert sentence.startswith(
        "The machine did not keep one speed: steps took 1.00 times what the engine's cost model gives them in "
        "continuous, fifo, repeat 1, and 1.20 times in continuous, fifo, repeat 2."
    )
