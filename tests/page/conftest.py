"""A real browser for tests of report.html: Debian's Chromium without a window, on a page from disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Open, alien
from playwright.sync_api import Browser, Page, sync_playwright


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; the tests that need it are skipped where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("CI has a browser")
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a report at a width and in a scheme, waits until all charts of it are drawn; whatever the browser had to
    complain of, and whatever the page asked for beyond itself, fails the test at its end."""
    complaints: list[str] = []
    contexts = []

    def opened(report: Path, *, width: int = 1280, height: int = 900, scheme: Any = "light", wait: bool = True) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        address = report.resolve().as_uri()
        page.on(
            "request", lambda asked: complaints.append(f"asked for {asked.url}") if alien(asked.url, address) else None
        )
        page.goto(address)
        if wait:
            page.wait_for_selector("html[data-ready]", timeout=120_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints
