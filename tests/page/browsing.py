"""What tests of report.html share: a page of a run, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from replay.report import write_report

Open = Callable[..., Page]
"""`open_page(report, width=, height=, scheme=, wait=)`."""


def alien(asked: str, address: str) -> bool:
    """Whether a page at `address` reached for something else."""
    return asked != address and not asked.startswith(("data:", "blob:"))


def report_of(folder: Path) -> Path:
    """The page of a run, its pictures left out."""
    write_report(folder, plots=False)
    return folder / "report.html"
