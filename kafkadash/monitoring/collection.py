"""Refresh of one kind of fact: take the lease, ask Kafka, store the answer or the reason why there is none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, When
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import RegisteredTwice, double_message
from kafkadash.core import leases
from kafkadash.core.database.availability import is_away
from kafkadash.core.errors import UserError
from kafkadash.core.events import collected
from kafkadash.core.failures import NO_ANSWER_FAILURES, NO_CONTROLLER_FAILURES, QUORUM_FAILURES, FailureKind
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import CodedMessage, coded, message_columns, pack_value
from kafkadash.export import outbox
from kafkadash.kafka.api import AuthenticationFailed, KafkaFailure
from kafkadash.kafka.connect import admin_for, processor_s
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring import config_collector as configs
from kafkadash.monitoring import log_dir_collector as log_dirs
from kafkadash.monitoring import metadata_collector as metadata
from kafkadash.monitoring import schedule
from kafkadash.monitoring import version_collector as answers
from kafkadash.monitoring import version_collector as versions
from kafkadash.monitoring.canary import collector as canary
from kafkadash.monitoring.catch_up import collector as catch_up
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups import collector as groups
from kafkadash.monitoring.models import (
    ON_REQUEST,
    BrokerCatchUp,
    Collection,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
)
from kafkadash.monitoring.quorum import collector as quorum
from kafkadash.monitoring.reassignments import collector as reassignments
from kafkadash.monitoring.traffic import collector as traffic
from kafkadash.monitoring.transactions import collector as transactions

log = structlog.get_logger(__name__)

COLLECTORS: Mapping[CollectorKind, Callable[[CollectContext], CollectedFacts]] = {
    CollectorKind.ANSWERS: answers.read_answers,
    CollectorKind.METADATA: metadata.read,
    CollectorKind.REASSIGNMENTS: reassignments.read,
    CollectorKind.QUORUM: quorum.read,
    CollectorKind.LOG_DIRS: log_dirs.read,
    CollectorKind.CONFIGS: configs.read,
    CollectorKind.VERSIONS: versions.read,
    CollectorKind.GROUPS: groups.read,
    CollectorKind.TRAFFIC: traffic.read,
    CollectorKind.CATCH_UP: catch_up.read,
    CollectorKind.CANARY: canary.read,
    CollectorKind.TRANSACTIONS: transactions.read,
}
_MOST_ERRORS_KEPT = 20
MOST_OVERRUNS, SET_ASIDE_S = 2, 300.0
_BEHIND_SHARE = 0.1
"""Share of a processor core that catch-up takes at most, down to its usual pace."""
NEVER_AGAIN_S = 10 * 365 * 86_400.0  # until somebody changes the connection, or switches collection off and on


@dataclass(frozen=True, slots=True)
class RefreshOutcome:
    """Outcome of a refresh; ``seq`` is 0 when nothing was stored."""

    cluster: Cluster
    kind: CollectorKind
    epoch: int
    seq: int
    error: CodedMessage | None = None


def refresh(run_id: int, *, only_if_due: bool = True) -> RefreshOutcome | None:
    """Collects once and returns what came of it; None when another collector is at it or its time has not come.

    A lease that is lost on the way (this process slept, another took over) leaves no row of this refresh.
    """
    lease = schedule.take_lease(run_id, only_if_due=only_if_due)
    if lease is None:
        return None
    run = CollectorRun.objects.select_related("cluster").get(pk=run_id)
    try:
        result = _set_aside(run, lease) if run.overruns >= MOST_OVERRUNS else _collect(run, lease)
    except leases.LeaseLost:
        log.warning(
            "collection.lease_lost",
            cluster=run.cluster.slug,
            kind=run.kind,
            epoch=lease.epoch,
        )
        return RefreshOutcome(
            run.cluster,
            CollectorKind(run.kind),
            lease.epoch,
            0,
            coded(CollectionErrorCode.ANOTHER_COLLECTOR),
        )
    except Exception:
        lease.postpone(run.interval_s)  # a fault that repeats must not run every second
        raise
    finally:
        lease.give_back()
    if result.error:
        # In ZooKeeper mode there is no quorum to read, every time.
        unneeded = result.error.code == KafkaErrorCode.NO_QUORUM_TO_DESCRIBE
        log.log(
            logging.DEBUG if unneeded else logging.WARNING,
            "collection.failed",
            cluster=run.cluster.slug,
            kind=run.kind,
            code=result.error.shown_code,
            error=str(result.error),
        )
    collected.send(
        sender=Collection,
        cluster_id=run.cluster_id,
        # What moves is told by the controllers as well: its page says at once that it is of before.
        kinds=frozenset([run.kind, *([CollectorKind.REASSIGNMENTS] if _doubted_by_silence(run) else [])]),
        seq=result.seq,
    )
    return result


class CollectorFault(UserError):
    """A refresh ended with an exception that is no answer of Kafka's."""

    kind = FailureKind.COLLECTOR_FAULT


