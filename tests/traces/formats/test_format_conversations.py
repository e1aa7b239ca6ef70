"""Text without token counts: conversations as ShareGPT and others write them, and LMCache's traces of agents."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import polars as pl
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import import_trace

SHAREGPT = {
    "id": "a",
    "conversations": [
        {"from": "gpt", "value": "Before anybody asked"},  # 20 characters
        {"from": "human", "value": "h" * 11},  # with its line break 12: the prompt has 32
        {"from": "gpt", "value": "g" * 7},  # the prompt after it 40 + 1 + 20 ...
        {"from": "human", "value": "k" * 23},
        {"from": "gpt", "value": "l" * 9},
        {"from": "human", "value": "and then?"},
    ],
}


def write(folder: Path, content: object, name: str = "talk.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def read(path: Path, form: str = "sharegpt", **settings: Any) -> Any:
    return import_trace(form, path, settings={"rate": 2.0, **settings} if form == "sharegpt" else settings)


def test_each_answer_is_a_request_whose_prompt_is_all_that_was_said_before(tmp_path: Path) -> None:
    trace = read(write(tmp_path, [SHAREGPT]), characters_per_token=4.0, block_size=4)
    # 20 + 1 + 11 = 32 characters are 8 tokens; 32 + 1 + 7 + 1 + 23 = 64 are 16; answers of 7 and 9 are 2 and 3
    assert trace.frame.select("prompt_tokens", "output_tokens", "turn").rows() == [(8, 2, 0), (16, 3, 1)]
    first, second = trace.frame["prefix_hashes"].to_list()
    assert (len(first), len(second), second[:2]) == (2, 4, first)
    assert trace.skipped == {"answer without a question": 1, "question without an answer": 1}
    assert trace.frame["session"].to_list() == ["a", "a"]
    assert (trace.block_size, trace.hash_tail) == (4, "floor")
    said = [
        "arrivals are drawn, not measured: 2 sessions a second, Poisson arrivals, seed 0",
        "tokens are an estimate, of 4 characters each; a tokenizer counts them",
    ]
    assert trace.notes == said
    assert trace.history[:2] == said


def test_the_text_itself_is_kept_if_it_is_asked_for(tmp_path: Path) -> None:
    trace = read(write(tmp_path, [SHAREGPT]), text=True)
    assert trace.frame["prompt"].to_list()[0] == "Before anybody asked\n" + "h" * 11
    assert trace.frame["prefix_hashes"].to_list() == [None, None]


def test_conversations_that_begin_alike_share_their_first_blocks(tmp_path: Path) -> None:
    """Blocks of 64 characters: a system's, the line break and 63 of a question. Which one came before it counts."""
    fine = [{"type": "text", "text": "fine"}, {"type": "image_url"}]
    talks = [
        {
            "messages": [
                {"role": "system", "content": system * 64},
                {"role": "user", "content": question * 64},
                {"role": "assistant", "content": fine},
            ]
        }
        for system, question in ("sx", "sy", "sx", "tx")
    ]
    trace = read(write(tmp_path, "\n".join(map(json.dumps, talks)), "talk.jsonl"))
    one, other, same, after = trace.frame["prefix_hashes"].to_list()
    assert (one[0] == other[0], one[1] == other[1], one == same) == (True, False, True)
    assert (one[0] == after[0], one[1] == after[1]) == (False, False)
    assert trace.frame["output_tokens"].to_list() == [1, 1, 1, 1]
    assert trace.frame["session"].n_unique() == 4


