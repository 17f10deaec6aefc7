"""The list of all brokers of a cluster: filtered, sorted and paged in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Avg, Case, Count, F, FloatField, Q, QuerySet, TextField, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.skew import ATTENTION_FROM, WARNS_FROM, skew_percent
from kafkadash.domain.wording import count, duration, listed
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import BrokerState, BrokerWeights, ClusterState, CollectorRun, Kind
from kafkadash.observe.queries.brokers import DirectoryRow, broker_state, broker_word, directory_row
from kafkadash.observe.standing import SILENT, UP, Freshness, freshness_of, metadata_freshness, named_brokers
from kafkadash.observe.throttle_rows import RateInForce, Throttles

FENCED = Q(gone_at=None, fenced=True)
GONE = Q(gone_at__isnull=False)
AWAY_FIRST = Case(When(UP, then=Value(1)), default=Value(0))
STATES = Choice("state", "state", {"up": "Up", "silent": "Silent", "fenced": "Fenced", "gone": "Gone"})
_FILTERS = {"up": UP, "silent": SILENT, "fenced": FENCED, "gone": GONE}
NO_RACK = "(none)"
"""As the value of the filter for racks: brokers that name none."""

# How full the fullest directory of a broker is, as a share; the sum of a broker hides one that is full.
_FULLEST = """(
    SELECT max(1 - (d->>'usable_bytes')::float / nullif((d->>'total_bytes')::float, 0))
    FROM observe_brokerweights w, jsonb_array_elements(w.dirs) d
    WHERE w.cluster_id = observe_brokerstate.cluster_id AND w.broker_id = observe_brokerstate.broker_id
)"""


@dataclass(frozen=True, slots=True)
class Skew:
    """A distance from the mean in percent; ``state`` is '' while it is near."""

    percent: float

    @property
    def state(self) -> str:
        return "warning" if abs(self.percent) >= WARNS_FROM else ""

    @property
    def word(self) -> str:
        return "attention" if abs(self.percent) >= ATTENTION_FROM else "warn" if self.state else ""


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """One broker in the list. ``rates`` is None while throttles were not read."""

    broker: BrokerState
    state: str
    word: str
    replica_skew: Skew | None
    leader_skew: Skew | None
    directories: Sequence[DirectoryRow]
    disk_freshness: Freshness | None
    rates: Sequence[RateInForce] | None

    @property
    def id(self) -> int:
        return self.broker.broker_id


@dataclass(frozen=True, slots=True)
class Tally:
    """All brokers that are known, by state; those that are gone and still hold replicas apart."""

    up: int
    silent: int
    fenced: int
    gone: int
    gone_hosting: int
    silent_ids: Sequence[int]
    fenced_ids: Sequence[int]
    gone_hosting_ids: Sequence[int]
    mean_replicas: float | None
    mean_leaders: float | None

    @property
    def all(self) -> int:
        return self.up + self.silent + self.fenced + self.gone


def broker_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[STATES],
        texts=["q"],
        exact=["rack"],
        sorts={
            "state": [AWAY_FIRST, F("broker_id")],
            "id": [F("broker_id")],
            "rack": [F("rack"), F("broker_id")],
            "replicas": [F("replicas"), F("broker_id")],
            "leaders": [F("leaders"), F("broker_id")],
            "disk": [F("fullest"), F("broker_id")],
            "changed": [F("changed_at"), F("broker_id")],
        },
        descending_first={"replicas", "leaders", "disk", "changed"},
    )


def broker_list_context(
    cluster: Cluster, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    """One page of brokers with what holds for all of them."""
    tally = _tally(cluster)
    freshness = metadata_freshness(runs, now)
    page = listing.page_of(_filtered(cluster, listing))
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    racks = BrokerState.objects.filter(cluster=cluster, gone_at=None).order_by("rack").distinct()
    return {
        "listing": listing,
        "page": page,
        "tally": tally,
        "figures": figures,
        "racks": list(racks.values_list("rack", flat=True)[:200]),
        "no_rack": NO_RACK,
        "freshness": freshness,
        "throttles_freshness": freshness_of(runs.get(Kind.CONFIGS), now),
        "title": _title(cluster.name, tally, (figures.brokers_gone or 0) - tally.gone_hosting, freshness),
        "rows": _lines(cluster, list(page.object_list), tally, figures, runs, now),
        "led_as_preferred": _share(figures.preferred_leaders, figures.partitions),
    }


def _filtered(cluster: Cluster, listing: Listing) -> QuerySet[BrokerState]:
    rows = BrokerState.objects.filter(cluster=cluster).defer("config")
    if state := listing.values["state"]:
        rows = rows.filter(_FILTERS[state])
    if rack := listing.values["rack"]:
        rows = rows.filter(rack=None) if rack == NO_RACK else rows.filter(rack=rack)
    if text := listing.values["q"]:
        rows = rows.annotate(id_text=Cast("broker_id", TextField())).filter(
            Q(id_text=text) | Q(host__icontains=text) | Q(rack__icontains=text)
        )
    if listing.sort == "disk":
        rows = rows.annotate(fullest=RawSQL(_FULLEST, (), output_field=FloatField()))  # noqa: S611  a constant
    return rows.order_by(*listing.order())


def _lines(
    cluster: Cluster,
    brokers: Sequence[BrokerState],
    tally: Tally,
    figures: ClusterState,
    runs: Mapping[str, CollectorRun],
    now: datetime,
) -> list[BrokerLine]:
    ids = [broker.broker_id for broker in brokers]
    weights = {w.broker_id: w for w in BrokerWeights.objects.filter(cluster=cluster, broker_id__in=ids).defer("data")}
    configs = runs.get(Kind.CONFIGS)
    throttles = Throttles(cluster, known=bool(configs and configs.succeeded_at), brokers=ids)
    freshness = metadata_freshness(runs, now)
    disk_interval = runs[Kind.LOG_DIRS].interval_s if Kind.LOG_DIRS in runs else 60.0
    lines = []
    for broker in brokers:
        state, word = broker_state(broker, freshness)
        held = weights.get(broker.broker_id)
        up = broker_word(broker) == "up"
        lines.append(
            BrokerLine(
                broker=broker,
                state=state,
                word=word,
                replica_skew=_skew(broker.replicas, tally.mean_replicas, figures) if up else None,
                leader_skew=_skew(broker.leaders, tally.mean_leaders, figures) if up else None,
                directories=[directory_row(d) for d in held.dirs] if held else [],
                disk_freshness=Freshness(held.taken_at, disk_interval, now) if held else None,
                rates=throttles.rates(broker),
            )
        )
    return lines


def _skew(value: int, mean: float | None, figures: ClusterState) -> Skew | None:
    percent = skew_percent(value, mean, figures.partitions)
    return None if percent is None else Skew(percent)


def _tally(cluster: Cluster) -> Tally:
    """Means are over the brokers that are up: a fenced one leads nothing and would make the others look busy."""
    brokers = BrokerState.objects.filter(cluster=cluster)
    counts = brokers.aggregate(
        mean_replicas=Avg("replicas", filter=UP),
        mean_leaders=Avg("leaders", filter=UP),
        count_up=Count("pk", filter=UP),
        count_silent=Count("pk", filter=SILENT),
        count_fenced=Count("pk", filter=FENCED),
        count_gone=Count("pk", filter=GONE),
        count_hosting=Count("pk", filter=GONE & Q(replicas__gt=0)),
    )
    hosting = brokers.filter(GONE, replicas__gt=0)
    return Tally(
        up=counts["count_up"],
        silent=counts["count_silent"],
        fenced=counts["count_fenced"],
        gone=counts["count_gone"],
        gone_hosting=counts["count_hosting"],
        mean_replicas=counts["mean_replicas"],
        mean_leaders=counts["mean_leaders"],
        silent_ids=_first_ids(brokers.filter(SILENT)) if counts["count_silent"] else (),
        fenced_ids=_first_ids(brokers.filter(FENCED)),
        gone_hosting_ids=_first_ids(hosting),
    )


def _first_ids(brokers: QuerySet[BrokerState]) -> list[int]:
    return list(brokers.order_by("broker_id").values_list("broker_id", flat=True)[:3])


def _share(part: int | None, whole: int | None) -> float | None:
    return 100.0 * part / whole if part is not None and whole else None


def _title(name: str, tally: Tally, never_seen: int, freshness: Freshness) -> str:
    """``never_seen``: brokers that hold replicas and were away whenever anybody looked; they have no row."""
    if freshness.taken_at is None:
        return f"Cannot tell how the brokers of {name} are: nothing was collected yet."
    if freshness.stale and freshness.age_s is not None:
        seen = f"{count(tally.up, 'broker')} {'was' if tally.up == 1 else 'were'} up"
        return f"Cannot tell how the brokers of {name} are: {seen} {duration(freshness.age_s)} ago."
    away = []
    if tally.gone_hosting:
        away.append(_named(tally.gone_hosting, tally.gone_hosting_ids, "gone and still assigned replicas"))
    if never_seen > 0:
        which = count(never_seen, "broker that was", "brokers that were")
        away.append(f"{which} never seen up {'is' if never_seen == 1 else 'are'} assigned replicas")
    if tally.silent:
        ids, many = tally.silent_ids, tally.silent > 1
        which = named_brokers(ids) if len(ids) == tally.silent else f"{tally.silent:,} brokers"
        away.append(f"{which} {'do' if many else 'does'} not answer")
    if tally.fenced:
        away.append(_named(tally.fenced, tally.fenced_ids, "fenced"))
    if away:
        text = f"{listed(away)}; {count(tally.up, 'broker')} {'is' if tally.up == 1 else 'are'} up."
        return text[:1].upper() + text[1:]
    if tally.up == 1:
        return f"The only broker of {name} is up."
    return f"All {tally.up:,} brokers of {name} are up."


def _named(number: int, ids: Sequence[int], state: str) -> str:
    if number == len(ids):
        which = f"broker{'' if number == 1 else 's'} {listed([str(i) for i in ids])}"
    else:
        which = f"{number:,} brokers"
    return f"{which} {'is' if number == 1 else 'are'} {state}"
