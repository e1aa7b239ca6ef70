"""`replay plot`: what it draws, where it writes, and its sentences for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from pictures import one_request, words
from runs import MODES, cell_entry, request_row, simulated_run, static_batch, write_manifest, write_tables

from replay.cli import main
from replay.errors import ExperimentError, OutputError
from replay.plots import draw, plots
from replay.plots.view import KNOWN, OTHERS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    modes = {name: MODES[name] for name in ("static", "continuous")}
    return simulated_run(tmp_path_factory.mktemp("plotted") / "run", policies=("fifo", "sjf"), modes=modes, count=20)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, stdout and stderr."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["plot", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return (ended.value.code, *capsys.readouterr())


def test_cells_and_a_window_of_the_slots(tmp_path: Path) -> None:
    """Two slots for 150 ms: one decodes for 50 ms, one is padded for 50 ms, and then both are idle."""
    figure = draw(static_batch(tmp_path), "slots", cell="static-fifo", window=(0.05, "200ms"))
    assert "static: 17 % of slot time useful, 16 % padding, 67 % idle" in words(figure)
    assert "under fifo (a part of the run)" in words(figure)
    assert figure.axes[-1].get_xlim() == (0.05, 0.2)


def test_cells_stand_in_the_order_in_which_they_are_asked_for_and_are_told_apart(run: Path) -> None:
    shown = words(draw(run, "slots", cell=["continuous-sjf-0", "static-fifo-0"]))
    assert shown.index("continuous, sjf: ") < shown.index("static, fifo: ")
    assert "under" not in shown
    of_one = words(draw(run, "slots", policy="sjf", mode="continuous"))
    assert "under sjf" in of_one
    assert "continuous: " in of_one


def test_what_is_shown_alone_looks_and_measures_as_among_the_others(run: Path) -> None:
    whole, alone = draw(run, "latency"), draw(run, "latency", policy="sjf", mode=["continuous"])
    assert [axes.get_title(loc="left") for axes in alone.axes] == ["continuous", ""]
    marker = KNOWN["sjf"][1]
    panel = next(axes for axes in whole.axes if axes.get_title(loc="left") == "continuous")
    (before,) = (line for line in panel.lines if line.get_marker() == marker)
    (after,) = (line for line in alone.axes[0].lines if line.get_marker() == marker)
    assert list(after.get_ydata()) == list(before.get_ydata())
    assert to_hex(after.get_color()) == to_hex(before.get_color()) == KNOWN["sjf"][0].lower()


def test_of_many_policies_any_can_be_drawn_and_the_few_keep_their_colours(tmp_path: Path) -> None:
    names = [f"rule{number:02}" for number in range(10)]
    for number, name in enumerate(names):
        rows = [request_row(0, token_times=[1.0 + number / 100, 2.0])]
        write_tables(tmp_path / "cells" / f"continuous-{name}", rows)
    write_manifest(tmp_path, [cell_entry(f"continuous-{name}") for name in names], rows=1)
    assert "rule06" not in words(draw(tmp_path, "distributions"))
    shown = draw(tmp_path, "distributions", policy=["rule06", "rule00"])
    assert {name for name in names if name in words(shown)} == {"rule00", "rule06"}
    entries = {line.get_label(): line.get_color() for line in shown.legends[0].legend_handles}
    assert entries["rule00"] == OTHERS[0][0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["slotz"], "there is no plot 'slotz': did you mean 'slots'?"),
        (["latency", "--policy", "sfj"], "this run has no policy 'sfj': did you mean 'sjf'?"),
        (["latency", "--mode", "statik"], "this run has no mode 'statik': did you mean 'static'?"),
        (["latency", "--trace", "other"], "this run has no trace 'other': known: sample"),
        (["slots", "--cell", "static-fifo"], "there is no cell 'static-fifo' to draw: did you mean 'static-fifo-0'?"),
        (["slots", "--window", "3s", "2s"], "window: 3 s to 2 s is no time; the end comes after the beginning"),
        (["slots", "--window", "2", "2s"], "window: 2 s to 2 s is no time; the end comes after the beginning"),
        (["slots", "--window", "1h", "2h"], "window: nobody held a slot from 3600 s to 7200 s; slots are held from 0"),
        (["slots", "--window", "1x", "2h"], "window: '1x' is not a duration"),
        (["latency", "--cell", "static-fifo-0"], "--cell is an option of slots, not of latency"),
        (["latency", "--width", "0"], "width: 0 inches; a picture has 1 to 100"),
        (["latency", "--height", "nan"], "height: nan inches; a picture has 1 to 100"),
        (["latency", "-o", "latency.pgn"], "latency.pgn: a picture is a .png, .svg or .pdf; did you mean '.png'?"),
        (["latency", "users", "-o", "both.png"], "both.png: 2 pictures are asked for; name a folder for them"),
        ([], "; --list has them all"),
    ],
)
def test_what_is_wrong_is_a_sentence_and_nothing_is_written(
    run: Path, here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status, out, err = called(capsys, run, *arguments)
    assert (status, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
    assert list(here.iterdir()) == []


def test_what_cannot_be_drawn_or_written_is_a_failure(
    run: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, sentence in (
        ([run, "loads"], "nothing in it for the picture 'loads'"),
        ([run, "latency", "-o", "nowhere/x.png"], "nowhere/x.png: there is no folder nowhere"),
        ([here, "latency"], "not the folder of a run"),
    ):
        status, out, err = called(capsys, *arguments)
        assert (status, out) == (1, "")
        assert sentence in err
    assert list(here.iterdir()) == []


def test_only_what_it_drew_is_replaced(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = one_request(tmp_path / "run")
    for kind in ("png", "svg", "pdf"):
        file = here / f"mine.{kind}"
        command = (run, "users", "-o", file)
        file.write_text("somebody's")
        status, _, err = called(capsys, *command)
        assert (status, file.read_text()) == (1, "somebody's")
        assert "is there already, and `replay plot` did not draw it; --force replaces it" in err
        assert called(capsys, *command, "--force") == (0, f"{file}\n", "")
        first = file.read_bytes()
        file.write_bytes(first + b" ")  # so that one sees it replaced
        assert called(capsys, *command)[0] == 0
        assert file.read_bytes() == first, "the same bytes each time"
    assert {file.name for file in here.iterdir()} == {"run", "mine.png", "mine.svg", "mine.pdf"}


def test_pictures_go_into_a_folder_that_is_made_and_those_of_several_traces_have_numbers(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = []
    for trace in ("day one", "a/b"):
        name = f"continuous-fifo-{trace[0]}"
        write_tables(here / "run" / "cells" / name, [request_row(0, token_times=[0.1])])
        entries.append(cell_entry(name, trace=trace))
    run = write_manifest(here / "run", entries, rows=1)
    status, out, _ = called(capsys, run, "users", "-o", "new/")
    assert (status, out.split()) == (0, [f"new/users-{place}.{kind}" for place in (1, 2) for kind in ("png", "svg")])
    status, _, err = called(capsys, run, "users", "-o", "users.png")
    assert (status, "choose one with --trace" in err) == (2, True)
    assert called(capsys, run, "users", "-o", "users.png", "--trace", "a/b")[0] == 0
    with pytest.raises(ExperimentError, match="name one, as trace=: 'day one', 'a/b'"):
        draw(run, "users")
    assert draw(run, "slots", cell="continuous-fifo-a").axes, "a cell says of which trace"


def test_the_size_is_that_asked_for(run: Path) -> None:
    figure = draw(run, "latency", width=5, height=9.5)
    assert tuple(figure.get_size_inches()) == (5, 9.5)
    assert max(map(len, figure.get_suptitle().splitlines())) <= 5 * 9.5
    assert draw(run, "latency").get_figwidth() == 7, "and only then"


def test_every_picture_is_listed_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "--list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(plots)
    (line,) = (line for line in out.splitlines() if line.startswith("slots"))
    assert "Who held which batch slot when. Takes --cell CELL, --window FROM TO." in line
    assert "--window FROM TO" in called(capsys, "-h")[1]


def test_options_and_their_absence_in_a_notebook(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="the picture 'slots' has no option 'windows': did you mean 'window'"):
        draw(run, "slots", windows=(1, 2))
    with pytest.raises(ExperimentError, match="the picture 'latency' has no option 'cell': it takes none"):
        draw(run, "latency", cell="static-fifo-0")
    with pytest.raises(ExperimentError, match="window: 3 is not FROM TO"):
        draw(run, "slots", window=3)
    with pytest.raises(ExperimentError, match="no cell of this run is all of these"):
        draw(two_arms(tmp_path), "latency", mode="static", policy="sjf")
    with pytest.raises(OutputError, match="no cell left any row"):
        draw(write_manifest(tmp_path / "none", [cell_entry("static-fifo")], rows=1), "latency")


def two_arms(folder: Path) -> Path:
    for cell in ("static-fifo", "continuous-sjf"):
        write_tables(folder / "cells" / cell, [request_row(0, token_times=[0.1])])
    return write_manifest(folder, [cell_entry("static-fifo"), cell_entry("continuous-sjf")], rows=1)
