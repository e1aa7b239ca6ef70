"""Length predictors: what each expects, how good those are that know the truth in part, and what an experiment says."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.contract.simulation import request, simulate
from replay.errors import ExperimentError
from replay.experiment.loading import load_experiment
from replay.predictors import Bucket, History, Noisy, Predictor, Ranker, Uniform, UserMean, predictors
from replay.scheduler import Ordered, Step

PARTLY = [Noisy(), Uniform(), Bucket(), Ranker()]


def lognormal(rows: int, seed: int = 1) -> list[int]:
    random = Random(seed)
    return [1 + int(random.lognormvariate(4.6, 1.1)) for _ in range(rows)]


def expected(predictor: Predictor, lengths: list[int], seed: int = 0) -> list[float]:
    predictor.start(lengths, seed)
    return [predictor.expect(request(row)) for row in range(len(lengths))]


def kendall(predicted: list[float], lengths: list[int]) -> float:
    """Pairs in the right order less those in the wrong, of all that have an order."""
    said, true = (np.sign(np.subtract.outer(values, values)) for values in (predicted, lengths))
    return float((said * true).sum() / np.abs(true).sum())


def finish(predictor: Predictor, *answers: int, user: str | None = None) -> None:
    for tokens in answers:
        done = request(0, user=user)
        done.generated = tokens
        predictor.observe(done)


def test_oracle_knows_and_max_tokens_believes_the_client() -> None:
    asked = request(0, max_tokens=50)
    for name, tokens in (("oracle", 7), ("max_tokens", 50)):
        predictor = predictors[name]()
        predictor.start([7])
        assert predictor.expect(asked) == tokens


def test_user_mean_is_the_mean_of_the_users_last_answers() -> None:
    predictor = UserMean(last=2)
    predictor.start([])
    assert predictor.expect(request(0, user="a", max_tokens=50)) == 50  # nobody has finished
    finish(predictor, 10, 20, 40, user="a")
    finish(predictor, 2, user="b")
    assert predictor.expect(request(9, user="a")) == 30  # of the last two
    assert predictor.expect(request(9, user="b")) == 2
    assert predictor.expect(request(9, user="new")) == 18  # of everybody's answers


def test_history_is_the_mean_of_recent_answers_that_were_longer() -> None:
    predictor = History(last=4)
    predictor.start([])
    asked = request(0, max_tokens=90)
    assert predictor.expect(asked) == 90  # nobody has finished
    finish(predictor, 1000, 4, 8, 20, 60)  # the first is forgotten
    at = {0: 23, 4: (8 + 20 + 60) / 3, 7: (8 + 20 + 60) / 3, 8: 40, 20: 60, 59: 60, 60: 90, 89: 90}
    for asked.generated, tokens in at.items():
        assert predictor.expect(asked) == tokens
    asked.max_tokens, asked.generated = 50, 30
    assert predictor.expect(asked) == 50, "no longer than declared"
    predictor.start([])
    assert predictor.expect(asked) == 50, "a new cell knows nothing of the one before"


@given(st.lists(st.integers(1, 40), max_size=12), st.integers(1, 4), st.integers(0, 39))
def test_history_is_always_more_than_generated_and_grows_with_it(answers: list[int], last: int, generated: int) -> None:
    predictor = History(last=last)
    finish(predictor, *answers)
    asked = request(0, max_tokens=41)
    before = 0.0
    for asked.generated in range(generated + 1):
        assert predictor.expect(asked) > asked.generated
        assert predictor.expect(asked) >= before
        before = predictor.expect(asked)


def test_an_answer_that_outgrew_its_prediction_is_expected_a_tenth_longer_up_to_what_is_declared() -> None:
    seen: dict[int, float] = {}

    class Curious(Ordered):
        def schedule(self, step: Step) -> None:
            seen.update({one.generated: step.expected_tokens(one) for one in step.running})
            super().schedule(step)

    predictor = UserMean()
    rows = [request(0, 0.0), request(1, 1.0, max_tokens=31)]
    simulate(rows, [9, 31], policy=Curious(), predictor=predictor)
    assert [seen[generated] for generated in (9, 10, 20, 29, 30)] == pytest.approx([10, 11, 22, 31, 31])


def test_noise_is_lognormal() -> None:
    lengths = [100] * 4000
    for sigma in (0.25, 1.0):
        logarithms = [math.log(tokens / 100) for tokens in expected(Noisy(sigma=sigma), lengths)]
        assert statistics.mean(logarithms) == pytest.approx(0, abs=0.05 * sigma)
        assert statistics.stdev(logarithms) == pytest.approx(sigma, rel=0.03)
    assert expected(Noisy(sigma=0.0), [3, 5]) == [3, 5]


def test_uniform_noise_is_even_and_bounded() -> None:
    shares = sorted(tokens / 100 for tokens in expected(Uniform(r=0.5), [100] * 4000))
    assert 0.5 <= shares[0] < 0.51
    assert 1.49 < shares[-1] <= 1.5
    assert [shares[part] for part in (1000, 2000, 3000)] == pytest.approx([0.75, 1.0, 1.25], abs=0.02)
    assert expected(Uniform(r=0.0), [3, 5]) == [3, 5]


def test_buckets_are_right_as_often_as_they_should_be_and_else_the_next() -> None:
    lengths = [1 + row % 1000 for row in range(10_000)]  # 5 buckets
    predicted = expected(Bucket(), lengths)
    assert set(predicted) == {100.5, 300.5, 500.5, 700.5, 900.5}
    off = [int(tokens // 200) - (true - 1) // 200 for tokens, true in zip(predicted, lengths, strict=True)]
    assert off.count(0) / len(off) == pytest.approx(0.749, abs=0.01)
    assert {abs(each) for each in off} == {0, 1}
    inner = [each for each, true in zip(off, lengths, strict=True) if 200 < true <= 800]
    assert inner.count(1) == pytest.approx(inner.count(-1), rel=0.15)


def test_buckets_at_their_ends() -> None:
    assert expected(Bucket(width=10, accuracy=1.0), [1, 10, 11, 20, 21]) == [5.5, 5.5, 15.5, 15.5, 25.5]
    assert expected(Bucket(width=10, accuracy=0.0), [1, 10] * 20) == [5.5] * 40, "one bucket is always right"
    assert expected(Bucket(width=10, accuracy=0.0), [3, 13] * 20) == [15.5, 5.5] * 20
    assert expected(Bucket(width=1, accuracy=1.0), [1, 2, 9]) == [1, 2, 9]


@pytest.mark.parametrize("tau", [0.0, 0.2, 0.5, 0.8, 0.95])
def test_a_ranker_orders_as_well_as_its_tau_says(tau: float) -> None:
    for lengths in (lognormal(300), lognormal(800, seed=2)):  # all pairs are looked at, and some
        predicted = expected(Ranker(tau=tau), lengths, seed=3)
        assert kendall(predicted, lengths) == pytest.approx(tau, abs=0.02)
        assert sorted(predicted) == sorted(lengths), "the lengths of the trace, in another order"


def test_a_ranker_at_its_ends() -> None:
    lengths = lognormal(50)
    assert expected(Ranker(tau=1.0), lengths) == lengths
    assert expected(Ranker(tau=0.0), [7] * 5) == [7] * 5
    assert expected(Ranker(tau=0.0), [7]) == [7]
    assert expected(Ranker(tau=0.5), []) == []
    capped = [min(128, tokens) for tokens in lognormal(300)]  # two in five are as long as may be
    assert kendall(expected(Ranker(tau=0.6), capped), capped) == pytest.approx(0.6, abs=0.03)
    assert sorted(expected(Ranker(tau=0.5), [3, 9])) == [3, 9]


@pytest.mark.parametrize("predictor", PARTLY, ids=lambda one: type(one).__name__)
def test_a_prediction_depends_on_seed_and_row_alone(predictor: Predictor) -> None:
    lengths = lognormal(80)
    first = expected(predictor, lengths, seed=5)
    assert expected(predictor, lengths, seed=5) == first, "the same in every cell"
    assert expected(predictor, lengths, seed=6) != first
    predictor.start(lengths, 5)
    finish(predictor, 1, 2, 3)
    assert [predictor.expect(request(row)) for row in reversed(range(80))] == first[::-1], "in any order of asking"
    asked = request(3)
    asked.generated = 2
    assert predictor.expect(asked) == first[3]


@pytest.mark.parametrize("predictor", [Noisy(), Uniform()], ids=lambda one: type(one).__name__)
def test_what_comes_later_disturbs_no_row_before(predictor: Predictor) -> None:
    assert expected(predictor, [50] * 9)[:5] == expected(predictor, [50] * 5)


@pytest.mark.parametrize("name", list(predictors))
def test_every_predictor_says_what_it_knows_and_expects_more_than_generated(name: str) -> None:
    seen: list[tuple[int, float]] = []

    class Curious(Ordered):
        def schedule(self, step: Step) -> None:
            seen.extend((one.generated, step.expected_tokens(one)) for one in (*step.running, *step.waiting))
            super().schedule(step)

    lengths = [min(60, tokens) for tokens in lognormal(12)]
    rows = [request(row, row / 50, max_tokens=70) for row in range(12)]
    simulate(rows, lengths, policy=Curious(), predictor=name, max_running=4)
    assert all(tokens > generated for generated, tokens in seen)
    knows = {"oracle": "all", "noisy": "part", "uniform": "part", "bucket": "part", "ranker": "part"}
    assert predictors[name].knows == knows.get(name, "nothing")


@pytest.mark.parametrize(
    ("lengths", "fault"),
    [
        ({"predictor": "noisy", "sigma": -0.1}, "lengths.sigma: input should be greater than or equal to 0, not -0.1"),
        ({"predictor": "uniform", "r": 1.5}, "lengths.r: input should be less than or equal to 1, not 1.5"),
        ({"predictor": "bucket", "width": 0}, "lengths.width: input should be greater than or equal to 1, not 0"),
        ({"predictor": "bucket", "accuracy": 75.0}, "lengths.accuracy: input should be less than or equal to 1"),
        ({"predictor": "ranker", "tau": -0.5}, "lengths.tau: input should be greater than or equal to 0"),
        ({"predictor": "history", "last": 0}, "lengths.last: input should be greater than or equal to 1"),
        ({"predictor": "noise"}, "there is no length predictor 'noise'; did you mean 'noisy'?"),
        ({"predictor": "oracle", "sigma": 0.5}, "lengths.sigma: there is no such setting"),
    ],
)
def test_a_wrong_setting_of_a_predictor_is_said_in_a_sentence(lengths: dict[str, Any], fault: str) -> None:
    with pytest.raises(ExperimentError, match=fault.replace("?", r"\?")):
        load_experiment({"traces": ["traces/sample.parquet"], "lengths": lengths}, "mine.toml", Path())
