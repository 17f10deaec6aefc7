"""The report of a run that has ended: what was moved, how long it took, what came otherwise, and who did what.

It is made once, when the run ends, and stored as JSON (format 1, see ``report_of``); pages and files only show it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Max, Q, Sum

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.trail import Entry, entries
from kafkadash.changes.transitions import OBJECT
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.impact import Impact, busiest_bytes, run_seconds
from kafkadash.domain.ledger import Found, Place
from kafkadash.domain.throttles import RATES
from kafkadash.domain.wording import count, duration, run_time
from kafkadash.domain.workflow_states import State
from kafkadash.observe.models import ReassignmentSnapshot
from kafkadash.reassign.models import Execution, Move, MoveState, PlanReport, ThrottleEntry
from kafkadash.reassign.rates import megabytes
from kafkadash.reassign.run.broker_absences import absence_sentences, time_words
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.window_facts import run_options

log = structlog.get_logger(__name__)

FORMAT = 2
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
_OF_OTHERS = tuple(f"change.{found.value}" for found in (Found.VANISHED, Found.FOREIGN, Found.LEFT))
"""What was found of others where throttles of the run stood."""


def report_of(execution: Execution, state: State, outcome: str, now: datetime) -> dict[str, Any]:
    """Of a run that ends now in this state. From stored rows, the ledger among them; about a dozen queries.

    Keys: ``format``, ``change``, ``title``, ``cluster``, ``state``, ``outcome``, ``digest``, ``plan`` (the artifact);
    times ``queued_at``, ``started_at``, ``ended_at`` as ISO 8601 and ``duration_s``; ``bytes`` that were copied with
    ``bytes_unknown`` (rows of which that is not known) and ``mean_rate`` in bytes per second; ``rows`` with ``total``
    and ``by_end``; ``otherwise``: rows that did not end as done, or not quite, each [topic, partition, state,
    code and parameters of the reason],
    at most MOST_ROWS of ``otherwise_count``; ``deviations``, ``obligations``, ``meanwhile``: sentences; ``people``:
    what was done, each {at, who, did, detail}.
    """
    change = execution.request
    moves = Move.objects.filter(execution=execution)
    by_end = dict(moves.order_by().values_list("state").annotate(Count("pk")))
    total = sum(by_end.values())
    copied = moves.aggregate(bytes=Sum("moved_bytes"), unknown=Count("pk", filter=Q(moved_bytes=None)))
    took = (now - execution.started_at).total_seconds() if execution.started_at else None
    events = _events(change, _PEOPLE)
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
        "deviations": _deviations(change, execution, took, by_end, events),
        "obligations": Ledger.load(execution).obligations(),
        "meanwhile": _meanwhile(execution, now, _events(change, _OF_OTHERS)),
        "people": [_event(entry) for entry in entries(events)],
    }


def report_when_it_ends(execution: Execution, state: State, outcome: str, now: datetime) -> dict[str, Any]:
    """The same; nothing where it cannot be made: a run ends all the same, and its page makes the report then."""
    try:
        with transaction.atomic():
            return report_of(execution, state, outcome, now)
    except Exception:
        log.exception("execution.report_failed", execution=execution.pk)
        return {}


def stored_report(change: ChangeRequest) -> dict[str, Any] | None:
    """As it was made when the run ended, or made now where that was not possible; None where there is none."""
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
    return report_of(execution, State(change.state), execution.outcome, execution.ended_at)


def _events(change: ChangeRequest, actions: Sequence[str]) -> list[AuditEvent]:
    rows = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(change.pk), action__in=actions)
    return list(rows.order_by("at", "id")[:MOST_EVENTS])


def _event(entry: Entry) -> dict[str, Any]:
    return {"at": entry.at.isoformat(), "who": entry.who, "did": entry.words, "detail": list(entry.detail)}


def _deviations(
    change: ChangeRequest,
    execution: Execution,
    took: float | None,
    by_end: Mapping[str, int],
    events: Sequence[AuditEvent],
) -> list[str]:
    """What came otherwise than planned, in sentences."""
    said = []
    planned = _planned_s(change)
    if planned and took is not None:
        rate = megabytes(run_options(change).throttle)
        said.append(
            f"The plan reckoned with at least {run_time(planned)} at {rate} MB/s; it took {run_time(took)}, "
            f"{took / planned:.1f} times that."
        )
    for state, number in sorted(by_end.items()):
        if state != RowState.DONE:
            said.append(
                f"{count(number, 'partition')} of {sum(by_end.values()):,} ended otherwise: {MoveState(state).label}."
            )
    changes = [event for event in events if event.action == "change.throttle_changed"]
    if changes:
        said.append(
            f"The throttle was changed {_times(len(changes))}; it was {megabytes(execution.throttle)} MB/s last."
        )
    paused = _paused_s(events)
    if paused >= 1:
        said.append(f"It was paused for {duration(paused)} in all.")
    again = Move.objects.filter(execution=execution, attempt__gt=1).aggregate(rows=Count("pk"), most=Max("attempt"))
    if again["rows"]:
        said.append(
            f"{count(again['rows'], 'partition')} had to be submitted more than once, at most {_times(again['most'])}."
        )
    return said


def _planned_s(change: ChangeRequest) -> float | None:
    report = PlanReport.objects.filter(request=change).only("impact").first()
    if report is None:
        return None
    return run_seconds(busiest_bytes(Impact.from_json({**report.impact, "brokers": ()})), run_options(change).throttle)


def _paused_s(events: Sequence[AuditEvent]) -> float:
    total, since = 0.0, None
    for event in events:
        if event.action == "change.paused":
            since = event.at
        elif since is not None and event.action in ("change.resumed", "change.cancelled"):
            total += (event.at - since).total_seconds()
            since = None
    return total


def _meanwhile(execution: Execution, now: datetime, events: Sequence[AuditEvent]) -> list[str]:
    """What changed elsewhere while it ran, as far as it was stored; what is not stored is said to be so."""
    if execution.started_at is None:
        return []
    return [
        *_moved_by_others(execution, execution.started_at, now),
        *absence_sentences(execution.absences, now),
        _topics_deleted(execution),
        *_throttles_of_others(events),
        *_uncertain_rates(execution),
    ]


def _moved_by_others(execution: Execution, began: datetime, now: datetime) -> list[str]:
    """Partitions that others moved: those that collectors saw, and rows of the run that ended because of it."""
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
        return ["No reassignment of others was seen."]
    named = [f"{topic}-{partition}" for topic, partition in sorted(others)]
    return [f"Others moved {count(len(named), 'partition')}: {_shortly(named)}."]


def _topics_deleted(execution: Execution) -> str:
    """Those of the run that its rows ended for; of others nobody keeps it."""
    own = Move.objects.filter(execution=execution, state=RowState.TOPIC_DELETED)
    names = sorted(set(own.order_by().values_list("topic", flat=True)))
    if not names:
        return "Which topics were created or deleted elsewhere is not recorded, so it is not known."
    topics = "1 topic of this plan was" if len(names) == 1 else f"{len(names):,} topics of this plan were"
    return f"{topics} deleted, or created again: {_shortly(names)}. Of other topics that is not recorded."


def _throttles_of_others(events: Sequence[AuditEvent]) -> list[str]:
    """What others did to throttles where ours stood, once each."""
    times: dict[str, list[datetime]] = defaultdict(list)
    for event in events:
        times[event.reason].append(event.at)
    said = [
        f"{time_words(at[0])}: {reason}" + (f" That was seen {_times(len(at))}." if len(at) > 1 else "")
        for reason, at in times.items()
    ]
    if len(said) > MOST_NAMED:
        said = [*said[:MOST_NAMED], f"And {len(said) - MOST_NAMED:,} more things about throttles; the audit has them."]
    return said or ["No throttle of others was found where ours stood."]


def _uncertain_rates(execution: Execution) -> list[str]:
    """Rates that others removed and ours set again: nobody knows what they would have set there next."""
    found = ThrottleEntry.objects.filter(execution=execution, key__in=RATES, again_at__isnull=False)
    places = [Place(*place).words for place in found.order_by("pk").values_list("resource", "name", "key")]
    if not places:
        return []
    return [f"Others removed our rates while it ran, so what stood before is not certain of {_shortly(places)}."]


def _shortly(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
