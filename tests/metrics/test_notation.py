"""How numbers and tables are written for people."""

from __future__ import annotations

from rich.cells import cell_len

from replay.metrics.notation import aligned


def test_columns_stand_below_each_other_whatever_a_name_is_written_in() -> None:
    lines = aligned(["policy", "TTFT"], [["fifo", "12"], ["最短作業優先", "3.5"]], words=1).splitlines()
    assert lines == [
        "policy        TTFT",
        "fifo            12",
        "最短作業優先   3.5",
    ]
    assert {cell_len(line) for line in lines} == {18}
