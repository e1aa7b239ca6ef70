"""The figures of the live view: those of the rows, in bounded memory; and frames that fit any terminal."""

from __future__ import annotations

import os
import pty
import termios
import time
from typing import Any

import polars as pl
import pyte
import pytest
from rich.cells import cell_len

from replay.cli.live.history import History, sparkline
from replay.cli.live.lines import fitted, printable
from replay.cli.live.outlook import Outlook, TimeLeft, in_words
from replay.cli.live.sample import Sample
from replay.cli.live.screen import Screen
from replay.cli.live.table import Finished, table
from replay.cli.live.tally import Tally
from replay.cli.live.view import View
from replay.clock import VirtualClock
from replay.contract.simulation import request
from replay.executors.interface import CostModel
from replay.executors.simulated import SimulatedExecutor
from replay.experiment.grid import Cell, cells
from replay.experiment.loading import load_experiment
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.replayer import Progress, Replayer
from replay.request import Workload
from replay.scheduler import Limits, modes, policies


def grid(**settings: Any) -> list[Cell]:
    experiment = load_experiment({"traces": ["traces/sample.parquet"], **settings}, "test")
    return cells(experiment, ["sample"])


def watched(every: int) -> tuple[Tally, pl.DataFrame, pl.DataFrame]:
    """Forty requests on a pool that is too small for them, looked at in every so many turns of the loop and at the
    end; with the rows that they leave."""
    tally, turns, seen = Tally(), 0, []

    def watch(progress: Progress) -> None:
        nonlocal turns
        turns += 1
        seen.append(progress)
        if turns % every == 0:
            tally.look(progress)

    clock, records = VirtualClock(), Records()
    rows = [request(row, 0.004 * row, 30) for row in range(40)]
    cost = CostModel(fixed=0.01, prefill=0.0001, decode=0.001, context=0.0)
    replayer = Replayer(
        workload=Workload(rows, [3 + 10 * (row % 7) for row in range(40)]),
        executor=SimulatedExecutor(cost, clock),
        clock=clock,
        policy=policies["fifo"](),
        mode=modes["continuous"](max_running=6, token_budget=40),
        pool=KVPool(11, 16),
        predictor=predictors["oracle"](),
        records=records,
        limits=Limits(max_waiting=20, timeout=2.0),
        watch=watch,
    )
    assert replayer.run()
    tally.look(seen[-1])
    requests, steps = records.requests.take(), records.steps.take()
    assert requests is not None
    assert steps is not None
    return tally, pl.DataFrame(pl.from_arrow(requests)), pl.DataFrame(pl.from_arrow(steps))


@pytest.mark.parametrize("every", [1, 5, 10**9])
def test_what_the_view_says_is_what_the_rows_say_however_seldom_it_looks(every: int) -> None:
    tally, requests, steps = watched(every)
    completed = requests.filter(status="completed")
    assert dict(requests["status"].value_counts().iter_rows()).keys() == {"completed", "rejected", "timed_out"}
    ttft = (requests["first_token"] - requests["due"]).drop_nulls()
    assert completed.height < len(ttft) < 40, "some timed out in the middle of their answers, some before"
    assert tally.ttft.mean == pytest.approx(ttft.mean())
    for share in (0.5, 0.99):
        assert tally.ttft.quantile(share) == pytest.approx(ttft.quantile(share, interpolation="linear"))
        assert tally.lag.quantile(share) == requests["lag"].quantile(share, interpolation="linear")
    assert (tally.ttft.count, tally.lag.count) == (len(ttft), 40)
    assert (tally.ended, tally.requests, tally.completed) == (40, 40, completed.height)
    assert (tally.running, tally.waiting) == (0, 0)
    assert tally.tokens == steps["new_tokens"].sum() == requests["generated_tokens"].sum()
    assert tally.evictions == steps["evicted"].sum() == requests["evictions"].sum() > 0
    seconds = requests["ended"].max()
    assert tally.output_throughput == pytest.approx(completed["generated_tokens"].sum() / seconds)


