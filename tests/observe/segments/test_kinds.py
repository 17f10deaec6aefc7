"""What each collector leaves for the pipeline: its facts, what is missing in them, and that nothing was there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.port import Unreachable
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import BrokerWeights, Collection, SegmentOutbox
from kafkadash.observe.segments.flusher import Flushed
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster
from tests.observe.segments.conftest import Rows

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]
Flusher = Callable[[], Flushed]


def told(rows_of: Rows) -> dict[str, list[tuple[Any, ...]]]:
    """kind → (seq, rows, brokers that did not answer, errors) of each snapshot."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows_of("manifest"):
        found.setdefault(row["kind"], []).append((row["seq"], row["rows"], row["not_answered"], row["errors"]))
    return found


def at(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC)


def test_replicas__their_bytes_and_roles_by_the_last_metadata(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2).size = 700
    kafka.add("orders", 1, 2, 3).isr = (2,)
    refresh("log_dirs")
    refresh("metadata")
    clock.pass_by(60)
    kafka.add("new", 0, 1)
    refresh("log_dirs")
    flush()
    before, now = ([r for r in rows_of("replica") if r["seq"] == seq] for seq in (1, 2))
    assert {(r["is_leader"], r["in_isr"]) for r in before} == {(None, None)}, "nobody has read the metadata"
    seen = {(r["topic"], r["partition"], r["broker"]): (r["is_leader"], r["in_isr"]) for r in now}
    assert seen == {
        ("orders", 0, 1): (True, True),
        ("orders", 0, 2): (False, True),
        ("orders", 1, 2): (True, True),
        ("orders", 1, 3): (False, False),
        ("new", 0, 1): (None, None),
    }
    assert {(r["method"], r["is_future"], r["log_end"], r["log_start"]) for r in now} == {("size", False, None, None)}
    assert {r["bytes_on_disk"] for r in now if r["topic"] == "orders" and r["partition"] == 0} == {700}
    assert all(r["directory"] for r in now)
    assert {r["observed_at"].replace(microsecond=0) for r in now} == {at(clock).replace(microsecond=0)}


def test_disks__how_full_how_throttled_and_how_quickly_they_fill(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2)
    kafka.set_config(1, "leader.replication.throttled.rate", "5000")
    kafka.set_config(None, "leader.replication.throttled.rate", "100")
    for kind in ("metadata", "configs", "log_dirs"):
        refresh(kind)
    clock.pass_by(60)
    log.size += 6000
    refresh("log_dirs")
    flush()
    first, second = (
        {r["broker"]: r for r in rows_of("broker") if r["seq"] == seq and r["replica_bytes"]} for seq in (1, 2)
    )
    assert first.keys() == second.keys() == {1, 2}
    assert {b: (r["leader_throttle"], r["follower_throttle"]) for b, r in second.items()} == {
        1: (5000, None),
        2: (100, None),
    }
    assert {r["grown_per_second"] for r in first.values()} == {None}
    assert [r["grown_per_second"] for r in second.values()] == [pytest.approx(100)] * 2
    dirs = {r.broker_id: {each["path"]: each for each in r.dirs} for r in BrokerWeights.objects.all()}
    for broker, row in second.items():
        stored = dirs[broker][row["directory"]]
        assert (row["total_bytes"], row["usable_bytes"]) == (stored["total_bytes"], stored["usable_bytes"])


def test_a_directory_that_cannot_be_read__is_not_empty(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows
) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.bad_directories = {2}
    refresh("log_dirs")
    flush()
    bad = [row for row in rows_of("broker") if row["broker"] == 2 and row["total_bytes"] is None]
    assert bad
    assert {(row["replica_bytes"], row["grown_per_second"]) for row in bad} == {(None, None)}
    ((_, _, silent, errors),) = told(rows_of)["replica"]
    assert silent == []
    assert "broker 2" in errors


