"""Constants of the cost model found again in steps that were made from them."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.executors.fitting import Measurement, fit_cost
from replay.executors.interface import CostModel

GRID = [(0, 1, 32), (0, 8, 256), (0, 8, 4096), (0, 1, 512), (16, 0, 16), (256, 0, 256), (64, 0, 512), (128, 8, 4608)]


def measured(cost: CostModel) -> list[Measurement]:
    return [Measurement(*step, seconds=cost.seconds(*step)) for step in GRID]


def test_exact_measurements_give_their_constants_back() -> None:
    cost = CostModel(fixed=4e-3, prefill=1.5e-4, decode=3e-4, context=6e-7)
    assert astuple(fit_cost(measured(cost))) == pytest.approx(astuple(cost), rel=1e-9)


@given(st.tuples(st.floats(1e-4, 1e-1), *[st.just(0.0) | st.floats(1e-8, 1e-2)] * 3))
def test_constants_of_any_size(constants: tuple[float, float, float, float]) -> None:
    cost = CostModel(*constants)
    fitted = fit_cost(measured(cost))
    assert min(astuple(fitted)) >= 0
    for step in GRID:
        assert fitted.seconds(*step) == pytest.approx(cost.seconds(*step), rel=1e-6)


def test_what_only_noise_would_make_negative_is_zero() -> None:
    # Longer contexts were measured a little faster: the best line falls, the best non-negative one is flat.
    falling = [Measurement(0, 1, 10, 1.0), Measurement(0, 1, 20, 0.98), Measurement(0, 1, 30, 0.96)]
    fitted = fit_cost(falling)
    assert fitted.context == 0
    # Relative errors: sum of (x / s - 1)^2 is least at sum(1 / s) / sum(1 / s^2).
    seconds = np.array([1.0, 0.98, 0.96])
    assert fitted.fixed + fitted.decode == pytest.approx((1 / seconds).sum() / (1 / seconds**2).sum())


def test_one_measurement_is_met() -> None:
    assert fit_cost([Measurement(0, 1, 1, 0.5)]).seconds(0, 1, 1) == pytest.approx(0.5)


def test_nothing_to_fit() -> None:
    with pytest.raises(ValueError, match="no measurement"):
        fit_cost([])
    with pytest.raises(ValueError, match="took no time"):
        fit_cost([Measurement(0, 1, 1, 0.0)])
