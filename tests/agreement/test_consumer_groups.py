"""Groups, members, commits and log ends, against ``kafka-consumer-groups``, while groups stall, stop and rewind.

A real group stalls, stops and is set back: its verdict turns each time with one finding, and turns back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.consumers import FED, QUIET, ConsumerReading, GroupBehaviour, PlaygroundConsumers
from kafkadash.findings.kinds import FindingCode
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.kafka.api import ClusterConnection, GroupDescription, LogSpan, Offsets
from kafkadash.kafka.mutations import WireClient
from kafkadash.monitoring.models import CollectorKind, GroupState
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.committed import commit_offsets
from tests.kafka_releases import NEWER_PROTOCOL
from tests.waiting import wait_until

DEADLINE = 20.0
JOINED_S = 90  # in a group of KIP-848 members hear of their partitions with a heartbeat, every five seconds

CLASSIC, NEWER, SLOW, STOPPED, DONE = "agree-classic", "agree-newer", "agree-slow", "agree-stopped", "agree-done"
GROUPS = (
    ConsumerReading(CLASSIC, GroupBehaviour.HEALTHY, members=2),
    ConsumerReading(NEWER, GroupBehaviour.HEALTHY, members=2, protocol=NEWER_PROTOCOL),
    ConsumerReading(SLOW, GroupBehaviour.LAGGING),
    ConsumerReading(STOPPED, GroupBehaviour.STOPPED),
    ConsumerReading(DONE, GroupBehaviour.STOPPED, topic=QUIET),
)
NAMES = [each.group for each in GROUPS]
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of ``--describe --all-groups``; a column without a value is None."""

    committed: int | None
    end: int | None
    lag: int | None
    member: str | None


@dataclass(frozen=True, slots=True)
class Told:
    """What the adapter says of our groups at one moment."""

    groups: Mapping[str, GroupDescription]
    committed: Mapping[str, Offsets]
    spans: Mapping[str, Mapping[int, LogSpan]]

    def places(self, group: str) -> set[Place]:
        return {(topic, index) for topic, offsets in self.committed[group].items() for index in offsets}


def rows(text: str) -> Iterator[dict[str, str]]:
    """Of all tables that the tool printed, by the words of their first lines."""
    for blank, table in groupby(text.splitlines(), key=lambda line: not line.strip()):
        if blank:
            continue
        head, *lines = table
        columns = head.replace("COORDINATOR (ID)", "COORDINATOR ID").split()
        for line in lines:
            yield dict(zip(columns, line.split(), strict=False))


def printed(tools: Tools) -> dict[str, dict[Place, Printed]]:
    found: dict[str, dict[Place, Printed]] = {}
    for row in rows(tools.run("consumer-groups", "--describe", "--all-groups")):
        places = found.setdefault(row["GROUP"], {})
        places[row["TOPIC"], int(row["PARTITION"])] = Printed(
            number(row["CURRENT-OFFSET"]), number(row["LOG-END-OFFSET"]), number(row["LAG"]), word(row["CONSUMER-ID"])
        )
    return found


def number(text: str) -> int | None:
    return None if text == "-" else int(text)


def word(text: str) -> str | None:
    return None if text == "-" else text


def told(admin: WireClient, names: list[str]) -> Told:
    groups = admin.groups(deadline=DEADLINE)
    committed = admin.committed(names, deadline=DEADLINE)
    wanted: dict[str, set[int]] = {}
    for offsets in committed.offsets.values():
        for topic, indexes in offsets.items():
            wanted.setdefault(topic, set()).update(indexes)
    spans = admin.log_spans(wanted, deadline=DEADLINE)
    assert (groups.errors, committed.errors, spans.errors) == ({}, {}, {})
    return Told(groups.groups, committed.offsets, spans.spans)


def assert_agrees(before: Told, tool: Mapping[str, Mapping[Place, Printed]], after: Told, names: list[str]) -> None:
    """Offsets that move lie between what was read before the tool ran and after; an owner is one of these two."""
    for name in names:
        assert tool[name].keys() == before.places(name) == after.places(name)
        members = [owners(each.groups[name]) for each in (before, after)]
        for (topic, index), row in tool[name].items():
            committed = sorted(each.committed[name][topic][index] for each in (before, after))
            ends = [each.spans[topic][index].end for each in (before, after)]
            assert row.committed is not None
            assert row.end is not None
            assert committed[0] <= row.committed <= committed[1], (name, topic, index)
            assert ends[0] <= row.end <= ends[1], (name, topic, index)
            assert row.lag == row.end - row.committed
            assert row.member in {owned.get((topic, index)) for owned in members}, (name, topic, index)


