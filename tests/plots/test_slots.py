"""The picture of the slots: which seconds it shows, and that what it says of them adds up."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import drawn, one_request, words
from runs import cell_entry, request_row, span_row, static_batch, write_manifest, write_tables

from replay.plots.slot_time import Window, choose_window, slot_shares
from replay.results import read_run


def test_slot_time_adds_up(tmp_path: Path) -> None:
    spans = read_run(static_batch(tmp_path)).cells[0].table("spans")
    assert slot_shares(spans, 2, Window(0.0, 0.1, whole=True)) == "66 % of slot time useful, 34 % padding, 0 % idle"
    assert slot_shares(spans, 4, Window(0.05, 0.2, whole=False)) == "8 % of slot time useful, 8 % padding, 84 % idle"


def test_a_short_run_is_shown_whole_and_a_long_one_at_its_busiest_while_requests_arrive(tmp_path: Path) -> None:
    short = read_run(static_batch(tmp_path / "short")).cells[0].table("spans")
    assert choose_window([short], 0.0) == Window(0.0, 0.1, whole=True)
    sparse = [span_row(row, 0, "decode", row * 10.0, row * 10.0 + 1) for row in range(100)]
    crowd = [span_row(100 + row, slot, "decode", 500.0 + row, 501.0 + row) for row in range(60) for slot in (1, 2)]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0)], spans=sparse + crowd)
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1))
    spans = run.cells[0].table("spans")
    window = choose_window([spans], last_arrival=990.0)
    assert not window.whole
    assert window.start <= 500 <= 560 <= window.end
    length = window.end - window.start
    arriving = choose_window([spans], last_arrival=530.0)
    assert (arriving.start, arriving.end) == (pytest.approx(530 - length), pytest.approx(530))
    at_once = choose_window([spans], last_arrival=0.0)
    assert (at_once.start, at_once.end) == (0, pytest.approx(length))


def test_the_picture_of_the_slots_says_what_it_compares_and_what_a_partly_filled_prompt_is(tmp_path: Path) -> None:
    padded = words(drawn("slots", static_batch(tmp_path / "padded")))
    assert "the same trace, the same seconds, under fifo" in padded
    assert "partly filled: the share of the padded prompt that is real" in padded
    assert "partly filled" not in words(drawn("slots", one_request(tmp_path / "plain")))
