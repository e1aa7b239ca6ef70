"""Pictures of a trace: whatever it holds they are drawn without a warning, say what they show, and replace nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drawn_traces import picture, title, trace_of
from matplotlib.figure import Figure

from replay.errors import OutputError
from replay.plots.traces import check_folder, draw_trace, trace_pictures
from replay.traces.table import Trace

NAMES = ["$a_b$", "<b>&", "王小明", "🦜", "x" * 300, "a\nb\t\x00", "", None, "--<!-- -->", "%s{0}"]
RANDOM = np.random.default_rng(5)
SHARED = [list(range(row % 4)) for row in range(60)]
TRACES = {
    "one request": trace_of([0]),
    "one with a long answer": trace_of([0], prompt_tokens=[1], output_tokens=[100_000], user=["a"]),
    "all at one instant": trace_of([0.0] * 40, user=["a", "b"] * 20),
    "a millisecond": trace_of([0, 0.001], prompt_tokens=[1, 100_000]),
    "a nanosecond": trace_of([0, 1e-9]),
    "a week": trace_of(
        np.sort(RANDOM.uniform(0, 7 * 86_400, 300)).tolist(), user=[str(row % 27) for row in range(300)]
    ),
    "even": trace_of([float(second) for second in range(200)], prompt_tokens=[64] * 200),
    "bursts": trace_of(sorted([0.0, 1e-9, 5.0, 1000.0] * 20)),
    "names and sessions": trace_of(
        [float(row) for row in range(60)],
        block_size=16,
        scope="session",
        prompt_tokens=[64] * 60,
        output_tokens=[200] * 60,
        user=NAMES * 6,
        prefix_hashes=SHARED,
        session=[str(row % 3) for row in range(60)],
        think_time_ms=[1e6] * 60,
    ),
    "hashes at one instant": trace_of([0, 0], block_size=16, prompt_tokens=[16, 16], prefix_hashes=[[1], [1]]),
}


@pytest.mark.parametrize("name", trace_pictures)
@pytest.mark.parametrize("made", TRACES.values(), ids=TRACES)
def test_a_picture_says_what_it_shows_or_why_it_is_not_there(name: str, made: Trace) -> None:
    figure = picture(name, made)
    if not isinstance(figure, Figure):
        assert figure
        return
    assert any(letter.isdigit() for letter in title(figure)), title(figure)
    (text,) = (text for text in figure.texts if text.get_weight() == "bold")
    assert text.get_window_extent().x1 <= figure.bbox.x1
    for axes in figure.axes:
        shows = [*axes.lines, *axes.patches, *axes.collections, *axes.texts]
        assert shows, f"{name}: an empty panel without a word"
        if axes.get_subplotspec() is not None:  # but a colour bar, which has one label
            assert axes.get_ylabel() or axes.get_yticklabels()
        for axis in (axes.xaxis, axes.yaxis):
            for label in axis.get_ticklabels(which="both"):
                assert "mathdefault" not in label.get_text()
    for label in figure.legends:
        extent = label.get_window_extent()
        assert extent.x0 >= 0
        assert extent.x1 <= figure.bbox.x1


def test_the_same_trace_makes_the_same_bytes(tmp_path: Path) -> None:
    drawn = [draw_trace(TRACES["names and sessions"], tmp_path / place) for place in ("first", "second")]
    assert drawn[0].left_out == drawn[1].left_out == {}
    first, second = ({file.name: file.read_bytes() for file in each.files} for each in drawn)
    assert first == second
    assert set(first) == {f"{name}.{kind}" for name in trace_pictures for kind in ("png", "svg")}
    assert {file.name for file in (tmp_path / "first").iterdir()} == set(first)


def test_a_file_that_is_there_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "users.svg").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    with pytest.raises(OutputError, match=r"users.svg: is there already; name another folder, or --force"):
        draw_trace(TRACES["one request"], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    drawn = draw_trace(TRACES["one request"], tmp_path, force=True)
    assert sorted(drawn.left_out) == ["gaps", "prefixes", "rate", "users"]
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in drawn.files} | {"notes.txt"}
    assert (tmp_path / "notes.txt").read_text() == "mine too"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match="taken: is a file; name a folder"):
        check_folder(tmp_path / "taken", force=True)
    with pytest.raises(OutputError, match="cannot be made"):
        draw_trace(TRACES["one request"], tmp_path / "taken" / "below")
