"""The brokers of a cluster as the wizard offers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerState, BrokerWeights, CollectorRun, Kind
from kafkadash.observe.queries.brokers import broker_state, directory_row
from kafkadash.observe.standing import freshness_of


@dataclass(frozen=True, slots=True)
class BrokerChoice:
    """``percent``: of its fullest directory, None where not known; ``takes``: it is up, so it may be given replicas."""

    id: int
    rack: str | None
    host: str
    replicas: int
    leaders: int
    gone: bool
    takes: bool
    state: str
    word: str
    replica_bytes: int | None
    percent: float | None


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """One of them on a page. ``role``: what becomes of it where brokers are replaced, else ''."""

    choice: BrokerChoice
    checked: bool
    role: str = ""


def broker_choices(cluster: Cluster, now: datetime) -> list[BrokerChoice]:
    """By id. A broker that is gone is one of them while replicas are assigned to it. Three queries."""
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.METADATA).first()
    freshness = freshness_of(run, now)
    weights = {w.broker_id: w for w in BrokerWeights.objects.filter(cluster=cluster).defer("data")}
    rows = BrokerState.objects.filter(Q(gone_at=None) | Q(replicas__gt=0), cluster=cluster).order_by("broker_id")
    choices = []
    for row in rows.defer("config"):
        state, word = broker_state(row, freshness)
        weight = weights.get(row.broker_id)
        used = [d.percent for d in map(directory_row, weight.dirs) if d.percent is not None] if weight else []
        choices.append(
            BrokerChoice(
                id=row.broker_id,
                rack=row.rack,
                host=row.host,
                replicas=row.replicas,
                leaders=row.leaders,
                gone=row.gone_at is not None,
                takes=row.gone_at is None and not row.fenced and row.silent_since is None,
                state=state,
                word=word,
                replica_bytes=weight.replica_bytes if weight else None,
                percent=max(used, default=None),
            )
        )
    return choices


def without_rack(choices: Sequence[BrokerChoice]) -> list[int]:
    """Registered brokers that name no rack while others do; empty where all do, or none."""
    here = [choice for choice in choices if not choice.gone]
    lacking = [choice.id for choice in here if choice.rack is None]
    return lacking if len(lacking) < len(here) else []
