"""Report of a run that has ended: moves, duration, deviations from the plan, and actions of people.

The report is made once, when the run ends, and stored as JSON (see ``report_of``); pages and files only show it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Max, Q, Sum

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.trail import TrailEntry, build_entries
from kafkadash.changes.transitions import OBJECT
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.core.messages import CodedMessage, coded, pack_value
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.engine.throttle_ledger import LedgerEvent, ThrottlePlace
from kafkadash.execution.messages import ReportNoteCode
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.execution.worker.broker_absences import absence_notes
from kafkadash.execution.worker.throttle_ledger import RunLedger
from kafkadash.kafka.throttles import RATES
from kafkadash.monitoring.models import ReassignmentSnapshot
from kafkadash.planning.impact import PlanImpact, busiest_bytes, run_seconds
from kafkadash.planning.models import PlanReport
from kafkadash.planning.window import run_options

log = structlog.get_logger(__name__)

FORMAT = 3
MOST_ROWS = 500
"""Rows that ended otherwise than done and are named in the report; the others are counted."""
MOST_NAMED = 10
MOST_EVENTS = 500

_NOT_DONE = ~Q(state=RowState.DONE, reason_code="")
_PEOPLE = (
    "change.approved",
    "change.broke_glass",
    "change.started",
    "change.scheduled",
    "change.turn_came",
    "change.paused",
    "change.resumed",
    "change.throttle_changed",
    "change.parallel_changed",
    "change.ordered",
    "change.cancelled",
    "change.cancel_ended",
    "change.verified",
    "change.failed",
)
_OF_OTHERS = tuple(f"change.{found.value}" for found in (LedgerEvent.VANISHED, LedgerEvent.FOREIGN, LedgerEvent.LEFT))
"""Events of throttles of others in the place of those of the run."""


def report_of(execution: Execution, state: ChangeState, outcome: str, now: datetime) -> dict[str, Any]:
    """Return the report of a run that ends now in this state. From stored rows and the ledger; about a dozen queries.

    Keys: ``format``, ``change``, ``title``, ``cluster``, ``state``, ``outcome``, ``digest``, ``plan`` (the artifact);
    times ``queued_at``, ``started_at``, ``ended_at`` as ISO 8601 and ``duration_s``; ``bytes`` that were copied with
    ``bytes_unknown`` (rows of which that is not known) and ``mean_rate`` in bytes per second; ``rows`` with ``total``
    and ``by_end``; ``otherwise``: rows that did not end as done, or not quite, each [topic, partition, state,
    code and parameters of the reason],
    at most MOST_ROWS of ``otherwise_count``; ``deviations`` and ``meanwhile``: notes, each {code, params};
    ``obligations``: sentences; ``people``: what was done, each {at, who, did, detail}.
    """
    change = execution.request
    moves = Move.objects.filter(execution=execution)
    by_end = dict(moves.order_by().values_list("state").annotate(Count("pk")))
    total = sum(by_end.values())
    copied = moves.aggregate(bytes=Sum("moved_bytes"), unknown=Count("pk", filter=Q(moved_bytes=None)))
    took = (now - execution.started_at).total_seconds() if execution.started_at else None
    events = _read_events(change, _PEOPLE)
    other = list(
        moves.filter(_NOT_DONE)
        .order_by("topic", "partition")
        .values_list("topic", "partition", "state", "reason_code", "reason_params")
    )
    moved: int | None = copied["bytes"] if total > copied["unknown"] else None
    return {
        "format": FORMAT,
        "change": change.pk,
        "title": change.title,
        "cluster": {"name": execution.cluster.name, "slug": execution.cluster.slug, "id": execution.cluster.kafka_id},
        "state": state.value,
        "outcome": outcome,
        "digest": change.digest,
        "plan": change.artifact_id,
        "queued_at": execution.queued_at.isoformat(),
        "started_at": execution.started_at.isoformat() if execution.started_at else None,
        "ended_at": now.isoformat(),
        "duration_s": None if took is None else round(took, 1),
        "bytes": moved,
        "bytes_unknown": copied["unknown"],
        "mean_rate": round(moved / took) if moved and took else None,
        "rows": {"total": total, "by_end": by_end},
        "otherwise": [list(row) for row in other[:MOST_ROWS]],
        "otherwise_count": len(other),
        "deviations": [note.as_json() for note in _collect_deviations(change, execution, took, by_end, events)],
        "obligations": RunLedger.load(execution).obligations(),
        "meanwhile": [
            note.as_json() for note in _collect_changes_elsewhere(execution, now, _read_events(change, _OF_OTHERS))
        ],
        "people": [_pack_event(entry) for entry in build_entries(events)],
    }


def report_when_it_ends(execution: Execution, state: ChangeState, outcome: str, now: datetime) -> dict[str, Any]:
    """The same; nothing where it cannot be made: a run ends all the same, and its page makes the report then."""
    try:
        with transaction.atomic():
            return report_of(execution, state, outcome, now)
    except Exception:
        log.exception("execution.report_failed", execution=execution.pk)
        return {}


def stored_report(change: ChangeRequest) -> dict[str, Any] | None:
    """Return the report made when the run ended, or made now where that was not possible; None where there is none."""
    execution = (
        Execution.objects.select_related("request", "cluster")
        .defer("progress", "samples")
        .filter(request=change.pk, ended_at__isnull=False)
        .first()
    )
    if execution is None or execution.ended_at is None:
        return None
    stored: dict[str, Any] = execution.report
    if stored.get("format") == FORMAT:
        return stored
    return report_of(execution, ChangeState(change.state), execution.outcome, execution.ended_at)


def _read_events(change: ChangeRequest, actions: Sequence[str]) -> list[AuditEvent]:
    rows = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(change.pk), action__in=actions)
    return list(rows.order_by("at", "id")[:MOST_EVENTS])


def _pack_event(entry: TrailEntry) -> dict[str, Any]:
    return {"at": entry.at.isoformat(), "who": entry.who, "did": entry.words, "detail": pack_value(entry.detail)}


def _collect_deviations(
    change: ChangeRequest,
    execution: Execution,
    took: float | None,
    by_end: Mapping[str, int],
    events: Sequence[AuditEvent],
) -> list[CodedMessage]:
    """Return what came otherwise than planned."""
    notes = []
    planned = _planned_s(change)
    if planned and took is not None:
        rate = run_options(change).throttle
        notes.append(coded(ReportNoteCode.TOOK_OTHER_TIME, planned=planned, rate=rate, took=took, ratio=took / planned))
    for state, number in sorted(by_end.items()):
        if state != RowState.DONE:
            total = sum(by_end.values())
            notes.append(coded(ReportNoteCode.ENDED_OTHERWISE, rows=number, total=total, state=state))
    changes = [event for event in events if event.action == "change.throttle_changed"]
    if changes:
        notes.append(coded(ReportNoteCode.THROTTLE_CHANGED, times=len(changes), rate=execution.throttle))
    paused = _paused_s(events)
    if paused >= 1:
        notes.append(coded(ReportNoteCode.WAS_PAUSED, paused=paused))
    again = Move.objects.filter(execution=execution, attempt__gt=1).aggregate(rows=Count("pk"), most=Max("attempt"))
    if again["rows"]:
        notes.append(coded(ReportNoteCode.SUBMITTED_AGAIN, rows=again["rows"], most=again["most"]))
    return notes


def _planned_s(change: ChangeRequest) -> float | None:
    report = PlanReport.objects.filter(request=change).only("impact").first()
    if report is None:
        return None
    return run_seconds(
        busiest_bytes(unpack_dataclass(PlanImpact, {**report.impact, "brokers": ()})), run_options(change).throttle
    )


def _paused_s(events: Sequence[AuditEvent]) -> float:
    total, since = 0.0, None
    for event in events:
        if event.action == "change.paused":
            since = event.at
        elif since is not None and event.action in ("change.resumed", "change.cancelled"):
            total += (event.at - since).total_seconds()
            since = None
    return total


def _collect_changes_elsewhere(execution: Execution, now: datetime, events: Sequence[AuditEvent]) -> list[CodedMessage]:
    """Return what changed elsewhere while it ran, as far as it was stored; what is not stored is said to be so."""
    if execution.started_at is None:
        return []
    return [
        _moved_by_others(execution, execution.started_at, now),
        *absence_notes(execution.absences, now),
        _topics_deleted(execution),
        *_throttles_of_others(events),
        *_uncertain_rates(execution),
    ]


def _moved_by_others(execution: Execution, began: datetime, now: datetime) -> CodedMessage:
    """Tell partitions that others moved: those that collectors saw, and rows of the run that ended because of it."""
    rows = {
        (topic, partition): (target, state)
        for topic, partition, target, state in Move.objects.filter(execution=execution).values_list(
            "topic", "partition", "target", "state"
        )
    }
    others = {key for key, (_, state) in rows.items() if state == RowState.SUPERSEDED}
    others |= {
        (topic, partition)
        for topic, partition, target in ReassignmentSnapshot.objects.filter(
            cluster=execution.cluster_id, last_seen_at__gte=began, started_before__lte=now
        ).values_list("topic", "partition", "target")
        if rows.get((topic, partition), (None, ""))[0] != list(target)
    }
    if not others:
        return coded(ReportNoteCode.NO_OTHER_MOVES)
    named = [f"{topic}-{partition}" for topic, partition in sorted(others)]
    return coded(ReportNoteCode.OTHERS_MOVED, rows=len(named), named=_shorten_names(named))


def _topics_deleted(execution: Execution) -> CodedMessage:
    """Tell topics of the run that its rows ended for; of others nobody keeps it."""
    own = Move.objects.filter(execution=execution, state=RowState.TOPIC_DELETED)
    names = sorted(set(own.order_by().values_list("topic", flat=True)))
    if not names:
        return coded(ReportNoteCode.TOPICS_NOT_RECORDED)
    return coded(ReportNoteCode.TOPICS_DELETED, topics=len(names), named=_shorten_names(names))


def _throttles_of_others(events: Sequence[AuditEvent]) -> list[CodedMessage]:
    """Return what others did to throttles where ours stood, once each."""
    alike: dict[tuple[str, str], list[AuditEvent]] = defaultdict(list)
    for event in events:
        alike[event.reason_code, json.dumps(event.reason_params, sort_keys=True)].append(event)
    notes = [
        coded(ReportNoteCode.OTHER_THROTTLE, at=same[0].at, found=same[0].why, times=len(same))
        for same in alike.values()
    ]
    if len(notes) > MOST_NAMED:
        notes = [*notes[:MOST_NAMED], coded(ReportNoteCode.MORE_OTHER_THROTTLES, more=len(notes) - MOST_NAMED)]
    return notes or [coded(ReportNoteCode.NO_OTHER_THROTTLES)]


def _uncertain_rates(execution: Execution) -> list[CodedMessage]:
    """Tell rates that others removed and ours set again: nobody knows what they would have set there next."""
    found = ThrottleEntry.objects.filter(execution=execution, key__in=RATES, again_at__isnull=False)
    places = [ThrottlePlace(*place).words for place in found.order_by("pk").values_list("resource", "name", "key")]
    if not places:
        return []
    return [coded(ReportNoteCode.RATES_UNCERTAIN, named=_shorten_names(places))]


def _shorten_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"
