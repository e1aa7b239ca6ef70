"""kv-cache-tester's sessions: sub-agents, local hashes, copies, and starts that are drawn."""

from __future__ import annotations

import json

import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import import_trace


def request(t: float, hashes: list[int] | None, **fields) -> dict:
    whole = {"in": 64 * len(hashes or []) + 10, "out": 20, "hash_ids": hashes, "model": "m", "stop": "", "type": "s"}
    return {"t": t, "think_time": None, "api_time": None, "ttft": None, **whole, **fields}


def session(identity: str, *requests: dict, **fields) -> dict:
    kept = {"models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 0, "system_tokens": 0}
    return {"id": identity, **kept, "requests": list(requests), **fields}


def agent(t: float, *requests: dict, **fields) -> dict:
    return {
        "t": t,
        "type": "subagent",
        "agent_id": "agent_001",
        "status": "completed",
        "requests": list(requests),
        **fields,
    }


@pytest.fixture
def folder(tmp_path):
    def write(*sessions: dict, text: str | None = None):
        path = tmp_path / "sessions"
        path.mkdir()
        for number, one in enumerate(sessions):
            (path / f"{number}.json").write_text(json.dumps(one, indent=1))
        if text is not None:
            (path / "9.json").write_text(text)
        return path

    return write


def rows(trace, *names: str) -> list:
    return trace.frame.select(*names).rows()


def test_a_file_is_a_session_of_one_user_with_times_and_think_times_in_seconds(folder):
    path = folder(session("a", request(0, [1, 2]), request(0.1234567891, [1, 2, 3], think_time=0.0125)))
    trace = import_trace("weka", path / "0.json")
    assert rows(trace, "arrival", "user", "session", "turn", "think_time_ms", "prompt_tokens", "prefix_hashes") == [
        (0, "a", "a", 0, None, 138, [1, 2]),
        (123_456_789, "a", "a", 1, 12.5, 202, [1, 2, 3]),
    ]
    assert (trace.block_size, trace.hash_scope, trace.hash_tail) == (64, "global", "floor")
    assert trace.notes == ["left out: the models, why an answer stopped, and what it took at the time"]


def test_a_sub_agent_is_a_session_beside_its_parents_and_counts_from_its_spawn(folder):
    inner = agent(5, request(0.5, [8]), agent_id="agent_002")
    path = folder(
        session("a", request(0, [1]), agent(10, request(0, [1, 7]), request(2, [1, 7]), inner), request(30, [1]))
    )
    trace = import_trace("weka", path)
    assert rows(trace, "session", "turn", "arrival", "user", "prefix_hashes") == [
        ("a", 0, 0, "a", [1]),
        ("a/agent_001.0", 0, 10 * 10**9, "a", [1, 7]),
        ("a/agent_001.0", 1, 12 * 10**9, "a", [1, 7]),
        ("a/agent_001.0/agent_002.0", 0, 15_500_000_000, "a", [8]),
        ("a", 1, 30 * 10**9, "a", [1]),
    ]
    assert trace.notes == [
        "2 sub-agents, each a session that runs beside its parent's",
        "left out: the models, why an answer stopped, and what it took at the time",
    ]
    trace = import_trace("weka", path, settings={"subagent_times": "session"})
    assert [row[0] for row in rows(trace, "arrival")] == [0, 0, 500_000_000, 2 * 10**9, 30 * 10**9]


def test_local_hashes_of_different_files_are_different_even_in_a_copy(folder):
    one = session("a", request(0, [1, 2]))
    trace = import_trace("weka", folder(one, one, session("b", request(0, [1]), hash_id_scope="local")))
    assert rows(trace, "session", "prefix_hashes") == [("a", [1, 2]), ("a#2", [4, 5]), ("b", [7])]
    assert trace.notes[:2] == [
        "1 session with the id of an earlier one: each is one of its own",
        "all 3 sessions begin at 0: the files do not say when; spread=1800 draws it",
    ]


def test_global_hashes_stay_and_do_not_mix_with_local_ones(folder, tmp_path):
    first, second = (session(name, request(0, [1, 2]), hash_id_scope="global") for name in "ab")
    path = folder(first, second)
    assert rows(import_trace("weka", path), "prefix_hashes") == [([1, 2],), ([1, 2],)]
    (path / "2.json").write_text(json.dumps(session("c", request(0, [1]))))
    with pytest.raises(TraceError, match="some files have local hash ids and some global ones"):
        import_trace("weka", path)


def test_starts_are_drawn_when_asked_for_and_recorded(folder):
    path = folder(session("a", request(0, [1]), request(4, [1])), session("b", request(0, [1])))
    settings = {"spread": 100.0, "seed": 3}
    trace = import_trace("weka", path, settings=settings)
    starts = {session: arrival for session, turn, arrival in rows(trace, "session", "turn", "arrival") if turn == 0}
    assert min(starts.values()) == 0
    assert 0 < max(starts.values()) < 100 * 10**9
    second = next(arrival for session, turn, arrival in rows(trace, "session", "turn", "arrival") if turn == 1)
    assert second - starts["a"] == 4 * 10**9
    assert trace.history[0] == "session starts drawn evenly over 100 s (seed 3)"
    assert rows(import_trace("weka", path, settings=settings), "arrival") == rows(trace, "arrival")
    assert rows(import_trace("weka", path, settings={**settings, "seed": 4}), "arrival") != rows(trace, "arrival")


def test_zero_outputs_are_skipped_and_requests_that_overlap_are_counted(folder):
    path = folder(session("a", request(0, [1], api_time=3.5), request(2, None, out=0), request(1, [1], api_time=0.5)))
    trace = import_trace("weka", path)
    assert trace.skipped == {"zero output tokens": 1}
    assert rows(trace, "turn", "arrival") == [(0, 0), (1, 10**9)]
    assert trace.notes[0] == "1 request that began before the one before had ended: here each waits for it"


def test_a_list_and_lines_of_sessions_are_read_too(tmp_path):
    sessions = [session("a", request(0, [1])), session("b", request(1, [1]))]
    path = tmp_path / "sessions.jsonl"
    for text in (json.dumps(sessions), "\n".join(json.dumps(one) for one in sessions)):
        path.write_text(text)
        trace = import_trace("auto", path)
        assert rows(trace, "session", "prefix_hashes") == [("a", [1]), ("b", [3])]
        assert trace.notes[0] == "the format is weka: no other fits"


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            session("b", request(-1, [1])),
            "1.json, row 0 (counted from 0), column 't': -1, but must be 0 or more seconds",
        ),
        (session("b", request(0, [1], **{"in": "9"})), "column 'in': '9', but must be a whole number"),
        (session("b", request(0, [-1])), "column 'hash_ids': -1, but must be ids of 0 and more"),
        (session("b", request(0, [1]), block_size=0), "column 'block_size': 0, but must be a number of tokens"),
        (session("b", request(0, [1]), hash_id_scope="some"), "column 'hash_id_scope': 'some', but must be local"),
        (
            session("b", request(0, [1]), block_size=32),
            "one hashes blocks of 64 tokens with global scope, the other of 32",
        ),
        (session("b", agent(None)), "column 't': null, but must be the seconds at which a sub-agent was spawned"),
        ({"id": "b", "block_size": 64}, "column 'requests': null, but must be a list"),
    ],
)
def test_a_bad_file_is_named(folder, broken, sentence):
    with pytest.raises(TraceError) as fault:
        import_trace("weka", folder(session("a", request(0, [1])), broken))
    assert sentence in str(fault.value)


def test_what_is_no_session_is_a_sentence(folder, tmp_path):
    with pytest.raises(TraceError, match=r"9\.json, row 0 \(counted from 0\): is not JSON"):
        import_trace("weka", folder(session("a", request(0, [1])), text="{"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="the folder holds no JSON file"):
        import_trace("weka", tmp_path / "empty")
    with pytest.raises(ExperimentError, match="subagent_times: 'never' is neither spawn nor session"):
        import_trace("weka", tmp_path, settings={"subagent_times": "never"})
