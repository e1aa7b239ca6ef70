"""Pictures: one colour and place for each policy, no display, nothing that cannot be drawn, the same bytes twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex
from pictures import ALWAYS, drawn, one_request, two_panels
from runs import MODES, cell_entry, request_row, simulated_run, static_batch, write_manifest, write_tables

from replay.metrics import measure
from replay.plots import draw_all
from replay.plots.view import KNOWN, policy_marks
from replay.report import write_report
from replay.results import read_run


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


@pytest.mark.parametrize("name", ALWAYS)
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
    # its users want service at once, under two policies, for answers of several lengths
    expected = [*ALWAYS, "efficiency", "heat_map", "length_slowdown", "service", "windowed_difference"]
    assert set(bytes_drawn[0]) == {f"{name}.{kind}" for name in expected for kind in ("png", "svg")}


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
