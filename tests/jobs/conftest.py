"""A kind of job whose handler the test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkadash.jobs import runner as kinds
from kafkadash.jobs.runner import JobKind, JobRun, register_kind

Handler = Callable[[JobRun], dict[str, Any]]
MakeKind = Callable[..., None]


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> MakeKind:
    """``kind(handler, deadline_s=5, attempts=1)`` makes the kind "probe"."""
    monkeypatch.setattr(kinds, "_kinds", dict(kinds._kinds))

    def make(handler: Handler, *, deadline_s: float = 5, attempts: int = 1) -> None:
        register_kind(JobKind("probe", handler, deadline_s=deadline_s, attempts=attempts))

    return make


@pytest.fixture
def probe(kind: MakeKind) -> None:
    """The kind "probe" that does nothing."""
    kind(lambda _run: {})
