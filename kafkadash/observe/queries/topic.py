"""One topic: its partitions, where they lie, what moves, how it is set up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import F
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.partition_state import PartitionTrouble
from kafkadash.domain.rack_spread import Spread
from kafkadash.domain.throttles import LISTS
from kafkadash.domain.whole_numbers import LARGEST_INT, read_whole_number
from kafkadash.domain.wording import count, duration
from kafkadash.observe.broker_replicas import leader_sizes
from kafkadash.observe.config_rows import config_rows
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import (
    CollectorRun,
    Kind,
    ThrottledResource,
    ThrottleState,
    TopicState,
)
from kafkadash.observe.partition_rows import PartitionLine, partition_lines, rack_labels, running_moves
from kafkadash.observe.queries.group_list import readers_of
from kafkadash.observe.rack_judge import RackJudge
from kafkadash.observe.rack_words import fix_words
from kafkadash.observe.reassignment_rows import ReassignmentRow
from kafkadash.observe.standing import Freshness, freshness_of, metadata_freshness, silent_brokers
from kafkadash.observe.throttle_rows import list_words

MIN_ISR = "min.insync.replicas"
MOST_MOVES = 25
MOST_GROUPS = 25
STATES = Choice(
    "state",
    "state",
    {
        "offline": "Offline",
        "under-min-isr": "Under min-ISR",
        "at-min-isr": "At min-ISR",
        "under-replicated": "Under-replicated",
        "racks": "Rack violation",
        "moving": "Moving",
        "not-preferred": "Not led as preferred",
    },
)


@dataclass(frozen=True)
class TopicPartition:
    """A partition with its spread over the racks; ``spread`` is None where racks cannot be judged."""

    line: PartitionLine
    spread: Spread | None

    @property
    def rack_words(self) -> str:
        return fix_words(self.spread) if self.spread is not None and self.spread.violates else ""


_IS: Mapping[str, Callable[[TopicPartition], bool]] = {
    "offline": lambda p: p.line.trouble is PartitionTrouble.OFFLINE,
    "under-min-isr": lambda p: _in_sync_is(p, lambda held, needed: held < needed),
    "at-min-isr": lambda p: _in_sync_is(p, lambda held, needed: held == needed),
    "under-replicated": lambda p: p.line.shape.under_replicated,
    "racks": lambda p: p.spread is not None and p.spread.violates,
    "moving": lambda p: p.line.move is not None,
    "not-preferred": lambda p: p.line.preferred is False,
}


def partition_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[STATES],
        texts=["broker"],
        sorts={"partition": [F("partition")], "size": [F("size")], "state": [F("state")]},
        descending_first={"size"},
    )


def topic_context(
    cluster: Cluster, topic: TopicState, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    freshness = metadata_freshness(runs, now)
    moves = running_moves(cluster, [topic.name])
    racks = RackJudge(cluster)
    labels = rack_labels(cluster)
    silent = silent_brokers(cluster)
    every = [TopicPartition(line, racks.judge(line)) for line in partition_lines([topic], moves, labels, silent)]
    kept = _chosen(every, listing)
    sizes = None
    if listing.sort == "size":
        sizes = leader_sizes(cluster, topic.name, {p.line.number: p.line.leader for p in kept})
    page = listing.page_of(_sorted(kept, listing, sizes or {}))
    if sizes is None:
        sizes = leader_sizes(cluster, topic.name, {p.line.number: p.line.leader for p in page.object_list})
    configs = runs.get(Kind.CONFIGS)
    lists = ThrottleState.objects.filter(cluster=cluster, resource=ThrottledResource.TOPIC, name=topic.name)
    config = topic.config or {}
    readers = readers_of(cluster, topic.name, runs.get(Kind.GROUPS), now, MOST_GROUPS + 1)
    return {
        "topic": topic,
        "listing": listing,
        "page": page,
        "rows": [
            TopicPartition(replace(p.line, size_bytes=sizes.get(p.line.number)), p.spread) for p in page.object_list
        ],
        "counts": {name: sum(map(matches, every)) for name, matches in _IS.items()},
        "segments": [(name, word) for name, word in STATES.words.items()],
        "freshness": freshness,
        "disk_freshness": freshness_of(runs.get(Kind.LOG_DIRS), now),
        "config_freshness": freshness_of(configs, now),
        "title": _title(topic, every, freshness),
        "configs": config_rows(topic.config),
        "min_isr_source": config[MIN_ISR][1] if MIN_ISR in config else "default",
        "racks_sentence": racks.why_not,
        "rack_violations": sum(p.spread is not None and p.spread.violates for p in every) if racks.known else None,
        "moves": [ReassignmentRow(row, now) for _, row in sorted(moves.items())[:MOST_MOVES]],
        "moves_more": len(moves) > MOST_MOVES,
        "throttle_lists": [ListRow(row, list_words(row.value)) for row in lists.filter(key__in=LISTS).order_by("key")],
        "groups": readers[:MOST_GROUPS],
        "groups_more": len(readers) > MOST_GROUPS,
        "group_freshness": freshness_of(runs.get(Kind.GROUPS), now),
        "throttles_known": bool(configs and configs.succeeded_at),
    }


def _chosen(every: Sequence[TopicPartition], listing: Listing) -> list[TopicPartition]:
    kept = list(every)
    if state := listing.values["state"]:
        kept = [p for p in kept if _IS[state](p)]
    if typed := listing.values["broker"]:
        broker = read_whole_number(typed, LARGEST_INT)
        if broker is None:
            listing.problems.append(message_text(CollectionErrorCode.PARTITIONS_NO_BROKER, typed=typed[:60]))
            listing.values["broker"] = ""
        else:
            kept = [p for p in kept if broker in p.line.replicas]
    return kept


def _sorted(kept: list[TopicPartition], listing: Listing, sizes: Mapping[int, int]) -> list[TopicPartition]:
    """Unknown sizes come last whichever way."""
    sign = -1 if listing.descending else 1
    keys: Mapping[str, Callable[[TopicPartition], Any]] = {
        "partition": lambda p: sign * p.line.number,
        "state": lambda p: (sign * p.line.trouble.rank, p.line.number),
        "size": lambda p: (p.line.number not in sizes, sign * sizes.get(p.line.number, 0), p.line.number),
    }
    return sorted(kept, key=keys[listing.sort])


def _in_sync_is(partition: TopicPartition, compare: Callable[[int, int], bool]) -> bool:
    """As Kafka's own tool counts; nothing is said of a topic whose min.insync.replicas is not known."""
    needed = partition.line.topic.min_isr
    return needed is not None and compare(len(set(partition.line.isr)), needed)