def owners(group: GroupDescription) -> dict[Place, str]:
    assert group.members is not None
    return {
        (topic, index): member.member_id
        for member in group.members
        for topic, indexes in member.assigned.items()
        for index in indexes
    }


@pytest.fixture
def admin(playground: KafkaPlayground) -> Iterator[WireClient]:
    admin = WireClient(ClusterConnection("agreement", 1, tuple(playground.bootstrap.split(","))))
    yield admin
    admin.close()


def settled(admin: WireClient) -> None:
    def all_read() -> bool:
        groups = admin.groups(deadline=DEADLINE).groups
        committed = admin.committed(NAMES, deadline=DEADLINE).offsets
        return (
            all(len(committed[name].get(FED, ())) == 6 for name in NAMES[:4])
            and len(committed[DONE].get(QUIET, ())) == 1
            and {groups[name].state for name in (CLASSIC, NEWER, SLOW)} == {"Stable"}
            and len(owners(groups[CLASSIC])) == len(owners(groups[NEWER])) == 6
        )

    wait_until(all_read, "all groups have their partitions and have committed", JOINED_S)


def test_consumer_groups__members_offsets_lag_and_owners__equal_describe_while_groups_stall_stop_and_rewind(
    playground: KafkaPlayground, admin: WireClient, tools: Tools
) -> None:
    with PlaygroundConsumers(playground.bootstrap, GROUPS, rf=2) as consumers:
        settled(admin)
        assert_states_and_members_agree(admin, tools)
        agree(admin, tools)

        consumers.behave(CLASSIC, GroupBehaviour.STALLED)
        consumers.behave(NEWER, GroupBehaviour.STOPPED)
        consumers.rewind(SLOW, 25)
        wait_until(
            lambda: admin.groups(deadline=DEADLINE).groups[NEWER].state == "Empty", f"{NEWER} has no members", JOINED_S
        )
        stalled = told(admin, NAMES)
        after = agree(admin, tools)

    assert after.committed[CLASSIC] == stalled.committed[CLASSIC]
    assert after.committed[NEWER] == stalled.committed[NEWER]
    assert after.groups[NEWER].state == "Empty"
    assert after.groups[CLASSIC].state == "Stable"


def agree(admin: WireClient, tools: Tools) -> Told:
    before = told(admin, NAMES)
    tool = printed(tools)
    after = told(admin, NAMES)
    assert_agrees(before, tool, after, NAMES)
    return after


def assert_states_and_members_agree(admin: WireClient, tools: Tools) -> None:
    ours = admin.groups(deadline=DEADLINE).groups
    states = {r["GROUP"]: r for r in rows(tools.run("consumer-groups", "--describe", "--all-groups", "--state"))}
    members = list(rows(tools.run("consumer-groups", "--describe", "--all-groups", "--members")))
    for name in NAMES:
        group, row = ours[name], states[name]
        assert (group.state, len(group.members or ())) == (row["STATE"], int(row["#MEMBERS"]))
        assert f"({group.coordinator})" == row["ID"]
        if group.members:
            assert group.assignor == row["ASSIGNMENT-STRATEGY"]
        assert {
            (m.member_id, m.client_id, f"/{m.host}", sum(map(len, m.assigned.values()))) for m in group.members or ()
        } == {
            (m["CONSUMER-ID"], m["CLIENT-ID"], m["HOST"], int(m["#PARTITIONS"])) for m in members if m["GROUP"] == name
        }


