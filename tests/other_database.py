"""Another database than the tests' own for this process, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from kafkadash.kafka.connect import close_all
from kafkadash.live.publisher import stop_publishing
from kafkadash.planning import stored_topology as topology


@contextmanager
def led_to(**values: Any) -> Iterator[None]:
    """The next connection of any thread has these settings, until the end.

    What the process keeps of rows stays apart: those of two databases have the same numbers, and a test that came
    later would be judged by the topics of one that is gone, or would ask its brokers.
    """
    before: dict[str, Any] = dict(connection.settings_dict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topology, "_topology_cache", topology._TopologyCache())
        patch.setattr(topology, "_sizes_kept", topology._SizesKept())
        close_all()
        _connect_with(values)
        try:
            yield
        finally:
            stop_publishing()
            close_all()
            _connect_with(before)


def _connect_with(values: dict[str, Any]) -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL's backend
    connection.settings_dict.update(values)
