"""One turn of the ingest: what the pipeline has handed back since the last one comes into the database, once.

A result is written in portions and its ledger row with the last of them, in one transaction; all of them prove the
lease first. Killed anywhere, a result without a ledger row is taken in again, which changes nothing that is there
already (``upserts``); one with a ledger row is never looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef

from kafkadash.accounts.models import AuditEvent
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.pipeline_results import MARKERS
from kafkadash.events import changed
from kafkadash.observe import lease as leases
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.history import partitions, watching
from kafkadash.observe.history.fail_point import reached
from kafkadash.observe.history.results import Marker, SetAside, known_kind, marker, named
from kafkadash.observe.history.rows_of import AT_ONCE, Reading, Taken, take
from kafkadash.observe.history.store import Entry, NoPyArrow, Store, StoreFailed
from kafkadash.observe.history.turns import INGEST, PIPELINE
from kafkadash.observe.lease import Lease, LeaseLost
from kafkadash.observe.models import PipelineLedger, PipelineState

log = structlog.get_logger(__name__)

RESULTS = "results"
_MOST_RESULTS = 50
"""Results of one turn; what is left waits for the next."""
_MOST_DELETED = 200
_LOOK_SECONDS = 3.0
_AFTER_TICK = 0.5
"""A turn begins up to so many seconds after its tick. Counted from its own beginning, with an interval of whole
seconds, the next would be due just after a tick, and have to wait for the one that follows."""
_SHOWN = ("last_error", "heartbeats", "results_waiting", "segments_waiting")
"""What the page of the pipeline says; it is told to look again when one of them is new."""


def take_turn(state_id: int, *, only_if_due: bool = True) -> int | None:
    """Takes in what waits; returns how many results, None when somebody else is at it or it is not due."""
    lease = leases.take(state_id, only_if_due=only_if_due, of=INGEST)
    if lease is None:
        return None
    taken, error, seen = 0, "", None
    try:
        try:
            store = Store(settings.PIPELINE_URI)
            taken, error, waiting = _take_all(store, lease)
            _delete_old(store, lease)
            if taken or not only_if_due or _look_due(state_id, lease.now()):
                seen = watching.look(store, lease.now(), waiting)
        except NoPyArrow:
            error = message_text(CollectionErrorCode.RESULTS_NEED_PYARROW)
        except StoreFailed as failure:
            error = message_text(CollectionErrorCode.STORE_SILENT, why=str(failure).rstrip("."))
        reached("before-state")
        _note(lease, state_id, taken, error, seen)
    except LeaseLost:
        log.warning("ingest.lease_lost", epoch=lease.epoch)
        return None
    except Exception:
        lease.postpone(settings.INGEST_INTERVAL)
        raise
    finally:
        lease.give_back()
    return taken


def _look_due(state_id: int, now: datetime) -> bool:
    """Results are looked for more often than what else there is to see, which takes longer and is told to pages."""
    looked_at = PipelineState.objects.values_list("looked_at", flat=True).get(pk=state_id)
    return looked_at is None or (now - looked_at).total_seconds() >= _LOOK_SECONDS


def _note(lease: Lease, state_id: int, taken: int, error: str, seen: watching.Seen | None) -> None:
    """The next turn is counted from the tick that brought this one."""
    rest = max(0.0, settings.INGEST_INTERVAL - _AFTER_TICK - (lease.now() - lease.taken_at).total_seconds())
    told: dict[str, Any] = {
        "attempted_at": lease.taken_at,
        "last_error": error,
        "next_at": leases.from_now(rest),
    }
    if seen is not None:
        told |= {
            "looked_at": lease.taken_at,
            "heartbeats": seen.heartbeats,
            "results_waiting": seen.results,
            "segments_waiting": seen.segments,
            "oldest_waiting_at": seen.oldest_at,
        }
    with lease.write():
        rows = PipelineState.objects.filter(pk=state_id)
        before = rows.values(*_SHOWN).get()
        rows.update(**told)
    if taken or any(before[name] != told.get(name, before[name]) for name in _SHOWN):
        changed.send(sender=PipelineState, keys=frozenset({PIPELINE}))


def _take_all(store: Store, lease: Lease) -> tuple[int, str, int]:
    """How many results were taken in, what was wrong with the store on the way, and how many are left."""
    files = _waiting(store)
    reached("listed")
    clusters = dict(Cluster.objects.values_list("slug", "pk"))
    since = _named_like_another() if files else {}
    taken, error = 0, ""
    for file in files[:_MOST_RESULTS]:
        try:
            _take(store, file, clusters, since, lease)
            taken += 1
        except StoreFailed as failure:  # of this one; it waits, and the rest goes on
            error = message_text(CollectionErrorCode.STORE_SILENT, why=str(failure).rstrip("."))
            log.warning("ingest.store_failed", file=file.path, error=str(failure))
    return taken, error, len(files) - taken


def _waiting(store: Store) -> list[Entry]:
    """Markers that are not in the ledger, in the order in which they were written."""
    files = {named(entry.path): entry for entry in store.files(f"{RESULTS}/{MARKERS}") if entry.name.endswith(".json")}
    known = set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.query, l.batch, l.id, l.deleted_at FROM observe_pipelineledger l"
            " JOIN unnest(%s::text[], %s::bigint[]) AS f(query, batch) ON l.query = f.query AND l.batch = f.batch",
            [[query for query, _ in files], [batch for _, batch in files]],
        )
        again = []
        for query, batch, pk, deleted_at in cursor.fetchall():
            known.add((query, batch))
            if deleted_at is not None:
                again.append(pk)
    if again:  # the pipeline wrote a batch again that it did not know to be done: its files go a second time
        PipelineLedger.objects.filter(pk__in=again).update(deleted_at=None)
    left = [(entry.at is not None and entry.at.timestamp(), key, entry) for key, entry in files.items()]
    return [entry for _, key, entry in sorted(left, key=lambda row: row[:2]) if key not in known]


def _named_like_another() -> dict[int, datetime]:
    """Cluster → when it was registered, of those whose name was another's before: segments tell of both by the name."""
    removed = AuditEvent.objects.filter(
        action="cluster.removed", cluster=OuterRef("slug"), at__lte=OuterRef("created_at")
    )
    return dict(Cluster.objects.filter(Exists(removed)).values_list("pk", "created_at"))


