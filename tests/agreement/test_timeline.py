"""The timeline beside Kafka's metadata log: topics, elections, fenced brokers and reassignments."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground, prepare_runtime
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose
from kafkadash.monitoring.cluster_events.rules import EventCode
from kafkadash.monitoring.models import ClusterEvent, CollectorKind, TopicState
from kafkadash.notifications.models import NotificationEvent
from kafkadash.timeline.entries import EntryKind, TimelineEntry, TimelineScope, TimeSpan
from kafkadash.timeline.errors import TimelineCode
from kafkadash.timeline.sources import read_timeline
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.frozen_nodes import fenced_broker
from tests.kafka_releases import tells_fenced
from tests.waiting import wait_until

_RECORD = re.compile(r'CreateTime: (\d+).*?payload: (\{"type".*\})$')
_CLOCKS = timedelta(milliseconds=50)
"""The controller stamps a record in whole milliseconds; both read the clock of this machine."""
AWAY = 3  # not the broker that the tools ask
SLOW = 2_000  # bytes per second
LEADER_STAYS = -2


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """Record of the metadata log, as ``kafka-dump-log --cluster-metadata-decoder`` prints it."""

    at: datetime
    type: str
    data: Mapping[str, Any]


def dump_metadata(playground: KafkaPlayground) -> list[MetadataRecord]:
    """Return all records of the log of the first controller, oldest first."""
    node = playground.cluster.controllers[0]
    segments = sorted((playground.layout.metadata_dir(node) / "__cluster_metadata-0").glob("*.log"))
    files = ["--cluster-metadata-decoder", "--files", ",".join(map(str, segments))]
    done = prepare_runtime(lambda _: None).run_class("org.apache.kafka.tools.DumpLogSegments", files, 120)
    assert done.returncode == 0, done.stderr
    found = []
    for line in done.stdout.splitlines():
        if match := _RECORD.search(line):
            record = json.loads(match[2])
            found.append(
                MetadataRecord(
                    datetime.fromtimestamp(int(match[1]) / 1000, UTC), record["type"], record.get("data") or {}
                )
            )
    return found


def assert_within(entry: TimelineEntry | ClusterEvent, at: datetime) -> None:
    assert entry.not_before is not None
    assert entry.not_before - _CLOCKS <= at <= entry.at + _CLOCKS, (entry.not_before, at, entry.at)


def partition_changes(
    records: Sequence[MetadataRecord], topic_id: str, partition: int, entry: ClusterEvent
) -> list[MetadataRecord]:
    """Return the changes of a partition's leader or epoch between the readings of an event."""
    return [
        record
        for record in records
        if record.type == "PARTITION_CHANGE_RECORD"
        and (record.data["topicId"], record.data["partitionId"]) == (topic_id, partition)
        and record.data.get("leader", LEADER_STAYS) != LEADER_STAYS
        and entry.not_before is not None
        and entry.not_before < record.at <= entry.at
    ]


