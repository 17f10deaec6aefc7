"""Page of the canary: latency and availability of brokers as a client sees them. Administrators start and stop it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.access import MANAGE, PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.charts import ChartRange, find_range
from kafkadash.core.formatting import HOUR, read_whole_number
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.middleware import post_only
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.canary.charts import build_panels
from kafkadash.monitoring.canary.rules import (
    TOPIC,
    BrokerCanary,
    CanaryReading,
    CanaryReason,
    CanaryState,
    find_unled,
    sum_samples,
)
from kafkadash.monitoring.canary.samples import load_samples
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import UP, FactFreshness, freshness_of, named_brokers
from kafkadash.monitoring.models import BrokerState, CollectorKind, CollectorRun, TopicState

RANGES = (ChartRange("hour", "hour", HOUR, 60), ChartRange("day", "day", 24 * HOUR, 600))
_FULL_SHARE = 0.95
_MARKS = {CanaryState.MEASURED: "ok", CanaryState.FAILED: "critical", CanaryState.NOT_MEASURED: "unknown"}


@dataclass(frozen=True, slots=True)
class CanaryLine:
    """A broker with the sum of its samples; ``reason`` says why the newest is no measurement.

    ``turns``: as many probes as its collector makes in the time of the sum.
    """

    sums: BrokerCanary
    turns: int
    mark: str
    word: str
    reason: CodedMessage | None

    @property
    def consumed_ms(self) -> float | None:
        return self.sums.newest.consumed_ms if self.sums.newest else None

    @property
    def written_ms(self) -> float | None:
        return self.sums.newest.written_ms if self.sums.newest else None

    @property
    def percent(self) -> float | None:
        share = self.sums.availability
        return None if share is None else 100 * share

    @property
    def in_part(self) -> bool:
        """Return whether availability leaves out more turns than the edges of the time explain."""
        return self.percent is not None and self.sums.probes < _FULL_SHARE * self.turns - 1


def describe_reading(reading: CanaryReading | None) -> CodedMessage | None:
    """Return why a reading is no measurement; None where it is one."""
    if reading is None or not reading.code:
        return None
    return coded(CanaryReason(reading.code), detail=reading.detail)


@require_safe
@needs(VIEW)
def canary(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the brokers with their newest probe and their sums, and charts: of all brokers, or of ``?broker=3``."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    run = bar["standing"].runs.get(CollectorKind.CANARY)
    now, chosen = bar["now"], find_range(RANGES, request.GET.get("range"))
    freshness = freshness_of(run, now)
    samples = load_samples(cluster, now - timedelta(seconds=chosen.length_s)) if run else []
    up = Case(When(UP, then=True), default=False)
    known = BrokerState.objects.filter(cluster=cluster, gone_at=None).annotate(up=up)
    brokers = dict(known.values_list("broker_id", "up"))
    turns = int(chosen.length_s // max(1.0, run.interval_s)) if run else 0
    lines = [_build_line(sums, turns, freshness) for sums in sum_samples(samples, brokers.keys())]
    typed = read_whole_number(request.GET.get("broker", ""))
    broker = typed if typed in brokers else None
    assignment = _load_assignment(cluster)
    has_topic = assignment is not None
    lacking = [] if assignment is None else find_unled(assignment, (each for each, up in brokers.items() if up))
    context = {
        **bar,
        "tab": "brokers",
        # A day is thousands of samples, which do not change much with the newest.
        "live_keys": [read_hint(CollectorKind.CANARY, slug)] if chosen == RANGES[0] else [],
        "title": _name_page(run, freshness, lines),
        "run": run,
        "freshness": freshness,
        "topic": TOPIC,
        "has_topic": has_topic,
        "lacking": lacking,
        "lines": lines,
        "ranges": RANGES,
        "chosen": chosen,
        "turns": turns,
        "broker": broker,
        "panels": build_panels(samples, chosen, now, broker),
        "refusal": _find_refusal(cluster, has_topic=has_topic),
        "may_manage": is_allowed(request.user, MANAGE, cluster),
        "may_propose": not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "monitoring/canary.html", context)


@post_only("monitoring:canary")
@needs(MANAGE)
def switch_canary(request: HttpRequest, slug: str) -> HttpResponse:
    """Start the canary (``on=1``) or stop it, with the audit event in one transaction. Its samples stay."""
    cluster = cluster_for(request, slug, MANAGE)
    assert isinstance(request.user, User), "needs lets nobody else in"
    on = request.POST.get("on") == "1"
    if on and (why := _find_refusal(cluster, has_topic=_load_assignment(cluster) is not None)):
        messages.error(request, str(why))
        return redirect("monitoring:canary", slug)
    with transaction.atomic():
        runs = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.CANARY)
        if on:
            interval = settings.COLLECT_INTERVALS[CollectorKind.CANARY]
            _, changed = CollectorRun.objects.get_or_create(
                cluster=cluster, kind=CollectorKind.CANARY, defaults={"interval_s": interval}
            )
        else:
            changed = bool(runs.delete()[0])
        if changed:
            action = "canary.started" if on else "canary.stopped"
            record(request.user, action, ("canary", str(cluster.pk)), cluster=cluster.slug, request=request)
    return redirect("monitoring:canary", slug)


def _load_assignment(cluster: Cluster) -> list[list[int]] | None:
    """Return the replicas of each partition of the canary's topic; None where there is no such topic. One query."""
    stored = TopicState.objects.filter(cluster=cluster, name=TOPIC, format=1).order_by("-changed_at")
    partitions = stored.values_list("partitions", flat=True).first()
    return None if partitions is None else [row[3] for row in partitions]


def _find_refusal(cluster: Cluster, *, has_topic: bool) -> CodedMessage | None:
    """Return why the canary cannot be started."""
    if cluster.read_only:
        return coded(KafkaErrorCode.CANARY_OF_READ_ONLY)
    if settings.KAFKA_NETWORKS:
        return coded(KafkaErrorCode.CANARY_OF_LIMITED_NETWORKS)
    return None if has_topic else coded(CollectionErrorCode.CANARY_WITHOUT_TOPIC, topic=TOPIC)


def _build_line(sums: BrokerCanary, turns: int, freshness: FactFreshness) -> CanaryLine:
    newest = sums.newest
    if newest is None:
        return CanaryLine(sums, turns, "unknown", "not probed", None)
    mark = "unknown" if freshness.stale else _MARKS[newest.state]
    return CanaryLine(sums, turns, mark, newest.state.value.replace("-", " "), describe_reading(newest))


def _name_page(run: CollectorRun | None, freshness: FactFreshness, lines: Sequence[CanaryLine]) -> str:
    if run is None:
        return "Canary is off"
    if freshness.taken_at is None:
        return "Canary has not run yet"
    if freshness.stale:
        return "Canary data is old"
    by_state = {state: [line.sums for line in lines if line.mark == _MARKS[state]] for state in CanaryState}
    if failed := by_state[CanaryState.FAILED]:
        return f"Canary fails on {named_brokers([sums.broker for sums in failed])}"
    measured = by_state[CanaryState.MEASURED]
    slowest = max((sums.newest.consumed_ms or 0.0 for sums in measured if sums.newest), default=None)
    if slowest is None:
        return "Canary measures no broker"
    return f"Canary: {len(measured)} of {choose_plural('# broker|# brokers', len(lines))}, slowest {slowest:,.0f} ms"
