"""`replay trace fit`: what a trace is like is found again, nobody is named, and the file says how near it is."""

from __future__ import annotations

import json
import re
import shutil
import tomllib

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.cli.trace_fit import fit_command
from replay.errors import OutputError, TraceError
from replay.traces.fitting.distances import sample_of
from replay.traces.fitting.document import document_text
from replay.traces.fitting.fit import Wanted, fit_trace
from replay.traces.fitting.fitted import drawn, fitted
from replay.traces.generate import generate_trace
from replay.traces.generating.specification import checked_spec
from replay.traces.reading import read_trace

NAMES = st.text("αβγδ", min_size=3, max_size=5)  # letters that the file has for no other reason


def found_line(found, subject):
    return next(line for line in found.comparison.lines if line.subject == subject)


def found_figure(found, subject):
    return next(figure for figure in found.comparison.figures if figure.subject == subject)


def test_what_was_declared_is_found(generated):
    trace = generated(
        'duration = "1h"\n'
        "[[prefixes]]\n"
        'name = "system"\ntokens = 64\n'
        "[[users]]\n"
        'name = "app"\nphases = [{ rate = 0.5, lasts = "30m" }, { rate = 2.0 }]\nburstiness = 2.0\nprefix = "system"\n'
        "prompt = { median = 40, spread = 0.7, most = 600 }\noutput = { uniform = [1, 400] }\nmax_tokens = 400\n"
        "[[users]]\n"
        'name = "crowd"\ncopies = 30\nshare = { zipf = 1.2 }\nrate = 1.0\npriority = 3\nslo = "gold"\n'
        "prompt = { fixed = 9 }\noutput = { fixed = 5 }\n"
    )
    found = fitted(trace, Wanted(users=1))
    app, crowd = found.fit.document["users"]
    assert [(prefix["tokens"], prefix["copies"]) for prefix in found.fit.document["prefixes"]] == [(64, 1)]
    assert (app["name"], crowd["name"]) == ("user-1", "others")
    assert len(app["phases"]) == 2
    assert [phase["count"] for phase in app["phases"]] == [pytest.approx(900, rel=0.2), pytest.approx(3_600, rel=0.1)]
    assert app["burstiness"] == pytest.approx(2.0, rel=0.08)
    assert (app["prefix"], app["max_tokens"]) == ("prefix-1", 400)
    assert crowd["copies"] == trace.frame["user"].n_unique() - 1
    assert crowd["share"]["zipf"] == pytest.approx(1.2, abs=0.1)
    assert (crowd["priority"], crowd["slo"]) == (3, "class-1")
    assert (crowd["prompt"], crowd["output"]) == ({"fixed": 9}, {"fixed": 5})
    for line in found.comparison.lines:
        assert line.distance < 1.63 * (1 / line.trace.size + 1 / line.fit.size) ** 0.5 or line.distance < 0.02
    seen = found_figure(found, "prompt tokens seen before, share")
    assert seen.fit == pytest.approx(seen.trace, rel=0.05)


def test_answers_go_on_depending_on_prompts(trace_of):
    draws = np.random.default_rng(2)
    prompts = draws.integers(1, 2_000, 3_000)
    answers = np.where(prompts < 1_000, draws.integers(1, 100, 3_000), draws.integers(900, 1_000, 3_000))
    trace = trace_of(arrival_ms=list(range(0, 300_000, 100)), prompt_tokens=prompts, output_tokens=answers)
    found = fitted(trace, Wanted())
    correlation = found_figure(found, "prompt with output, rank correlation")
    assert correlation.trace > 0.7
    assert correlation.fit == pytest.approx(correlation.trace, abs=0.03)
    assert found_line(found, "output, shortest quarter of prompts").distance < 0.1


def test_sessions_that_grow_are_said_to(generated):
    trace = generated(
        'duration = "1h"\n[[users]]\nname = "agent"\ncount = 400\nprompt = { uniform = [10, 30] }\n'
        "output = { fixed = 50 }\n"
        "sessions = { turns = { uniform = [2, 6] }, think_ms = { fixed = 700 }, grows = true }\n"
    )
    found = fitted(trace, Wanted())
    (agent,) = found.fit.document["users"]
    assert agent["count"] == 400
    assert agent["sessions"]["grows"] is True
    assert agent["sessions"]["think_ms"] == {"fixed": 700}
    assert agent["prompt"]["quantiles"][0] == 10
    assert agent["prompt"]["quantiles"][-1] == 30
    assert found_line(found, "turns of a session").distance < 0.1
    assert found_line(found, "prompt tokens").distance < 0.1
    assert found_line(found, "tokens seen before").distance < 0.1


