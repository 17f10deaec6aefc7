"""Judges how partitions lie over the racks that the registered brokers name, or says why that cannot be judged."""

from __future__ import annotations

from collections.abc import Sequence

from kafkadash.clusters.models import Cluster
from kafkadash.domain.rack_spread import Spread, racks_known, spread
from kafkadash.domain.wording import listed
from kafkadash.observe.models import BrokerState
from kafkadash.observe.partition_rows import PartitionLine


class RackJudge:
    """``why_not`` is '' where spread is judged: where every broker names its rack and there are two racks at least."""

    def __init__(self, cluster: Cluster) -> None:
        brokers = BrokerState.objects.filter(cluster=cluster, gone_at=None).order_by("broker_id")
        named = list(brokers.values_list("broker_id", "rack"))
        self.rack_of: dict[int, str] = {broker: rack for broker, rack in named if rack is not None}
        self.racks: list[str] = sorted(set(self.rack_of.values()))
        self.unnamed: list[int] = [broker for broker, rack in named if rack is None]
        self.known = bool(named) and racks_known([rack for _, rack in named])
        self.one_rack = bool(named) and not self.unnamed and len(self.racks) == 1
        self.why_not = "" if self.known else self._why_not(len(named))

    def judge(self, line: PartitionLine) -> Spread | None:
        """None where racks are not known. A partition that moves is judged by where it goes."""
        if not self.known:
            return None
        leaving = line.move.removing if line.move else ()
        replicas: Sequence[int] = [broker for broker in line.replicas if broker not in leaving]
        return spread(replicas, self.rack_of, len(self.racks))

    def _why_not(self, brokers: int) -> str:
        if not brokers:
            return "no broker is known"
        if len(self.unnamed) == brokers:
            return "no broker names its rack"
        if self.unnamed:
            number = len(self.unnamed)
            which = f"{number:,} brokers"
            if number <= 3:
                which = f"broker{'' if number == 1 else 's'} {listed([str(broker) for broker in self.unnamed])}"
            return f"{which} {'names' if number == 1 else 'name'} no rack"
        return "all brokers are in one rack"
