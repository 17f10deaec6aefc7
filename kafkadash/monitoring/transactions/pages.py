"""Page of open transactions that hold back consumers with read_committed, with the command that ends a hanging one."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.listing import ListQuery
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.freshness import FactFreshness, not_read
from kafkadash.monitoring.models import CollectorKind, TopicState, TransactionSnapshot
from kafkadash.monitoring.transactions.rules import (
    MOST_GAPS,
    USUAL_LIMIT_S,
    StableGap,
    StuckTransaction,
    TransactionDoubt,
    TransactionVerdict,
)
from kafkadash.monitoring.transactions.stored import load_snapshot, read_gaps, read_transactions

_END_OF_TIME = datetime.max.replace(tzinfo=UTC).timestamp()
_MARKS = {
    TransactionVerdict.HANGING: ("warning", "hanging"),
    TransactionVerdict.UNKNOWN: ("unknown", "unknown"),
    TransactionVerdict.OPEN: ("ok", "open"),
}
MOST_LINES = 20
"""Partitions in the panel of a topic."""


@dataclass(frozen=True, slots=True)
class TransactionLine:
    """A transaction with its partition's ``gap``, None where that was not stored."""

    transaction: StuckTransaction
    gap: StableGap | None
    bootstrap: str
    stale: bool

    @property
    def mark(self) -> str:
        return "unknown" if self.stale else _MARKS[self.transaction.verdict][0]

    @property
    def word(self) -> str:
        word = _MARKS[self.transaction.verdict][1]
        return f"was {word}" if self.stale else word

    @property
    def doubt(self) -> CodedMessage | None:
        return coded(TransactionDoubt(self.transaction.doubt)) if self.transaction.doubt else None

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.transaction.seen_at, UTC)

    @property
    def last_record(self) -> datetime | None:
        """Time of the producer's last record, by whatever clock or event time it wrote; None where out of range."""
        at = self.transaction.last_at
        return datetime.fromtimestamp(at, UTC) if at is not None and 0 <= at < _END_OF_TIME else None

    @property
    def unlisted(self) -> bool:
        """Return whether it hangs because no coordinator listed it, which an ACL on its ID looks like too."""
        return self.transaction.verdict is TransactionVerdict.HANGING and not self.transaction.transactional_id

    @property
    def waiting(self) -> int | None:
        """Records behind the last stable offset."""
        return None if self.gap is None else self.gap.end - self.gap.stable

    @property
    def command(self) -> str:
        """Return the command that aborts a hanging transaction, "" for others, and where it is not known if it still
        hangs.
        """
        if self.stale or self.transaction.verdict is not TransactionVerdict.HANGING:
            return ""
        place = f"--topic {shlex.quote(self.transaction.topic)} --partition {self.transaction.partition}"
        server = f"kafka-transactions.sh --bootstrap-server {self.bootstrap}"
        return f"{server} abort {place} --start-offset {self.transaction.start}"


def build_lines(
    cluster: Cluster, snapshot: TransactionSnapshot | None, freshness: FactFreshness, topic: str | None = None
) -> list[TransactionLine]:
    """Return the transactions of a topic, or of all, hanging ones first."""
    gaps = {
        (name, number): gap
        for name, own in read_gaps(snapshot, None if topic is None else [topic]).items()
        for number, gap in own.gaps.items()
    }
    bootstrap, stale = cluster.bootstrap_servers.replace(" ", ""), freshness.stale
    return [
        TransactionLine(each, gaps.get((each.topic, each.partition)), bootstrap, stale)
        for each in read_transactions(snapshot)
        if topic is None or each.topic == topic
    ]


@dataclass(frozen=True, slots=True)
class StableLine:
    """Partition of a topic with its last stable offset, and its ``transactions``."""

    partition: int
    gap: StableGap
    transactions: Sequence[TransactionLine]

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.gap.since, UTC)

    @property
    def waiting(self) -> int:
        return self.gap.end - self.gap.stable


def list_stable_lines(cluster: Cluster, topic: str, topic_id: str, freshness: FactFreshness) -> list[StableLine]:
    """Return partitions of a topic whose last stable offset stands still, for longest first. One query."""
    snapshot = load_snapshot(cluster)
    own = read_gaps(snapshot, [topic]).get(topic)
    if own is None or own.topic_id != topic_id:
        return []
    by_partition: dict[int, list[TransactionLine]] = {}
    for line in build_lines(cluster, snapshot, freshness, topic):
        by_partition.setdefault(line.transaction.partition, []).append(line)
    standing = [(number, gap) for number, gap in own.gaps.items() if gap.stands_still or number in by_partition]
    standing.sort(key=lambda each: (each[1].since, each[0]))
    return [StableLine(number, gap, by_partition.get(number, [])) for number, gap in standing]


