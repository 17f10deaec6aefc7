"""What each collector leaves for the pipeline: its facts, what is missing in them, and that nothing was there.

What a look at the consumer groups leaves for the pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.export import encoding, flusher
from kafkadash.export.errors import ExportErrorCode
from kafkadash.export.flusher import FlushResult
from kafkadash.export.models import SegmentOutbox
from kafkadash.kafka.api import KafkaUnreachable
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import BrokerWeights, Collection, GroupState
from tests.export.conftest import Rows
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster, MemoryGroups
from tests.monitoring.test_group_collection import groups

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], RefreshOutcome]
Flusher = Callable[[], FlushResult]


def told(rows_of: Rows) -> dict[str, list[tuple[Any, ...]]]:
    """kind → (seq, rows, brokers that did not answer, errors) of each snapshot."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows_of("manifest"):
        found.setdefault(row["kind"], []).append(
            (row["seq"], row["rows"], row["not_answered"], json.loads(row["errors"] or "[]"))
        )
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
    assert {(each["code"], each["params"]["broker"]) for each in errors} == {
        (CollectionErrorCode.DIRECTORY_NOT_READ, 2)
    }


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
    assert {(each["code"], each["params"]["broker"]) for each in errors} == {(CollectionErrorCode.BROKER_NOT_READ, 2)}


def test_a_failed_refresh__is_a_snapshot_without_rows_that_says_why(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows
) -> None:
    kafka.fail = down = KafkaUnreachable(KafkaErrorCode.NO_TIME_TO_CONNECT)
    for kind in ("log_dirs", "quorum", "reassignments", "metadata"):
        refresh(kind)
    kafka.fail = None
    refresh("reassignments")
    flush()
    missing: list[tuple[Any, ...]] = [(1, 0, [], [down.message.as_json()])]
    assert told(rows_of) == {
        "broker": missing,
        "replica": missing,
        "quorum": missing,
        "reassignment": [*missing, (2, 0, [], [])],
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

    monkeypatch.setattr("kafkadash.monitoring.collection._schedule_next", dies)
    with pytest.raises(Died):
        refresh("quorum")
    assert not SegmentOutbox.objects.exists()
    assert not Collection.objects.exists()


def test_without_pyarrow__refreshes_go_on_and_nothing_waits(
    kafka: MemoryCluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkadash.export.encoding.find_spec", lambda _: None)
    assert refresh("quorum").error is None
    kafka.fail = KafkaUnreachable(KafkaErrorCode.NO_TIME_TO_CONNECT)
    refresh("log_dirs")
    assert Collection.objects.count() == 2
    assert not SegmentOutbox.objects.exists()
    assert flusher.claim_due() == []
    assert encoding.explain_missing() == coded(ExportErrorCode.FACTS_NOT_KEPT)


def test_traffic__rates_of_cluster_topics_and_brokers__and_what_the_sums_leave_out(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows, clock: Clock
) -> None:
    first, second = kafka.add("orders", 0, 1, 2, end=1000), kafka.add("orders", 1, 2, 3, end=1000)
    kafka.add("clicks", 0, 2, 3, end=1000)
    for kind in ("metadata", "log_dirs", "configs", "traffic"):
        assert not refresh(kind).error
    clock.pass_by(60)
    first.ends, second.ends = dict.fromkeys(first.ends, 1600), dict.fromkeys(second.ends, 1060)
    kafka.set_config("clicks", "cleanup.policy", "compact")
    refresh("configs")
    kafka.silent = {2}
    refresh("traffic")
    flush()
    names = ("topic", "broker", "records_rate", "unknown", "without_bytes")
    before, now = (
        {(r["subject"], *(r[name] for name in names)): r["bytes_rate"] for r in rows_of("traffic") if r["seq"] == seq}
        for seq in (1, 2)
    )
    assert before.keys() == {
        ("cluster", None, None, None, 3, 0),
        ("topic", "orders", None, None, 2, 0),
        ("topic", "clicks", None, None, 1, 0),
        ("broker", None, 1, None, 1, 0),
        ("broker", None, 2, None, 2, 0),
    }
    octets = pytest.approx(10 * 1_000_000 / 1600, rel=1e-4)
    assert now == {
        ("cluster", None, None, 10.0, 2, 0): octets,
        ("topic", "orders", None, 10.0, 1, 0): octets,
        ("topic", "clicks", None, None, 1, 0): None,
        ("broker", None, 1, 10.0, 0, 0): octets,
        ("broker", None, 2, None, 2, 0): None,
    }
    assert [(seq, rows) for seq, rows, *_ in told(rows_of)["traffic"]] == [(1, 5), (2, 5)]


def test_traffic_that_cannot_be_read__is_a_snapshot_without_rows(
    kafka: MemoryCluster, refresh: Refresher, flush: Flusher, rows_of: Rows
) -> None:
    kafka.add("orders", 0, 1, 2, end=1000)
    refresh("metadata")
    kafka.silent = {1, 2}
    assert refresh("traffic").error
    flush()
    ((_, rows, _, errors),) = told(rows_of)["traffic"]
    assert (rows, len(errors)) == (0, 1)


__all__ = ["groups"]


def test_groups__commits_ends_and_lag_with_the_sample_before_and_the_verdict(
    groups: MemoryGroups,
    refresh: Callable[[str], RefreshOutcome],
    flush: Callable[[], FlushResult],
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
    refresh: Callable[[str], RefreshOutcome],
    flush: Callable[[], FlushResult],
    rows_of: Rows,
) -> None:
    down = KafkaUnreachable(KafkaErrorCode.NO_TIME_TO_CONNECT)

    def fails(call: str) -> None:
        raise down

    groups.before_answer = fails
    refresh("groups")
    flush()
    (told,) = rows_of("manifest")
    assert (told["kind"], told["rows"], json.loads(told["errors"])) == ("group_offset", 0, [down.message.as_json()])
