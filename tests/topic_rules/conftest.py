"""The world of changes of configs, with topic rules of its cluster."""

from __future__ import annotations

from tests.configs.conftest import world

__all__ = ["world"]