def test_a_broker_that_does_not_answer__is_missing_and_told(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows
) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.silent = {2}
    refresh("log_dirs")
    flush()
    assert {row["broker"] for row in rows_of("replica")} == {1}
    ((_, rows, silent, errors),) = told(rows_of)["replica"]
    assert (rows, silent) == (1, [2])
    assert "broker 2" in errors


def test_a_failed_refresh__is_a_snapshot_without_rows_that_says_why(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows
) -> None:
    kafka.fail = Unreachable("Nobody is at home.")
    for kind in ("log_dirs", "quorum", "reassignments", "metadata"):
        refresh(kind)
    kafka.fail = None
    refresh("reassignments")
    flush()
    missing: list[tuple[Any, ...]] = [(1, 0, [], "Nobody is at home.")]
    assert told(rows_of) == {
        "broker": missing,
        "replica": missing,
        "quorum": missing,
        "reassignment": [*missing, (2, 0, [], None)],
    }


def test_the_quorum__on_the_leaders_clock_with_what_it_does_not_know(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows
) -> None:
    refresh("quorum")
    flush()
    answer = kafka.quorum(deadline=1)
    rows = {row["replica"]: row for row in rows_of("quorum")}
    assert {r: row["role"] for r, row in rows.items()} == {
        each.id: "leader" if each.id == answer.leader_id else role
        for role, group in (("follower", answer.voters), ("observer", answer.observers))
        for each in group
    }
    for each in (*answer.voters, *answer.observers):
        row = rows[each.id]
        assert (row["log_end"], row["leader"], row["leader_epoch"]) == (
            each.log_end_offset,
            answer.leader_id,
            answer.leader_epoch,
        )
        for name, ms in (("last_fetch_ts", each.last_fetch_ms), ("last_caught_up_ts", each.last_caught_up_ms)):
            assert (row[name] and round(row[name].timestamp() * 1000)) == ms


def test_reassignments__and_the_log_ends_that_were_read_for_them(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows, cluster: Cluster, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2)
    kafka.add("orders", 1, 1, 2)
    refresh("metadata")
    refresh("log_dirs")
    kafka.move("orders", 0, 3, 4)
    log.ends.update({3: 250})
    kafka.silent = {4}
    refresh("reassignments")
    flush()
    (row,) = rows_of("reassignment")
    assert (row["topic"], row["partition"], row["adding"], row["removing"], row["move"]) == (
        "orders", 0, [3, 4], [1, 2], None,
    )  # fmt: skip
    assert row["replicas"] == [3, 4, 1, 2]
    exact = {r["broker"]: r for r in rows_of("replica") if r["method"] == "exact"}
    assert {b: (r["log_end"], r["log_start"], r["is_leader"]) for b, r in exact.items()} == {
        1: (1000, 0, True),
        3: (250, None, False),
    }
    assert {r["bytes_on_disk"] for r in exact.values()} == {None}
    seqs = [(seq, rows) for seq, rows, *_ in told(rows_of)["replica"]]
    assert [seq for seq, _ in seqs] == [1, 2], "both collectors count the replicas of this cluster together"


def test_facts_and_the_other_rows_of_a_refresh__are_one_transaction(
    kafka: MemoryCluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        pass

    def dies(*_: object, **__: object) -> None:
        raise Died

    monkeypatch.setattr("kafkadash.observe.collection._schedule_next", dies)
    with pytest.raises(Died):
        refresh("quorum")
    assert not SegmentOutbox.objects.exists()
    assert not Collection.objects.exists()


def test_without_pyarrow__refreshes_go_on_and_nothing_waits(
    kafka: MemoryCluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkadash.observe.segments.encoding.find_spec", lambda _: None)
    assert refresh("quorum").error == ""
    kafka.fail = Unreachable("Nobody is at home.")
    refresh("log_dirs")
    assert Collection.objects.count() == 2
    assert not SegmentOutbox.objects.exists()