class CollectorSetAside(UserError):
    """Refreshes of this kind hang, so it is not read for a while."""

    kind = FailureKind.COLLECTOR_SET_ASIDE


RefreshFailure: TypeAlias = (
    KafkaFailure | SecretError | metadata.AnotherCluster | RegisteredTwice | CollectorFault | CollectorSetAside
)


def _set_aside(run: CollectorRun, lease: leases.RowLease) -> RefreshOutcome:
    """A refresh that hangs keeps its thread, and would take one thread of the pool after the other.

    A worker that is killed leaves its lease in the same way, hence more than one in a row, and hence only for a while.
    """
    kind, times = CollectorKind(run.kind), run.overruns
    log.error("collection.set_aside", cluster=run.cluster.slug, kind=run.kind, overruns=times)
    failure = CollectorSetAside(
        CollectionErrorCode.COLLECTOR_SET_ASIDE, kind=kind.label, times=times, pause=format_duration(SET_ASIDE_S)
    )
    return _store_refresh(run, lease, None, failure)


def _collect(run: CollectorRun, lease: leases.RowLease) -> RefreshOutcome:
    """A fault of ours is stored like a failure of Kafka, so that the pages say why nothing new comes."""
    began = processor_s(run.cluster.connection_key)
    try:
        return _store_refresh(run, lease, *_ask(run, lease), began)
    except leases.LeaseLost:
        raise
    except Exception as fault:
        if is_away(fault):
            raise
        log.exception("collection.fault", cluster=run.cluster.slug, kind=run.kind)
        label, name = CollectorKind(run.kind).label, type(fault).__name__
        failure = CollectorFault(CollectionErrorCode.COLLECTOR_FAULT, kind=label, fault=name)
        return _store_refresh(run, lease, None, failure)


def _store_refresh(
    run: CollectorRun,
    lease: leases.RowLease,
    reading: CollectedFacts | None,
    failure: RefreshFailure | None,
    began: float | None = None,
) -> RefreshOutcome:
    """``began``: processor time when it was begun to ask (``processor_s``)."""
    kind = CollectorKind(run.kind)
    error = failure.message if failure else None
    errors = list(reading.errors)[:_MOST_ERRORS_KEPT] if reading else [failure.message] if failure else []
    duration = round((lease.now() - lease.taken_at).total_seconds() * 1000)
    packs = outbox.pack_facts(reading.facts) if reading else outbox.nothing_of(kind)
    answers_again = reading is not None and kind is CollectorKind.METADATA and run.last_failure in NO_ANSWER_FAILURES
    for portion in reading.portions if reading else ():
        with lease.write_portion():
            portion()
    with lease.write() as stamp:
        if reading:
            reading.write(stamp)
        Collection.objects.create(
            cluster=run.cluster,
            kind=kind,
            epoch=stamp.epoch,
            seq=stamp.seq,
            started_at=lease.taken_at,
            taken_at=reading.taken_at if reading else None,
            duration_ms=duration,
            ok=reading is not None,
            not_answered=list(reading.not_answered) if reading else [],
            errors=pack_value(errors),
            rows=reading.rows if reading else None,
        )
        if reading and began is not None:
            _learn_cost(run, processor_s(run.cluster.connection_key) - began)
        _schedule_next(run, reading, failure, lease)
        outbox.store_facts(_describe_refresh(run, reading, lease, duration, errors), packs)
    doubted = _kinds_in_doubt(kind, reading) if reading else _doubted_by_silence(run)
    schedule.read_soon(run.cluster_id, doubted | (_list_unanswered(run.cluster_id) if answers_again else set()))
    return RefreshOutcome(run.cluster, kind, stamp.epoch, stamp.seq, error)


