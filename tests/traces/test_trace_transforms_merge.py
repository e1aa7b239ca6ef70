"""Several traces as one: order, names, hashes that do not meet, where files lie, and what is said of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from replay.errors import ExperimentError, TraceError
from replay.experiment.loading import load_experiment
from replay.runner import open_traces
from replay.traces.scratch import Scratch
from replay.traces.transforms import apply_transforms, parse_transforms


def applied(trace, *entries, folder=None):
    return apply_transforms(trace, parse_transforms(entries, folder))


def column(trace, name) -> list:
    return trace.frame[name].to_list()


def hashes(trace, user) -> set[int]:
    rows = trace.frame.filter(user=user)["prefix_hashes"].drop_nulls().to_list()
    return set(chain.from_iterable(rows))


@pytest.fixture
def chat(trace_of, parquet):
    """A trace, and beside it `batch.parquet`, both with requests at 0 and at 2 seconds."""
    parquet(
        "batch.parquet",
        metadata={"history": '["imported as azure from b.csv"]'},
        arrival_s=[10, 12, 12],
        output_tokens=[5, 0, 6],
        user=["ada", "x", None],
        session=["s", None, None],
        request_id=["0", "1", "2"],
        max_tokens=[9, None, None],
    )
    return trace_of("chat.parquet", arrival_s=[0, 1, 2], user=["ada", None, "bob"], session=["s", "s", None])


def test_arrivals_begin_together_and_ties_go_by_the_order_of_the_traces(chat):
    merged = applied(chat, {"merge": ["batch.parquet"]})
    assert column(merged, "request_id") == ["chat/0", "batch/0", "chat/1", "chat/2", "batch/2"]
    assert column(merged, "arrival") == [at * 10**9 for at in (0, 0, 1, 2, 2)]
    late = applied(chat, {"merge": {"traces": ["batch.parquet"], "offset": "1s"}})
    assert column(late, "request_id") == ["chat/0", "chat/1", "batch/0", "chat/2", "batch/2"]
    assert column(late, "arrival") == [at * 10**9 for at in (0, 1, 1, 2, 3)]


def test_of_many_that_arrive_at_once_those_of_a_scan_keep_their_order(trace_of):
    trace = trace_of("a.parquet", arrival_s=[n // 100 for n in range(300)])
    scratch = Scratch()
    scan = replace(trace, rows=scratch.spooled(trace.rows), large=True, scratch=scratch)
    expected = [
        f"{name}/{n}" for second in range(3) for name in ("a", "a-2") for n in range(100 * second, 100 * second + 100)
    ]
    for each in (trace, scan):
        assert column(applied(each, {"merge": "a.parquet"}), "request_id") == expected


def test_users_and_sessions_are_kept_apart_and_nobody_is_a_user_of_the_traces_name(chat):
    merged = applied(chat, {"merge": "batch.parquet"})
    assert column(merged, "user") == ["chat/ada", "batch/ada", "chat", "chat/bob", "batch"]
    assert column(merged, "session") == ["chat/s", "batch/s", "chat/s", None, None]
    assert column(merged, "max_tokens") == [None, 9, None, None, None]
    assert (merged.rows_read, merged.skipped, merged.name) == (6, {"zero output tokens": 1}, "chat")
    assert merged.history == ["batch: imported as azure from b.csv"]
    digest = merged.changes[0].details[1].split("sha256 ")[1]
    assert merged.changes[0].details == (
        "users, sessions and ids are chat/... and batch/...",
        f"batch: 2 requests of batch.parquet (sha256 {digest}",
    )
    assert len(digest) == 17


def test_the_same_trace_twice_has_two_names(chat):
    merged = applied(chat, {"merge": ["chat.parquet", "chat.parquet"]})
    assert column(merged, "user")[:3] == ["chat/ada", "chat-2/ada", "chat-3/ada"]
    again = applied(chat, {"merge": ["chat.parquet"]}, {"merge": ["chat.parquet"]})
    assert column(again, "user")[:3] == ["chat/chat/ada", "chat/chat-2/ada", "chat-2/ada"]
    assert again.frame["request_id"].is_unique().all()


def test_no_prompt_of_one_trace_begins_like_one_of_another(trace_of):
    known = {"arrival_s": [0, 1], "prompt_tokens": [8, 4], "prefix_hashes": [[0, 1], [0]]}
    trace = trace_of("a.parquet", {"block_size": "4"}, **known)
    merged = applied(trace, {"merge": ["a.parquet", "a.parquet"]}, {"merge": ["a.parquet"]})
    owners = ["a/a", "a/a-2", "a/a-3", "a-2"]
    assert (merged.block_size, merged.hash_scope) == (4, "global")
    found = [hashes(merged, owner) for owner in owners]
    assert [len(each) for each in found] == [2, 2, 2, 2]
    assert len(set().union(*found)) == 8
    own = merged.frame.filter(user="a-2")["prefix_hashes"].to_list()
    assert own[0][:1] == own[1], "within a trace, what is equal stays equal"
    assert column(applied(trace, {"merge": ["a.parquet"]}), "prefix_hashes")[0] == [0, 1], "the first keeps its own"


def test_hashes_of_sessions_are_global_beside_global_ones(trace_of, parquet):
    known = {"arrival_s": [0, 1, 2], "prompt_tokens": [4, 4, 4], "prefix_hashes": [[0], [0], [0]]}
    parquet("b.parquet", {"block_size": "4", "hash_scope": "session"}, **known, session=["s", "s", "t"])
    merged = applied(trace_of("a.parquet", {"block_size": "4"}, **known), {"merge": ["b.parquet"]})
    s, t = (set(merged.frame.filter(session=f"b/{name}")["prefix_hashes"].explode()) for name in "st")
    assert (len(s), len(t), len(s | t | {0})) == (1, 1, 3)
    assert merged.hash_scope == "global"
    both = trace_of("c.parquet", {"block_size": "4", "hash_scope": "session"}, **known, session=["s", "s", "t"])
    assert applied(both, {"merge": ["b.parquet"]}).hash_scope == "session"


def test_blocks_of_two_sizes_are_refused_with_a_way_out(trace_of, parquet):
    known = {"arrival_s": [0], "prompt_tokens": [4], "prefix_hashes": [[7]]}
    parquet("b.parquet", {"block_size": "512"}, **known)
    trace = trace_of("a.parquet", {"block_size": "16"}, **known)
    with pytest.raises(TraceError) as fault:
        applied(trace, {"merge": ["b.parquet"]})
    assert str(fault.value).endswith(
        "merge: a hashes blocks of 16 tokens, b hashes blocks of 512 tokens; leave all hashes out with "
        "{ merge = { traces = [...], hashes = false } }"
    )
    without = applied(trace, {"merge": {"traces": ["b.parquet"], "hashes": False}})
    assert (without.block_size, column(without, "prefix_hashes")) == (None, [None, None])


def test_a_trace_lies_beside_the_experiment_or_the_trace_or_here(chat, parquet, tmp_path, monkeypatch):
    parquet("elsewhere/batch.parquet", arrival_s=[0], user=["from elsewhere"])
    parquet("elsewhere/only.parquet", arrival_s=[0])
    entry = {"merge": ["batch.parquet"]}
    assert "batch/ada" in column(applied(chat, entry), "user")
    assert "batch/from elsewhere" in column(applied(chat, entry, folder=tmp_path / "elsewhere"), "user")
    with pytest.raises(TraceError) as fault:
        applied(chat, {"merge": ["only.parquet"]})
    looked = f"looked for {tmp_path / 'only.parquet'}, only.parquet"
    assert str(fault.value) == f"{chat.path}: merge: 'only.parquet' does not exist ({looked})"
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert applied(chat, {"merge": ["only.parquet"]}).extent().rows == 4


def test_an_experiment_finds_what_it_merges_beside_itself(chat, parquet, tmp_path):
    parquet("experiments/late.parquet", arrival_s=[0])
    document = {
        "traces": [str(chat.path)],
        "transforms": [{"merge": ["late.parquet"]}],
        "engine": {"kind": "simulated"},
    }
    experiment = load_experiment(document, "x.toml", tmp_path / "experiments")
    (trace,) = open_traces(experiment)
    assert trace.extent().rows == 4
    with pytest.raises(ExperimentError, match=r"transforms\[0\]: merge: 3 is not a list of traces"):
        load_experiment({**document, "transforms": [{"merge": 3}]}, "x.toml", tmp_path)
