"""One broker: how it is, what it hosts, what is wrong with that, how it is set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Avg, F, Q
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.partition_state import PartitionTrouble
from kafkadash.domain.skew import skew_percent
from kafkadash.domain.wording import count, duration
from kafkadash.observe.broker_replicas import sizes_by_topic, topics_hosted_by
from kafkadash.observe.config_rows import config_rows
from kafkadash.observe.listing import Listing
from kafkadash.observe.models import (
    BrokerState,
    BrokerWeights,
    ClusterState,
    CollectorRun,
    Kind,
    Outcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.observe.partition_rows import PartitionLine, partition_lines, rack_labels, running_moves
from kafkadash.observe.queries.broker_list import Skew
from kafkadash.observe.queries.brokers import broker_state, broker_word, directory_row
from kafkadash.observe.reassignment_rows import ReassignmentRow
from kafkadash.observe.standing import UP, Freshness, freshness_of, metadata_freshness
from kafkadash.observe.throttle_rows import Throttles

MOST_TROUBLED = 25
MOST_MOVES = 25
TOPICS_PAGE = 25


@dataclass(frozen=True, slots=True)
class HostedTopic:
    """A topic on this broker. ``size_bytes`` is what its replicas take here; ``state`` None: no longer in metadata."""

    name: str
    size_bytes: int | None
    state: TopicState | None
    replicas: int | None
    leaders: int | None

    @property
    def partitions(self) -> int | None:
        return self.state.partition_count if self.state else None


def broker_listing(query: QueryDict) -> Listing:
    """The list of topics on a broker's page has an order and pages of its own."""
    return Listing(query, sorts={"size": [F("size_bytes")]}, descending_first={"size"})


def broker_context(
    cluster: Cluster, broker: BrokerState, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    freshness = metadata_freshness(runs, now)
    state, word = broker_state(broker, freshness)
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id=broker.broker_id).first()
    disk_interval = runs[Kind.LOG_DIRS].interval_s if Kind.LOG_DIRS in runs else 60.0
    configs = runs.get(Kind.CONFIGS)
    throttles = Throttles(cluster, known=bool(configs and configs.succeeded_at), brokers=[broker.broker_id])
    config_interval = configs.interval_s if configs else 30.0
    rates = throttles.rates(broker)
    page, topics = _hosted(cluster, broker.broker_id, weights, listing)
    return {
        "broker": broker,
        "listing": listing,
        "state": state,
        "word": word,
        "title": _title(broker, freshness, now),
        "freshness": freshness,
        "directories": [directory_row(d) for d in weights.dirs] if weights else None,
        "disk_freshness": Freshness(weights.taken_at if weights else None, disk_interval, now),
        "throttles_known": rates is not None,
        "rates": rates,
        "throttles_freshness": freshness_of(configs, now),
        "configs": config_rows(broker.config),
        "config_freshness": Freshness(broker.config_at, config_interval, now),
        "page": page,
        "topics": topics,
        **_against_the_mean(cluster, broker),
        **_troubled(cluster, broker.broker_id),
        **_moves(cluster, broker.broker_id, now),
    }


def _hosted(
    cluster: Cluster, broker: int, weights: BrokerWeights | None, listing: Listing
) -> tuple[Any, list[HostedTopic]]:
    """Largest first by what was last read from its directories; without that, by name from metadata."""
    if weights is not None:
        sizes = {topic: sum(replicas.values()) for topic, replicas in sizes_by_topic(weights).items()}
        names = sorted(sizes, key=lambda name: (-sizes[name], name))
    else:
        sizes = {}
        names = list(topics_hosted_by(cluster, broker).order_by("name").values_list("name", flat=True))
    page = listing.page_of(names, TOPICS_PAGE)
    states = {t.name: t for t in TopicState.objects.filter(cluster=cluster, name__in=list(page.object_list))}
    rows = []
    for name in page.object_list:
        state = states.get(name)
        lines = list(partition_lines([state], {})) if state else []
        rows.append(
            HostedTopic(
                name=name,
                size_bytes=sizes.get(name),
                state=state,
                replicas=sum(broker in line.replicas for line in lines) if state else None,
                leaders=sum(line.leader == broker for line in lines) if state else None,
            )
        )
    return page, rows


