"""Anonymized traces: what is replaced, what stays, and that nothing of the old is left in the file that is written."""

from __future__ import annotations

import json

import polars as pl
import pyarrow.parquet as pq
import pytest

from replay.traces.reading import read_trace
from replay.traces.transforms import apply_transforms, parse_transforms
from replay.traces.writing import write_trace

SECRETS = ("ada@acme.example", "bob@acme.example", "thread-9", "req-77", "gold-contract", "acme.csv", "say the word")
SECRETS += ("deadbeef", "40404040", "-7878787878")


def applied(trace, *entries):
    return apply_transforms(trace, parse_transforms(entries))


def column(trace, name) -> list:
    return trace.frame[name].to_list()


@pytest.fixture
def secret(trace_of):
    return trace_of(
        metadata={
            "block_size": "2",
            "history": json.dumps(
                [
                    "imported as azure from acme.csv (sha256 deadbeef)",
                    'without_users = ["bob@acme.example"]: rows 9 -> 8',
                    "by ada@acme.example",
                ]
            ),
        },
        arrival_s=[0, 1, 2, 3, 4],
        prompt_tokens=[4, 2, 3, 9, 1],
        user=["bob@acme.example", None, "ada@acme.example", "bob@acme.example", "carl@acme.example"],
        session=["thread-9", None, "thread-9", None, None],
        turn=[0, None, 1, None, None],
        slo=[None, "gold-contract", None, "none of it", None],
        request_id=["req-77", "req-3", "req-5", "req-6", "req-8"],
        priority=[3, None, 1, None, 0],
        prompt=["say the word", None, None, None, "x"],
        prompt_token_ids=[None, None, [1, 40404040, 3], None, None],
        prefix_hashes=[[-7878787878, 5], None, [-7878787878, 9], [], [5]],
    )


def test_names_and_hashes_are_numbered_in_order_of_first_arrival(secret):
    hidden = applied(secret, {"anonymize": True})
    assert column(hidden, "user") == ["user-1", None, "user-2", "user-1", "user-3"]
    assert column(hidden, "session") == ["session-1", None, "session-1", None, None]
    assert column(hidden, "slo") == [None, "class-1", None, "class-2", None]
    assert column(hidden, "request_id") == ["0", "1", "2", "3", "4"]
    assert column(hidden, "prefix_hashes") == [[0, 1], None, [0, 2], [], [1]]
    assert column(hidden, "prompt") == column(hidden, "prompt_token_ids") == [None] * 5
    for name in ("arrival", "prompt_tokens", "output_tokens", "turn", "priority"):
        assert column(hidden, name) == column(secret, name)
    assert hidden.changes[0].details == (
        "3 user names replaced",
        "1 session name replaced",
        "2 slo names replaced",
        "prompt of 2 requests left out",
        "prompt_token_ids of 1 request left out",
        "3 hashes renumbered",
    )


def test_what_is_to_be_kept_is_kept(secret):
    kept = applied(secret, {"anonymize": {"keep": ["slo", "user"]}})
    for name in ("slo", "user"):
        assert column(kept, name) == column(secret, name)
    assert column(kept, "session")[0] == "session-1"


def test_a_trace_without_names_stays_as_it_is(trace_of):
    trace = trace_of(arrival_s=[0, 1])
    hidden = applied(trace, {"anonymize": True})
    assert hidden.frame.equals(trace.frame)
    assert hidden.changes[0].sentence() == "anonymize = true: there were no names"


def test_nothing_of_the_old_is_left_in_the_file(secret, tmp_path):
    out = tmp_path / "out.parquet"
    hidden = applied(
        secret,
        {"derive_priority": {"users": {"ada@acme.example": 2}}},
        {"without_users": ["carl@acme.example"]},
        {"speed": 2.0},
        {"rate": "2x"},
        {"window": ["0s", "1h"]},
        {"anonymize": True},
    )
    hidden.history += [change.sentence() for change in hidden.changes]
    write_trace(hidden, out)
    table = pq.read_table(out)
    everything = [str(table.to_pylist()), str(pq.read_metadata(out).to_dict()), str(pq.read_schema(out).metadata)]
    plain = tmp_path / "plain.parquet"
    pq.write_table(table, plain, compression="none", use_dictionary=False)
    everything += [file.read_bytes().decode("latin-1") for file in (out, plain)]
    for secret_text in (*SECRETS, "carl@acme.example", "acme", "trace.parquet"):
        assert not any(secret_text in each for each in everything), secret_text
    history = read_trace(out).history
    assert history[:3] == [
        "imported as azure; the rest is left out to anonymize",
        "without_users; the rest is left out to anonymize",
        "left out to anonymize",
    ]
    assert [line.split(":")[0] for line in history[3:]] == [
        'derive_priority = "left out to anonymize"',
        'without_users = "left out to anonymize"',
        "speed = 2.0",
        'rate = "2x"',
        'window = ["0s", "1h"]',
        "anonymize = true",
    ]
    assert history[3].endswith(": more is left out to anonymize")
    assert hidden.notes == []


def test_what_was_merged_is_not_named(secret, parquet):
    parquet("acme-batch.parquet", arrival_s=[0])
    hidden = applied(secret, {"merge": "acme-batch.parquet"}, {"anonymize": True})
    assert column(hidden, "user")[:2] == ["user-1", "user-2"]
    merged, last = (change.sentence() for change in hidden.changes)
    assert merged.startswith('merge = "left out to anonymize": rows 5 -> 6')
    assert "acme" not in merged + last + str(hidden.history) + str(hidden.notes)


def test_prefixes_are_shared_as_before(trace_of):
    lists = [[9, 4, 2**62], [9, 4], [-5], [9, 7], None, []]
    trace = trace_of(metadata={"block_size": "1"}, arrival_s=list(range(6)), prompt_tokens=[3] * 6, prefix_hashes=lists)
    hidden = applied(trace, {"limit": 5}, {"anonymize": True})
    assert column(hidden, "prefix_hashes") == [[0, 1, 2], [0, 1], [3], [0, 4], None]
    assert hidden.frame.schema["prefix_hashes"] == pl.List(pl.Int64)
