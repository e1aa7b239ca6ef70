"""Who gains and who pays: told where averages hide it, and not told where nothing may be claimed."""

from __future__ import annotations

from pathlib import Path

from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.report.findings import find
from replay.report.verdict import verdict
from replay.results import read_run


def sentences(folder: Path, urgent: float, patient: float) -> list[str]:
    """Twenty requests of priority 1 and twenty of 0, all at 100 ms under fifo, and at these under priority."""
    for policy, latency in (("fifo", {1: 0.1, 0: 0.1}), ("priority", {1: urgent, 0: patient})):
        rows = [
            request_row(row, arrival=row, priority=row % 2, urgency=row % 2, token_times=[row + latency[row % 2]])
            for row in range(40)
        ]
        steps = [step_row(0, start=0.0, end=0.01, admitted=1, waiting=1)]
        write_tables(folder / "cells" / f"continuous-{policy}", rows, steps=steps)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-priority")]
    return verdict(find(read_run(write_manifest(folder, cells, rows=40))))


def test_an_average_of_nothing_that_hides_a_gain_and_a_loss(tmp_path: Path) -> None:
    told = sentences(tmp_path, urgent=0.05, patient=0.15)
    assert "**Policies in continuous**, against fifo: no difference seen on average for priority." in told
    assert (
        "Who gains and who pays in continuous, by mean TTFT against fifo: "
        "**priority**: priority 1 50.0 ms less (−50 %) and priority 0 50.0 ms more (+50 %)."  # noqa: RUF001  # a true minus
    ) in told


def test_nobody_gains_where_nothing_changed(tmp_path: Path) -> None:
    assert not any("Who gains" in sentence for sentence in sentences(tmp_path, urgent=0.1, patient=0.1))
