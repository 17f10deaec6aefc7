"""Configs of topics and brokers that are not Kafka's default, with their source; the throttles among them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from django.db.models import Sum

from kafkadash.clusters.models import Cluster
from kafkadash.domain.topology import PartitionShape, health
from kafkadash.domain.whole_numbers import LARGEST_INT, read_whole_number
from kafkadash.kafka.port import (
    CLUSTER_DEFAULT,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    Configs,
    ItemError,
    KafkaFailure,
    NotAuthorized,
    OngoingReassignment,
)
from kafkadash.kafka.port import ConfigSource as KafkaSource
from kafkadash.observe.collectors.metadata import store_figures
from kafkadash.observe.collectors.reading import AUTHORIZATION_FAILED, Asking, Reading, moment, silent
from kafkadash.observe.collectors.throttles import compare_throttles, source_of, what_moves
from kafkadash.observe.collectors.writing import portioned, update_rows
from kafkadash.observe.lease import Stamp, one_writer_of_shapes
from kafkadash.observe.models import BrokerState, TopicState

MIN_ISR = "min.insync.replicas"
_UNKNOWN_TOPIC_OR_PARTITION = 3
Packed = dict[str, list[str | None]]
T = TypeVar("T")


def read(asking: Asking) -> Reading:
    """Asks every broker for itself, and any of them for the topics that are known.

    What may not be read is not known any more, and an error says which permission is missing. A broker that does not
    answer keeps what was last known of it, with its age.
    """
    cluster = asking.cluster
    answers = _ask(asking)
    brokers, topics, known = answers.brokers, answers.topics, answers.known
    taken_at = moment(min(brokers.taken_at, topics.taken_at))
    errors = {**brokers.errors, **topics.errors}
    if errors and not brokers.resources and not topics.resources:
        raise NotAuthorized(" ".join(_told_once(errors)))  # all of it is refused: what is silent raises by itself
    throttles = compare_throttles(
        cluster,
        {**brokers.resources, **topics.resources},
        lambda resource: _is_gone(resource, known, errors),
        None if answers.moving is None else what_moves(cluster, answers.moving),
        taken_at,
    )
    topic_changes = _changed_topics(known, topics.resources, topics.errors)
    broker_changes, broker_unchanged = _changed_brokers(cluster, brokers.resources, taken_at)
    portions = [partial(_write_topics, cluster, part) for part in portioned(topic_changes)]

    def write(_: Stamp) -> None:
        one_writer_of_shapes(cluster.pk)
        if portions:
            store_figures(cluster, _min_isr_figures(cluster))
        update_rows(BrokerState, broker_changes)
        BrokerState.objects.filter(pk__in=broker_unchanged).update(config_at=taken_at)
        throttles.write()
        if throttles.orphans is not None:
            store_figures(cluster, {"orphan_throttles": throttles.orphans})

    unread = {int(r.name): error for r, error in brokers.errors.items() if r != CLUSTER_DEFAULT}
    return Reading(
        taken_at=taken_at,
        rows=len(brokers.resources.keys() - {CLUSTER_DEFAULT}) + len(topics.resources),
        write=write,
        portions=portions,
        not_answered=sorted(silent(unread) | answers.fenced),
        errors=list(answers.told()),
    )


@dataclass(frozen=True, slots=True)
class _Answers:
    """What Kafka said. ``moving`` is None where the listing of what moves failed, and ``not_listed`` says why."""

    known: Mapping[str, _KnownTopic]
    fenced: frozenset[int]
    brokers: Configs
    topics: Configs
    moving: Sequence[OngoingReassignment] | None
    not_listed: str

    def told(self) -> Iterator[str]:
        """A sentence for everything that was not read."""
        yield from _told_once(self.brokers.errors)
        yield from _told_once(self.topics.errors)
        yield from (f"broker {broker} is fenced and was not asked" for broker in sorted(self.fenced))
        if self.not_listed:
            yield f"whether throttles are still needed is not known: {self.not_listed}"


def _ask(asking: Asking) -> _Answers:
    """Which brokers there are, their configs with the cluster's default, those of the topics, and what moves."""
    admin, deadline = asking.admin, asking.deadline
    asking.step()
    described = admin.describe_cluster(deadline=deadline)
    live = {b.id for b in described.brokers if not b.fenced}
    fenced = frozenset(b.id for b in described.brokers if b.fenced) - live
    asking.step()
    brokers = admin.describe_configs([CLUSTER_DEFAULT, *map(ConfigResource.broker, sorted(live))], deadline=deadline)
    known = _known_topics(asking.cluster)
    asking.step()
    topics = admin.describe_configs([ConfigResource.topic(name) for name in known], deadline=deadline)
    asking.step()
    moving, not_listed = _attempt(lambda: admin.list_reassignments(deadline=deadline).rows)
    return _Answers(known, fenced, brokers, topics, moving, not_listed)


