"""Intervals worked out by hand and by an independent few lines, and what must hold of any of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.arms import Arm, Values, arms
from replay.metrics.asked import Asked
from replay.metrics.noise import by_setting, noises
from replay.metrics.paired import Difference
from replay.metrics.pairing import Pairing, pairing
from replay.metrics.percentiles import strayed
from replay.metrics.resampling import block_draws, block_starts, by_user, sample, user_errors
from replay.metrics.simultaneous import RunNoise, widened, widths
from replay.metrics.slow_waves import growing, wave_errors, waves
from replay.results import read_run

Latencies = Sequence[float]


def paired(folder: Path, cells: dict[str, Latencies], users: Sequence[str] = (), **entry: object) -> Pairing:
    """Cells whose requests, a second apart, have these TTFTs; `continuous-sjf-1` is a repeat of `continuous-sjf-0`."""
    entries = []
    for name, latencies in cells.items():
        rows = [
            request_row(row, arrival=float(row), token_times=[row + value], user=users[row] if users else None)
            for row, value in enumerate(latencies)
        ]
        write_tables(folder / "cells" / name, rows)
        repeat = int(name.split("-")[2]) if name.count("-") > 1 else 0
        entries.append(cell_entry(name, repeat=repeat, **entry))
    run = read_run(write_manifest(folder, entries, rows=len(latencies)))
    measured = measure(run)
    return pairing(measured.requests, Values(measured.summary), arms(run))


def between(found: Pairing, metric: str = "ttft") -> Difference:
    base, other = (arm for family in found.alike for arm in family)
    return found.compare(metric, base, other)


def never(columns: int) -> np.ndarray:
    """No queue grew."""
    return np.zeros(columns, np.bool_)


def test_the_variance_of_independent_differences_is_that_of_their_mean() -> None:
    values = np.random.default_rng(0).normal(2.0, 1.0, (4000, 20))
    errors = wave_errors(sample(values), never(20))
    assert 0.9 < np.median(errors.error) * math.sqrt(4000) < 1.4  # rather too large, by how unlike the waves are
    assert (errors.freedom > waves(4000)).all()


def test_the_error_of_one_wave_by_hand() -> None:
    """cos(pi j t / n) / n: A(j) = sqrt(2) / 2, whose square is 1 / 2. Of 25 requests, two waves tell, and two more are
    looked at. A first wave: 1/4 over two and 1/8 over four, by half lower: divided by a half, and 2 (1 + 1/4) degrees.
    A third one: nothing in the slow ones, 1/8 over all four."""
    turn = np.pi * (np.arange(25) + 0.5) / 25
    errors = wave_errors(sample(np.stack([np.cos(turn), np.cos(3 * turn)], axis=1)), never(2))
    assert waves(25) == 2
    assert errors.error**2 == pytest.approx([0.25 / 0.5, 0.125])
    assert errors.freedom == pytest.approx([2 * 1.25, 4])


def test_one_interval_by_a_few_lines(tmp_path: Path) -> None:
    """Ten differences: the interval from its definition, by plain sums."""
    draw = np.random.default_rng(5)
    base, gain = draw.uniform(1, 2, 10).round(6), draw.normal(0.3, 0.1, 10).round(6)
    found = between(paired(tmp_path, {"continuous-fifo": base, "continuous-sjf": base + gain}))
    n, length, place = 10, 4, np.arange(10) - 4.5
    heights = [
        sum(math.sqrt(2) / n * (gain[t] - gain.mean()) * math.cos(math.pi * j * (t + 0.5) / n) for t in range(n))
        for j in range(1, 5)
    ]
    slow, more = sum(height**2 for height in heights[:2]) / 2, sum(height**2 for height in heights) / 4
    ratio = min(1.0, more / slow)
    error, freedom = math.sqrt(max(slow, more) / ratio), 2 * (1 + ratio**2)
    rest = (gain - gain.mean() - place * (place @ gain) / (place @ place)) / n  # what is drawn has no trend
    sums = np.array([sum(rest[(start + step) % n] for step in range(length)) for start in range(n)])
    drawn = sums[np.random.default_rng([0, 0]).integers(0, n, size=(2000, 3))].sum(axis=1)
    z = max(np.quantile(abs(drawn) / math.sqrt(3 / n * (sums**2).sum()), 0.95), 1.959964)
    t = math.sqrt(freedom * (math.exp((z * (8 * freedom + 3) / (8 * freedom + 1)) ** 2 / freedom) - 1))
    assert found.difference == pytest.approx(gain.mean())
    assert found.low == pytest.approx(gain.mean() - t * error, rel=1e-3)
    assert found.high == pytest.approx(gain.mean() + t * error, rel=1e-3)


def test_a_straight_trend_is_not_chance_where_the_queue_grew() -> None:
    row = np.arange(100.0)
    wavy = np.sin(row * 2.0)
    columns = sample(np.stack([wavy, wavy + 0.1 * row], axis=1))
    grew, came_and_went = wave_errors(columns, ~never(2)), wave_errors(columns, never(2))
    assert grew.error[1] < 0.1 < came_and_went.error[1]
    assert grew.freedom.max() <= 4  # two waves and two more, however many requests
    assert growing(columns).tolist() == [False, True]


def test_a_group_is_a_trace_of_its_own() -> None:
    """Every second request has a value: as if there were no others."""
    values = np.random.default_rng(8).normal(0, 1, 50)
    spread = np.full(100, np.nan)
    spread[::2] = values
    apart, alone = (wave_errors(sample(column[:, None]), never(1)) for column in (spread, values))
    assert (apart.error[0], apart.freedom[0]) == pytest.approx((alone.error[0], alone.freedom[0]))


def test_a_queue_counts_who_came_and_did_not_end(tmp_path: Path) -> None:
    """A request a second. Under fifo each takes 2.5 s: three are there from the third on. Under sjf nobody ends."""
    found = paired(tmp_path, {"continuous-fifo": [2.5] * 6, "continuous-sjf": [100.0] * 6})
    fifo, sjf = found.alike[0]
    assert found.aligned.unfinished(fifo).tolist() == [1, 2, 3, 3, 3, 3]
    assert found.aligned.unfinished(sjf).tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("z", "freedom", "exact"), [(1.959964, 5, 2.5706), (1.959964, 30, 2.0423), (3.2905, 10, 4.5869)]
)
def test_few_degrees_of_freedom_widen_as_student_has_it(z: float, freedom: float, exact: float) -> None:
    assert float(widened(np.array(z), np.array(float(freedom)))) == pytest.approx(exact, rel=0.006)


def test_by_user_the_error_is_the_jackknifes() -> None:
    """Ten users of one, two or three requests: the mean without each of them in turn."""
    sizes = [1, 2, 3, 1, 2, 3, 1, 2, 3, 2]
    user = np.repeat(np.arange(10), sizes)
    values = np.random.default_rng(1).normal(0, 1, len(user))
    users = by_user(user, np.ones(10, bool))
    assert users is not None
    found = user_errors(sample(values[:, None]), users)
    without = [values[user != one].mean() for one in range(10)]
    assert found.error[0] ** 2 == pytest.approx(0.9 * sum((mean - values.mean()) ** 2 for mean in without))
    even = 1 / sum((size / 20) ** 2 for size in sizes)
    assert found.freedom[0] == pytest.approx(even - 1)
    assert by_user(user, np.arange(10) < 9) is None  # nine that are named are too few


def test_the_wider_of_both_intervals_is_shown(tmp_path: Path) -> None:
    """Twelve users, each with a gain of its own; its requests lie far apart, so that blocks of neighbours hide it."""
    users = [f"u{row % 12:02}" for row in range(120)]
    gains = [0.02 * (row % 12) + 0.001 * (row % 7) for row in range(120)]
    found = between(
        paired(tmp_path, {"continuous-fifo": [1.0] * 120, "continuous-sjf": [1 + gain for gain in gains]}, users)
    )
    assert found.by_user is not None
    assert found.by_request is not None
    assert found.by_user[1] - found.by_user[0] > found.by_request[1] - found.by_request[0]
    assert (found.low, found.high) == found.by_user


def test_repeats_are_in_the_interval(tmp_path: Path) -> None:
    """Requests all differ by the same in a run, and runs do not: only their variance is left, with its few degrees of
    freedom. Spreads of 0.02 and 0.04: variances 0.0002 and 0.0008, 0.0005 for both, two degrees of freedom."""
    cells = {
        "continuous-fifo-0": [1.0] * 40, "continuous-fifo-1": [1.02] * 40,
        "continuous-sjf-0": [2.0] * 40, "continuous-sjf-1": [2.04] * 40,
    }  # fmt: skip
    found = between(paired(tmp_path, cells))
    assert found.difference == pytest.approx(1.01)
    assert found.noise == pytest.approx(0.04)
    variances = [0.0005 / 2, 0.0008 / 2]  # the pooled one, or its own where that is larger
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 2 + variances[1] ** 2 / 2)
    t = float(widened(np.array(1.96), np.array(freedom)))
    half = (found.high or 0.0) - 1.01
    assert half == pytest.approx(t * math.sqrt(sum(variances)), rel=0.1)  # but for the luck of 2,000 draws
    assert found.seen


def test_noise_of_an_arm_that_was_run_once_is_that_of_the_base(tmp_path: Path) -> None:
    """An A/A cell: fifo twice, sjf once."""
    cells = {"continuous-fifo-0": [1.0] * 40, "continuous-fifo-1": [1.1] * 40, "continuous-sjf-0": [1.02] * 40}
    found = paired(tmp_path, cells)
    fifo, sjf = found.alike[0]
    known = noises([[fifo, sjf]], {tuple(fifo.names): [1.0, 1.1], tuple(sjf.names): [1.02]})
    assert known[tuple(sjf.names)].spread == pytest.approx(0.1)
    assert known[tuple(sjf.names)].variance == pytest.approx(0.005)
    assert known[tuple(fifo.names)].variance == pytest.approx(0.0025)
    told = found.compare("ttft", fifo, sjf)
    assert told.difference == pytest.approx(-0.03)
    assert (told.noise, told.doubt) == (pytest.approx(0.1), "within noise")


def test_a_noise_rests_on_the_repeats_of_all_modes(tmp_path: Path) -> None:
    """Static's two runs lie 2 % apart and continuous's 1 %: by shares, on average 0.000125 of the square."""
    cells = {
        "static-fifo-0": [1.0] * 5,
        "static-fifo-1": [1.0] * 5,
        "continuous-fifo-0": [1.0] * 5,
        "continuous-fifo-1": [1.0] * 5,
    }
    static, continuous = (family[0] for family in paired(tmp_path, cells).alike)
    figures = {tuple(static.names): [99.0, 101.0], tuple(continuous.names): [9.95, 10.05]}
    known = noises([[static], [continuous]], figures)
    assert [noise.freedom for noise in known.values()] == [2, 2]
    assert known[tuple(static.names)].variance == pytest.approx(2 / 2)  # its own, 2, over two repeats
    assert known[tuple(continuous.names)].variance == pytest.approx(0.000125 * 100 / 2)


def test_throughput_has_an_interval_where_runs_were_repeated(tmp_path: Path) -> None:
    cells = {"continuous-fifo-0": [1.0] * 5, "continuous-fifo-1": [1.2] * 5, "continuous-sjf-0": [1.1] * 5}
    found = paired(tmp_path, cells)
    fifo, sjf = found.alike[0]
    (told,) = found.family([Asked("output_throughput", fifo, sjf, statistic="value")])
    assert told.low is not None
    assert told.low < 0 < (told.high or 0.0)
    assert (told.by_request, told.wins) == (None, None)


def test_a_family_widens_and_equal_comparisons_cost_nothing(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    base = draw.uniform(1, 2, 60)
    other = base + draw.normal(0, 0.1, 60)
    cells = {"continuous-fifo": base, "continuous-sjf": other, "continuous-fair": other}
    cells |= {f"continuous-p{number}": base + draw.normal(0, 0.1, 60) for number in range(8)}
    found = paired(tmp_path, cells)
    fifo, sjf, fair, *more = found.alike[0]
    alone = found.compare("ttft", fifo, sjf)
    twice = found.family([Asked("ttft", fifo, arm) for arm in (sjf, fair)])
    many = found.family([Asked("ttft", fifo, arm) for arm in (sjf, fair, *more)])
    assert (alone.low, alone.high) == alone.uncorrected
    assert (twice[0].low, twice[0].high) == (alone.low, alone.high)  # the same comparison twice is one
    assert many[0].uncorrected == alone.uncorrected
    assert (many[0].low or 0.0) < (alone.low or 0.0)
    assert (many[0].high or 0.0) > (alone.high or 0.0)
    assert [each.comparisons for each in (alone, twice[0], many[0])] == [1, 2, 10]


def test_win_shares_count_requests(tmp_path: Path) -> None:
    base = [1.0] * 20
    other = [0.5] * 12 + [1.005] * 3 + [2.0] * 5
    measured = between(paired(tmp_path / "measured", {"continuous-fifo": base, "continuous-sjf": other})).wins
    assert measured is not None
    assert (measured.better, measured.worse, measured.alike) == (0.6, 0.25, 0.15)
    assert (measured.low or 0.0) < 0.6 < (measured.high or 0.0)
    exact = between(paired(tmp_path / "exact", {"continuous-fifo": base, "continuous-sjf": other}, simulated=True)).wins
    assert exact is not None
    assert (exact.better, exact.worse, exact.alike, exact.tolerance) == (0.6, 0.4, 0.0, 0.0)


def test_a_win_share_of_all_is_not_beyond_doubt(tmp_path: Path) -> None:
    won = between(paired(tmp_path, {"continuous-fifo": [1.0] * 40, "continuous-sjf": [0.5] * 40})).wins
    assert won is not None
    assert (won.better, won.high) == (1.0, 1.0)
    assert 0.5 < (won.low or 0.0) < 0.95


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_few_requests_have_no_interval_and_nothing_is_claimed(tmp_path: Path, count: int) -> None:
    found = between(paired(tmp_path, {"continuous-fifo": [1.0] * count, "continuous-sjf": [2.0] * count}))
    assert (found.pairs, found.low, found.uncorrected, found.seen) == (count, None, None, False)
    assert found.doubt == "not certain"


def test_arms_that_are_exactly_equal_differ_in_nothing(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    same = draw.uniform(1, 2, 30)
    found = between(paired(tmp_path, {"continuous-fifo": same, "continuous-sjf": same}, simulated=True))
    assert (found.difference, found.low, found.high, found.seen, found.doubt) == (0.0, 0.0, 0.0, False, None)
    assert found.wins is not None
    assert found.wins.alike == 1.0


def test_a_metric_that_nobody_has_is_not_compared(tmp_path: Path) -> None:
    found = between(paired(tmp_path, {"continuous-fifo": [1.0] * 6, "continuous-sjf": [1.0] * 6}), "tpot")
    assert (found.pairs, found.base_mean, found.difference, found.low, found.wins) == (0, None, None, None, None)


def test_a_percentile_has_the_error_of_its_draws() -> None:
    draw = np.random.default_rng(3)
    base = draw.lognormal(0, 1, (1, 400))
    assert strayed(base, base + 0.25, 0.95, seed=1)[0] == 0.0
    error, freedom, draws = strayed(base, base * draw.normal(1, 0.2, base.shape), 0.5, seed=1)
    assert freedom == waves(400)
    assert draws.std() == pytest.approx(1, abs=1e-3)
    assert error > 0
    assert strayed(base[:, :9], base[:, :9], 0.5, seed=1)[1] == 0.0  # fewer than five lie beyond


Values_ = st.lists(st.floats(-10, 10, width=32), min_size=8, max_size=40)


def ends(values: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """The interval of a few differences alone."""
    found = sample(values[:, None])
    none = np.zeros(1, np.int64)
    noise = RunNoise(np.full(1, np.nan), np.zeros(1), none, none)
    half = widths(
        wave_errors(found, never(1)), block_draws(found, block_starts(len(values), seed)), noise, seed
    ).family[0]
    return float(found.means[0] - half), float(found.means[0] + half)


@settings(max_examples=25)
@given(Values_, st.sampled_from([0.25, 3.0, 1024.0]), st.integers(-8, 8))
def test_intervals_shift_and_scale_with_their_values_and_turn_with_their_sides(
    drawn: list[float], scale: float, shift: int
) -> None:
    values = np.array(drawn)
    low, high = ends(values)
    close = {"rel": 1e-3, "abs": 1e-6}  # the draws are kept in few digits
    assert ends(values + shift) == pytest.approx((low + shift, high + shift), **close)
    assert ends(scale * values) == pytest.approx((scale * low, scale * high), rel=1e-3, abs=1e-6 * scale)
    assert ends(-values) == pytest.approx((-high, -low), **close)
    assert low <= values.mean() + 1e-9
    assert high >= values.mean() - 1e-9


def test_base_and_other_may_change_places(tmp_path: Path) -> None:
    draw = np.random.default_rng(6)
    cells = {
        f"continuous-{policy}-{repeat}": list(draw.uniform(1, 2, 40)) for policy in ("fifo", "sjf") for repeat in (0, 1)
    }
    found = paired(tmp_path, cells)
    fifo, sjf = found.alike[0]
    one, back = found.compare("ttft", fifo, sjf), found.compare("ttft", sjf, fifo)
    assert (one.low, one.high) == (-(back.high or 0.0), -(back.low or 0.0))
    assert one.wins is not None
    assert back.wins is not None
    assert (one.wins.better, one.wins.worse) == (back.wins.worse, back.wins.better)


def test_families_of_noise_are_modes_and_settings(tmp_path: Path) -> None:
    found = paired(tmp_path, {"static-fifo": [1.0] * 5, "static-sjf": [1.0] * 5, "continuous-fifo": [1.0] * 5})
    every: list[Arm] = [arm for family in found.alike for arm in family]
    assert [[arm.label for arm in family] for family in by_setting(every)] == [
        ["static, fifo", "static, sjf"], ["continuous, fifo"],
    ]  # fmt: skip
