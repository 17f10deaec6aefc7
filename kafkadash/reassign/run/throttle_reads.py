"""What stands in the cluster at the places of a ledger: which of them are read in a step, and what they show.

Not all of it in every step: while nothing changes, a run with hundreds of topics would ask for hundreds of lists every
two seconds to learn nothing. What is not sure is read in each step: calls without an answer, and what others took away
less than a minute ago. The rest every ``EVERY`` seconds, so soon a change by somebody else shows. And in any case what
is about to be touched is read right before, because what is restored depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from kafkadash.domain.ledger import Entry, EntryState, Place, Read, Source
from kafkadash.domain.messages import message_text
from kafkadash.domain.throttles import LISTS, RATES
from kafkadash.domain.wording import capital
from kafkadash.kafka.port import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    Configs,
    ItemError,
    KafkaAdmin,
    KafkaFailure,
)
from kafkadash.kafka.port import ConfigSource as KafkaSource
from kafkadash.observe.models import ThrottledResource, ThrottleState
from kafkadash.reassign.errors import ReassignmentErrorCode

EVERY = timedelta(seconds=10)

_UNKNOWN_TOPIC_OR_PARTITION = 3
_KEYS = (*RATES, *LISTS)
_SOURCES: Mapping[KafkaSource, Source] = {
    KafkaSource.DYNAMIC_TOPIC_CONFIG: Source.TOPIC,
    KafkaSource.DYNAMIC_BROKER_CONFIG: Source.BROKER,
    KafkaSource.DYNAMIC_DEFAULT_BROKER_CONFIG: Source.CLUSTER_DEFAULT,
    KafkaSource.STATIC_BROKER_CONFIG: Source.STATIC,
    KafkaSource.DEFAULT_CONFIG: Source.DEFAULT,
}


def due(entries: Iterable[Entry], now: datetime, read_at: datetime | None) -> tuple[list[Place], bool]:
    """Places that are read in this step before anything is decided, and whether those are all there are."""
    everything = read_at is None or now - read_at >= EVERY
    return [entry.place for entry in entries if everything or _unsure(entry, now)], everything


def _unsure(entry: Entry, now: datetime) -> bool:
    under_way = entry.state in (EntryState.INTENT, EntryState.CLEARING)
    return (
        under_way
        or entry.missing_at is not None
        or (entry.lost_at is not None and entry.state is not EntryState.OBLIGED)
        or (entry.again_at is not None and entry.open and not entry.may_set_again(now))
    )


def read(
    client: KafkaAdmin, places: Collection[Place], alive: Collection[int], *, deadline: float
) -> dict[Place, Read]:
    """Each place with what stands there, or why that is not known; a broker that is not ``alive`` is not asked."""
    asked = {place: resource_of(place) for place in places if place.resource != ThrottledResource.BROKER}
    reads = {}
    for place in places:
        if place.resource == ThrottledResource.BROKER:
            if int(place.name) in alive:
                asked[place] = resource_of(place)
            else:
                reads[place] = Read(
                    unreadable=message_text(ReassignmentErrorCode.BROKER_OF_THROTTLE_AWAY, broker=place.name)
                )
    if not asked:
        return reads
    try:
        answer = client.describe_configs(set(asked.values()), deadline=deadline, keys=_KEYS)
    except KafkaFailure as failure:
        return reads | {place: Read(unreadable=str(failure)) for place in asked}
    return reads | {place: _read(answer, resource, place.key) for place, resource in asked.items()}


def set_lately(cluster_id: int, values: Mapping[Place, str], since: datetime) -> frozenset[Place]:
    """Places of brokers whose value the collectors have not seen unchanged since then. One statement, or none."""
    if not values:
        return frozenset()
    rows = ThrottleState.objects.filter(
        cluster=cluster_id,
        resource=ThrottledResource.BROKER,
        name__in={place.name for place in values},
        changed_at__lte=since,
    )
    old = {(row.name, row.key, row.value) for row in rows.only("name", "key", "value")}
    return frozenset(place for place, value in values.items() if (place.name, place.key, value) not in old)


def resource_of(place: Place) -> ConfigResource:
    if place.resource == ThrottledResource.TOPIC:
        return ConfigResource.topic(place.name)
    return ConfigResource.broker(int(place.name))


def _read(answer: Configs, resource: ConfigResource, key: str) -> Read:
    error = answer.errors.get(resource)
    if error is not None:
        return _failed(resource, error)
    entry: ConfigEntry | None = answer.resources[resource].get(key)
    if entry is None:
        return Read()
    return Read(entry.value, _SOURCES.get(entry.source, Source.OTHER))


def _failed(resource: ConfigResource, error: ItemError) -> Read:
    if resource.type is ConfigResourceType.TOPIC and error.code == _UNKNOWN_TOPIC_OR_PARTITION:
        return Read(gone=True)
    return Read(
        unreadable=error.text or message_text(ReassignmentErrorCode.CONFIG_UNREAD, resource=capital(str(resource)))
    )
