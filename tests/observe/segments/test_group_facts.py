"""What a look at the consumer groups leaves for the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kafkadash.kafka.port import Unreachable
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import GroupState
from kafkadash.observe.segments.flusher import Flushed
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster
from tests.observe.memory_groups import MemoryGroups
from tests.observe.segments.conftest import Rows
from tests.observe.test_group_collection import groups

__all__ = ["groups"]
pytestmark = pytest.mark.django_db


def test_groups__commits_ends_and_lag_with_the_sample_before_and_the_verdict(
    groups: MemoryGroups,
    refresh: Callable[[str], Refresh],
    flush: Callable[[], Flushed],
    rows_of: Rows,
    clock: Clock,
) -> None:
    groups.log("t", [100, 50])
    groups.add("g", {"t": {0: 90}}, members={"c": {"t": [0, 1]}})
    groups.add("nothing", {})
    refresh("groups")
    at = datetime.fromtimestamp(clock.now, UTC)
    clock.pass_by(30)
    groups.logs["t"][0][1] = 160
    refresh("groups")
    flush()
    first, second = ({r["partition"]: r for r in rows_of("group_offset") if r["seq"] == seq} for seq in (1, 2))
    names = ("committed", "log_start", "log_end", "lag", "previous_committed", "previous_lag")
    assert [tuple(first[0][name] for name in names), tuple(first[1][name] for name in names)] == [
        (90, 0, 100, 10, None, None),
        (None, 0, 50, None, None, None),
    ]
    assert [tuple(second[0][name] for name in names), tuple(second[1][name] for name in names)] == [
        (90, 0, 160, 70, 90, 10),
        (None, 0, 50, None, None, None),
    ]
    assert abs((second[0]["previous_at"] - at).total_seconds()) < 0.01
    row = GroupState.objects.get(name="g")
    for pair in second.values():
        assert (pair["group"], pair["topic"], pair["members"], pair["group_state"]) == ("g", "t", 1, row.state)
        assert (pair["allowed_lag"], pair["verdict"]) == (0, "unknown")


def test_groups_that_cannot_be_listed__are_missing(
    groups: MemoryGroups,
    kafka: MemoryCluster,
    refresh: Callable[[str], Refresh],
    flush: Callable[[], Flushed],
    rows_of: Rows,
) -> None:
    def fails(call: str) -> None:
        raise Unreachable("Nobody is at home.")

    groups.before_answer = fails
    refresh("groups")
    flush()
    (told,) = rows_of("manifest")
    assert (told["kind"], told["rows"], told["errors"]) == ("group_offset", 0, "Nobody is at home.")