def _kinds_in_doubt(kind: CollectorKind, reading: CollectedFacts) -> set[CollectorKind]:
    """A broker that did not answer one question is asked for a sign of life."""
    return {
        *reading.doubts,
        *([CollectorKind.ANSWERS] if reading.not_answered and kind != CollectorKind.ANSWERS else []),
    }


def _doubted_by_silence(run: CollectorRun) -> set[CollectorKind]:
    """Without controllers brokers repeat old metadata: it is read once more, so that its pages say so."""
    silent = run.kind == CollectorKind.QUORUM and run.last_failure in NO_CONTROLLER_FAILURES
    return {CollectorKind.METADATA} if silent and run.failures == QUORUM_FAILURES else set()


def _list_unanswered(cluster_id: int) -> set[CollectorKind]:
    """Kinds whose last refresh met no answer: they would be old for up to their interval after an outage."""
    runs = CollectorRun.objects.filter(cluster=cluster_id, last_failure__in=NO_ANSWER_FAILURES)
    return {CollectorKind(kind) for kind in runs.values_list("kind", flat=True)}


def _learn_cost(run: CollectorRun, spent_s: float) -> None:
    """Average the CPU seconds of a refresh, so that one costly refresh (garbage collection) does not change the pace.

    A cheaper refresh has more weight, because the first refresh of a process includes its imports.
    """
    spent_s, known = max(0.0, spent_s), run.processor_s
    weight = 1.0 if known is None else 0.5 if spent_s < known else 0.25
    run.processor_s = weight * spent_s + (1 - weight) * (known or 0.0)


def _describe_refresh(
    run: CollectorRun,
    reading: CollectedFacts | None,
    lease: leases.RowLease,
    duration_ms: int,
    errors: Sequence[CodedMessage],
) -> outbox.OutboxReport:
    taken_at, silent = (reading.taken_at, reading.not_answered) if reading else (lease.taken_at, ())
    return outbox.OutboxReport(run.cluster.slug, taken_at, duration_ms, silent, errors)


def _ask(run: CollectorRun, lease: leases.RowLease) -> tuple[CollectedFacts | None, RefreshFailure | None]:
    """Return the answer, or the failure that says why there is none."""
    cluster = run.cluster
    if cluster.other_kafka_id and run.kind != CollectorKind.METADATA:
        return None, metadata.AnotherCluster(metadata.other_cluster_message(cluster, cluster.other_kafka_id))
    if cluster.same_as is not None and run.kind != CollectorKind.METADATA:
        return None, RegisteredTwice(double_message(cluster, cluster.same_as))
    try:
        client = admin_for(cluster.connection())
        asking = CollectContext(
            cluster=cluster,
            admin=client,
            groups=client,
            deadline=settings.KAFKA_DEADLINE,
            step=lease.renew,
            succeeded_at=run.succeeded_at,
            interval_s=run.interval_s,
        )
        return COLLECTORS[CollectorKind(run.kind)](asking), None
    except (KafkaFailure, SecretError, metadata.AnotherCluster, RegisteredTwice) as failure:
        return None, failure


def _schedule_next(
    run: CollectorRun,
    reading: CollectedFacts | None,
    failure: RefreshFailure | None,
    lease: leases.RowLease,
) -> None:
    """When to look again: counted from the start of this refresh, so that the pace does not drift.

    On the database's clock, by which runs are handed out: this machine's may be wrong.
    """
    interval = interval_for(run.cluster, CollectorKind(run.kind), run.processor_s)
    run.interval_s = interval
    run.attempted_at = lease.taken_at
    for name, value in message_columns(failure.message if failure else None, "last_error").items():
        setattr(run, name, value)
    run.last_failure = failure.kind if failure else ""
    run.failures = run.failures + 1 if failure else 0
    run.overruns = MOST_OVERRUNS - 1 if isinstance(failure, CollectorSetAside) else 0  # the next one is enough
    if reading:
        run.refusals = 0
    elif isinstance(failure, AuthenticationFailed):
        run.refusals += 1
    pause = _choose_pause(run, failure, interval)
    planned = leases.from_now(max(0.0, pause - (lease.now() - lease.taken_at).total_seconds()))
    # Who made it due meanwhile (``lease.read_soon``) asks for facts that are younger than these.
    run.next_at = Case(When(next_at__gt=lease.taken_at, next_at__lte=Now(), then=F("next_at")), default=planned)
    if reading:
        run.succeeded_at = reading.taken_at
        if not reading.errors and not reading.not_answered:
            run.complete_at = reading.taken_at
    run.save(
        update_fields=[
            "interval_s",
            "attempted_at",
            "next_at",
            "last_error_code",
            "last_error_params",
            "last_failure",
            "failures",
            "refusals",
            "overruns",
            "processor_s",
            "succeeded_at",
            "complete_at",
        ]
    )
    if run.kind == CollectorKind.REASSIGNMENTS and reading:
        _follow_pace(run.cluster)


