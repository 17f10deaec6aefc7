"""Events that collectors store with the rows they change: leaders, brokers, topics, configs, throttles, groups."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import override_settings

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.api import CLUSTER_DEFAULT, ConfigResource
from kafkadash.kafka.throttles import FOLLOWER_LIST, LEADER_LIST, LEADER_RATE
from kafkadash.monitoring.cluster_events.rules import (
    MOST_DETAILS,
    MOST_EVENTS,
    ChangedConfig,
    EventCode,
    LeaderChanges,
    SubjectType,
    find_config_events,
    mark_subject,
)
from kafkadash.monitoring.cluster_events.store import BROKERS_HEAR, prune_events
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.models import ClusterEvent, CollectorRun
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster

Refresher = Callable[[str], RefreshOutcome]


def codes() -> list[str]:
    return list(ClusterEvent.objects.order_by("pk").values_list("code", flat=True))


def only_event(code: EventCode) -> ClusterEvent:
    return ClusterEvent.objects.get(code=code)


def test_first_refresh__of_a_cluster__is_no_event(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    for kind in ("metadata", "configs", "quorum"):
        refresh(kind)
    clock.pass_by(30)
    for kind in ("metadata", "configs", "quorum"):
        refresh(kind)
    assert codes() == []


def test_broker__that_is_fenced__is_one_event_of_all_its_leaders(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    logs = [kafka.add("orders", number, 1, 2, 3) for number in range(MOST_DETAILS + 10)]
    lone = kafka.add("single", 0, 1)
    other = kafka.add("other", 0, 2, 3)
    refresh("metadata")
    before = CollectorRun.objects.get(kind="metadata").succeeded_at
    kafka.fenced = {1}
    for number, log in enumerate(logs):
        log.leader, log.isr, log.epoch = 2 + number % 2, (2, 3), log.epoch + 2
    lone.leader, lone.epoch = None, lone.epoch + 1
    other.epoch += 1
    clock.pass_by(30)
    refresh("metadata")

    event = only_event(EventCode.LEADERS_FAILED_OVER)
    assert before is not None
    expected = (MOST_DETAILS + 10, [1, 2, 3], before - BROKERS_HEAR)
    assert (event.count, event.brokers, event.not_before) == expected
    assert event.at - before == timedelta(seconds=30)
    assert event.data["values"] | {"to": dict(event.data["values"]["to"])} == {
        "broker": 1,
        "topics": 1,
        "to": {2: 30, 3: 30},
        "epochs": 2,
    }
    assert event.data["details"][0] == ["orders", 0, 1, 2, 1, 3]
    assert len(event.data["details"]) == MOST_DETAILS
    assert event.marks == [mark_subject(SubjectType.TOPIC, "orders")]
    assert only_event(EventCode.LEADERS_LOST).data["details"] == [["single", 0, 1, None, 1, 2]]
    assert only_event(EventCode.LEADERS_KEPT).data["details"] == [["other", 0, 2, 2, 1, 2]]
    assert only_event(EventCode.BROKERS_FENCED).brokers == [1]

    ClusterEvent.objects.all().delete()
    kafka.fenced = set()
    for log in logs:
        log.leader, log.epoch = 1, log.epoch + 1
    lone.leader, lone.epoch = 1, lone.epoch + 1
    logs[0].leader = 3
    clock.pass_by(30)
    refresh("metadata")
    assert only_event(EventCode.LEADERS_PREFERRED).count == MOST_DETAILS + 9
    assert only_event(EventCode.LEADERS_MOVED).data["details"] == [["orders", 0, 2, 3, 3, 4]]
    assert only_event(EventCode.LEADERS_REGAINED).data["values"]["broker"] == 1
    assert only_event(EventCode.BROKERS_UNFENCED).brokers == [1]


def test_reassignment__that_takes_the_leader_away__is_the_cause() -> None:
    changes = LeaderChanges([1, 2, 3, 4])
    old, new = [0, 1, 7, [1, 2], [1, 2], []], [0, 3, 9, [3, 2], [3, 2], []]
    changes.add_topic("orders", [old, [1, 2, 4, [2, 1], [2, 1], []]], [new, [1, 2, 5, [2, 3], [2, 3], []]])
    (event,) = changes.events()
    assert (event.code, event.count, event.values["epochs"]) == (EventCode.LEADERS_REASSIGNED, 1, 2)


def test_topics__created_deleted_recreated_and_grown__are_told(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    for name in ("kept", "dropped", "again"):
        kafka.add(name, 0, 1, 2)
    refresh("metadata")
    kafka.delete("dropped")
    kafka.topic_ids |= {"again": "another-id", "new": "new-id"}
    kafka.add("new", 0, 1, 2, 3)
    kafka.add("kept", 1, 2, 1)
    clock.pass_by(30)
    refresh("metadata")
    told = {event.code: [each[0] for each in event.data["details"]] for event in ClusterEvent.objects.all()}
    assert told == {
        EventCode.TOPICS_DELETED: ["dropped"],
        EventCode.TOPICS_CREATED: ["new"],
        EventCode.TOPICS_RECREATED: ["again"],
        EventCode.PARTITIONS_ADDED: ["kept"],
    }
    assert only_event(EventCode.PARTITIONS_ADDED).data["details"] == [["kept", 1, 2]]


def test_brokers__that_join_leave_or_move__are_told(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    refresh("metadata")
    del kafka.racks[5]
    kafka.racks |= {4: "c", 6: "a", 7: None}
    clock.pass_by(30)
    refresh("metadata")
    told = {event.code: event.brokers for event in ClusterEvent.objects.all()}
    assert told == {
        EventCode.BROKERS_LEFT: [5],
        EventCode.BROKERS_JOINED: [6, 7],
        EventCode.BROKERS_REPLACED: [4],
    }


def test_configs__that_change__are_events_with_both_values(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    for name in ("orders", "payments", "third"):
        kafka.add(name, 0, 1, 2)
    refresh("metadata")
    refresh("configs")
    for name in ("orders", "payments"):
        kafka.configs.setdefault(ConfigResource.topic(name), {})["retention.ms"] = "3600000"
        kafka.configs[ConfigResource.topic(name)][LEADER_LIST] = f"0:{len(name)}"
    kafka.configs.setdefault(ConfigResource.broker(2), {})[LEADER_RATE] = "1000"
    clock.pass_by(30)
    refresh("configs")
    event = only_event(EventCode.TOPIC_CONFIGS)
    assert event.count == 2
    assert sorted(each[0] for each in event.data["details"]) == ["orders", "payments"]
    assert event.data["details"][0][1] == [["retention.ms", None, ["3600000", "topic"]]]
    throttles = {row.data["values"]["of"]: row for row in ClusterEvent.objects.filter(code=EventCode.THROTTLES_SET)}
    assert {of: row.count for of, row in throttles.items()} == {"topics": 2, "brokers": 1}
    assert throttles["brokers"].data["details"] == [["2", [[LEADER_RATE, None, ["1000", "broker"]]]]]

    ClusterEvent.objects.all().delete()
    del kafka.configs[ConfigResource.broker(2)][LEADER_RATE]
    kafka.configs.setdefault(CLUSTER_DEFAULT, {})[LEADER_RATE] = "2000"
    clock.pass_by(30)
    refresh("configs")
    assert sorted(codes()) == [EventCode.THROTTLES_REMOVED, EventCode.THROTTLES_SET]


def test_configs__that_all_differ__are_a_bounded_number_of_events() -> None:
    many = [
        ChangedConfig(f"t-{n}", {}, {"retention.ms": [str(n), "topic"], FOLLOWER_LIST: [f"0:{n}", "topic"]})
        for n in range(MOST_EVENTS + 60)
    ]
    events = find_config_events(EventCode.TOPIC_CONFIGS, many)
    by_code = {code: [event for event in events if event.code is code] for code in EventCode}
    assert len(events) == MOST_EVENTS + 1
    assert [event.count for event in by_code[EventCode.THROTTLES_SET]] == [MOST_EVENTS + 60]
    assert sum(event.count for event in by_code[EventCode.TOPIC_CONFIGS]) == MOST_EVENTS - 1
    (more,) = by_code[EventCode.MORE_CONFIGS]
    assert (more.count, len(more.details), len(set(more.marks))) == (61, MOST_DETAILS, 61)


def test_controllers__elected_between_readings__are_one_event_with_both_epochs(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("quorum")
    kafka.leader, kafka.leader_epoch = 2, 6
    clock.pass_by(10)
    refresh("quorum")
    refresh("quorum")
    assert only_event(EventCode.CONTROLLER_ELECTED).data["values"] == {
        "before": 1,
        "after": 2,
        "epoch_before": 3,
        "epoch": 6,
    }


@pytest.mark.usefixtures("db")
def test_retention__of_events__is_by_age_and_by_number(cluster: Cluster) -> None:
    now = CollectorRun.objects.get(kind="metadata").next_at
    for days in (1, 2, 3, 100):
        ClusterEvent.objects.create(
            cluster=cluster, kind="topics", code="topics-created", at=now - timedelta(days=days), count=1
        )
    assert prune_events(now) == 1
    with override_settings(MOST_EVENTS=2):
        assert prune_events(now) == 1
    assert ClusterEvent.objects.count() == 2