def _against_the_mean(cluster: Cluster, broker: BrokerState) -> dict[str, Any]:
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    means = BrokerState.objects.filter(UP, cluster=cluster).aggregate(replicas=Avg("replicas"), leaders=Avg("leaders"))
    up = broker_word(broker) == "up"
    replicas = skew_percent(broker.replicas, means["replicas"], figures.partitions) if up else None
    leaders = skew_percent(broker.leaders, means["leaders"], figures.partitions) if up else None
    return {
        "replica_skew": None if replicas is None else Skew(replicas),
        "leader_skew": None if leaders is None else Skew(leaders),
    }


def _troubled(cluster: Cluster, broker: int) -> dict[str, Any]:
    """Partitions with a replica here that are offline or miss replicas; the worst first, at most ``MOST_TROUBLED``."""
    anything = Q(offline_partitions__gt=0) | Q(under_replicated__gt=0) | Q(under_min_isr__gt=0)
    topics = list(
        topics_hosted_by(cluster, broker)
        .filter(anything)
        .order_by("-offline_partitions", F("under_min_isr").desc(nulls_last=True), "-under_replicated", "name")[
            : MOST_TROUBLED + 1
        ]
    )
    moves = running_moves(cluster, [topic.name for topic in topics])
    quiet = (PartitionTrouble.NONE, PartitionTrouble.CATCHING_UP)
    lines: list[PartitionLine] = [
        line
        for line in partition_lines(topics, moves, rack_labels(cluster))
        if broker in line.replicas and line.trouble not in quiet
    ]
    lines.sort(key=lambda line: (line.trouble.rank, line.topic.name, line.number))
    return {
        "troubled": lines[:MOST_TROUBLED],
        "troubled_more": len(lines) > MOST_TROUBLED or len(topics) > MOST_TROUBLED,
    }


def _moves(cluster: Cluster, broker: int, now: datetime) -> dict[str, Any]:
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING).filter(
        Q(adding__contains=[broker]) | Q(removing__contains=[broker])
    )
    shown = running.order_by("started_before", "topic", "partition")[: MOST_MOVES + 1]
    rows = [ReassignmentRow(row, now) for row in shown]
    return {"moves": rows[:MOST_MOVES], "moves_more": len(rows) > MOST_MOVES}


def _title(broker: BrokerState, freshness: Freshness, now: datetime) -> str:
    if freshness.stale and freshness.age_s is not None:
        was = broker_word(broker)
        return f"Cannot tell how broker {broker.broker_id} is: it was {was} {duration(freshness.age_s)} ago."
    name = f"Broker {broker.broker_id}"
    assigned = count(broker.replicas, "replica")
    if broker.gone_at is not None:
        left = broker.gone_at.astimezone(UTC)
        when = f"{left:%H:%M} UTC" if (now - left).total_seconds() < 72_000 else f"{left.day} {left:%b %H:%M} UTC"
        rest = f"{assigned} {'is' if broker.replicas == 1 else 'are'} still assigned to it"
        return f"{name} is gone since {when}; {rest if broker.replicas else 'nothing is assigned to it'}."
    if broker.fenced:
        rest = f"{assigned} {'is' if broker.replicas == 1 else 'are'} out of service"
        return f"{name} is fenced: {rest if broker.replicas else 'it hosts no replica'}."
    if broker.silent_since is not None:
        led = count(broker.leaders, "partition")
        rest = f"the {led} that it leads {'is' if broker.leaders == 1 else 'are'} not served"
        return f"{name} does not answer: {rest if broker.leaders else 'it leads no partition'}."
    return f"{name} is up and leads {count(broker.leaders, 'partition')}."
