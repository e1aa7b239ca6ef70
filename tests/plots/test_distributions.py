"""Latency curves: requests without a value keep the curve below 1, and a long one is thinned without moving."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pictures import drawn
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.plots.distributions import POINTS, curve


def test_a_curve_ends_at_the_share_that_has_a_value(tmp_path: Path) -> None:
    rows = [request_row(row, token_times=[0.1 * (row + 1)]) for row in range(3)]
    write_tables(tmp_path / "cells" / "continuous-fifo", [*rows, request_row(3, status="rejected")])
    figure = drawn("distributions", write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=4))
    line, median = figure.axes[0].lines
    assert list(line.get_xdata()) == pytest.approx([100, 100, 200, 300])
    assert list(line.get_ydata()) == [0, 0.25, 0.5, 0.75]
    assert (median.get_xdata()[0], median.get_ydata()[0]) == (pytest.approx(200), 0.375)


def test_a_thinned_curve_has_its_ends_and_lies_on_the_whole_one() -> None:
    values = np.sort(np.random.default_rng(3).exponential(size=7001))
    across, up = curve(values, 8000)
    assert len(across) == POINTS + 1
    assert (across[0], up[0], across[-1], up[-1]) == (values[0], 0, values[-1], 7001 / 8000)
    assert [np.searchsorted(values, x, side="right") for x in across[1:]] == pytest.approx(8000 * up[1:])
    few = curve(values[:4], 4)
    assert (list(few[0][1:]), list(few[1])) == (list(values[:4]), [0, 0.25, 0.5, 0.75, 1])