def test_the_rate_now_is_that_of_the_last_two_seconds() -> None:
    tally = Tally()

    class Still(Progress):
        used = 3

        @property
        def used_blocks(self) -> int:
            return self.used

    clock = VirtualClock()
    replayer = Replayer(
        workload=Workload([request(0, 0.0)], [1]), executor=SimulatedExecutor(CostModel(fixed=1.0), clock),
        clock=clock, policy=policies["fifo"](), mode=modes["continuous"](), pool=KVPool(12, 16),
        predictor=predictors["oracle"](), records=Records(),
    )  # fmt: skip
    progress = Still(1, replayer.scheduler.state, set())
    progress.now, progress.tokens = 0.00002, 1
    tally.look(progress)
    assert tally.mean_tokens_per_second is None, "or it would be 50,000"
    for now, tokens in ((1.0, 10), (2.0, 20), (3.0, 60), (4.0, 90)):
        progress.now, progress.tokens = now, tokens
        tally.look(progress)
    assert tally.tokens_per_second == 35.0
    assert tally.mean_tokens_per_second == 22.5
    assert tally.kv_use == 0.25
    progress.now, progress.tokens = 4.05, 100  # so short a time says nothing
    tally.look(progress)
    assert tally.tokens_per_second == 35.0
    assert tally.history["tokens"].columns(99) == [10.0] * 12 + [40.0] * 4 + [30.0]  # quarters of a second


def test_quantiles_are_exact_up_to_a_size_and_an_even_sample_from_then_on() -> None:
    sample = Sample(size=100)
    assert (sample.mean, sample.quantile(0.5)) == (None, None)
    for value in range(100, 0, -1):
        sample.add(value)
    assert (sample.quantile(0.5), sample.quantile(0.99), sample.mark) == (50.5, pytest.approx(99.01), "")
    for value in range(101, 10_001):
        sample.add(value)
    assert sample.mark == "~"
    assert sample.mean == 5000.5
    median = sample.quantile(0.5)
    assert median is not None
    assert 3500 < median < 6500, "a sample of the last hundred would say 9,950"
    assert len(sample._values) == 100


def test_a_history_of_a_day_has_as_many_slots_as_that_of_a_minute() -> None:
    history = History(slots=4, finest=1.0)
    for second in range(4):
        history.add(second, second)
    assert history.columns(9) == [0, 1, 2, 3]
    assert history.columns(2) == [0.5, 2.5]
    history.add(4.0, 10)  # two slots become one, of two seconds
    assert history.columns(9) == [0.5, 2.5, 10]
    history.add(15.0, 1)  # then of four; nothing came from 8 s to 12 s, so the figure was what it had been
    assert history.columns(9) == [1.5, 10, 10, 1]
    history.add(86_400.0, 0)
    assert len(history.columns(99)) <= 4


def test_a_sparkline_has_its_lowest_bar_for_nothing_alone() -> None:
    assert sparkline([0, 0.001, 35, 70], 70) == "▁▂▅█"
    assert sparkline([0, 0], 0) == "▁▁"


def test_time_left_is_known_in_the_first_cell_and_learned_from_those_that_ended() -> None:
    some = grid(policies={"fifo": {}, "sjf": {}}, modes={"static": {}, "continuous": {}}, repeats=2)
    assert len(some) == 8
    left = TimeLeft(Outlook("x", some, [60.0] * 8))
    left.began(1, 8)
    assert left.words(0.0) == "at least 8 min left"
    assert left.words(200.0) == "at least 7 min left"
    left.ended(1, 600.0)
    left.began(2, 8)  # static-sjf: like static-fifo; of continuous nothing is known but that it is the same trace
    assert left.words(0.0) == f"about {7 * 600 / 60:.0f} min left"
    for number, seconds in ((2, 300.0), (3, 60.0), (4, 80.0)):
        left.ended(number, seconds)
    left.began(5, 8)  # the second repeat: each cell is like itself
    assert left.words(100.0) == f"about {(600 - 100 + 300 + 60 + 80) / 60:.0f} min left"


def test_on_a_virtual_clock_nothing_is_foretold_before_a_cell_has_ended() -> None:
    left = TimeLeft(Outlook("x", grid(), [0.0] * 15))
    left.began(1, 15)
    assert left.words(1.0) is None
    unknown = TimeLeft()  # of a run whose cells nobody has told
    unknown.began(1, 3)
    assert unknown.words(1.0) is None
    unknown.ended(1, 10.0)
    unknown.began(2, 3)
    assert unknown.words(4.0) == "about 16 s left"
    assert [in_words(seconds) for seconds in (0.4, 89, 600, 7200)] == ["0 s", "89 s", "10 min", "2.0 h"]


def row(number: int, doubt: str | None = None) -> Finished:
    return Finished(number, f"continuous-fifo-max_running={number}-長い名前", "96/96", "1.23 s", "4.56 s", "301", doubt)


