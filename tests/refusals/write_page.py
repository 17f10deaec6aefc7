"""Writes docs/refusals.md anew: ``python -m tests.refusals.write_page``."""

from __future__ import annotations

from pathlib import Path

from kafkadash.domain.refusals import catalogue

if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs/refusals.md").write_text(catalogue.page())
