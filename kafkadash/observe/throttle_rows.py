"""Throttles that are set on a cluster, in the words of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kafkadash.clusters.models import Cluster
from kafkadash.domain.throttled_replicas import WORDS, ThrottledReplicas, rate_of, throttled_replicas
from kafkadash.domain.throttles import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, RATES
from kafkadash.domain.wording import count
from kafkadash.observe.models import BrokerState, ConfigSource, ThrottledResource, ThrottleState
from kafkadash.observe.templatetags.figures import rate


@dataclass(frozen=True, slots=True)
class RateInForce:
    """A rate that holds on a broker. ``bytes_per_second`` is None when its text is no number."""

    key: str
    bytes_per_second: int | None
    source: str
    orphan: bool

    @property
    def words(self) -> str:
        return WORDS[self.key]

    @property
    def short(self) -> str:
        return {LEADER_RATE: "sending", FOLLOWER_RATE: "fetching"}.get(self.key, "between disks")

    @property
    def source_words(self) -> str:
        return ConfigSource(self.source).label


class Throttles:
    """Rates and lists of one cluster, those of ``brokers`` and ``topics`` only.

    Two queries, and a third once a listed replica sits on a broker of which no rate is known.

    ``known`` says whether throttles were ever read: without that, what is not here is not known instead of not set.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        known: bool,
        brokers: Iterable[int] = (),
        topics: Iterable[str] = (),
    ):
        self.known = known
        self._cluster = cluster
        rows = ThrottleState.objects.filter(cluster=cluster)
        rates = rows.filter(
            resource__in=[ThrottledResource.CLUSTER, ThrottledResource.BROKER],
            name__in=["", *map(str, brokers)],
            key__in=RATES,
        )
        self._rates = {(row.name, row.key): row for row in rates}
        lists = rows.filter(resource=ThrottledResource.TOPIC, name__in=list(topics)) if topics else ()
        self._lists: Mapping[tuple[str, str], ThrottledReplicas] = {
            (row.name, row.key): throttled_replicas(row.value) for row in lists
        }

    def rate(self, broker: int, key: str, *, own: bool = False) -> RateInForce | None:
        """What holds on this broker: its own, else, unless only ``own`` is asked for, the default of the cluster."""
        row = self._rates.get((str(broker), key)) or (None if own else self._rates.get(("", key)))
        return RateInForce(key, rate_of(row.value), row.source, row.orphan) if row else None

    def rates(self, broker: BrokerState) -> Sequence[RateInForce] | None:
        """Those in force at a broker; None where that is not known.

        One that is away, or was never asked, may have rates that nobody has read: none found is not none set.
        """
        away = broker.gone_at is not None or bool(broker.fenced)
        found = [held for key in RATES if (held := self.rate(broker.broker_id, key, own=away)) is not None]
        if not self.known or (not found and (away or broker.config_at is None)):
            return None
        return found

    def leader_words(self, topic: str, partition: int, leader: int | None) -> str:
        """How the leader's sending of this partition is throttled (KIP-240's leader throttle)."""
        return "unknown" if leader is None else self._words(topic, partition, leader, LEADER_RATE, LEADER_LIST)

    def target_words(self, topic: str, partition: int, broker: int) -> str:
        """How fetching of this partition by a target broker is throttled."""
        return self._words(topic, partition, broker, FOLLOWER_RATE, FOLLOWER_LIST)

    def _words(self, topic: str, partition: int, broker: int, rate_key: str, list_key: str) -> str:
        if not self.known:
            return "unknown, not read yet"
        held, listed = self.rate(broker, rate_key), self._lists.get((topic, list_key))
        if listed is None or not listed.names(partition, broker):
            return "not throttled"
        if self.rate(broker, rate_key, own=True) is None and broker not in self._asked:
            return "unknown, the broker was not read"
        if held is None:
            return "not throttled"
        return str(rate(held.bytes_per_second))

    @cached_property
    def _asked(self) -> frozenset[int]:
        """The brokers that are there and were asked: of any other, no rate found is not none set."""
        there = BrokerState.objects.filter(cluster=self._cluster, gone_at=None, config_at__isnull=False)
        return frozenset(there.exclude(fenced=True).values_list("broker_id", flat=True))


def list_words(value: str) -> str:
    """A topic's list of throttled replicas, summarised."""
    held = throttled_replicas(value)
    if held.everything:
        return "all replicas"
    if held.unreadable:
        return f"“{held.unreadable[:60]}” is no pair of partition and broker"
    if held.empty:
        return "none: the list is set, but empty"
    partitions = {partition for partition, _ in held.pairs}
    return f"{count(len(held.pairs), 'replica')} of {count(len(partitions), 'partition')}"
