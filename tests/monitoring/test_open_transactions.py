"""Open transactions: which hang, which are only open, and what is not known; the pages and the finding about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.kafka.api import CoordinatedTransaction, KafkaUnreachable, LogSpan, OpenTransaction
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.models import TransactionSnapshot
from kafkadash.monitoring.transactions.rules import (
    StableGap,
    StuckTransaction,
    TopicGaps,
    TransactionDoubt,
    TransactionVerdict,
    follow_gaps,
    is_late,
    keep_oldest,
)
from kafkadash.monitoring.transactions.stored import load_snapshot, read_transactions
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster

HANGING, OPEN, UNKNOWN = TransactionVerdict
Refresher = Callable[[str], RefreshOutcome]
Reader = Callable[[], dict[str, StuckTransaction]]


# ---- rules


@pytest.mark.domain
def test_gaps__are_followed_while_topic_and_offset_are_the_same__and_kept_where_not_read() -> None:
    before = {
        "t": TopicGaps("id", {0: StableGap(5, 9, 10, 10), 1: StableGap(5, 9, 10, 10), 2: StableGap(5, 9, 10, 10)})
    }
    spans = {"t": {0: LogSpan(5, 12, 70), 1: LogSpan(6, 12, 70), 3: LogSpan(12, 12, 70)}}

    same = follow_gaps(spans, {"t": ("id", [0, 1, 2, 3])}, before)
    anew = follow_gaps(spans, {"t": ("other id", [0, 1, 2, 3])}, before)

    followed = {0: StableGap(5, 12, 10, 70), 1: StableGap(6, 12, 70, 70), 2: StableGap(5, 9, 10, 10)}
    assert same == {"t": TopicGaps("id", followed)}
    assert {number: gap.since for number, gap in anew["t"].gaps.items()} == {0: 70, 1: 70}
    assert keep_oldest(same, 70, 2) == {"t": TopicGaps("id", {0: followed[0], 2: followed[2]})}


@pytest.mark.domain
def test_gaps__too_many_to_follow__are_new_in_turn_until_they_stand_still() -> None:
    old = StableGap(5, 9, 10, 70)
    gaps = {"t": TopicGaps("id", {number: StableGap(5, 9, 70 + number, 70 + number) for number in range(10)})}
    gaps["u"] = TopicGaps("id", {0: old})

    kept = [keep_oldest(gaps, began, 3) for began in range(60, 70)]

    assert all(each["u"].gaps == {0: old} and len(each["t"].gaps) == 2 for each in kept)
    assert len({number for each in kept for number in each["t"].gaps}) > 5


@pytest.mark.domain
def test_transaction__that_hung__stays_late_when_the_limit_grows() -> None:
    young = StuckTransaction("t", 0, 5, 1, 0, 0, None, 100.0)

    assert [is_late(young, limit, 1100.0) for limit in (900, 3600)] == [True, False]
    assert is_late(replace(young, hung=True), 3600, 1100.0)


# ---- collector


@pytest.fixture
def read(cluster: Cluster, refresh: Refresher, clock: Clock) -> Reader:
    """Refreshes a minute later, and returns the transactions by partition."""

    def read() -> dict[str, StuckTransaction]:
        clock.pass_by(60)
        assert not refresh("transactions").error
        return {each.name: each for each in read_transactions(load_snapshot(cluster))}

    return read


@pytest.mark.django_db
def test_transactions__hang_where_no_coordinator_will_end_them(
    cluster: Cluster, kafka: MemoryCluster, refresh: Refresher, read: Reader, clock: Clock
) -> None:
    """Partition 3 has a late transaction that ends while coordinators are asked, partition 4 a young one."""
    late, young = clock() - 3600, clock()
    for number, at in enumerate([late, late, late, late, young]):
        kafka.add("t", number, 1).transactions = [OpenTransaction(number, 40, at, 2, 7)]
    refresh("metadata")
    included = CoordinatedTransaction("busy", "Ongoing", frozenset({("t", 2)}))
    idle = CoordinatedTransaction("idle", "Empty", frozenset())
    kafka.coordinated = replace(kafka.coordinated, described={1: idle, 2: included})
    calls: list[str] = []
    answer = kafka._answer

    def end_one(call: str) -> None:
        calls.append(call)
        if call == "coordinated_transactions":
            kafka.topics["t"][3].transactions = []
        answer(call)

    kafka._answer = end_one  # type: ignore[method-assign]
    assert read() == {}
    assert calls == ["log_spans"], "nothing stands still yet"
    assert TransactionSnapshot.objects.get().unasked == 5, "any of them may"
    found = read()

    assert {name: (each.verdict, each.transactional_id) for name, each in found.items()} == {
        "t-0": (HANGING, ""),
        "t-1": (HANGING, "idle"),
        "t-2": (OPEN, "busy"),
        "t-4": (OPEN, ""),
    }
    assert (found["t-0"].start, found["t-0"].producer_epoch, found["t-0"].coordinator_epoch) == (40, 2, 7)
    snapshot = TransactionSnapshot.objects.get()
    assert (snapshot.gap_count, snapshot.unread, snapshot.unasked, snapshot.limit_s) == (5, 0, 0, None)


@pytest.mark.django_db
def test_transactions__in_doubt__close_no_finding(
    cluster: Cluster, kafka: MemoryCluster, refresh: Refresher, read: Reader, clock: Clock
) -> None:
    log = kafka.add("t", 0, 1)
    log.transactions = opened = [OpenTransaction(1, 40, clock() + 9e6)]  # its producer's clock is ahead
    refresh("metadata")
    read()
    assert read()["t-0"].verdict is OPEN
    clock.pass_by(900)
    assert read()["t-0"].verdict is HANGING
    assert is_open(cluster)

    well = kafka.coordinated
    for coordinated, doubt in (
        (replace(well, sees_all=False), TransactionDoubt.IDS_HIDDEN),
        (replace(well, complete=False), TransactionDoubt.COORDINATORS_SILENT),
        (replace(well, described={1: None}), TransactionDoubt.COORDINATORS_SILENT),
    ):
        kafka.coordinated = coordinated
        assert (read()["t-0"].verdict, read()["t-0"].doubt) == (UNKNOWN, doubt.value)
        assert is_open(cluster)
    kafka.coordinated = well
    for call in ("open_transactions", "coordinated_transactions"):
        kafka.fail_calls = {call: KafkaUnreachable(KafkaErrorCode.NODE_TOO_SLOW, who="broker 2")}
        assert read()["t-0"].verdict is UNKNOWN
        assert is_open(cluster)
    kafka.fail_calls = {}
    log.transactions = None  # its leader tells nothing, and its log end is not read either
    kafka.silent = {1}
    kafka.add("t", 1, 2)
    refresh("metadata")
    assert read()["t-0"].doubt == TransactionDoubt.PRODUCERS_NOT_TOLD.value
    assert is_open(cluster)

    kafka.silent = set()
    log.transactions = opened
    assert read()["t-0"].verdict is HANGING
    log.transactions = []
    assert read() == {}
    assert not is_open(cluster)


def is_open(cluster: Cluster) -> bool:
    snapshot = TransactionSnapshot.objects.get(cluster=cluster)
    judge(cluster.pk, snapshot.taken_at + timedelta(seconds=1))
    rows = Finding.objects.filter(cluster=cluster, kind=FindingKind.HANGING_TRANSACTION, closed_at=None)
    return rows.filter(opened_at__isnull=False).exists()
