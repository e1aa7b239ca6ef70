"""Folders of runs that are broken, partial, old or moved: a report, or a sentence with the place that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from runs import static_batch

from replay.errors import OutputError
from replay.report import write_report

CELL = Path("cells/static-fifo")


def with_manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        change(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return apply


def with_column(name: str, value: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        file = folder / CELL / "requests.parquet"
        pl.read_parquet(file).with_columns(pl.lit(value).alias(name)).write_parquet(file)

    return apply


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (lambda folder: (folder / "manifest.json").write_text(""), "manifest.json: empty, so the run ended before"),
        (lambda folder: (folder / "manifest.json").write_text('{"name'), "manifest.json: not the manifest of a run"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "manifest.json: not the manifest of a run"),
        (lambda folder: (folder / "manifest.json").unlink(), "not the folder of a run, for it holds no manifest.json"),
        (with_manifest(lambda manifest: manifest["cells"].append(manifest["cells"][0])), "two cells are named 'static"),
        (with_manifest(lambda manifest: manifest["cells"][0].pop("mode")), "not the manifest of a run"),
        (with_manifest(lambda manifest: manifest["cells"][0].update(settings=[1])), "settings of 'static-fifo' are no"),
        (with_column("due", "noon"), "requests.parquet: column 'due' is String, not Float64"),
        (with_column("first_token", float("nan")), "column 'first_token' holds NaN or infinity; what is not defined"),
        (with_column("ended", float("inf")), "column 'ended' holds NaN or infinity"),
        (
            lambda folder: (folder / CELL / "steps.parquet").write_bytes(b"PAR1"),
            "steps.parquet: not a readable Parquet",
        ),
    ],
)
def test_what_is_broken_is_a_sentence_and_nothing_is_written(
    tmp_path: Path, broken: Callable[[Path], object], sentence: str
) -> None:
    folder = static_batch(tmp_path)
    broken(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(OutputError) as raised:
        write_report(folder, plots=False)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert sorted(folder.rglob("*")) == before


def strip(manifest: dict[str, Any]) -> None:
    """To what the first version wrote of a run."""
    cells = [{name: cell[name] for name in ("cell", "trace", "mode", "policy")} for cell in manifest["cells"]]
    manifest.clear()
    manifest["cells"] = cells


@pytest.mark.parametrize(
    "change",
    [
        with_manifest(strip),
        with_manifest(lambda manifest: manifest["cells"][0].update(settings=None, of_the_future=1)),
        lambda folder: (folder / CELL / "spans.parquet").unlink(),
        lambda folder: (folder / CELL / "steps.parquet").unlink(),
    ],
    ids=["old", "new", "no spans", "no steps"],
)
def test_what_is_missing_or_new_costs_no_report(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder = static_batch(tmp_path / "run").rename(tmp_path / "moved to")
    change(folder)
    report = write_report(folder, plots=False)
    assert (report.requests, report.completed, report.problems) == (2, 2, [])
    assert "140" in (folder / "comparison.md").read_text(), "two requests of 4 and 10 tokens in 100 ms"


def test_pictures_that_have_no_place_cost_nothing_else(tmp_path: Path) -> None:
    folder = static_batch(tmp_path)
    (folder / "plots").write_text("a file")
    report = write_report(folder)
    (problem,) = report.problems
    assert problem.startswith("no picture could be drawn, for ")
    assert problem in (folder / "comparison.md").read_text()
