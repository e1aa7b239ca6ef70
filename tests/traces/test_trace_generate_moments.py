"""The generator's processes have the moments that theory gives them, to a few standard errors; seeds are fixed.

A tolerance is four standard errors of what is measured, so a right process fails one time in 16,000 - and, its seed
being fixed, either always or never.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from itertools import pairwise

import polars as pl
import pytest

from replay.clock import NANOSECONDS
from replay.traces.generating.gaps import FAMILIES, weibull_shape
from replay.traces.generating.lengths import Lengths, Times
from replay.traces.generating.patterns import OnOff
from replay.traces.generating.renewals import Window, window_arrivals
from replay.traces.generating.zipf import Share, split
from replay.traces.table import Trace
from replay.traces.writing import write_trace

ERRORS = 4
FIXED = "prompt = 4\noutput = 2\n"
USER = f'[[users]]\nname = "a"\n{FIXED}'


def times(trace: Trace, origin: str = "z") -> pl.Series:
    """Seconds at which everybody but `origin` arrives; `origin` has the first request, at the very beginning."""
    frame = trace.frame
    assert frame["user"][0] == origin
    return frame.filter(pl.col("user") != origin)["arrival"] / NANOSECONDS


ORIGIN = f'[[users]]\nname = "z"\n{FIXED}closed_loop = {{ clients = 1, turns = 1 }}\n'


def moments(family: str, variation: float) -> Callable[[int], float]:
    """The raw moments of a gap whose scale is 1."""
    if family == "gamma":
        shape = 1 / variation**2
        return lambda order: math.prod(shape + step for step in range(order))
    shape = weibull_shape(variation)
    return lambda order: math.gamma(1 + order / shape)


def variation_error(moment: Callable[[int], float], gaps: int) -> float:
    """The standard error of a coefficient of variation, by the delta method."""
    mean, second, third, fourth = (moment(order) for order in (1, 2, 3, 4))
    variance = second - mean**2
    skew = (third - 3 * mean * second + 2 * mean**3) / variance**1.5
    kurtosis = (fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4) / variance**2
    variation = math.sqrt(variance) / mean
    return variation * math.sqrt(((kurtosis - 1) / 4 - skew * variation + variation**2) / gaps)


def variation_of(gaps: list[float]) -> float:
    return statistics.pstdev(gaps) / statistics.fmean(gaps)


def test_the_shape_of_a_weibull_distribution_follows_from_its_coefficient_of_variation():
    # shape 1 is the exponential distribution; shape 1/2 has moments 2 and 24; shape 2 is Rayleigh's
    assert weibull_shape(1.0) == pytest.approx(1.0, rel=1e-9)
    assert weibull_shape(math.sqrt(24 / 2**2 - 1)) == pytest.approx(0.5, rel=1e-9)
    assert weibull_shape(math.sqrt(4 / math.pi - 1)) == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("variation", [0.05, 0.5, 1.0, 2.0])
def test_gaps_have_their_mean_and_variation(family, variation):
    drawn, stream, many = FAMILIES[family](variation), random.Random(1), 20_000
    gaps = [drawn.gap(stream, 1 / drawn.mean) for _ in range(many)]
    assert statistics.fmean(gaps) == pytest.approx(1.0, abs=ERRORS * variation / many**0.5)
    error = variation_error(moments(family, variation), many)
    assert variation_of(gaps) == pytest.approx(variation, abs=ERRORS * error)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("variation", [0.5, 1.0, 2.0])
def test_the_rest_of_a_gap_is_that_of_one_an_onlooker_falls_into(family, variation):
    # the mean of what is left is E[x^2] / 2 E[x], its second moment E[x^3] / 3 E[x]
    drawn, stream, many = FAMILIES[family](variation), random.Random(2), 20_000
    rests = [drawn.rest(stream, 1 / drawn.mean) for _ in range(many)]
    mean, second, third = (moments(family, variation)(order) / drawn.mean**order for order in (1, 2, 3))
    left = second / (2 * mean)
    assert left == pytest.approx((1 + variation**2) / 2)
    error = math.sqrt((third / (3 * mean) - left**2) / many)
    assert statistics.fmean(rests) == pytest.approx(left, abs=ERRORS * error)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("burstiness", [0.5, 1.0, 2.0])
def test_a_rate_and_a_burstiness_are_kept(generated, family, burstiness):
    spec = f'duration = "5000s"\n{USER}rate = 4.0\nburstiness = {burstiness}\ngaps = "{family}"\n'
    frame = generated(spec).frame
    assert frame.height == pytest.approx(20_000, abs=ERRORS * burstiness * 20_000**0.5)
    gaps = frame["arrival"].diff().drop_nulls().to_list()
    error = variation_error(moments(family, burstiness), len(gaps))
    assert variation_of(gaps) == pytest.approx(burstiness, abs=ERRORS * error)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_users_who_were_there_before_have_as_many_requests_as_their_rate_says(generated, family):
    spec = f'duration = "10s"\n{USER}copies = 4000\nrate = 0.2\nburstiness = 3.0\ngaps = "{family}"\n'
    for stationary, enough in (("true", True), ("false", False)):
        counts = generated(spec + f"stationary = {stationary}\n").frame["user"].value_counts()["count"].to_list()
        counts += [0] * (4000 - len(counts))
        error = statistics.stdev(counts) / 4000**0.5
        assert (abs(statistics.fmean(counts) - 2.0) < ERRORS * error) is enough


def test_the_windows_of_a_client_have_their_rates_and_variations():
    hour = 3600 * NANOSECONDS
    windows = [
        Window(hour, 5.0, 2.0, "gamma"),
        Window(hour, 0.0),
        Window(hour, 1.0),
        Window(hour, 8.0, 0.5, "weibull"),
    ]
    arrivals = list(window_arrivals(windows, random.Random(3), begin=hour))
    assert arrivals == sorted(arrivals)
    assert hour < arrivals[0]
    for place, window in enumerate(windows):
        begin = hour * (place + 1)
        within = [time for time in arrivals if begin <= time < begin + hour]
        expected = window.requests_per_second * 3600
        variation = window.variation or 1.0
        assert len(within) == pytest.approx(expected, abs=ERRORS * variation * expected**0.5)
        if expected:
            gaps = [later - earlier for earlier, later in pairwise(within)]
            error = variation_error(moments(window.gaps, variation), len(gaps))
            assert variation_of(gaps) == pytest.approx(variation, abs=ERRORS * error)


def test_a_phase_may_be_burstier_than_the_next(generated):
    spec = (
        f'duration = "8000s"\n{USER}gaps = "weibull"\n'
        'phases = [{ rate = 4.0, lasts = "4000s", burstiness = 2.0 }, { rate = 4.0, gaps = "gamma" }]\n'
    )
    frame = generated(spec).frame.with_columns(gap=pl.col("arrival").diff())
    early = pl.col("arrival") < 4000 * NANOSECONDS
    for rows, family, variation in ((frame.filter(early), "weibull", 2.0), (frame.filter(~early), "gamma", 1.0)):
        error = variation_error(moments(family, variation), rows.height)
        assert variation_of(rows["gap"].drop_nulls().to_list()) == pytest.approx(variation, abs=ERRORS * error)


def test_on_and_off_stretches_have_their_duty(generated):
    spec = f'duration = "20000s"\n{USER}rate = 10.0\non_off = {{ on = "5s", off = "15s" }}\n'
    frame = generated(spec).frame
    # of an alternating renewal process, the time that is on has the variance 2 T a^2 b^2 / (a + b)^3
    on_error = math.sqrt(2 * 20_000 * 5**2 * 15**2 / 20**3)
    error = math.hypot(10 * on_error, 50_000**0.5)
    assert frame.height == pytest.approx(10 * 20_000 * 5 / 20, abs=ERRORS * error)
    # a silence is longer than a second as often as an off stretch is, but for gaps of a tenth of a second within one
    silences = (frame["arrival"].diff() > NANOSECONDS).sum()
    assert silences == pytest.approx(1000 * math.exp(-1 / 15), abs=ERRORS * 1000**0.5)


@pytest.mark.parametrize("stretches", ["exponential", "fixed"])
def test_the_beginning_falls_anywhere_in_the_stretches(stretches):
    pattern = OnOff(on="5s", off="15s", stretches=stretches)
    firsts = [next(pattern.factors(0, random.Random(seed))) for seed in range(4000)]
    on = [first.lasts / NANOSECONDS for first in firsts if first.rate]
    off = [first.lasts / NANOSECONDS for first in firsts if not first.rate]
    assert len(on) == pytest.approx(1000, abs=ERRORS * 750**0.5)
    # what is left of an exponential stretch is as long as a whole one, of a fixed one half as long
    for lasts, whole in ((on, 5), (off, 15)):
        left, spread = (whole, whole) if stretches == "exponential" else (whole / 2, whole / 12**0.5)
        assert statistics.fmean(lasts) == pytest.approx(left, abs=ERRORS * spread / len(lasts) ** 0.5)


def test_fixed_stretches_come_at_a_steady_beat(generated):
    spec = f'duration = "4000s"\n{USER}rate = 20.0\non_off = {{ on = "5s", off = "15s", stretches = "fixed" }}\n'
    frame = generated(spec).frame
    assert frame.height == pytest.approx(20_000, abs=ERRORS * 20_000**0.5)
    beat = sorted(time % (20 * NANOSECONDS) / NANOSECONDS for time in frame["arrival"])
    hole = max(later - earlier for earlier, later in zip(beat, [*beat[1:], beat[0] + 20], strict=True))
    assert 15 <= hole < 15.05  # nobody comes in 15 of every 20 seconds, and somebody in each bit of the others


@pytest.mark.parametrize(("begin", "end"), [(13, 15), (1, 3), (7, 9), (0, 24)])
def test_a_day_has_its_wave(generated, begin, end):
    wave = 'diurnal = { peak_at = "14h", amplitude = 0.8 }\n'
    arrived = times(generated(f'duration = "24h"\n{ORIGIN}{USER}rate = 1.0\n{wave}'))
    # the integral of 1 + 0.8 cos(2 pi (t - 14 h) / 24 h)
    turn = 2 * math.pi / 24
    expected = 3600 * (end - begin + 0.8 / turn * (math.sin(turn * (end - 14)) - math.sin(turn * (begin - 14))))
    assert arrived.is_between(begin * 3600, end * 3600).sum() == pytest.approx(expected, abs=ERRORS * expected**0.5)


def test_peak_and_trough_of_a_wave_are_as_far_apart_as_its_amplitude_says(generated):
    spec = f'duration = "20h"\n{ORIGIN}{USER}rate = 1.0\ndiurnal = {{ period = "1h", peak_at = 0, amplitude = 0.6 }}\n'
    place = times(generated(spec)) % 3600
    quarter = 900 / 8
    peak = ((place < quarter) | (place > 3600 - quarter)).sum()
    trough = place.is_between(1800 - quarter, 1800 + quarter).sum()
    mean = math.sin(math.pi / 16) / (math.pi / 16)  # of the cosine, in a sixteenth of a turn to either side
    error = (1 / peak + 1 / trough) ** 0.5
    assert math.log(peak / trough) == pytest.approx(math.log((1 + 0.6 * mean) / (1 - 0.6 * mean)), abs=ERRORS * error)


def test_a_spike_multiplies_the_rate_while_it_lasts(generated):
    spikes = 'spikes = [{ at = "100s", lasts = "50s", times = 10 }, { at = "500s", lasts = "100s", times = 0 }]\n'
    arrived = times(generated(f'duration = "1000s"\n{ORIGIN}{USER}rate = 5.0\n{spikes}'))
    for begin, end, expected in ((0, 100, 500), (100, 150, 2500), (150, 500, 1750), (500, 600, 0), (600, 1000, 2000)):
        assert arrived.is_between(begin, end).sum() == pytest.approx(expected, abs=ERRORS * expected**0.5)


def test_a_spike_may_come_again_and_patterns_multiply(generated):
    patterns = 'spikes = [{ at = "10s", lasts = "5s", times = 4, every = "20s" }]\n'
    doubled = 'spikes = [{ at = 0, lasts = "1000s", times = 2 }]\n'
    arrived = times(generated(f'duration = "2000s"\n{patterns}{ORIGIN}{USER}rate = 2.0\n{doubled}'))
    beat = arrived % 20
    for half, factor in ((arrived < 1000, 2), (arrived >= 1000, 1)):
        for within, expected in ((beat.is_between(10, 15), 2000 * factor), (~beat.is_between(10, 15), 1500 * factor)):
            assert (half & within).sum() == pytest.approx(expected, abs=ERRORS * expected**0.5)


def test_a_count_is_kept_however_the_rate_rises_and_falls(generated):
    spec = (
        f'duration = "1000s"\n{ORIGIN}{USER}count = 3000\nburstiness = 4.0\n'
        'on_off = { on = "10s", off = "40s" }\nspikes = [{ at = "400s", lasts = "100s", times = 9 }]\n'
    )
    arrived = times(generated(spec))
    assert arrived.len() == 3000
    assert arrived.is_between(400, 500).sum() > 900  # half of them but for burstiness, and not a tenth


def test_a_population_shares_by_zipfs_law(generated):
    assert split(100, Share(zipf=1.0).weights(4)) == [48, 24, 16, 12]
    assert Share(zipf=0.0).weights(4) == [0.25] * 4
    counts = generated(f'duration = "1s"\n{USER}copies = 4\ncount = 100\nshare = {{ zipf = 1.0 }}\n').frame
    assert dict(counts["user"].value_counts().iter_rows()) == {"a-1": 48, "a-2": 24, "a-3": 16, "a-4": 12}
    rates = generated(f'duration = "1000s"\n{USER}copies = 3\nrate = 11.0\nshare = {{ zipf = 1.0 }}\n').frame
    for user, expected in (("a-1", 6000), ("a-2", 3000), ("a-3", 2000)):
        assert (rates["user"] == user).sum() == pytest.approx(expected, abs=ERRORS * expected**0.5)


def zipf_mean(exponent: float, least: int, most: int, order: int = 1) -> float:
    values = range(least, most + 1)
    return sum(value ** (order - exponent) for value in values) / sum(value**-exponent for value in values)


LENGTHS = [
    ({"median": 100, "spread": 0.5, "most": 10**6}, 100 * math.exp(0.125), 100**2 * math.exp(0.5)),
    ({"uniform": [3, 12]}, 7.5, 7.5**2 + 99 / 12),
    ({"choices": [1, 1, 10]}, 4.0, 34.0),
    ({"zipf": {"exponent": 1.2, "least": 2, "most": 500}}, zipf_mean(1.2, 2, 500), zipf_mean(1.2, 2, 500, order=2)),
    # a third of the draws in each stretch, evenly: its mean the middle, its variance a twelfth of its square
    ({"quantiles": [1, 100, 200, 1000]}, (50.5 + 150 + 600) / 3, (50.5**2 + 150**2 + 600**2 + 659801 / 12) / 3),
]


@pytest.mark.parametrize(("form", "mean", "second"), LENGTHS, ids=[next(iter(form)) for form, *_ in LENGTHS])
def test_lengths_have_their_mean(form, mean, second):
    many = 20_000
    draw = Lengths.model_validate(form, strict=False).counts_from(random.Random(4))
    counts = [draw() for _ in range(many)]
    error = math.sqrt((second - mean**2) / many)
    assert statistics.fmean(counts) == pytest.approx(mean, abs=ERRORS * error)
    assert statistics.pstdev(counts) == pytest.approx(math.sqrt(second - mean**2), rel=0.05)


def test_times_to_think_are_exponential():
    draw = Times(exponential=250.0).drawn_from(random.Random(5))
    drawn = [draw() for _ in range(20_000)]
    assert statistics.fmean(drawn) == pytest.approx(250, abs=ERRORS * 250 / 20_000**0.5)
    assert sum(time > 250 for time in drawn) / 20_000 == pytest.approx(1 / math.e, abs=ERRORS * 0.5 / 20_000**0.5)


def test_zipf_draws_each_value_as_often_as_its_law_says():
    draw = Lengths.model_validate({"zipf": {"exponent": 1.0, "most": 4}}).counts_from(random.Random(6))
    counts = [draw() for _ in range(25_000)]
    for value, expected in ((1, 12_000), (2, 6000), (3, 4000), (4, 3000)):
        assert counts.count(value) == pytest.approx(expected, abs=ERRORS * expected**0.5)


def test_quantiles_are_drawn_again():
    given, many = [1, 40, 55, 55, 900, 12_000.4], 20_000
    draw = Lengths.model_validate({"quantiles": given}, strict=False).counts_from(random.Random(7))
    counts = sorted(draw() for _ in range(many))
    assert counts[0] == 1
    assert 11_900 < counts[-1] <= 12_000
    for place, quantile in ((1, 40), (4, 900)):
        below = sum(count < quantile for count in counts) / many
        assert below == pytest.approx(place / 5, abs=ERRORS * (0.25 / many) ** 0.5 + 0.2 / 15)
    assert counts.count(55) / many == pytest.approx(0.2 + 0.2 / 30, abs=ERRORS * (0.16 / many) ** 0.5)


def test_lengths_are_drawn_from_another_trace(generated, tmp_path):
    seen = '[[users]]\nname = "s"\ncount = 4\nprompt = { choices = [10, 500] }\noutput = { choices = [3, 70] }\n'
    write_trace(generated('seed = 3\nduration = "1s"\n' + seen), tmp_path / "seen.parquet")
    pairs = generated('seed = 3\nduration = "1s"\n' + seen).frame.select("prompt_tokens", "output_tokens").rows()
    trace = generated('duration = "1s"\n[[users]]\nname = "a"\ncount = 8000\nlengths = { trace = "seen.parquet" }\n')
    drawn = trace.frame.select("prompt_tokens", "output_tokens").rows()
    for pair in set(drawn) | set(pairs):
        expected = 8000 * pairs.count(pair) / 4
        assert drawn.count(pair) == pytest.approx(expected, abs=ERRORS * expected**0.5)
    assert "draws from seen.parquet (sha256 " in trace.history[0]
    column = 'prompt = { empirical = { trace = "seen.parquet", column = "output_tokens" } }\noutput = 1\n'
    alone = (
        generated(f'duration = "1s"\n[[users]]\nname = "a"\ncount = 8000\n{column}').frame["prompt_tokens"].to_list()
    )
    outputs = [output for _, output in pairs]
    for count in set(outputs) | set(alone):
        expected = 8000 * outputs.count(count) / 4
        assert alone.count(count) == pytest.approx(expected, abs=ERRORS * expected**0.5)
