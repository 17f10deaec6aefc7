"""Pages of open transactions: which hang, how they are aborted, what is not known, and the lag for read_committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.monitoring.collectors import to_utc
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.groups.pages import CommittedLag, find_committed_lag
from kafkadash.monitoring.groups.rules import LagState, OffsetSample, PartitionLag
from kafkadash.monitoring.models import CollectorKind, CollectorRun, TopicState, TransactionSnapshot
from kafkadash.monitoring.transactions.rules import MOST_GAPS, StuckTransaction, TransactionDoubt, TransactionVerdict
from tests.factories import NOW, watched
from tests.groups import WELL, group_seen
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db


STUCK = StuckTransaction("orders", 0, 40, 11, 2, 7, (NOW - timedelta(hours=2)).timestamp(), NOW.timestamp())


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


def stored(cluster: Cluster, *transactions: StuckTransaction) -> TopicState:
    """A topic whose partition 0 has stood still at offset 40 of 100 for two hours."""
    topic = TopicState.objects.create(
        cluster=cluster,
        topic_id="orders-id",
        name="orders",
        partitions=[[n, 1, 1, [1], [1], []] for n in (0, 1)],
        partition_count=2,
        replication_factor=1,
        changed_at=NOW,
    )
    since, read_at = (NOW - timedelta(hours=2)).timestamp(), NOW.timestamp() - 3
    TransactionSnapshot.objects.create(
        cluster=cluster,
        taken_at=to_utc(read_at),
        gaps={"orders": ["orders-id", {"0": [40, 100, since, read_at], "1": [90, 100, read_at, read_at]}]},
        gap_count=2,
        unread=0,
        unasked=0,
        transactions=[each.as_json() for each in transactions],
        transaction_count=len(transactions),
    )
    return topic


def test_page__names_the_command_that_aborts_a_hanging_transaction_only(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    doubt = TransactionDoubt.IDS_HIDDEN.value
    unknown = replace(STUCK, partition=1, producer_id=None, verdict=TransactionVerdict.UNKNOWN, doubt=doubt)
    stored(demo, replace(STUCK, verdict=TransactionVerdict.HANGING), unknown, replace(STUCK, start=50))
    client = client_of(viewer)

    page = client.get("/clusters/demo/transactions/")
    assert [(line.mark, line.waiting, bool(line.command)) for line in page.context["lines"]] == [
        ("warning", 60, True),
        ("unknown", 10, False),
        ("ok", 60, False),
    ]
    command = page.context["lines"][0].command
    assert command.endswith(" abort --topic orders --partition 0 --start-offset 40")
    assert command in Page.read(page).html
    assert doubt in Page.read(page).html
    topic = client.get("/clusters/demo/topics/orders/")
    assert [line.partition for line in topic.context["stable_lines"]] == [0, 1], "1 has a transaction in doubt"
    assert "transaction.max.timeout.ms is not known" in Page.read(page).words("transactions-demo")

    judge(demo.pk, NOW)
    finding = Finding.objects.get(cluster=demo, kind=FindingKind.HANGING_TRANSACTION)
    shown = client.get(f"/clusters/demo/findings/{finding.public_id}/")
    assert "--topic orders --partition 0 --start-offset 40" in str(shown.context["steps"])
    assert shown.context["finding"].next.url == "/clusters/demo/transactions/"

    runs = CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.TRANSACTIONS)
    runs.update(succeeded_at=NOW - timedelta(hours=1))
    page = client.get("/clusters/demo/transactions/")
    assert [(line.mark, bool(line.command)) for line in page.context["lines"]] == [("unknown", False)] * 3
    for changed in ({"seen_at": NOW - timedelta(hours=1)}, {"seen_at": NOW, "closed_at": NOW}):
        Finding.objects.update(**changed)
        shown = client.get(f"/clusters/demo/findings/{finding.public_id}/")
        assert "--topic TOPIC --partition PARTITION --start-offset OFFSET" in str(shown.context["steps"])


def test_page__what_is_not_known_is_no_empty_list(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(viewer)
    address = "/clusters/demo/transactions/"
    assert Page.read(client.get(address)).title == "demo: open transactions not read yet"
    stored(demo)
    assert Page.read(client.get(address)).title == "demo: no hanging transactions"
    TransactionSnapshot.objects.update(unread=3)
    assert Page.read(client.get(address)).title == "demo: 3 partitions could not be judged"
    TransactionSnapshot.objects.update(unread=0, unasked=1)
    assert Page.read(client.get(address)).title == "demo: 1 partition could not be judged"
    TransactionSnapshot.objects.update(unasked=2)
    page = Page.read(client.get(address))
    assert page.title == "demo: open transactions not judged yet", "the first reading"
    assert page.find("[data-empty=unjudged]")
    assert not page.find("[data-empty=none], [data-fact=unasked]")
    TransactionSnapshot.objects.update(unasked=0, gap_count=MOST_GAPS + 4)
    assert Page.read(client.get(address)).title == "demo: 4 partitions could not be judged"
    silent = replace(STUCK, producer_id=None, verdict=TransactionVerdict.UNKNOWN)
    snapshot = TransactionSnapshot.objects.get()
    snapshot.gap_count, snapshot.unread, snapshot.taken_at = 1, 1, NOW
    snapshot.transactions = [silent.as_json()]
    snapshot.save()
    assert Page.read(client.get(address)).title == "demo: 1 partition could not be judged", "the one that is not read"


def test_group__lag_for_read_committed_ends_at_the_offset_that_stands_still(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    stored(demo)
    held = [(30, 100 + 60 * n) for n in range(10)]
    group_seen(demo, "g", {("orders", 0): held, ("orders", 1): WELL}, members={"c": {"orders": [0, 1]}})
    page = Page.read(client_of(viewer).get("/clusters/demo/groups/g/"))
    assert page.figures("[data-fact=committed-lag] b") == ["13"], "10, and 3 of partition 1"
    assert page.figures("[id=lag-orders-0] [data-committed-lag]") == ["10"]
    assert len(page.find("[data-committed-lag]")) == 1


def test_lag_for_read_committed__is_not_told_from_last_stable_offsets_that_may_be_others_now(demo: Cluster) -> None:
    topic = stored(demo)
    partitions = [partition_lag(0, 30), partition_lag(1, 80)]
    fresh = FactFreshness(NOW, 60, NOW)

    def find(freshness: FactFreshness = fresh) -> CommittedLag | None:
        return find_committed_lag(demo, ["orders"], partitions, freshness)

    lag = find()
    assert lag is not None
    assert (lag.lag, lag.partitions) == (30, {("orders", 0): 10})
    assert find_committed_lag(demo, ["orders"], partitions[1:], fresh) is None, "its last stable offset moves"
    assert find_committed_lag(demo, ["others"], partitions, fresh) is None
    assert find_committed_lag(demo, ["orders"], [partition_lag(0, 41)], fresh) is None, "the group reads past it"
    assert find(FactFreshness(NOW - timedelta(hours=1), 60, NOW)) is None
    TransactionSnapshot.objects.update(taken_at=NOW)
    assert find() is None, "the last reading did not read it"
    TransactionSnapshot.objects.update(taken_at=NOW - timedelta(seconds=3))
    assert find() is not None
    topic.topic_id = "created-again"
    topic.save()
    assert find() is None


def partition_lag(number: int, committed: int) -> PartitionLag:
    return PartitionLag("orders", number, LagState.OK, (OffsetSample(NOW.timestamp(), committed, 100),))
