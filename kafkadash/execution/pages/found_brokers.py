"""Brokers before a run, as its plan has them after it, and as collectors found them after its end.

Before and planned are stored with the plan. Found is the newest stored reading: facts from before the end of the run
count as unknown, and later changes of the cluster are part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kafkadash.changes.models import ChangeRequest
from kafkadash.core.formatting import listed_shortly
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.freshness import FactFreshness, metadata_freshness
from kafkadash.monitoring.models import BrokerState, BrokerWeights, CollectorRun
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.models import PlanReport
from kafkadash.planning.report import BrokerBars, BrokerFound, broker_bars


@dataclass(frozen=True, slots=True)
class FoundBrokers:
    """``planned_at``: time of the facts before and planned. ``counted``: age of the replicas and leaders found.

    ``sized_at``: the oldest reading of log directories that is shown; None where no size was read since the end.
    """

    bars: BrokerBars
    summary: str
    planned_at: datetime | None
    counted: FactFreshness
    sized_at: datetime | None

    @property
    def read_since(self) -> bool:
        """Return whether replicas and leaders were read after the end of the run."""
        return any(line.replicas.found is not None for line in self.bars.lines)


def load_found_brokers(
    change: ChangeRequest,
    runs: Mapping[str, CollectorRun],
    ended_at: datetime | None,
    now: datetime,
    *,
    everything: bool,
) -> FoundBrokers | None:
    """Return the bars of all brokers of the plan; None where its impact is not stored. Three queries at most."""
    report: PlanReport | None = getattr(change, "report", None)
    if report is None:
        return None
    impact = unpack_dataclass(PlanImpact, report.impact)
    counted = metadata_freshness(runs, now)
    counts = _read_counts(change.cluster_id) if _read_after(counted.taken_at, ended_at) else {}
    sizes = _read_sizes(change.cluster_id, ended_at)
    found = {}
    for broker in impact.brokers:
        replicas, leaders = counts.get(broker.id, (None, None))
        size, _ = sizes.get(broker.id, (None, None))
        found[broker.id] = BrokerFound(replicas, leaders, size)
    return FoundBrokers(
        bars=broker_bars(impact, everything=everything, found=found),
        summary=_describe_found(impact, found),
        planned_at=change.topology_at,
        counted=counted,
        sized_at=min((at for broker, (_, at) in sizes.items() if broker in found), default=None),
    )


def _read_after(taken_at: datetime | None, ended_at: datetime | None) -> bool:
    return taken_at is not None and ended_at is not None and taken_at >= ended_at


def _read_counts(cluster_id: int) -> dict[int, tuple[int, int]]:
    """Return broker → its replicas and leaders by the last metadata."""
    rows = BrokerState.objects.filter(cluster=cluster_id).values_list("broker_id", "replicas", "leaders")
    return {broker: (replicas, leaders) for broker, replicas, leaders in rows}


def _read_sizes(cluster_id: int, ended_at: datetime | None) -> dict[int, tuple[int, datetime]]:
    """Return broker → bytes of its replicas and their time, where all its directories were read since the end."""
    rows = BrokerWeights.objects.filter(cluster=cluster_id).values_list(
        "broker_id", "replica_bytes", "dirs", "taken_at"
    )
    return {
        broker: (size, at)
        for broker, size, dirs, at in rows
        if _read_after(at, ended_at) and not any(directory.get("error") for directory in dirs)
    }


def _describe_found(impact: PlanImpact, found: Mapping[int, BrokerFound]) -> str:
    """Return a text such as "Replicas as planned on 5 of 6 brokers; broker 3 has 2 more"."""
    known = {b.id: there - b.replicas_after for b in impact.brokers if (there := found[b.id].replicas) is not None}
    if not known:
        return "Brokers have not been read since the run ended."
    other = sorted(((id_, delta) for id_, delta in known.items() if delta), key=lambda one: (-abs(one[1]), one[0]))
    text = f"Replicas as planned on {len(known) - len(other):,} of {choose_plural('# broker|# brokers', len(known))}"
    if other:
        text += f"; {listed_shortly([f'broker {id_} has {_difference_words(delta)}' for id_, delta in other])}"
    unknown = len(impact.brokers) - len(known)
    return f"{text}. {choose_plural('# broker is|# brokers are', unknown)} unknown." if unknown else f"{text}."


def _difference_words(delta: int) -> str:
    return f"{abs(delta):,} {'more' if delta > 0 else 'fewer'}"
