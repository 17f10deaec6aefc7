"""Part "long": what ``make test`` leaves out because it takes long.

Tests with the marker ``long``, and each page in all its looks.
"""

from __future__ import annotations

from pathlib import Path

from tests.proof.extent import Extent
from tests.proof.suites import run_suite


def prove(folder: Path, extent: Extent) -> bool:
    """Once: their groups share servers, and a second round would ask the same."""
    del extent
    pages = run_suite(
        "pages in all their looks", ["tests/e2e/test_every_page.py"], folder / "pages.log", {"KAFKADASH_ALL_LOOKS": "1"}
    )
    return run_suite("tests marked long", ["tests", "-m", "long"], folder / "long.log", {}) and pages
