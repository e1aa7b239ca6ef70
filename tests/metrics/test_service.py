"""Service of users, worked by hand: a prompt token counts 1 and an answer's 2, unless a test says otherwise."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import cell_entry, request_row, span_row, write_manifest, write_tables

from replay.contract.simulation import request, simulate
from replay.metrics import Measured, backlog, measure
from replay.metrics.arms import arms
from replay.metrics.backlog import MOST_USERS, furthest
from replay.metrics.summary import cell_frames
from replay.metrics.windows import fair_shares, window_length
from replay.results import read_run

ONE = "service_difference"
TWO_SECONDS = {"prompt": 1.0, "output": 2.0, "window_s": 2.0}


def measured(
    folder: Path, rows: list[dict[str, Any]], spans: Sequence[dict[str, Any]] = (), **manifest: Any
) -> Measured:
    """One cell with these requests."""
    write_tables(folder / "cells" / "continuous-fifo", rows, [], spans)
    return measure(read_run(write_manifest(folder, [cell_entry("continuous-fifo")], rows=len(rows), **manifest)))


def value(found: Measured, metric: str, statistic: str = "value", by: str = "all", group: str = "all") -> Any:
    line = found.summary.filter(by=by, group=group, metric=metric, statistic=statistic)
    assert len(line) == 1, (metric, statistic, by, group)
    return line["value"].item()


def two_users() -> list[dict[str, Any]]:
    """One slot, served in turn. Each asks at 0 for two requests of 10 prompt tokens and 2 answer tokens.

    ana: 0-2 s, 2-4 s; ben: 4-6 s, 6-8 s; tokens come each second.
    """
    rows = []
    for row, user in enumerate(("ana", "ana", "ben", "ben")):
        start = 2.0 * row
        times = [start + 1.0, start + 2.0]
        rows.append(request_row(row, user=user, prompt_tokens=10, admitted=start, token_times=times))
    return rows


def test_service_weighs_prompt_and_answer_tokens(tmp_path: Path) -> None:
    found = measured(tmp_path, two_users())
    assert value(found, "service") == 4 * (10 + 2 * 2)
    assert value(found, "service", by="user", group="ana") == 28


def test_the_weights_are_those_of_the_experiment(tmp_path: Path) -> None:
    found = measured(tmp_path, two_users(), service={"prompt": 0.5, "output": 3.0, "window_s": None})
    assert value(found, "service", by="user", group="ben") == 2 * (5 + 6)


def test_tokens_from_a_cache_and_tokens_computed_again_are_no_service(tmp_path: Path) -> None:
    row = request_row(
        0, user="ana", prompt_tokens=10, cached_tokens=4, admitted=0.0, token_times=[1.0], recomputed_tokens=50
    )
    assert value(measured(tmp_path, [row]), "service") == 6 + 2


def test_a_request_that_was_not_admitted_received_nothing(tmp_path: Path) -> None:
    row = request_row(0, user="ana", prompt_tokens=10, status="timed_out", ended=3.0)
    assert value(measured(tmp_path, [row]), "service") == 0


def test_the_difference_counts_while_both_have_somebody_waiting(tmp_path: Path) -> None:
    # Both wait from 0; ana's last is admitted at 2. Within: her first prompt (10) and her two tokens (4) - the second
    # comes at 2, before that admission. Later only ben waits.
    found = measured(tmp_path, two_users())
    assert value(found, ONE) == 14
    # 10 from 0 to 1 and 12 from 1 to 2
    assert value(found, "service_difference_mean") == 11


def test_what_was_received_before_both_waited_does_not_count(tmp_path: Path) -> None:
    late = [row | {"due": 1.5, "arrival": 1.5} if row["user"] == "ben" else row for row in two_users()]
    # both wait from 1.5 to 2; in it ana gets the token of 2 s
    assert value(measured(tmp_path, late), ONE) == 2


def test_a_token_computed_before_the_other_came_does_not_count(tmp_path: Path) -> None:
    rows = [row | {"due": 1.0, "arrival": 1.0} if row["user"] == "ben" else row for row in two_users()]
    assert value(measured(tmp_path, rows), ONE) == 2  # that of 2 s; the one of 1 s was computed while ana was alone


def test_an_admission_at_the_instant_at_which_both_come_counts(tmp_path: Path) -> None:
    rows = [row | {"due": 2.0, "arrival": 2.0} if row["row"] != 0 else row for row in two_users()]
    rows.append(request_row(4, user="ana", arrival=2.0, status="timed_out", ended=3.0))
    # at 2 ana has two waiting, one of which is admitted at once (10); until 3, when the other is gone, one token (2)
    assert value(measured(tmp_path, rows), ONE) == 12


def test_each_time_of_waiting_together_counts_anew(tmp_path: Path) -> None:
    rows = [
        request_row(0, user="ana", prompt_tokens=5, admitted=0.0, token_times=[1.0]),
        request_row(1, user="ana", admitted=1.0, token_times=[2.0]),
        request_row(2, user="ben", admitted=9.0, token_times=[9.5]),
        request_row(3, user="ana", arrival=3.0, prompt_tokens=8, admitted=3.0, token_times=[4.0]),
        request_row(4, user="ana", arrival=3.0, admitted=5.0, token_times=[6.0]),
    ]
    # together from 0 to 1: 5 + 2; again from 3 to 5: 8 + 2. Not 7 + 10.
    assert value(measured(tmp_path, rows), ONE) == 10


def test_who_was_evicted_waits_again(tmp_path: Path) -> None:
    # ben waits from 0 on. ana is admitted at once, runs to 1, is put out, and comes back at 3 while cem gets a token.
    rows = [
        request_row(0, user="ana", prompt_tokens=7, admitted=0.0, token_times=[0.5, 4.0]),
        request_row(1, user="ben", status="timed_out", ended=6.0),
        request_row(2, user="cem", prompt_tokens=30, admitted=0.0, token_times=[2.0]),
        request_row(3, user="cem", status="timed_out", ended=6.0),
    ]
    spans = [
        span_row(0, 0, "decode", 0.0, 1.0, ending="evicted"),
        span_row(0, 0, "decode", 3.0, 4.0, ending="completed"),
        span_row(2, 1, "decode", 0.0, 2.0, ending="completed"),
    ]
    frames = next(cell_frames(read_run(_folder(tmp_path, rows, spans))))
    # cem against ben: 30 at 0, 32 from 2 on; ana joins from 1 to 3, when cem gets 2 more than she
    assert frames.backlogs.select("start", "end", "difference").rows() == [
        (0.0, 0.5, 30.0),
        (0.5, 1.0, 30.0),
        (1.0, 2.0, 30.0),
        (2.0, 3.0, 32.0),
        (3.0, 4.0, 32.0),
        (4.0, 6.0, 32.0),
    ]
    without_spans = measured(tmp_path / "without", rows)
    assert value(without_spans, ONE) == 32


def _folder(folder: Path, rows: list[dict[str, Any]], spans: Sequence[dict[str, Any]] = ()) -> Path:
    write_tables(folder / "cells" / "continuous-fifo", rows, [], spans)
    return write_manifest(folder, [cell_entry("continuous-fifo")], rows=len(rows))


@pytest.mark.parametrize("users", [("ana", "ana", "ana", "ana"), (None, None, None, None), ("ana", None, "ana", None)])
def test_without_two_users_there_is_no_difference(tmp_path: Path, users: Sequence[str | None]) -> None:
    rows = [row | {"user": user} for row, user in zip(two_users(), users, strict=True)]
    found = measured(tmp_path, rows, service=TWO_SECONDS)
    for metric in (ONE, "service_difference_mean"):
        assert value(found, metric) is None
    for metric in ("windowed_difference", "service_jain", "service_ratio", "max_min_gap"):
        assert value(found, metric, "mean") is None
        assert value(found, metric, "n") == 0


def test_users_who_never_wait_together_have_no_difference(tmp_path: Path) -> None:
    rows = [request_row(row, user=user, admitted=0.0, token_times=[1.0]) for row, user in enumerate(("ana", "ben"))]
    assert value(measured(tmp_path, rows), ONE) is None


def test_windows_begin_a_tenth_apart_and_lie_within_the_cell(tmp_path: Path) -> None:
    found = measured(tmp_path, two_users(), service=TWO_SECONDS)
    assert found.windows["start"].to_list() == pytest.approx([round(0.2 * number, 9) for number in range(31)])
    assert found.windows["end"][-1] == 8.0


def test_a_window_by_hand(tmp_path: Path) -> None:
    found = measured(tmp_path, two_users(), service=TWO_SECONDS).windows.to_dicts()
    # 0 to 2 s: ana gets 10 + 4 = 14 of the 28 that she asks for, ben nothing of his 28
    first = found[0]
    assert first["users"] == 2
    assert first["difference"] == pytest.approx(min(14, 28) / 2)  # ana got the most: she lacks nothing
    assert first["jain"] == pytest.approx(0.5)
    assert first["ratio"] == 0
    assert first["gap"] == pytest.approx((7 + 7) / 14)
    # 3 to 5 s: ana's last token (2) of the 2 that she still lacks; ben 10 + 2 of his 28
    middle = next(window for window in found if window["start"] == pytest.approx(3.0))
    assert middle["difference"] == pytest.approx(0)  # ana got 10 less, but wanted no more
    assert middle["jain"] == pytest.approx(14**2 / (2 * (2**2 + 12**2)))
    assert middle["ratio"] == pytest.approx(2 / 12)
    assert middle["gap"] == pytest.approx(0)
    # 6 to 8 s: only ben wants anything
    assert found[-1]["users"] == 1
    assert found[-1]["difference"] is None


def test_demand_that_was_withdrawn_is_no_demand_afterwards(tmp_path: Path) -> None:
    rows = [*two_users()[:2], request_row(2, user="ben", prompt_tokens=50, status="timed_out", ended=0.9)]
    found = measured(tmp_path, rows, service=TWO_SECONDS).windows
    assert found["users"].to_list()[:6] == [2, 2, 2, 2, 2, 1]  # that of 1 s finds him gone
    assert found["difference"][0] == pytest.approx(14 / 2)  # he had demand for 52, and got nothing


def test_a_window_is_as_long_as_asked_or_goes_by_the_median_cell() -> None:
    short = pl.DataFrame(
        {"due": [1.0, 2.0], "ended": [None, 21.0], "last_token": [None, 21.0]},
        schema=dict.fromkeys(("due", "ended", "last_token"), pl.Float64),
    )
    long = short.with_columns(ended=pl.lit(4000.0))
    assert window_length([short], None) == 2.0
    assert window_length([short, long], None) == 60.0
    assert window_length([short, short, long], None) == 2.0, "one policy that keeps its users waiting sets no window"
    assert window_length([short, long], 5.0) == 5.0
    assert window_length([short.clear()], None) is None
    ages = short.with_columns(ended=pl.lit(2_000_001.0))
    assert window_length([short, short, ages], None) == 100.0, "of a cell that long no more than 20,000 in a row"


def test_a_window_longer_than_the_cell_measures_nothing(tmp_path: Path) -> None:
    found = measured(tmp_path, two_users(), service={"window_s": 9.0})
    assert found.windows.is_empty()
    assert value(found, "windowed_difference", "max") is None
    assert value(found, ONE) == 14


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_fair_shares_divide_all_and_nobody_could_get_more(demands: list[list[int]], part: list[float]) -> None:
    demand = np.array(demands, dtype=np.float64)
    total = demand.sum(axis=1) * part[: len(demand)]
    shares = fair_shares(demand, total)
    assert shares.sum(axis=1) == pytest.approx(total)
    assert (shares <= demand + 1e-9).all()
    for wanted, got in zip(demand, shares, strict=True):
        short = got[got < wanted - 1e-9]
        assert all(each == pytest.approx(got.max()) for each in short)  # who lacks something has as much as anybody


@settings(max_examples=40)
@given(st.data())
def test_the_furthest_pair_is_that_of_trying_all(data: st.DataObject) -> None:
    users, instants = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 7))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    backlogged = draw.random((users, instants)) < 0.7
    backlogged[:, -1] = False
    prompts, tokens = draw.integers(0, 5, (2, users, instants)).astype(float)
    after = np.cumsum(prompts + tokens, axis=1)
    between = after - prompts
    expected, most = np.full(instants, np.nan), np.full(instants, np.nan)
    for one in range(users):
        for other in range(one):
            since = None
            for now in range(instants):
                apart = between[one] - between[other]
                if since is not None and most[now - 1] is not None:
                    most[now - 1] = np.nanmax([most[now - 1], abs(apart[now] - since)])
                if not (backlogged[one, now] and backlogged[other, now]):
                    since = None
                    continue
                since = apart[now] if since is None else since
                gap = abs(after[one, now] - after[other, now] - since)
                expected[now] = np.nanmax([expected[now], gap])
                most[now] = np.nanmax([most[now], gap])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backlog, "CHUNK", data.draw(st.integers(1, 7)))  # a time of waiting may span several
        difference, reached = furthest(backlogged, between, after)
    np.testing.assert_allclose(difference, expected)
    np.testing.assert_allclose(reached, most)


def test_a_killed_cell_is_measured_as_far_as_it_came(tmp_path: Path) -> None:
    folder = tmp_path / "cells" / "continuous-fifo"
    write_tables(folder, two_users()[:2], part=0)
    entry = cell_entry("continuous-fifo", status="running")
    found = measure(read_run(write_manifest(tmp_path, [entry], rows=4, status="running", service=TWO_SECONDS)))
    assert value(found, "service") == 28  # of the others nothing is known
    assert value(found, "requests", "count") == 4
    assert value(found, ONE) is None


def test_a_user_who_was_never_served_stays_in_the_table(tmp_path: Path) -> None:
    rows = [*two_users(), request_row(4, user="cem", status="rejected", ended=0.0)]
    found = measured(tmp_path, rows)
    assert value(found, "service", by="user", group="cem") == 0
    assert value(found, "starvation_age", "max", by="user", group="cem") == 0


def test_a_round_of_turns_is_closer_than_first_come_first_served(tmp_path: Path) -> None:
    # 20 requests of a heavy user, then one of a light one: fair serves the light one in its turn
    rows = [request(row, 0.0, 4, user="heavy" if row < 20 else "light") for row in range(24)]
    for policy in ("fifo", "fair"):
        left = simulate(rows_of(rows), [8] * 24, policy=policy, mode="continuous", max_running=2, token_budget=64)
        folder = tmp_path / policy / "cells" / "continuous-fifo"
        folder.mkdir(parents=True)
        for table in ("requests", "steps", "spans"):
            getattr(left, table).write_parquet(folder / f"{table}.parquet")
        write_manifest(tmp_path / policy, [cell_entry("continuous-fifo")], rows=24)
    fifo, fair = (measure(read_run(tmp_path / policy)) for policy in ("fifo", "fair"))
    assert value(fair, ONE) < value(fifo, ONE)
    assert value(fair, "windowed_difference", "max") < value(fifo, "windowed_difference", "max")


def rows_of(rows: list[Any]) -> list[Any]:
    return [request(row.row, row.arrival, row.prompt_tokens, user=row.user) for row in rows]


def test_many_users_and_many_requests_are_measured_in_seconds(tmp_path: Path) -> None:
    count, users = 20_000, 3_000
    draw = np.random.default_rng(1)
    rows = []
    for row in range(count):
        due, wait = row * 0.01, float(draw.exponential(20))
        times = [round(due + wait + 0.03 * token, 6) for token in range(1, 21)]
        user = f"user {row % users}"
        rows.append(request_row(row, user=user, arrival=due, admitted=due + wait, token_times=times))
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=count))
    began = time.perf_counter()
    frames = next(cell_frames(run))
    assert time.perf_counter() - began < 60  # some seconds; a machine that does other things besides may be slow
    assert frames.windows["users"].max() > MOST_USERS
    assert not frames.backlogs.is_empty()
    assert math.isfinite(frames.windows["gap"].max())  # type: ignore[arg-type]  # a column of numbers


def test_an_arm_of_a_run_without_requests_measures_nothing(tmp_path: Path) -> None:
    found = measured(tmp_path, [])
    assert value(found, "service") == 0
    assert value(found, ONE) is None
    assert len(arms(read_run(tmp_path))) == 1
