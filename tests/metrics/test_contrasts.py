"""Which arms are held against which."""

from __future__ import annotations

from pathlib import Path

from runs import cell_entry, request_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.arms import Values, arms
from replay.metrics.contrasts import Contrasts, contrasts
from replay.metrics.pairing import pairing
from replay.results import read_run


def of_cells(folder: Path, cells: dict[str, str], ends: dict[str, float] | None = None) -> Contrasts:
    """Contrasts of cells, given their variants; each has one request that ends at 1 s, or as `ends` says."""
    entries = []
    for name, variant in cells.items():
        end = (ends or {}).get(name, 1.0)
        write_tables(folder / "cells" / name, [request_row(0, token_times=[end])])
        entries.append(cell_entry(name, variant=variant))
    run = read_run(write_manifest(folder, entries, rows=1, goals={"e2e_ms": 600}))
    measured = measure(run)
    return contrasts(arms(run), pairing(measured.requests, Values(measured.summary), arms(run)))


def test_policies_are_held_against_fifo_within_each_mode(tmp_path: Path) -> None:
    found = of_cells(tmp_path, dict.fromkeys(("static-sjf", "static-fifo", "continuous-sjf", "continuous-fifo"), ""))
    pairs = [(pair.base.mode, pair.base.policy, pair.other.policy) for pair in found.policies]
    assert pairs == [("static", "fifo", "sjf"), ("continuous", "fifo", "sjf")]
    modes = [(pair.base.mode, pair.other.mode, pair.base.policy) for pair in found.modes]
    assert modes == [("static", "continuous", "sjf"), ("static", "continuous", "fifo")]


def test_without_fifo_the_first_policy_is_the_base(tmp_path: Path) -> None:
    found = of_cells(tmp_path, {"static-sjf": "", "static-fair": ""})
    assert [(pair.base.policy, pair.other.policy) for pair in found.policies] == [("sjf", "fair")]


def test_swept_modes_compare_like_with_like_and_swept_policies_with_the_plain_base(tmp_path: Path) -> None:
    cells = {
        "continuous-fifo-1": "max_running=1",
        "continuous-fifo-8": "max_running=8",
        "continuous-hybrid-1": "max_running=1, band_s=5",
        "continuous-hybrid-8": "max_running=8, band_s=5",
    }
    found = of_cells(tmp_path, cells)
    assert [(pair.base.variant, pair.name) for pair in found.policies] == [
        ("max_running=1", "hybrid (band_s=5)"),
        ("max_running=8", "hybrid (band_s=5)"),
    ]


def test_the_best_setting_is_by_goodput_and_then_by_throughput(tmp_path: Path) -> None:
    cells = {f"continuous-fifo-{size}": f"max_running={size}" for size in (1, 2, 4)}
    found = of_cells(tmp_path, cells, {"continuous-fifo-2": 0.5, "continuous-fifo-4": 0.4})
    assert [arm.variant for arm in found.swept[0]] == ["max_running=4", "max_running=2", "max_running=1"]


def test_of_a_swept_mode_the_best_setting_meets_the_other_modes(tmp_path: Path) -> None:
    cells = {"static-fifo": "", "continuous-fifo-1": "max_running=1", "continuous-fifo-4": "max_running=4"}
    found = of_cells(tmp_path, cells, {"continuous-fifo-4": 0.4})
    assert [(pair.base.setting, pair.other.setting) for pair in found.modes] == [
        ("static", "continuous (max_running=4)")
    ]