def _write_topics(cluster: Cluster, changes: Mapping[int, Mapping[str, object]]) -> None:
    one_writer_of_shapes(cluster.pk)
    update_rows(TopicState, changes)


@dataclass(frozen=True, slots=True)
class _KnownTopic:
    pk: int
    config_shape: str
    min_isr: int | None


def _known_topics(cluster: Cluster) -> dict[str, _KnownTopic]:
    rows = TopicState.objects.filter(cluster=cluster).values_list("name", "pk", "config_shape", "min_isr")
    return {row[0]: _KnownTopic(*row[1:]) for row in rows}


def _changed_topics(
    known: Mapping[str, _KnownTopic],
    read: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
    errors: Mapping[ConfigResource, ItemError],
) -> dict[int, dict[str, object]]:
    """Primary key → new values, for topics whose config differs from the stored one, or may not be read any more."""
    changes: dict[int, dict[str, object]] = {}
    recount: dict[int, int | None] = {}
    for resource, entries in read.items():
        before = known[resource.name]
        config, min_isr = pack(entries), _min_isr(entries)
        shape = _digest(config, min_isr)
        if shape != before.config_shape:
            changes[before.pk] = {"config": config, "config_shape": shape, "min_isr": min_isr}
            recount[before.pk] = min_isr
    for resource, error in errors.items():
        before = known[resource.name]
        if error.code in AUTHORIZATION_FAILED and before.config_shape:
            changes[before.pk] = {"config": None, "config_shape": "", "min_isr": None}
            recount[before.pk] = None
    for pk, partitions in TopicState.objects.filter(pk__in=recount).values_list("pk", "partitions").iterator():
        shapes = [PartitionShape(p[1], tuple(p[3]), tuple(p[4])) for p in partitions]
        counts = health(shapes, recount[pk])
        changes[pk] |= {"under_min_isr": counts.under_min_isr, "at_min_isr": counts.at_min_isr}
    return {pk: values for pk, values in sorted(changes.items()) if "under_min_isr" in values}


def _changed_brokers(
    cluster: Cluster, read: Mapping[ConfigResource, Mapping[str, ConfigEntry]], taken_at: datetime
) -> tuple[dict[int, dict[str, object]], list[int]]:
    """Primary key → new values where a broker's config changed, and the primary keys of those where it did not."""
    changed: dict[int, dict[str, object]] = {}
    unchanged: list[int] = []
    for pk, broker, before in BrokerState.objects.filter(cluster=cluster).values_list("pk", "broker_id", "config"):
        entries = read.get(ConfigResource.broker(broker))
        if entries is None:
            continue
        config = pack(entries)
        if config == before:
            unchanged.append(pk)
        else:
            changed[pk] = {"config": config, "config_at": taken_at}
    return changed, unchanged


def pack(entries: Mapping[str, ConfigEntry]) -> Packed:
    """{key: [value, source]} of what is not Kafka's default."""
    return {
        entry.name: [entry.value, str(source_of(entry))]
        for entry in entries.values()
        if entry.source is not KafkaSource.DEFAULT_CONFIG
    }


def _min_isr(entries: Mapping[str, ConfigEntry]) -> int | None:
    entry = entries.get(MIN_ISR)
    return read_whole_number(entry.value, LARGEST_INT) if entry and entry.value else None


def _digest(config: Packed, min_isr: int | None) -> str:
    text = json.dumps([config, min_isr], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _min_isr_figures(cluster: Cluster) -> dict[str, int | None]:
    """Sums over the topics whose min.insync.replicas is known, as the metadata collector counts them."""
    return TopicState.objects.filter(cluster=cluster).aggregate(
        under_min_isr=Sum("under_min_isr"), at_min_isr=Sum("at_min_isr")
    )


def _is_gone(
    resource: ConfigResource, known: Mapping[str, _KnownTopic], errors: Mapping[ConfigResource, ItemError]
) -> bool:
    if resource.type is not ConfigResourceType.TOPIC:
        return False
    error = errors.get(resource)
    return resource.name not in known or (error is not None and error.code == _UNKNOWN_TOPIC_OR_PARTITION)


def _told_once(errors: Mapping[ConfigResource, ItemError]) -> Iterable[str]:
    """One sentence for each reason, however many topics it concerns. A topic that was deleted meanwhile is none."""
    alike: dict[tuple[int | None, str], list[ItemError]] = {}
    for error in errors.values():
        if error.code != _UNKNOWN_TOPIC_OR_PARTITION:
            alike.setdefault((error.code, "" if error.code else error.text), []).append(error)
    for same in alike.values():
        others = len(same) - 1
        yield same[0].text + (f" The same for {others} more." if others else "")


def _attempt(question: Callable[[], T]) -> tuple[T | None, str]:
    """What came back, or the sentence that says why nothing did."""
    try:
        return question(), ""
    except KafkaFailure as failure:
        return None, str(failure)
