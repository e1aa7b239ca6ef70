"""The pictures of service: what each user received over time, and how unevenly, under each policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from pictures import drawn, view, words
from runs import cell_entry, request_row, simulated_run, write_manifest, write_tables

from replay.plots import plots
from replay.plots.service import MOST_USERS, rates
from replay.plots.view import INVALID, KNOWN

NAMES = ("service", "windowed_difference")
TWO_SECONDS = {"prompt": 1.0, "output": 2.0, "window_s": 2.0}


def in_turn(
    folder: Path, users: Sequence[str | None] = ("ana", "ana", "ben", "ben"), window_s: float = 2.0, **fields: Any
) -> Path:
    """Requests of 10 prompt tokens and 2 answer tokens, two seconds each, one after the other; under fifo the first
    first, under fair (if it is there) the last first."""
    cells = []
    for policy in ("fifo", "fair"):
        order = range(len(users)) if policy == "fifo" else reversed(range(len(users)))
        rows = []
        for row, turn in enumerate(order):
            start = 2.0 * turn
            times = [start + 1.0, start + 2.0]
            rows.append(request_row(row, user=users[row], prompt_tokens=10, admitted=start, token_times=times))
        write_tables(folder / "cells" / f"continuous-{policy}", rows)
        cells.append(cell_entry(f"continuous-{policy}", **(fields if policy == "fair" else {})))
    return write_manifest(folder, cells, rows=len(users), service=TWO_SECONDS | {"window_s": window_s})


def test_a_line_is_what_a_user_received_a_second(tmp_path: Path) -> None:
    figure = drawn("service", in_turn(tmp_path))
    fifo, fair = figure.axes
    assert (fifo.get_title(loc="left"), fair.get_title(loc="left")) == ("fifo", "fair")
    ana, ben = fifo.lines
    assert ana.get_xdata()[0] == 1.0  # the middle of the window from 0 to 2
    assert (ana.get_ydata()[0], ben.get_ydata()[0]) == ((10 + 2 * 2) / 2, 0)
    assert (ana.get_ydata()[-1], ben.get_ydata()[-1]) == (0, 7)
    assert [line.get_ydata()[0] for line in fair.lines] == [0, 7]  # the other way round
    assert "weighted tokens/s" in words(figure)
    assert "ana" in words(figure)


def test_windows_that_are_no_whole_nanoseconds_in_ten_are_all_drawn(tmp_path: Path) -> None:
    in_turn(tmp_path, window_s=2.000_000_009)
    seen = view(tmp_path)
    arm = seen.arms[0]
    windows = seen.windows.filter(cell=arm.names[0])
    assert {len(rate) for rate in rates(seen, arm.shown).values()} == {len(windows)}


def test_a_line_of_the_difference_is_that_of_its_policy(tmp_path: Path) -> None:
    figure = drawn("windowed_difference", in_turn(tmp_path))
    (panel,) = figure.axes
    assert panel.get_title(loc="left") == "continuous"
    fifo, fair = panel.lines
    assert fifo.get_ydata()[0] == pytest.approx(7)  # who was not served could have had as much as who was
    for line, policy in ((fifo, "fifo"), (fair, "fair")):
        assert to_hex(line.get_color()).upper() == KNOWN[policy][0].upper()
    assert "windows of 2.00 s" in words(figure)


def test_an_invalid_cell_is_grey_and_named(tmp_path: Path) -> None:
    folder = in_turn(tmp_path, valid=False, invalid_reason="late")
    _, fair = drawn("service", folder).axes
    assert fair.get_title(loc="left") == "fair (invalid)"
    (panel,) = drawn("windowed_difference", folder).axes
    assert to_hex(panel.lines[1].get_color()) == INVALID
    assert "grey: fair (invalid)" in " ".join(panel.get_title(loc="left").split())


def test_of_many_users_the_rest_are_a_band(tmp_path: Path) -> None:
    users = [f"user {number}" for number in range(9)]
    folder = in_turn(tmp_path, users)
    figure = drawn("service", folder)
    fifo = figure.axes[0]
    assert len(fifo.lines) == MOST_USERS
    assert len(fifo.collections) == 1
    assert "3 other users, from the least served to the most" in words(figure)
    band = fifo.collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == (0, 7)
    first = words(figure)
    assert first == words(drawn("service", folder))


@pytest.mark.parametrize("users", [("ana", "ana"), (None, None), ("ana", None)])
def test_without_two_users_there_is_no_picture(tmp_path: Path, users: Sequence[str | None]) -> None:
    found = view(in_turn(tmp_path, users))
    assert [plots[name](found) for name in NAMES] == [None, None]


def test_without_anything_that_was_served_there_is_no_picture(tmp_path: Path) -> None:
    rows = [request_row(row, user=user, status="rejected", ended=0.0) for row, user in enumerate(("ana", "ben"))]
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    found = view(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=2))
    assert [plots[name](found) for name in NAMES] == [None, None]


def test_what_is_drawn_is_counted_from_the_rows(tmp_path: Path) -> None:
    modes = {"continuous": {"max_running": 8, "token_budget": 512}}
    found = view(simulated_run(tmp_path, policies=("fifo",), modes=modes))
    cell = found.arms[0].shown
    windows = found.windows.filter(cell=cell.name)
    drawn_rates = rates(found, cell)
    rows = cell.table("requests").to_dicts()
    for place in range(0, len(windows), 7):
        start, end = windows["start"][place], windows["end"][place]
        for user, rate in drawn_rates.items():
            own = [row for row in rows if row["user"] == user]
            prompts = sum(row["prompt_tokens"] for row in own if start <= row["admitted"] < end)
            tokens = sum(start < time <= end for row in own for time in row["token_times"])
            assert rate[place] * (end - start) == pytest.approx(prompts + 2 * tokens), (user, start)