def _choose_pause(run: CollectorRun, failure: RefreshFailure | None, interval: float) -> float:
    """Seconds from this refresh to the next: longer after each refused login, in the end for good.

    Settings that were changed while this refresh was under way are tried at once.
    """
    if isinstance(failure, CollectorSetAside):
        return SET_ASIDE_S
    if (
        run.kind == CollectorKind.QUORUM
        and run.last_failure in NO_CONTROLLER_FAILURES
        and run.failures < QUORUM_FAILURES
    ):
        return 0.0  # an election, or the end of the quorum: nobody waits ten seconds to know which
    if not isinstance(failure, AuthenticationFailed):
        return interval
    unchanged = Cluster.objects.filter(pk=run.cluster_id, connection_version=run.cluster.connection_version)
    if not unchanged.exists():
        run.refusals = 0  # those were refusals of the old settings
        return 0.0
    if run.refusals >= settings.REFUSED_TRIES:
        return NEVER_AGAIN_S
    most = float(settings.REFUSED_RETRY_MAX)
    return max(interval, min(interval * 2.0 ** min(run.refusals, 16), most))


def interval_for(cluster: Cluster, kind: CollectorKind, processor_s: float | None = None) -> float:
    """Seconds between two refreshes: the cluster's own, else the default; quicker while anything moves or
    catches up, and where a refresh costs so little processor time that nobody feels it.
    """
    own = cluster.cadence.get(kind)
    if kind == CollectorKind.CATCH_UP and own is None and BrokerCatchUp.objects.filter(cluster=cluster).exists():
        slowest = float(settings.COLLECT_INTERVALS[kind])
        return min(slowest, max(float(settings.COLLECT_INTERVAL_BEHIND), (processor_s or 0.0) / _BEHIND_SHARE))
    if kind in settings.COLLECT_INTERVALS_MOVING and _has_running_moves(cluster):
        return float(settings.COLLECT_INTERVALS_MOVING[kind])
    usual = float(settings.COLLECT_INTERVALS[kind])
    cheap = float(settings.COLLECT_INTERVALS_CHEAP.get(kind, usual))
    if own is None and processor_s is not None and processor_s < settings.COLLECT_CHEAP_SHARE * cheap:
        return min(cheap, usual)
    return usual if own is None else float(own)


def _has_running_moves(cluster: Cluster) -> bool:
    return ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING).exists()


def _follow_pace(cluster: Cluster) -> None:
    """Brings the next look of the other quick kinds forward when something has begun to move."""
    for kind in settings.COLLECT_INTERVALS_MOVING:
        if kind == CollectorKind.REASSIGNMENTS:
            continue
        interval = interval_for(cluster, CollectorKind(kind))
        soon = leases.from_now(interval)
        CollectorRun.objects.filter(cluster=cluster, kind=kind, next_at__gt=soon).update(next_at=soon)


def ensure_runs() -> int:
    """Gives every enabled cluster its collectors; returns how many were missing."""
    have = set(CollectorRun.objects.values_list("cluster_id", "kind"))
    missing = [
        CollectorRun(
            cluster_id=cluster_id,
            kind=kind,
            interval_s=settings.COLLECT_INTERVALS[kind],
        )
        for cluster_id in Cluster.objects.filter(enabled=True).values_list("pk", flat=True)
        for kind in CollectorKind
        if kind not in ON_REQUEST and (cluster_id, kind) not in have
    ]
    with transaction.atomic():
        CollectorRun.objects.bulk_create(missing, ignore_conflicts=True)
    return len(missing)