def load_standing_gaps(cluster: Cluster | int, topics: Collection[str]) -> dict[tuple[str, int], StableGap]:
    """Return partitions of these topics whose last stable offset stands still, as of the last reading. Two queries.

    Those that were not read then, and those of a topic that was created again since, are left out.
    """
    snapshot = load_snapshot(cluster)
    gaps = read_gaps(snapshot, topics)
    if snapshot is None or not gaps:
        return {}
    began = _find_begin(snapshot)
    ids = dict(TopicState.objects.filter(cluster=cluster, name__in=gaps).values_list("name", "topic_id"))
    return {
        (topic, number): gap
        for topic, own in gaps.items()
        if own.topic_id == ids.get(topic)
        for number, gap in own.gaps.items()
        if gap.stands_still and gap.read_at >= began
    }


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def transactions(request: HttpRequest, slug: str) -> HttpResponse:
    """Show transactions in partitions whose last stable offset stands still, hanging ones first."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.TRANSACTIONS)
    freshness = bar["bar_freshness"]
    snapshot = load_snapshot(cluster)
    lines = build_lines(cluster, snapshot, freshness)
    listing = ListQuery(request.GET, sorts={"state": []})
    page = listing.page_of(lines)
    context: dict[str, Any] = {
        **bar,
        "tab": "groups",
        "live_keys": [read_hint(CollectorKind.TRANSACTIONS, slug)],
        "not_read": not_read(cluster, bar["standing"].runs, [CollectorKind.TRANSACTIONS]),
        "title": _name_page(cluster.name, snapshot, lines, freshness),
        "snapshot": snapshot,
        "unjudged": snapshot is not None and _is_unjudged(snapshot),
        "freshness": freshness,
        "listing": listing,
        "page": page,
        "lines": page.object_list,
        "limit_s": snapshot.limit_s if snapshot else None,
        "usual_limit_s": USUAL_LIMIT_S,
        "unfollowed": _count_unfollowed(snapshot) if snapshot else 0,
        "most_gaps": MOST_GAPS,
    }
    return render(request, "monitoring/transactions.html", context)


def _name_page(
    name: str, snapshot: TransactionSnapshot | None, lines: Sequence[TransactionLine], freshness: FactFreshness
) -> str:
    if snapshot is None:
        return f"{name}: open transactions not read yet"
    if freshness.stale:
        return f"{name}: data of open transactions is old"
    if _is_unjudged(snapshot):
        return f"{name}: open transactions not judged yet"
    by_verdict = {verdict: [each for each in lines if each.transaction.verdict is verdict] for verdict in _MARKS}
    if hanging := by_verdict[TransactionVerdict.HANGING]:
        return f"{name}: {choose_plural('# hanging transaction|# hanging transactions', len(hanging))}"
    if number := _count_unjudged(snapshot, by_verdict[TransactionVerdict.UNKNOWN]):
        return f"{name}: {choose_plural('# partition|# partitions', number)} could not be judged"
    return f"{name}: no hanging transactions"


def _is_unjudged(snapshot: TransactionSnapshot) -> bool:
    """Return whether it is of the first reading, which cannot tell what stands still, and some partition may."""
    return 0 < snapshot.gap_count == snapshot.unasked


def _count_unjudged(snapshot: TransactionSnapshot, unknown: Iterable[TransactionLine]) -> int:
    """Count partitions: those in doubt, and others that were not read, not asked for producers, or not followed."""
    began = _find_begin(snapshot)
    doubted = {each.transaction.name for each in unknown if each.gap is None or each.gap.read_at >= began}
    return len(doubted) + snapshot.unread + snapshot.unasked + _count_unfollowed(snapshot)


def _count_unfollowed(snapshot: TransactionSnapshot) -> int:
    return max(0, snapshot.gap_count - MOST_GAPS)


def _find_begin(snapshot: TransactionSnapshot) -> float:
    """Return when the reading began, rounded as the times of gaps are."""
    return round(snapshot.taken_at.timestamp(), 3)