def test_consumer_groups__commits_outside_of_the_log__equal_describe(
    playground: KafkaPlayground, admin: WireClient, tools: Tools, make_topic: TopicMaker
) -> None:
    """Beyond its end Kafka's tool prints a negative lag; before its start it counts records that are gone."""
    topic = make_topic([[1, 2], [2, 3]], mib=1)
    end = {index: span.end for index, span in admin.log_spans({topic: [0, 1]}, deadline=DEADLINE).spans[topic].items()}
    group = f"{topic}-outside"
    consumer = Consumer({"bootstrap.servers": playground.bootstrap, "group.id": group, "enable.auto.commit": False})
    commit_offsets(consumer, [TopicPartition(topic, 0, end[0] + 1000), TopicPartition(topic, 1, 1)])
    consumer.close()
    janitor = AdminClient({"bootstrap.servers": playground.bootstrap})
    for future in janitor.delete_records([TopicPartition(topic, 1, 5)]).values():
        future.result(DEADLINE)

    tool = printed(tools)[group]
    ours = told(admin, [group])

    assert ours.groups[group].members == ()
    assert ours.groups[group].protocol_type == ""
    assert ours.committed[group] == {topic: {0: end[0] + 1000, 1: 1}}
    assert ours.spans[topic][1].start == 5
    assert tool == {
        (topic, 0): Printed(end[0] + 1000, end[0], -1000, None),
        (topic, 1): Printed(1, end[1], end[1] - 1, None),
    }
    tools.run("consumer-groups", "--delete", "--group", group)
    assert group not in admin.groups(deadline=DEADLINE).groups
    assert admin.committed([group], deadline=DEADLINE).offsets == {group: {}}


GROUP = "lag-findings"
TURNS_S = 60


@pytest.fixture
def consumers(playground: KafkaPlayground) -> Iterator[PlaygroundConsumers]:
    with PlaygroundConsumers(playground.bootstrap, [ConsumerReading(GROUP, GroupBehaviour.HEALTHY)]) as consumers:
        yield consumers
    admin = AdminClient({"bootstrap.servers": playground.bootstrap})
    (deleted,) = admin.delete_consumer_groups([GROUP]).values()
    deleted.result(30)


class Watch:
    """Looks at the groups of the cluster, and has what was seen judged."""

    def __init__(self, cluster: Cluster, refresh: Refresher) -> None:
        self.cluster, self.refresh = cluster, refresh

    def look(self) -> tuple[str, list[str]]:
        """The worst state of the group, and the codes of the findings that are open about it."""
        self.refresh(CollectorKind.GROUPS)
        judge(self.cluster.pk, timezone.now())
        row = GroupState.objects.filter(cluster=self.cluster, name=GROUP).first()
        found = Finding.objects.filter(closed_at=None, opened_at__isnull=False, scope=row.key if row else "")
        return row.worst if row else "", [finding.message_code for finding in found]

    def finding(self) -> Finding:
        """The open one of this group; groups of other tests may have theirs."""
        row = GroupState.objects.get(cluster=self.cluster, name=GROUP)
        return Finding.objects.get(kind="consumer-lag", closed_at=None, scope=row.key)

    def until(self, worst: str, code: FindingCode | None = None) -> None:
        """The verdict is this one, and so is the one finding, or there is none."""

        def turned() -> bool:
            state, found = self.look()
            return state == worst and found == ([code] if code else [])

        wait_until(turned, f"the verdict turns to {worst}", TURNS_S)


def set_back(playground: KafkaPlayground) -> None:
    """To the beginning of the topic, as kafka-consumer-groups does it, which only a group without members allows."""
    offsets = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(FED, number, 0) for number in range(6)])
    admin = AdminClient({"bootstrap.servers": playground.bootstrap})  # it answers only as long as somebody holds it
    (altered,) = admin.alter_consumer_group_offsets([offsets]).values()
    altered.result(30)


def test_verdict_and_finding_follow_what_a_real_group_does(
    cluster: Cluster, refresh: Refresher, consumers: PlaygroundConsumers, playground: KafkaPlayground
) -> None:
    watch = Watch(cluster, refresh)
    watch.until("ok")

    consumers.behave(GROUP, GroupBehaviour.STALLED)
    watch.until("stall", FindingCode.GROUP_STALLS)
    stalled = watch.finding()
    assert stalled.message_params["place"].startswith(f"{FED}-")
    consumers.behave(GROUP, GroupBehaviour.HEALTHY)
    watch.until("ok")
    stalled.refresh_from_db()
    assert stalled.closed_at is not None

    consumers.behave(GROUP, GroupBehaviour.STOPPED)
    watch.until("stop", FindingCode.GROUP_STOPPED)
    stopped = watch.finding()
    set_back(playground)
    watch.until("rewind", FindingCode.GROUP_SET_BACK)
    assert watch.finding().pk == stopped.pk
    assert watch.finding().message_params["place"].startswith(f"{FED}-")
    consumers.behave(GROUP, GroupBehaviour.HEALTHY)
    watch.until("ok")
    stopped.refresh_from_db()
    assert None not in (stalled.closed_at, stopped.closed_at)
    assert stopped.pk != stalled.pk