@pytest.mark.quorum
def test_timeline__of_elections_topics_and_moves__agrees_with_the_metadata_log(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    playground: KafkaPlayground,
    tools: Tools,
    mover: Mover,
) -> None:
    began = timezone.now()
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.REASSIGNMENTS)
    topic, moving = make_topic([[3, 2, 1], [2, 1, 3], [3, 1, 2]]), make_topic([[1, 2]], mib=2)
    wait_until(tools.in_sync, "every replica is in sync", 60)
    refresh(CollectorKind.METADATA)

    def read_leaders(expected: Sequence[int]) -> None:
        """Refreshes until a broker has applied the elections that the controller has written."""

        def leaders() -> list[int]:
            refresh(CollectorKind.METADATA)
            return [row[1] for row in TopicState.objects.get(cluster=cluster, name=topic).partitions]

        wait_until(lambda: leaders() == expected, f"{topic} is led by {expected}", 60)

    window = QuietPeriod.objects.create(
        cluster=cluster,
        purpose=QuietPurpose.MAINTENANCE,
        broker=AWAY,
        begins_at=timezone.now(),
        ends_at=timezone.now() + timedelta(hours=1),
    )
    with fenced_broker(playground, AWAY):
        read_leaders([2, 2, 1])
        for _ in range(2):
            judge(cluster.pk, timezone.now())
            refresh(CollectorKind.METADATA)
        down = Finding.objects.get(cluster=cluster, kind=FindingKind.BROKER_DOWN)
        assert (down.scope, down.quiet) == (str(AWAY), window)
        assert not NotificationEvent.objects.filter(kind=FindingKind.BROKER_DOWN).exists()
    wait_until(lambda: not tools.fenced(AWAY) and tools.in_sync(), "broker 3 is back", 60)
    tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    read_leaders([3, 2, 3])
    mover.start(moving, [1, 3], throttle=SLOW)
    refresh(CollectorKind.REASSIGNMENTS)

    def stored_events(code: EventCode) -> list[ClusterEvent]:
        return list(ClusterEvent.objects.filter(cluster=cluster, code=code))

    records = dump_metadata(playground)
    topic_id, moving_id = (_read_id(cluster, name) for name in (topic, moving))
    events = {event.code: event for event in ClusterEvent.objects.filter(cluster=cluster).order_by("at")}
    (created,) = [each for each in records if each.type == "TOPIC_RECORD" and each.data["name"] == topic]
    assert created.data["topicId"] == topic_id
    assert_within(events[EventCode.TOPICS_CREATED], created.at)
    gone, back = EventCode.BROKERS_FENCED, EventCode.BROKERS_UNFENCED
    if not tells_fenced():
        gone, back = EventCode.BROKERS_LEFT, EventCode.BROKERS_JOINED
    for code, fenced in ((gone, 1), (back, -1)):
        changed = [
            each
            for each in records
            if each.type == "BROKER_REGISTRATION_CHANGE_RECORD"
            and (each.data["brokerId"], each.data.get("fenced")) == (AWAY, fenced)
        ]
        assert events[code].brokers == [AWAY]
        assert_within(events[code], changed[-1].at)
    for code in (EventCode.LEADERS_FAILED_OVER, EventCode.LEADERS_PREFERRED):
        # The elections of other topics are other events of the same code.
        details = {each: [row for row in each.data["details"] if row[0] == topic] for each in stored_events(code)}
        event, own = next((each, rows) for each, rows in details.items() if rows)
        assert {each[1] for each in own} == {0, 2}, code
        for _, number, _, leader, epoch_before, epoch in own:
            elections = partition_changes(records, topic_id, number, event)
            assert elections[-1].data["leader"] == leader
            assert len(elections) == epoch - epoch_before

    span = TimeSpan(began, timezone.now())
    (move,) = [entry for entry in _entries(cluster, moving, span) if entry.code == TimelineCode.MOVES_STARTED]
    asked = [
        each
        for each in records
        if each.type == "PARTITION_CHANGE_RECORD"
        and each.data["topicId"] == moving_id
        and each.data.get("addingReplicas")
    ]
    assert_within(move, asked[0].at)
    codes = [entry.code for entry in _entries(cluster, topic, span) if entry.kind is not EntryKind.FINDINGS]
    assert codes == [EventCode.LEADERS_PREFERRED, EventCode.LEADERS_FAILED_OVER, EventCode.TOPICS_CREATED]


def _read_id(cluster: Cluster, topic: str) -> str:
    """Return the ID of a topic as Kafka's tools print it."""
    topic_id = UUID(TopicState.objects.get(cluster=cluster, name=topic).topic_id)
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _entries(cluster: Cluster, topic: str, span: TimeSpan) -> list[TimelineEntry]:
    scope = TimelineScope(cluster.pk, cluster.slug, frozenset(EntryKind), topic=topic)
    return read_timeline(scope, span).list_entries(0, 100)
