"""ServeGen's folders: requests are drawn from fits, with the moments that these say, the same for the same seed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.foreign.servegen_fits import distribution
from replay.traces.formats import formats, import_trace

WINDOW = 600
LENGTHS = {"input_tokens": "{100: 0.25, 300: 0.75}", "output_tokens": "{5: 0.5, 7: 0.5}"}


@pytest.fixture
def folder(tmp_path):
    """`folder(number, rows, lengths)` adds a client: rows of rate, family and shape, a window each."""
    path = tmp_path / "m-large"
    path.mkdir()

    def add(number: int, *rows: tuple[float, str, float], lengths: object = None) -> Path:
        lines = [
            f"{place * WINDOW},{rate},9.9,{family},{shape},0.5" for place, (rate, family, shape) in enumerate(rows)
        ]
        (path / f"chunk-{number}-trace.csv").write_text("\n".join(lines))
        fields = {"0": LENGTHS} if lengths is None else lengths
        (path / f"chunk-{number}-dataset.json").write_text(json.dumps(fields))
        return path

    return add


def drawn(path: Path, **settings: object) -> pl.DataFrame:
    return import_trace("servegen", path, settings=settings).frame


def test_each_client_is_a_user_and_the_history_says_that_nothing_was_measured(folder):
    folder(0, *[(1.0, "Gamma", 1.0)] * 6)
    path = folder(12, *[(2.0, "Weibull", 0.5)] * 6)
    trace = import_trace("auto", path)
    assert trace.history[0] == (
        "sampled from ServeGen's fits of 2 clients, 3,600 s (60.0 min) from 0 s on, seed 0: not measured traffic; "
        "prompts and answers drawn apart from each other"
    )
    assert set(trace.frame["user"]) == {"0", "12"}
    assert trace.notes == ["the format is servegen: no other fits"]
    assert trace.span_nanoseconds < 3_600 * 10**9


def test_a_seed_makes_the_same_requests_and_another_one_others(folder):
    path = folder(3, *[(1.0, "Gamma", 0.5)] * 6)
    assert drawn(path).equals(drawn(path))
    assert not drawn(path).equals(drawn(path, seed=1))


def test_a_client_is_drawn_alike_whoever_else_is_there(folder):
    alone = drawn(folder(3, *[(1.0, "Gamma", 0.5)] * 6))
    both = drawn(folder(1, *[(0.5, "Gamma", 1.0)] * 6))
    columns = ("prompt_tokens", "output_tokens")
    assert both.filter(pl.col("user") == "3").select(columns).equals(alone.select(columns))


@pytest.mark.parametrize(("shape", "family"), [(1.0, "Gamma"), (4.0, "Gamma"), (0.4, "Gamma"), (0.6, "Weibull")])
def test_rate_and_variation_are_those_of_the_fit(folder, shape, family):
    """Over n gaps of coefficient c, the rate is off by about c / sqrt(n) of itself; c by a few times that."""
    path = folder(0, *[(4.0, family, shape)] * 60)
    gaps = drawn(path, lasts="10h")["arrival"].diff().drop_nulls() / 10**9
    variation = 1 / math.sqrt(shape)
    if family == "Weibull":
        variation = math.sqrt(math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1)
    error = variation / math.sqrt(gaps.len())
    assert gaps.len() == pytest.approx(36_000 * 4, rel=4 * error)
    assert gaps.mean() == pytest.approx(0.25, rel=4 * error)
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.05)


def test_the_rate_follows_the_windows_and_the_factor(folder):
    path = folder(0, (1.0, "Gamma", 1.0), (0.0, "", 0.0), (8.0, "Gamma", 1.0))
    arrivals = drawn(path, rate=2.0)["arrival"]
    silent = arrivals.diff().arg_max()  # the first request after the second window
    assert arrivals.diff().max() >= WINDOW * 10**9
    assert silent == pytest.approx(1_200, abs=4 * math.sqrt(1_200))
    assert arrivals.len() - silent == pytest.approx(9_600, abs=4 * math.sqrt(9_600))


def test_a_stretch_of_the_fits_is_drawn_windows_cut_off_at_both_ends(folder):
    path = folder(0, (0.0, "", 0.0), (5.0, "Gamma", 1.0), (50.0, "Gamma", 1.0))
    frame = drawn(path, start="15m", lasts="6m")  # 300 s of the second window, 60 s of the third
    before = frame.filter(pl.col("arrival") < 300 * 10**9).height
    assert before == pytest.approx(1_500, abs=4 * math.sqrt(1_500))
    assert frame.height - before == pytest.approx(3_000, abs=4 * math.sqrt(3_000))


def test_lengths_are_drawn_from_the_distributions_of_their_window(folder):
    later = {"input_tokens": "{2: 1.0}", "output_tokens": "{3: 1.0}"}
    nothing = {"input_tokens": "{}", "output_tokens": "{}", "reason_ratio": "{}"}
    lengths = {"0": LENGTHS, "600": later, "1200": nothing}
    path = folder(0, *[(10.0, "Gamma", 1.0)] * 3, lengths=lengths)
    frame = drawn(path)
    first, rest = frame.filter(pl.col("arrival") < 598 * 10**9), frame.filter(pl.col("arrival") > 602 * 10**9)
    rows = first.height
    assert set(first["prompt_tokens"]) == {100, 300}
    assert (first["prompt_tokens"] == 300).sum() == pytest.approx(0.75 * rows, abs=4 * math.sqrt(rows * 0.1875))
    assert (first["output_tokens"] == 7).sum() == pytest.approx(0.5 * rows, abs=4 * math.sqrt(rows * 0.25))
    assert rest.select("prompt_tokens", "output_tokens").unique().rows() == [(2, 3)]


def test_windows_before_any_lengths_are_left_out_and_so_are_fields_of_no_use(folder):
    path = folder(0, *[(1.0, "Gamma", 1.0)] * 3, lengths={"600": {**LENGTHS, "reason_ratio": "{0.5: 1.0}"}})
    trace = import_trace("servegen", path)
    assert trace.notes == ["fields left out: reason_ratio", "1 window with requests but no lengths: left out"]
    assert trace.frame.height == pytest.approx(1_200, abs=4 * math.sqrt(1_200))


def test_media_add_to_the_prompt(folder):
    fields = {
        "text_tokens": "{10: 1.0}",
        "image_tokens": "{1000: 1.0}",
        "image_count": "{0: 0.5, 2: 0.5}",
        "audio_tokens": "{0: 1.0}",
        "audio_count": "{0: 1.0}",
        "output_tokens": "{4: 1.0}",
    }
    frame = drawn(folder(0, *[(1.0, "Gamma", 1.0)] * 3, lengths={"0": fields}))
    assert set(frame["prompt_tokens"]) == {10, 2_010}


def test_the_clients_with_most_requests_are_chosen(folder):
    folder(0, *[(1.0, "Gamma", 1.0)] * 3)
    folder(1, *[(3.0, "Gamma", 1.0)] * 3)
    path = folder(2, *[(2.0, "Gamma", 1.0)] * 3)
    assert set(drawn(path, clients=2)["user"]) == {"1", "2"}


def test_gaps_without_a_fit_are_as_of_poisson_arrivals(folder):
    gaps = drawn(folder(0, *[(5.0, "", 0.0)] * 6))["arrival"].diff().drop_nulls()
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("__import__('os').abort()", "must be a dict of whole numbers and their probabilities"),
        ("{1: 0.5, 2: __import__('os').abort()}", "must be a dict of whole numbers"),
        ("{1.5: 1.0}", "must be a dict of whole numbers"),
        ("{" * 100_000, "must be a dict of whole numbers"),
        ("{1: 2: 3}", "must be a dict of whole numbers"),
        ("{-1: 1.0}", "has a number below 0"),
        ("{99999999999: 1.0}", "has a number below 0 or above"),
        ("{1: nan}", "a probability that is none"),
        ("{1: 0.5}", "the probabilities are 0.5 together, but must be 1"),
    ],
)  # fmt: skip
def test_a_dict_as_text_is_taken_apart_and_never_evaluated(text, sentence):
    with pytest.raises(TraceError, match=sentence) as fault:
        distribution("the place", text)
    assert str(fault.value).startswith("the place: ")
    assert len(str(fault.value)) < 300


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("0,1,1,Gamma,1", r"chunk-0-trace.csv, row 0 \(counted from 0\): has 5 columns, but must have 6"),
        ("0,1,1,Gamma,1,1\n600,x,1,Gamma,1,1", r"row 1 .*, column 'requests_per_s': 'x', but must be a number"),
        ("0,-1,1,Gamma,1,1", "column 'requests_per_s': '-1', but must be a number of at least 0"),
        ("0,1,1,Pareto,1,1", "column 'family': 'Pareto', but must be Gamma, Weibull or empty"),
        ("0,1,1,Gamma,0,1", "column 'p1': 0, but must be more than 0: it is a shape"),
        ("600,1,1,Gamma,1,1\n0,1,1,Gamma,1,1", "column 'window_start_s': 0, but must be after 600"),
        ("0,1e9,1,Gamma,1,1", "about 600,000,000,000 requests would be drawn, and 100,000,000 is the most"),
        ("0,0,0,,0,0", r"no client sends anything from 0 s to 3,600 s \(60.0 min\)"),
        ("", "no client sends anything"),
    ],
)  # fmt: skip
def test_bad_windows_are_named(folder, rows, sentence):
    path = folder(0)
    (path / "chunk-0-trace.csv").write_text(rows)
    with pytest.raises(TraceError, match=sentence):
        import_trace("servegen", path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "get it with `git lfs pull`"),
        ("{", "chunk-0-dataset.json: is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be one JSON object"),
        ('{"0": 5}', "window 0: must be an object of distributions as text"),
        ('{"later": {}}', "'later' is no window's start"),
        ('{"0": {"output_tokens": "{1: 1.0}"}}', "the field 'input_tokens' is missing; there are: output_tokens"),
        ('{"0": {"input_tokens": "{1: 1.0}", "output_tokens": "(1,)"}}', r"window 0, field 'output_tokens': '\(1,\)'"),
    ],
)  # fmt: skip
def test_bad_lengths_are_named(folder, text, sentence):
    path = folder(0, (1.0, "Gamma", 1.0))
    (path / "chunk-0-dataset.json").write_text(text)
    with pytest.raises(TraceError, match=sentence):
        import_trace("servegen", path)


def test_a_folder_that_is_something_else_is_a_sentence(folder, tmp_path):
    path = folder(0, (1.0, "Gamma", 1.0))
    (path / "chunk-0-dataset.json").unlink()
    with pytest.raises(TraceError, match=r"chunk-0-dataset\.json: there is no such file"):
        import_trace("servegen", path)
    with pytest.raises(TraceError, match="name the folder of one model"):
        import_trace("servegen", tmp_path)
    with pytest.raises(TraceError, match="is a file, but this format is a folder"):
        import_trace("servegen", path / "chunk-0-trace.csv")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"start": "soon"}, "start: 'soon' is not a duration"),
        ({"lasts": "0s"}, "lasts: '0s' is no time at all"),
        ({"rate": 0.0}, "rate: 0.0 is not more than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, sentence):
    with pytest.raises(ExperimentError, match=sentence):
        formats["servegen"](**settings)