@dataclass(frozen=True, slots=True)
class ListRow:
    """A list of throttled replicas in words."""

    row: ThrottleState
    words: str


def _title(topic: TopicState, every: Sequence[TopicPartition], freshness: Freshness) -> str:
    partitions = count(len(every), "partition")
    if freshness.stale and freshness.age_s is not None:
        return f"Cannot tell how {topic.name} is: it had {partitions} {duration(freshness.age_s)} ago."
    troubles = Counter(p.line.trouble for p in every)
    for trouble, words in (
        (PartitionTrouble.OFFLINE, ("is offline", "are offline")),
        (PartitionTrouble.LEADER_SILENT, ("has a leader that does not answer", "have leaders that do not answer")),
        (PartitionTrouble.UNDER_MIN_ISR, ("refuses writes: under min-ISR", "refuse writes: under min-ISR")),
        (PartitionTrouble.AT_MIN_ISR, ("is at min-ISR", "are at min-ISR")),
        (PartitionTrouble.UNDER_REPLICATED, ("is under-replicated", "are under-replicated")),
        (
            PartitionTrouble.IN_DOUBT,
            ("has a replica on a broker that does not answer", "have replicas on brokers that do not answer"),
        ),
        (PartitionTrouble.CATCHING_UP, ("is moving", "are moving")),
    ):
        number = troubles[trouble]
        if number:
            return f"{number:,} of {partitions} of {topic.name} {words[0] if number == 1 else words[1]}."
    if len(every) == 1:
        return f"The only partition of {topic.name} has all its replicas in sync."
    return f"All {partitions} of {topic.name} have all their replicas in sync."