def test_the_table_keeps_the_last_cells_and_says_how_many_came_before() -> None:
    rows = [row(number) for number in range(1, 11)]
    lines = ["".join(text for text, _ in line) for line in table(rows, 100, 5)]
    assert lines[0].split() == ["cell", "done", "TTFT", "mean", "p99", "tokens/s", "valid"]
    assert [line.split()[0] for line in lines[1:4]] == ["10", "9", "8"]
    assert lines[4] == "and 7 before"
    assert len(table(rows, 100, 11)) == 11
    assert "before" not in "".join(text for text, _ in table(rows, 100, 11)[-1])
    assert fitted("continuous-fifo-r1", 12) == "conti…ifo-r1"
    assert fitted("short", 7) == "short  "


@pytest.mark.parametrize("columns", [20, 40, 60, 79, 80, 120, 200])
@pytest.mark.parametrize("lines", [3, 9, 15, 24, 60])
def test_a_frame_fits_its_terminal(columns: int, lines: int) -> None:
    tally = watched(7)[0]
    tally.requests = 123_456
    view = View(TimeLeft(Outlook("長い\x1b[2J" * 9, grid(), [60.0] * 15, [], 1, 5.0)), colours=False)
    view.number, view.total, view.cell = 12, 15, grid()[11]
    view.time_left.began(12, 15)
    for number in range(1, 12):
        view.finished.append(row(number, "invalid: lag p99 is 31.7 ms, over the limit of 5 ms" if number % 2 else None))
    for seen in (None, tally):
        view.tally = seen
        frame = view.frame(5.0, columns, lines)
        assert 1 <= len(frame) < lines
        assert all(cell_len(line) < columns for line in frame)
        assert "\x1b" not in "".join(frame)
        assert "continuous" in "".join(frame)[:200]
    if lines >= 15 and columns >= 60:
        text = "\n".join(frame)
        for label in ("requests", "running", "waiting", "KV use", "tokens/s", "TTFT", "lag", "evictions"):
            assert label in text, label
        assert "no:" in text


def test_a_name_cannot_move_the_cursor() -> None:
    assert printable("a\x1b[2Jb\nc") == "a?[2Jb?c"
    assert printable("長い é") == "長い é"


@pytest.fixture
def terminal() -> Any:
    """A terminal of 40 columns and 6 lines: its two ends."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (6, 40))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_frames_are_drawn_over_each_other_and_lines_stay_above(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    shown, screen = pyte.Screen(40, 6), Screen(theirs, "utf-8")
    stream = pyte.ByteStream(shown)

    def seen() -> list[str]:
        stream.feed(os.read(ours, 65536))
        return [line.rstrip() for line in shown.display]

    screen.show(["one", "two"])
    assert seen() == ["one", "two", "", "", "", ""]
    screen.show(["one", "2", "three"])
    assert seen() == ["one", "2", "three", "", "", ""]
    screen.above("a remark")
    assert seen() == ["a remark", "one", "2", "three", "", ""]
    screen.show(["ONE"])
    assert seen() == ["a remark", "ONE", "", "", "", ""]
    termios.tcsetwinsize(theirs, (6, 30))
    screen.show(["narrow"])
    assert seen() == ["narrow", "", "", "", "", ""], "what has moved is cleared away"
    screen.leave()
    screen.show(["below"])
    assert seen() == ["narrow", "below", "", "", "", ""]
    screen.close()
    assert seen() == ["narrow", "", "", "", "", ""]


def test_a_terminal_that_takes_nothing_keeps_nobody_waiting_and_misses_no_line(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    screen = Screen(theirs, "utf-8")
    started = time.monotonic()
    for number in range(3000):  # far more than a terminal holds, and nobody reads
        screen.show([f"frame {number} " + "x" * 20])
    screen.above("a remark")
    assert time.monotonic() - started < 5
    shown = pyte.Screen(40, 6)
    stream, sent = pyte.ByteStream(shown), 0
    while "a remark" not in shown.display[0]:
        data = os.read(ours, 65536)
        sent += len(data)
        stream.feed(data)
        screen.show(["the last frame"])
    assert sent < 40_000, "frames are left out: all of them are 100,000 bytes"
    while "the last frame" not in shown.display[1]:
        stream.feed(os.read(ours, 65536))
    assert [line.rstrip() for line in shown.display] == ["a remark", "the last frame", "", "", "", ""]
