"""Sessions as a whole, by hand: what a program takes from its first call to its last answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.results import read_run


def test_a_session_is_told_once_from_its_first_due_to_its_last_answer(tmp_path: Path) -> None:
    requests = [
        request_row(0, token_times=[1.0, 2.0], session="a", turn=0),
        request_row(1, token_times=[3.0, 4.0, 5.0], due=2.5, session="a", turn=1),
        request_row(2, token_times=[1.0], session="b", turn=0),
        request_row(3, due=1.0, status="rejected", session="b", turn=1),
        request_row(4, token_times=[9.0]),
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", requests, [step_row(0, 0.0, 1.0)])
    write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=5)
    found = measure(read_run(tmp_path)).requests
    assert found["session_time"].to_list() == [5.0, None, None, None, None]  # b did not come to its end
    assert found["session_latency"][0] == pytest.approx(1.0)  # 5 s for 5 tokens
