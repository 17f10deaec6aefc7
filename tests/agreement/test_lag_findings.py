"""A real group stalls, stops and is set back: its verdict turns each time with one finding, and turns back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import GroupState, Kind
from kafkadash.oncall.models import Finding
from kafkadash.oncall.services import judge
from kafkadash.playground.cluster import Playground
from kafkadash.playground.consumers import FED, Behaviour, Consumers, Reading
from tests.agreement.conftest import Refresher
from tests.waiting import wait_until

GROUP = "lag-findings"
TURNS_S = 60


@pytest.fixture
def consumers(playground: Playground) -> Iterator[Consumers]:
    with Consumers(playground.bootstrap, [Reading(GROUP, Behaviour.HEALTHY)]) as consumers:
        yield consumers
    admin = AdminClient({"bootstrap.servers": playground.bootstrap})
    (deleted,) = admin.delete_consumer_groups([GROUP]).values()
    deleted.result(30)


class Watch:
    """Looks at the groups of the cluster, and has what was seen judged."""

    def __init__(self, cluster: Cluster, refresh: Refresher) -> None:
        self.cluster, self.refresh = cluster, refresh

    def look(self) -> tuple[str, list[str]]:
        """The worst state of the group, and the sentences of the findings that are open about it."""
        self.refresh(Kind.GROUPS)
        judge(self.cluster.pk, timezone.now())
        row = GroupState.objects.filter(cluster=self.cluster, name=GROUP).first()
        found = Finding.objects.filter(closed_at=None, opened_at__isnull=False, scope=row.key if row else "")
        return row.worst if row else "", [finding.sentence for finding in found]

    def finding(self) -> Finding:
        """The open one of this group; groups of other tests may have theirs."""
        row = GroupState.objects.get(cluster=self.cluster, name=GROUP)
        return Finding.objects.get(kind="consumer-lag", closed_at=None, scope=row.key)

    def until(self, worst: str, begins: str = "") -> None:
        """The verdict is this one, and so is the one finding, or there is none."""

        def turned() -> bool:
            state, found = self.look()
            return state == worst and [s.startswith(begins) for s in found] == [True] * bool(begins)

        wait_until(turned, f"the verdict turns to {worst}", TURNS_S)


def set_back(playground: Playground) -> None:
    """To the beginning of the topic, as kafka-consumer-groups does it, which only a group without members allows."""
    offsets = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(FED, number, 0) for number in range(6)])
    admin = AdminClient({"bootstrap.servers": playground.bootstrap})  # it answers only as long as somebody holds it
    (altered,) = admin.alter_consumer_group_offsets([offsets]).values()
    altered.result(30)


def test_verdict_and_finding_follow_what_a_real_group_does(
    cluster: Cluster, refresh: Refresher, consumers: Consumers, playground: Playground
) -> None:
    watch = Watch(cluster, refresh)
    watch.until("ok")

    consumers.behave(GROUP, Behaviour.STALLED)
    watch.until("stall", f"Group {GROUP} stalls on {FED}-")
    stalled = watch.finding()
    consumers.behave(GROUP, Behaviour.HEALTHY)
    watch.until("ok")
    stalled.refresh_from_db()
    assert stalled.closed_at is not None

    consumers.behave(GROUP, Behaviour.STOPPED)
    watch.until("stop", f"Group {GROUP} has no members while ")
    stopped = watch.finding()
    set_back(playground)
    watch.until("rewind", f"Group {GROUP} was set back on {FED}-")
    assert watch.finding().pk == stopped.pk
    consumers.behave(GROUP, Behaviour.HEALTHY)
    watch.until("ok")
    stopped.refresh_from_db()
    assert None not in (stalled.closed_at, stopped.closed_at)
    assert stopped.pk != stalled.pk