def test_lmsys_as_parquet_and_ids_that_stand_there_twice(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    frame = pl.DataFrame({"conversation_id": ["c", "c"], "model": ["m", "m"], "conversation": [talk, talk + talk]})
    frame.write_parquet(tmp_path / "lmsys.parquet")
    trace = read(tmp_path / "lmsys.parquet", think_ms=100.0)
    assert sorted(trace.frame.select("session", "turn").rows()) == [("c", 0), ("c#2", 0), ("c#2", 1)]
    assert trace.frame.filter(turn=1)["think_time_ms"].item() > 0


def test_arrivals_are_those_of_the_process_that_is_declared_and_the_same_every_time(tmp_path: Path) -> None:
    talk = {"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]}
    path = write(tmp_path, [talk] * 4_000)
    arrivals = read(path, rate=50.0, seed=3).frame["arrival"].to_list()
    gaps = [(late - early) / 1e9 for early, late in pairwise(arrivals)]
    assert mean(gaps) == pytest.approx(1 / 50, rel=4 / math.sqrt(len(gaps)))
    assert stdev(gaps) / mean(gaps) == pytest.approx(1, abs=0.1)
    assert arrivals == read(path, rate=50.0, seed=3).frame["arrival"].to_list()
    assert arrivals != read(path, rate=50.0, seed=4).frame["arrival"].to_list()
    even = read(path, rate=50.0, burstiness=0.1).frame["arrival"].to_list()
    gaps = [late - early for early, late in pairwise(even)]
    assert stdev(gaps) / mean(gaps) == pytest.approx(0.1, abs=0.01)


def test_a_rate_is_asked_for_and_wrong_messages_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, [SHAREGPT])
    for form in ("sharegpt", "auto"):
        with pytest.raises(ExperimentError, match=r"talk\.json: .* import them as sharegpt, .* such as -o rate=2"):
            import_trace(form, path)
    with pytest.raises(TraceError, match=r"row 1 .*, column 'conversations': 5, but must be a list of objects"):
        read(write(tmp_path, [SHAREGPT, {"conversations": 5}]))
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\): is not JSON, or the file ends within it"):
        read(write(tmp_path, json.dumps([SHAREGPT, SHAREGPT])[:-9]))
    with pytest.raises(ExperimentError, match=r"tokenizer: .*absent is no folder or model with one that is here"):
        read(path, tokenizer=str(tmp_path / "absent"))


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """A folder with a tokenizer that knows words."""
    words = Tokenizer(models.WordLevel({"?": 0, "one": 1, "two": 2, "three": 3}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(tmp_path / "words")
    return str(tmp_path / "words")


def test_a_tokenizer_counts_tokens(tmp_path: Path, tokenizer: str) -> None:
    talk = {"conversations": [{"from": "human", "value": "one two two"}, {"from": "gpt", "value": "three one"}] * 2}
    trace = read(write(tmp_path, [talk]), tokenizer=tokenizer, block_size=2)
    assert trace.frame.select("prompt_tokens", "output_tokens").rows() == [(3, 2), (8, 2)]
    first, second = trace.frame["prefix_hashes"].to_list()
    assert (len(first), len(second), second[:1]) == (1, 4, first)
    assert trace.notes[1] == "tokens are counted by the tokenizer words"


def agent(**fields: Any) -> str:
    return json.dumps(
        {"timestamp": 1760428436442742, "input": "a" * 128, "output": "b" * 5, "session_id": "s", **fields}
    )


def test_lmcaches_agents_have_microseconds_and_share_what_they_begin_with(tmp_path: Path) -> None:
    lines = [
        agent(timestamp=1760428438776726, input="a" * 128 + "c" * 70),
        agent(),
        agent(timestamp=1760428438776727, output=""),
        agent(timestamp=1760428438776728, input=""),
    ]
    trace = import_trace("auto", write(tmp_path, "\n".join(lines), "trace.jsonl"))
    assert trace.frame["arrival"].to_list() == [0, 2_333_984_000]
    assert trace.frame.select("prompt_tokens", "output_tokens", "session").rows() == [(32, 2, "s"), (50, 2, "s")]
    first, second = trace.frame["prefix_hashes"].to_list()
    assert (len(first), len(second), second[:2]) == (2, 3, first)
    assert trace.skipped == {"zero output tokens": 1, "zero prompt tokens": 1}
    assert "1 row out of order: sorted by arrival" in trace.notes


def test_its_times_in_seconds_and_its_text_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join(agent(timestamp=time) for time in (0, 120)), "trace.jsonl")
    trace = read(path, "lmcache", unit="s", text=True)
    assert trace.frame["arrival"].to_list() == [0, 120 * 10**9]
    assert trace.frame["prompt"].to_list() == ["a" * 128] * 2
    with pytest.raises(TraceError, match=r"row 0 .*column 'input': \['x'\], but must be text"):
        read(write(tmp_path, agent(input=["x"]), "trace.jsonl"), "lmcache")