def test_of_a_mixed_session_the_time_between_arrivals_is_thought(trace_of):
    trace = trace_of(
        arrival_s=[100 * (row // 2) + 7 * (row % 2) for row in range(40)],
        session=[f"s{row // 2}" for row in range(40)],
        prompt_tokens=[10, 5] * 20,
    )
    fit = fit_trace(trace, Wanted())
    assert fit.document["users"][0]["sessions"] == {"turns": {"fixed": 2}, "think_ms": {"fixed": 7_000}}
    assert any("no think times" in sentence for sentence in fit.lost)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_nothing_that_names_anybody_is_in_the_file(trace_of, data):
    count = data.draw(st.integers(10, 40))

    def names():
        return data.draw(st.lists(st.none() | NAMES, min_size=count, max_size=count))

    def numbers(most):
        return data.draw(st.lists(st.integers(1, most), min_size=count, max_size=count))

    trace = trace_of(
        arrival_ms=np.cumsum(numbers(500)).tolist(),
        prompt_tokens=numbers(100_000),
        output_tokens=numbers(5_000),
        request_id=[f"ω{row}" for row in range(count)],
        user=names(),
        session=names(),
        slo=names(),
        prompt=["ψψ"] * count,
    )
    text = fitted(trace, Wanted(users=3)).text
    assert not re.search(r"[^\x00-\x7f]", text)
    assert "trace.parquet" not in text
    checked_spec(tomllib.loads(text), "the file")  # what is written can be read


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "sessions"]),
        st.integers()
        | st.text(st.characters(min_codepoint=32, max_codepoint=126))
        | st.booleans()
        | st.lists(st.integers(0, 10**9), max_size=80)
        | st.dictionaries(st.sampled_from(["x", "y"]), st.lists(st.integers(0, 10**9), max_size=60), max_size=2),
    )
)
def test_a_document_is_read_as_it_was_written(table):
    text = document_text({"seed": 1, "users": [table | {"classes": [table]}]}, ["a comment"])
    assert all(len(line) <= 120 or '"' in line for line in text.splitlines())
    assert tomllib.loads(text) == {"seed": 1, "users": [table | {"classes": [table]}]}


def test_the_file_makes_what_was_compared(tmp_path, generated):
    trace = generated(
        'duration = "5m"\n[[users]]\nname = "a"\nrate = 2.0\nprompt = { uniform = [1, 900] }\noutput = { fixed = 3 }\n'
    )
    found = fitted(trace, Wanted(seed=4))
    path = tmp_path / "like.toml"
    path.write_text(found.text)
    again = generate_trace(path)
    assert found.comparison.fit_rows == again.extent().rows
    prompts, compared = sample_of(again.frame["prompt_tokens"].to_numpy()), found_line(found, "prompt tokens").fit
    assert prompts.values.tolist() == compared.values.tolist()
    assert prompts.counts.tolist() == compared.counts.tolist()
    line = next(line for line in found.text.splitlines() if line.startswith("# prompt tokens"))
    assert line.split()[3] == f"{found_line(found, 'prompt tokens').distance:.3f}"
    assert '"seed": 4' in json.dumps(tomllib.loads(found.text))


def test_requests_of_one_instant_can_be_fitted(trace_of):
    found = fitted(trace_of(arrival_ms=[0] * 20), Wanted())
    assert found.comparison.fit_rows == 20
    assert any("100% are 0" in sentence or "95% are 0" in sentence for sentence in found.fit.lost)


def test_too_few_requests_are_refused(trace_of):
    with pytest.raises(TraceError, match=r"trace\.parquet: 9 requests are too few to fit; there must be 10"):
        fitted(trace_of(arrival_ms=list(range(9))), Wanted())


def run(*arguments):
    return CliRunner().invoke(fit_command, [str(argument) for argument in arguments], catch_exceptions=True)


def test_the_command_prints_the_distances_and_writes_the_file(tmp_path):
    out = tmp_path / "like.toml"
    done = run("traces/sample.parquet", out, "--users", 2, "--windows", 2, "--quantiles", 4)
    assert done.exit_code == 0, done.output
    assert "4 users" in done.stdout
    table = [line for line in done.stdout.splitlines() if line.startswith("prompt tokens ")]
    assert table
    document = tomllib.loads(out.read_text())
    assert [user["name"] for user in document["users"]] == ["user-1", "user-2", "others"]
    assert all(len(user["phases"]) == 2 for user in document["users"])
    assert len(document["users"][0]["prompt"]["quantiles"]) == 4
    assert table[0] in out.read_text()
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_is_there_is_kept(tmp_path):
    out = tmp_path / "like.toml"
    out.write_text("mine")
    assert isinstance(run("traces/sample.parquet", out).exception, OutputError)
    assert out.read_text() == "mine"
    assert run("traces/sample.parquet", out, "--force").exit_code == 0
    copy = tmp_path / "trace.parquet"
    shutil.copy("traces/sample.parquet", copy)
    fault = run(copy, copy, "--force").exception
    assert isinstance(fault, OutputError)
    assert "is the trace itself" in str(fault)
    assert read_trace(copy).extent().rows == 96


