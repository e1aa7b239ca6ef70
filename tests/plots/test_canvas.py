"""Panels of many modes go on below: none is narrower for it, and each line of them has its labels."""

from __future__ import annotations

import pytest

from replay.plots.canvas import blocks, figure, look, panels, rows_of


@pytest.mark.parametrize(
    ("count", "across", "rows", "columns"), [(1, 4, 1, 1), (4, 4, 1, 4), (5, 4, 2, 3), (7, 3, 3, 3), (10, 4, 3, 4)]
)
def test_panels_are_spread_evenly(count: int, across: int, rows: int, columns: int) -> None:
    assert rows_of(count, across) == (rows, columns)


def test_the_lowest_panel_of_each_column_has_its_label() -> None:
    with look():
        grid = panels(figure("five", 9, 6), 5, 4, xlabel="s", ylabel="ms")
        assert [axes.get_xlabel() for axes in grid] == ["", "", "s", "s", "s"]
        assert [axes.get_ylabel() for axes in grid] == ["ms", "", "", "ms", ""]


def test_blocks_share_an_axis_by_row() -> None:
    with look():
        upper, lower = blocks(figure("five", 9, 9), 2, 5, 4, one_x=True)
        assert (len(upper), len(lower)) == (5, 5)
        upper[0].set_ylim(0, 7)
        lower[4].set_ylim(0, 9)
        lower[1].set_xlim(0, 3)
        assert {axes.get_ylim() for axes in upper} == {(0.0, 7.0)}
        assert {axes.get_ylim() for axes in lower} == {(0.0, 9.0)}
        assert {axes.get_xlim() for axes in [*upper, *lower]} == {(0.0, 3.0)}
        assert upper[3].get_subplotspec().rowspan.start == 2, "the fourth mode begins the second block"
