"""A policy's own settings, swept: they belong to the policy's name, not to its mode's."""

from __future__ import annotations

from pathlib import Path

from runs import cell_entry, request_row, write_manifest, write_tables

from replay.experiment.grid import cells
from replay.experiment.loading import load_experiment
from replay.metrics import measure
from replay.metrics.arms import arms
from replay.plots.view import views
from replay.report import write_report
from replay.results import read_run

NAMES = ["fifo", "sjf (ageing=0.0)", "sjf (ageing=2.0)"]


def swept(folder: Path) -> Path:
    """fifo beside two settings of sjf, each with four slots and with eight."""
    entries = []
    for slots in (4, 8):
        for policy, own in (("fifo", ""), ("sjf", "ageing=0.0"), ("sjf", "ageing=2.0")):
            variant = ", ".join(part for part in (f"max_running={slots}", own) if part)
            name = f"continuous-{policy}-{slots}{own}"
            write_tables(folder / "cells" / name, [request_row(row, token_times=[0.1 * slots]) for row in range(4)])
            entries.append(cell_entry(name, variant=variant, policy_variant=own))
    return write_manifest(folder, entries, rows=4)


def test_the_grid_says_which_part_of_a_variant_is_the_policys(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").touch()
    declared = {
        "traces": ["t.parquet"],
        "modes": {"continuous": {"max_running": [4, 8]}},
        "policies": {"fifo": {}, "sjf": {"ageing": [0.0, 2.0]}},
    }
    grid = cells(load_experiment(declared, "x.toml", tmp_path), ["t"])
    assert [(cell.policy.name, cell.variant, cell.policy_variant) for cell in grid[:3]] == [
        ("fifo", "max_running=4", ""),
        ("sjf", "max_running=4, ageing=0.0", "ageing=0.0"),
        ("sjf", "max_running=4, ageing=2.0", "ageing=2.0"),
    ]


def test_an_arm_is_named_with_its_policys_settings_and_its_mode_without_them(tmp_path: Path) -> None:
    found = arms(read_run(swept(tmp_path)))
    assert [arm.policy for arm in found] == NAMES * 2
    assert list(dict.fromkeys(arm.setting for arm in found)) == [
        "continuous (max_running=4)",
        "continuous (max_running=8)",
    ]


def test_the_tables_and_the_pictures_name_it_so(tmp_path: Path) -> None:
    write_report(swept(tmp_path), plots=False)
    text = (tmp_path / "comparison.md").read_text()
    assert "| continuous (max_running=4) | sjf (ageing=2.0) |" in text
    assert "(max_running=4, ageing" not in text
    (view,) = views(run := read_run(tmp_path), measure(run))
    assert list(view.policies) == NAMES
    assert len({view.colour(policy) for policy in view.policies}) == 3
