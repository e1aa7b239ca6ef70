"""Pictures: one colour and place for each policy, no display, nothing that cannot be drawn, the same bytes twice."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from runs import (
    MODES,
    cell_entry,
    request_row,
    simulated_run,
    span_row,
    static_batch,
    step_row,
    write_manifest,
    write_tables,
)

from replay.metrics import measure
from replay.plots import draw_all, plots
from replay.plots.canvas import log_ticks, look
from replay.plots.slot_time import Window, choose_window, slot_shares
from replay.plots.view import INVALID, KNOWN, View, policy_marks, views
from replay.report import write_report
from replay.results import read_run


def view(folder: Path) -> View:
    run = read_run(folder)
    return views(run, measure(run))[0]


def drawn(name: str, folder: Path) -> Figure:
    """The figure of one plot, rendered once, so that what only fails while drawing fails here."""
    with look():
        figure = plots[name](view(folder))
        figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def two_panels(folder: Path) -> Path:
    """TTFTs in ms. continuous: fifo 10, sjf 20, priority 30; static, in another order: priority 60, fifo 40; no sjf."""
    cells = []
    for cell, ttft in (
        ("continuous-fifo", 10),
        ("continuous-sjf", 20),
        ("continuous-priority", 30),
        ("static-priority", 60),
        ("static-fifo", 40),
    ):
        first = ttft / 1000
        rows = [request_row(row, user="ana", token_times=[first, first + 0.01, first + 0.02]) for row in range(3)]
        spans = [span_row(row, row, "decode", 0.0, first + 0.02) for row in range(3)]
        write_tables(folder / "cells" / cell, rows, [step_row(0, 0.0, 0.1, running=3)], spans)
        cells.append(cell_entry(cell))
    return write_manifest(folder, cells, rows=3)


def test_a_policy_has_its_colour_and_place_in_every_panel(tmp_path: Path) -> None:
    figure = drawn("latency", two_panels(tmp_path))
    for title, medians, absent in (
        ("continuous", {"fifo": 10, "sjf": 20, "priority": 30}, []),
        ("static", {"fifo": 40, "priority": 60}, ["sjf"]),
    ):
        axes = next(axes for axes in figure.axes if axes.get_title(loc="left") == title)
        places = [label.get_text() for label in figure.axes[-1].get_xticklabels()]  # shared by the panels above
        assert places == ["fifo", "sjf", "priority"]
        found = {}
        for line in axes.lines:
            if line.get_marker() in {marker for _, marker in KNOWN.values()}:
                policy = places[int(line.get_xdata()[0])]
                found[policy] = pytest.approx(line.get_ydata()[0])
                assert to_hex(line.get_color()).upper() == KNOWN[policy][0].upper()
                assert line.get_marker() == KNOWN[policy][1]
        assert found == medians
        missing = [text for text in axes.texts if text.get_text() == "no data"]
        assert [places[int(text.get_position()[0])] for text in missing] == absent


@pytest.mark.parametrize("name", ["distributions", "timeline"])
def test_lines_have_the_colour_of_their_policy_where_one_is_absent(tmp_path: Path, name: str) -> None:
    figure = drawn(name, two_panels(tmp_path))
    colours = {policy: colour.upper() for policy, (colour, _) in KNOWN.items()}
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}
    for title, policies in (("continuous", {"fifo", "sjf", "priority"}), ("static", {"fifo", "priority"})):
        assert {to_hex(line.get_color()).upper() for line in panels[title].lines} == {
            colours[name] for name in policies
        }


def test_marks_do_not_depend_on_what_else_is_run() -> None:
    assert policy_marks(["hybrid", "fifo"]) == {"fifo": KNOWN["fifo"], "hybrid": KNOWN["hybrid"]}
    assert policy_marks(["mine", "fifo"])["fifo"] == KNOWN["fifo"]
    many = policy_marks([f"policy-{number}" for number in range(8)])
    assert len(set(many.values())) == 8
    assert not set(many.values()) & set(KNOWN.values())


def nothing(folder: Path) -> Path:
    write_tables(folder / "cells" / "continuous-fifo", [])
    return write_manifest(folder, [cell_entry("continuous-fifo", slots=None, blocks=None)], rows=0)


def one_request(folder: Path) -> Path:
    rows = [request_row(0, admitted=0.0, token_times=[0.1])]
    spans = [span_row(0, 0, "prefill", 0.0, 0.1)]
    write_tables(folder / "cells" / "continuous-fifo", rows, [step_row(0, 0.0, 0.1, running=1)], spans)
    return write_manifest(folder, [cell_entry("continuous-fifo")], rows=1)


def all_equal(folder: Path) -> Path:
    for policy in ("fifo", "sjf"):
        rows = [request_row(row, token_times=[0.0, 0.0], user="$a_b$ 王") for row in range(5)]
        write_tables(folder / "cells" / f"continuous-{policy}", rows)
    return write_manifest(folder, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=5)


def one_policy_failed(folder: Path) -> Path:
    write_tables(folder / "cells" / "static-fifo", [request_row(row, status="failed", ended=0.1) for row in range(4)])
    rows = [request_row(row, user="ana", token_times=[0.1, 0.2]) for row in range(4)]
    write_tables(folder / "cells" / "static-sjf", rows)
    return write_manifest(folder, [cell_entry("static-fifo"), cell_entry("static-sjf")], rows=4)


@pytest.mark.parametrize("name", list(plots))
@pytest.mark.parametrize("build", [nothing, one_request, all_equal, one_policy_failed, static_batch])
def test_little_to_draw_is_drawn_without_a_warning(tmp_path: Path, name: str, build: Callable[[Path], Path]) -> None:
    figure = drawn(name, build(tmp_path))
    assert figure.axes
    for axes in figure.axes:
        shows = [*axes.lines, *axes.patches, *axes.collections, *axes.texts]
        assert shows, f"{name}: an empty panel without a word"


def test_two_drawings_are_the_same_bytes(tmp_path: Path) -> None:
    folder = simulated_run(tmp_path / "run", modes={"static": MODES["static"]}, policies=("fifo", "sjf"), count=12)
    run = read_run(folder)
    measured = measure(run)
    bytes_drawn = []
    for place in ("first", "second"):
        files, problems = draw_all(run, measured, tmp_path / place)
        assert problems == []
        bytes_drawn.append({file.name: file.read_bytes() for file in files})
    assert bytes_drawn[0] == bytes_drawn[1]
    assert set(bytes_drawn[0]) == {f"{name}.{kind}" for name in plots for kind in ("png", "svg")}


def test_a_plot_that_fails_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    folder = one_request(tmp_path)
    (folder / "cells" / "continuous-fifo" / "spans.parquet").unlink()
    (folder / "plots").mkdir()
    (folder / "plots" / "users.png").mkdir()  # nothing can be written there
    report = write_report(folder)
    assert [problem.split(" could")[0] for problem in report.problems] == ["the plot 'users'"]
    assert {file.name for file in report.files} >= {"summary.parquet", "latency.png", "latency.svg", "slots.png"}
    assert report.problems[0] in (folder / "comparison.md").read_text()


def test_no_display_is_needed_and_no_window_toolkit_is_imported(tmp_path: Path) -> None:
    folder = one_request(tmp_path / "run")
    script = (
        "import sys; from pathlib import Path; from replay.report import write_report\n"
        "report = write_report(Path(sys.argv[1]))\n"
        "assert not report.problems, report.problems\n"
        "toolkits = [name for name in sys.modules if name.split('.')[0] in ('tkinter', 'PyQt6', 'gi', 'wx')]\n"
        "assert not toolkits, toolkits\n"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MPLCONFIGDIR")}
    environment = kept | {"MPLBACKEND": "TkAgg", "HOME": "/proc/nowhere", "XDG_CONFIG_HOME": "/proc/nowhere"}
    command = [sys.executable, "-c", script, str(folder)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (folder / "plots" / "slots.svg").is_file()
    assert mpl.get_backend().lower() == "agg"


def test_slot_time_adds_up(tmp_path: Path) -> None:
    spans = read_run(static_batch(tmp_path)).cells[0].table("spans")
    assert slot_shares(spans, 2, Window(0.0, 0.1, whole=True)) == "66 % of slot time useful, 34 % padding, 0 % idle"
    assert slot_shares(spans, 4, Window(0.05, 0.2, whole=False)) == "8 % of slot time useful, 8 % padding, 84 % idle"


def test_a_short_run_is_shown_whole_and_a_long_one_at_its_busiest_while_requests_arrive(tmp_path: Path) -> None:
    short = read_run(static_batch(tmp_path / "short")).cells[0].table("spans")
    assert choose_window([short], 0.0) == Window(0.0, 0.1, whole=True)
    sparse = [span_row(row, 0, "decode", row * 10.0, row * 10.0 + 1) for row in range(100)]
    crowd = [span_row(100 + row, slot, "decode", 500.0 + row, 501.0 + row) for row in range(60) for slot in (1, 2)]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0)], spans=sparse + crowd)
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1))
    spans = run.cells[0].table("spans")
    window = choose_window([spans], last_arrival=990.0)
    assert not window.whole
    assert window.start <= 500 <= 560 <= window.end
    length = window.end - window.start
    arriving = choose_window([spans], last_arrival=530.0)
    assert (arriving.start, arriving.end) == (pytest.approx(530 - length), pytest.approx(530))
    at_once = choose_window([spans], last_arrival=0.0)
    assert (at_once.start, at_once.end) == (0, pytest.approx(length))


def test_the_picture_of_the_slots_says_what_it_compares_and_what_a_partly_filled_prompt_is(tmp_path: Path) -> None:
    padded = words(drawn("slots", static_batch(tmp_path / "padded")))
    assert "the same trace, the same seconds, under fifo" in padded
    assert "partly filled: the share of the padded prompt that is real" in padded
    assert "partly filled" not in words(drawn("slots", one_request(tmp_path / "plain")))


def test_no_panel_of_the_timeline_cuts_its_lines(tmp_path: Path) -> None:
    cells = []
    for cell, waiting in (("static-fifo", 3), ("continuous-fifo", 40)):
        steps = [step_row(0, 0.0, 1.0, running=1, waiting=waiting, used_blocks=1)]
        write_tables(tmp_path / "cells" / cell, [request_row(0, token_times=[1.0])], steps)
        cells.append(cell_entry(cell))
    figure = drawn("timeline", write_manifest(tmp_path, cells, rows=1))
    for axes in figure.axes:
        highest = max(max(line.get_ydata()) for line in axes.lines)
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] >= highest


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (760, 7100, 10, [500, 1000, 2000, 5000, 10000]),
        (10, 50, 10, [10, 20, 50, 100]),
        (1.1, 4.8, 10, [1, 2, 5, 10]),  # 4.8 is nearer to the edge
        (1.01, 4.5, 10, [0.5, 1, 2, 5]),
        (0.2, 0.9, 7, [0.1, 0.2, 0.5, 1]),
        (55, 9000, 7, [10, 100, 1000, 10000]),  # eight of 1-2-5
        (55, 9000, 10, [50, 100, 200, 500, 1000, 2000, 5000, 10000]),
        (3, 2_000_000, 10, [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7]),
    ],
)
def test_a_log_axis_has_four_ticks_around_its_values(low: float, high: float, most: int, ticks: list[float]) -> None:
    assert log_ticks(low, high, most) == ticks


@pytest.mark.parametrize("name", ["latency", "distributions", "tradeoff"])
def test_a_log_axis_says_so_and_throughput_never_is_one(tmp_path: Path, name: str) -> None:
    """TTFTs from 10 to 60 ms; every request has 10 ms per token."""
    figure = drawn(name, two_panels(tmp_path))
    logarithmic = 0
    for axes in figure.axes:
        for axis, low, high in ((axes.xaxis, *axes.get_xlim()), (axes.yaxis, *axes.get_ylim())):
            label = axis.get_label_text()
            if axis.get_scale() == "log":
                logarithmic += 1
                assert len([tick for tick in axis.get_ticklocs() if low <= tick <= high]) >= 4
            if label:
                assert label.endswith("(log scale)") == (axis.get_scale() == "log")
            if label.startswith("output tokens/s"):
                assert (axis.get_scale(), low) == ("linear", 0)
    assert logarithmic


def late_cell(folder: Path, *, repeats: int) -> Path:
    """static under fifo and sjf; the last repeat of sjf took its arrivals in too late."""
    cells = []
    for policy, repeat in (("fifo", 0), *(("sjf", repeat) for repeat in range(repeats))):
        rows = [request_row(row, user="ana", token_times=[0.1, 0.2]) for row in range(3)]
        spans = [span_row(row, row, "decode", 0.0, 0.2) for row in range(3)]
        name = f"static-{policy}-{repeat}"
        write_tables(folder / "cells" / name, rows, [step_row(0, 0.0, 0.2, running=3)], spans)
        valid = policy == "fifo" or repeat < repeats - 1
        reason = None if valid else "lag p99 is 30.0 ms, over the limit of 10 ms"
        cells.append(cell_entry(name, repeat=repeat, valid=valid, invalid_reason=reason, lag_p99_ms=1 if valid else 30))
    return write_manifest(folder, cells, rows=3)


def words(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text().split()) for text in figure.findobj(Text))


@pytest.mark.parametrize("name", list(plots))
def test_an_invalid_cell_is_named_and_marked_where_it_is_drawn(tmp_path: Path, name: str) -> None:
    said, marked = "invalid: static, sjf (arrivals were taken in too late)", "sjf (invalid)"
    one = words(drawn(name, late_cell(tmp_path / "one", repeats=1)))
    assert ((said in one), (marked in one)) == (
        (name != "slots"),
        (name != "slots"),
    )  # slots shows fifo, which is valid
    two = words(drawn(name, late_cell(tmp_path / "two", repeats=2)))
    shows_one_replay = name in ("slots", "timeline")  # of the arm, and takes the valid one
    assert (said in two, "invalid" in two) == (not shows_one_replay, not shows_one_replay)


def test_an_invalid_cell_is_grey(tmp_path: Path) -> None:
    figure = drawn("latency", late_cell(tmp_path, repeats=1))
    marks = [line for line in figure.axes[0].lines if line.get_marker() in (KNOWN["fifo"][1], KNOWN["sjf"][1])]
    assert [to_hex(line.get_color()).upper() for line in marks] == [KNOWN["fifo"][0].upper(), INVALID.upper()]


def test_no_label_of_the_latencies_touches_a_mark(tmp_path: Path) -> None:
    """With numbers as long as they come: five policies whose TTFTs are near to 40 s."""
    cells = []
    for place, policy in enumerate(KNOWN):
        first = 40 + place / 100
        rows = [request_row(row, token_times=[first, first + 1, first + 2]) for row in range(3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, [step_row(0, 0.0, 43.0, running=3)])
        cells.append(cell_entry(f"continuous-{policy}"))
    figure = drawn("latency", write_manifest(tmp_path, cells, rows=3))
    for axes in figure.axes:
        marks = [line.get_window_extent() for line in axes.lines if line.get_marker() not in ("", "None")]
        labels = [text.get_window_extent() for text in axes.texts]
        assert (len(labels), len(marks)) == (5, 15)
        assert not [label for label in labels for mark in marks if label.overlaps(mark)]


def test_the_timeline_counts_requests_in_whole_numbers(tmp_path: Path) -> None:
    figure = drawn("timeline", one_request(tmp_path))
    assert all(tick == int(tick) for axes in figure.axes[:2] for tick in axes.get_yticks())
