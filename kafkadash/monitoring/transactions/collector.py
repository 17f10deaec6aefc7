"""Collector of open transactions: last stable offsets of all partitions, and who holds those that stand still."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import WriteStamp
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.kafka.api import CoordinatedTransactions, KafkaFailure, OpenTransaction
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts, log_errors, refuse_all_unread, to_utc
from kafkadash.monitoring.models import BrokerState, ConfigCatalog, TopicState, TransactionSnapshot
from kafkadash.monitoring.transactions.rules import (
    MAX_TIMEOUT,
    MOST_ASKED,
    MOST_KEPT,
    USUAL_LIMIT_S,
    StuckTransaction,
    TransactionVerdict,
    build_transactions,
    confirm_hanging,
    follow_gaps,
    is_late,
    judge_transaction,
    keep_oldest,
    list_suspects,
    rank_transactions,
)
from kafkadash.monitoring.transactions.stored import load_snapshot, pack_gaps, read_gaps, read_transactions

_Opened = Mapping[str, Mapping[int, Sequence[OpenTransaction]]]


def read(asking: CollectContext) -> CollectedFacts:
    """Read the last stable offsets of all partitions that are stored. Raises KafkaFailure when no leader answered."""
    with without_search_for_cycles():
        topics = _read_topics(asking.cluster)
        asking.step()
        spans = asking.groups.unstable_spans(
            {topic: partitions for topic, (_, partitions) in topics.items()}, deadline=asking.deadline
        )
        refuse_all_unread(spans)
        stored = load_snapshot(asking.cluster)
        before = read_transactions(stored)
        gaps = follow_gaps(spans.spans, topics, read_gaps(stored))
    gap_count = sum(len(own.gaps) for own in gaps.values())
    suspects = list_suspects(gaps, spans.taken_at, before)
    asked = suspects[:MOST_ASKED]
    limit_s = _find_limit(asking.cluster)
    opened = _ask_producers(asking, [(topic, number) for topic, number, _ in asked])
    found = _judge(asking, build_transactions(asked, opened, before), limit_s or USUAL_LIMIT_S, spans.taken_at)
    snapshot = TransactionSnapshot(
        cluster=asking.cluster,
        taken_at=to_utc(spans.taken_at),
        gaps=pack_gaps(keep_oldest(gaps, spans.taken_at)),
        gap_count=gap_count,
        unread=sum(map(len, spans.errors.values())),
        unasked=gap_count if stored is None else len(suspects) - len(asked),
        transactions=[each.as_json() for each in found[:MOST_KEPT]],
        transaction_count=len(found),
        limit_s=limit_s,
    )

    def write(_: WriteStamp) -> None:
        names = [field.name for field in TransactionSnapshot._meta.concrete_fields]
        TransactionSnapshot.objects.bulk_create(
            [snapshot],
            update_conflicts=True,
            unique_fields=["cluster"],
            update_fields=[name for name in names if name not in ("id", "cluster")],
        )

    return CollectedFacts(
        taken_at=snapshot.taken_at,
        rows=sum(map(len, spans.spans.values())),
        write=write,
        errors=list(log_errors(spans)),
    )


def _read_topics(cluster: Cluster) -> dict[str, tuple[str, list[int]]]:
    rows = TopicState.objects.filter(cluster=cluster).values_list("name", "topic_id", "partitions")
    return {
        name: (topic_id, [each[0] for each in partitions])
        for name, topic_id, partitions in rows.iterator(chunk_size=500)
    }


def _find_limit(cluster: Cluster) -> float | None:
    """Return the longest time that a broker lets a transaction be open, in seconds; None unless all are known."""
    configs = list(BrokerState.objects.filter(cluster=cluster, gone_at=None).values_list("config", flat=True))
    catalog = ConfigCatalog.objects.filter(cluster=cluster).values_list("brokers", flat=True).first() or {}
    inherited = catalog.get(MAX_TIMEOUT, (0, True, False, None))[3]
    values = [None if config is None else config.get(MAX_TIMEOUT, inherited) for config in configs]
    known = [int(value[0]) for value in values if value and value[0] is not None and value[0].isdecimal()]
    return max(known) / 1000 if known and len(known) == len(values) else None


def _ask_producers(asking: CollectContext, places: Iterable[tuple[str, int]]) -> _Opened:
    """Return nothing where no leader answers, which does not fail the refresh."""
    wanted: dict[str, set[int]] = {}
    for topic, number in places:
        wanted.setdefault(topic, set()).add(number)
    if not wanted:
        return {}
    asking.step()
    try:
        return asking.groups.open_transactions(wanted, deadline=asking.deadline)
    except KafkaFailure:
        return {}


def _ask_coordinators(asking: CollectContext, producers: Collection[int]) -> CoordinatedTransactions | None:
    asking.step()
    try:
        return asking.groups.coordinated_transactions(producers, deadline=asking.deadline)
    except KafkaFailure:
        return None


def _judge(
    asking: CollectContext, transactions: Sequence[StuckTransaction], limit_s: float, now: float
) -> list[StuckTransaction]:
    """Return all transactions, the late ones judged by what their coordinators say after the leaders."""
    late: list[StuckTransaction] = []
    others: list[StuckTransaction] = []
    producers: set[int] = set()
    for each in transactions:
        if each.producer_id is None or not is_late(each, limit_s, now):
            others.append(each)
        else:
            late.append(each)
            producers.add(each.producer_id)
    if not late:
        return rank_transactions(others)
    known = _ask_coordinators(asking, sorted(producers))
    judged = [judge_transaction(each, known) for each in late]
    hanging = [(each.topic, each.partition) for each in judged if each.verdict is TransactionVerdict.HANGING]
    confirmed = confirm_hanging(judged, _ask_producers(asking, hanging))
    return rank_transactions([*others, *confirmed])
