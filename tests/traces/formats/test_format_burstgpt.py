"""BurstGPT's CSV: failures, a clock that starts anywhere, and from the third file on sessions with think times."""

from __future__ import annotations

import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import import_trace

FIRST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
THIRD = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"


@pytest.fixture
def file(tmp_path):
    def write(*lines: str):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join(lines))
        return path

    return write


def test_failures_are_skipped_and_the_model_is_the_class(file):
    path = file(
        FIRST,
        "5,ChatGPT,472,18,490,Conversation log",
        "7,ChatGPT,9,0,9,Conversation log",
        "45,GPT-4,1087,230,1317,API log",
    )
    trace = import_trace("auto", path)
    assert trace.frame.select("arrival", "prompt_tokens", "output_tokens", "slo").rows() == [
        (0, 472, 18, "ChatGPT"),
        (40 * 10**9, 1_087, 230, "GPT-4"),
    ]
    assert trace.skipped == {"zero output tokens": 1}
    assert trace.notes == ["the format is burstgpt: no other fits", "columns left out: Log Type"]


def test_the_way_of_calling_may_be_the_class_or_nothing(file):
    path = file(FIRST, "5,ChatGPT,472,18,490,Conversation log")
    trace = import_trace("burstgpt", path, settings={"slo": "Log Type"})
    assert trace.frame["slo"].to_list() == ["Conversation log"]
    assert trace.notes == ["columns left out: Model"]
    assert import_trace("burstgpt", path, settings={"slo": "none"}).frame["slo"].to_list() == [None]
    with pytest.raises(ExperimentError, match="slo: 'model' is none of Model, Log Type, none"):
        import_trace("burstgpt", path, settings={"slo": "model"})


def test_conversations_are_sessions_whose_think_time_counts_from_the_end_of_the_answer(file):
    path = file(
        THIRD,
        "19440110.0,a,43,GPT-4,906,446,1352,Conversation log",
        "19440120.0,,,ChatGPT,50,5,55,API log",
        "19440130.5,b,2,ChatGPT,36,29,65,Conversation log",
        "19440140.0,a,8,ChatGPT,10,7,17,Conversation log",  # before the answer came: it did not wait
        "19440150.0,a,9,GPT-4,20,0,20,Conversation log",  # failed
        "19440200.25,a,3,GPT-4,30,4,34,Conversation log",  # after 140 + 8
    )
    trace = import_trace("auto", path)
    assert trace.frame.select("arrival", "session", "turn", "think_time_ms").rows() == [
        (0, "a", 0, None),
        (10 * 10**9, None, None, None),
        (20_500_000_000, "b", 0, None),
        (30 * 10**9, "a", 1, 0.0),
        (90_250_000_000, "a", 3, 52_250.0),
    ]
    assert trace.skipped == {"zero output tokens": 1}


def test_turns_are_in_order_of_time_in_a_file_that_is_not_and_without_elapsed_times_no_think_time_is_known(file):
    path = file(
        THIRD.replace("Elapsed time,", ""),
        "20.0,a,GPT-4,2,2,4,Conversation log",
        "10.0,a,GPT-4,1,1,2,Conversation log",
        "10.0,a,GPT-4,3,3,6,Conversation log",
    )
    trace = import_trace("burstgpt", path)
    assert trace.frame.select("prompt_tokens", "turn").rows() == [(1, 0), (3, 1), (2, 2)]
    assert trace.frame["think_time_ms"].null_count() == 3


def test_a_bad_value_is_named(file):
    with pytest.raises(TraceError, match=r"row 1 .*, column 'Elapsed time': 'long', but must be a number"):
        import_trace("burstgpt", file(THIRD, "1.0,a,3,G,1,1,2,C", "2.0,a,long,G,1,1,2,C"))
    with pytest.raises(TraceError, match=r"row 0 \(counted from 0\), column 'Timestamp': 'now', but must be a number"):
        import_trace("burstgpt", file(THIRD, "now,a,3,G,1,1,2,C"))


def test_the_sample_is_imported_whole(samples):
    trace = import_trace("auto", samples / "burstgpt" / "BurstGPT_1_first400.csv")
    assert (trace.rows_read, trace.frame.height, trace.span_nanoseconds) == (400, 383, 37_269 * 10**9)
    assert trace.frame["arrival"].head(3).to_list() == [0, 40 * 10**9, 113 * 10**9]
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (208_189, 110_612)
    assert dict(trace.frame["slo"].value_counts().iter_rows()) == {"ChatGPT": 306, "GPT-4": 77}
    assert trace.skipped == {"zero output tokens": 17}