def _take(store: Store, file: Entry, clusters: Mapping[str, int], since: Mapping[int, datetime], lease: Lease) -> None:
    began = time.monotonic()
    content = store.read(file.path)
    if content is None:
        return
    taken, aside = Taken(), list[dict[str, str]]()
    found: Marker | None = None
    try:
        found = marker(file.path.removeprefix(f"{RESULTS}/"), content)
        aside += [dict(each) for each in found.set_aside]
    except SetAside as why:
        aside.append({"file": why.file, "why": str(why)})
    if found is not None:
        reading = Reading(store, found, clusters, lease.now(), RESULTS, since)
        for name, rows in sorted(found.rows.items()):
            try:
                if rows:
                    take(reading, known_kind(found, name), taken)
            except SetAside as why:
                aside.append({"file": why.file, "why": str(why)})
    reached("read")
    if aside:
        log.warning("ingest.set_aside", marker=file.path, set_aside=aside)
    partitions.ensure(taken.places)
    bundles = _bundled(taken)
    for bundle in bundles[:-1]:
        with lease.write_portion():
            for portion in bundle:
                portion()
        reached("portion-stored")
    with lease.write_portion():
        for portion in bundles[-1]:
            portion()
        reached("copied")
        _enter(file, found, taken, aside, round((time.monotonic() - began) * 1000))
        reached("before-commit")
    reached("after-commit")


def _bundled(taken: Taken) -> list[list[Callable[[], None]]]:
    """Portions that go together into one transaction; the last bundle, which may be empty, has the ledger row."""
    bundles: list[list[Callable[[], None]]] = [[]]
    rows = 0
    for number, portion in taken.portions:
        if bundles[-1] and rows + number > AT_ONCE:
            bundles.append([])
            rows = 0
        bundles[-1].append(portion)
        rows += number
    return bundles


def _enter(file: Entry, found: Marker | None, taken: Taken, aside: list[dict[str, str]], took_ms: int) -> None:
    """The ledger row. What a query counts up is counted with it, so that no batch of it is counted twice."""
    query, batch = named(file.path)
    _, created = PipelineLedger.objects.get_or_create(
        query=query,
        batch=batch,
        defaults={
            "written_at": found.written_at if found else None,
            "newest_at": found.newest_at if found else None,
            "rows": taken.rows,
            "skipped": taken.skipped,
            "flushes": [[epoch, seq] for epoch, seq, _ in found.flushes] if found else [],
            "set_aside": aside,
            "took_ms": took_ms,
        },
    )
    if not created:
        return
    with connection.cursor() as cursor:
        for (cluster, hour), (judged, differed) in sorted(taken.compared.items()):
            cursor.execute(
                "INSERT INTO observe_verdictcount AS old (query, cluster_id, hour, judged, differed)"
                " VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (query, cluster_id, hour) DO UPDATE SET judged = old.judged + excluded.judged,"
                " differed = old.differed + excluded.differed",
                [query, cluster, hour, judged, differed],
            )


def _delete_old(store: Store, lease: Lease) -> None:
    """Files of results that were taken in long enough ago; their ledger rows stay, so they stay known."""
    now = lease.now()
    there = PipelineLedger.objects.filter(deleted_at=None).order_by("ingested_at")
    good = there.filter(set_aside=[], ingested_at__lt=_before(now, settings.KEEP_RESULTS_HOURS))
    bad = there.exclude(set_aside=[]).filter(ingested_at__lt=_before(now, settings.KEEP_SET_ASIDE_HOURS))
    due = [*good[:_MOST_DELETED], *bad[:_MOST_DELETED]]
    for row in due:
        lease.keep(5)
        content = store.read(f"{RESULTS}/{MARKERS}/{row.query}-{row.batch}.json")
        kinds = set(row.rows)
        if content is not None:
            try:
                kinds |= set(marker(f"{MARKERS}/{row.query}-{row.batch}.json", content).rows)
            except SetAside:
                pass  # what it named is not known; the marker itself goes
        for kind in sorted(kinds):
            store.delete(f"{RESULTS}/{kind}/{row.query}-{row.batch}")
        reached("deleting")
        store.delete(f"{RESULTS}/{MARKERS}/{row.query}-{row.batch}.json")
    PipelineLedger.objects.filter(pk__in=[row.pk for row in due]).update(deleted_at=now)


def _before(now: datetime, hours: float) -> datetime:
    return now - timedelta(hours=hours)