def test_kinds_of_nobodys_requests_come_and_go_when_they_did(trace_of):
    # the first half hour has short requests at 1 a second, the second has long ones at 2
    draws = np.random.default_rng(8)
    gaps = np.concatenate([draws.exponential(1.0, 1_800), draws.exponential(0.5, 3_600)])
    long = np.arange(5_400) >= 1_800
    trace = trace_of(
        arrival_s=np.cumsum(gaps).tolist(),
        prompt_tokens=np.where(long, draws.integers(900, 1_000, 5_400), draws.integers(10, 100, 5_400)),
        output_tokens=np.where(long, draws.integers(500, 600, 5_400), draws.integers(5, 50, 5_400)),
    )
    found = fitted(trace, Wanted())
    assert all(user["name"].startswith("anyone-") for user in found.fit.document["users"])
    assert any("kinds of requests, not users" in sentence for sentence in found.fit.lost)
    assert drawn(found.fit.document)["who"].null_count() == 5_400
    frame = drawn(tomllib.loads(found.text))
    halfway = int(frame["arrival"].max() / 2)
    before, after = (frame.filter(pl.col("arrival") // halfway == half)["prompt_tokens"] for half in (0, 1))
    assert (before < 500).mean() > 0.85
    assert (after > 500).mean() > 0.85


def test_times_to_think_tell_of_no_single_turn(trace_of):
    # thirty sessions of two turns, and one long pause that nobody else had: rounded to two digits
    pauses = [1_000 + 37 * number for number in range(29)] + [987_654]
    trace = trace_of(
        arrival_s=[10 * (row // 2) + row % 2 for row in range(60)],
        session=[f"s{row // 2}" for row in range(60)],
        turn=[row % 2 for row in range(60)],
        think_time_ms=[None if row % 2 == 0 else float(pauses[row // 2]) for row in range(60)],
    )
    quantiles = fit_trace(trace, Wanted()).document["users"][0]["sessions"]["think_ms"]["quantiles"]
    assert quantiles[-1] == 990_000
    assert len(quantiles) <= 30 // 5
    assert "987654" not in fitted(trace, Wanted()).text


def test_names_are_not_in_the_file_by_their_code_either(trace_of):
    names = [f"klasse-{chr(0x3B1 + number)}" for number in range(3)]
    trace = trace_of(arrival_ms=list(range(0, 3_000, 50)), slo=[names[row % 3] for row in range(60)], user=names * 20)
    text = fitted(trace, Wanted(users=3)).text
    assert "klasse" not in text
    assert not re.search(r"\\u|\\x|03[bB]", text)
    document = tomllib.loads(text)
    told = {kind["slo"] for user in document["users"] for kind in [user, *user.get("classes", [])] if "slo" in kind}
    assert told <= {"class-1", "class-2", "class-3"}
    assert {user["name"] for user in document["users"]} <= {"user-1", "user-2", "user-3"}


def test_who_only_joins_the_session_of_another_begins_none_of_his_own(trace_of):
    trace = trace_of(
        arrival_s=[0, 1, 2, 3],
        user=["ada", "ada", "ada", None],
        session=["talk", None, None, "talk"],
    )
    fit = fit_trace(trace, Wanted())
    assert [user["name"] for user in fit.document["users"]] == ["user-1"]
    assert "In 1 session turns are of several users: here all are of who began it." in fit.lost


def test_a_context_holds_the_longest_first_turn_and_a_kind_that_begins_nothing_is_none(trace_of):
    trace = trace_of(
        arrival_s=[0, 1, 2, 3],
        prompt_tokens=[55_001, 10, 55_010, 20],
        output_tokens=[1, 1, 1, 1],
        session=["a", "b", "a", "b"],
        priority=[0, 0, 7, 7],
    )
    (user,) = fit_trace(trace, Wanted()).document["users"]
    assert user["sessions"]["context"] >= user["sessions"]["first"]["quantiles"][-1] + 1
    assert "classes" not in user
    assert user["priority"] == 0
    assert checked_spec(fit_trace(trace, Wanted()).document, "here").users
