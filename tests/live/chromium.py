"""A headless chromium whose pages are looked at from the test's own thread."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import BrowserContext, expect, sync_playwright

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
EXPECT_MS = 30_000
PROGRAMS = ("chromium-headless-shell", "chromium")
"""Debian's. The first is the same browser without its window, which needs two thirds of the processor's time."""


def chromium_path() -> str:
    """The system's. Skips the test where there is none."""
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if path is None:
        pytest.skip(f"no chromium here: install your system's (Debian: apt-get install {PROGRAMS[0]})")
    return path


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """Playwright's event loop belongs to this thread until the end; use the database before, after, or with leave."""
    path = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        expect.set_options(timeout=EXPECT_MS)
        yield browser.new_context(viewport={"width": 1440, "height": 900})
        browser.close()
