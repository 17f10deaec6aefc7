"""A queued run: whose turn it is, whether the cluster is as was approved and well, and how it begins.

Content that is wrong makes the request STALE, a sentence per row. What is unwell keeps it queued with the reason, and
it is tried again until its window ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError
from django.db.models.functions import Now

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.recheck import MOST_REASONS
from kafkadash.changes.refusals import Refused
from kafkadash.changes.transitions import has_digested_content
from kafkadash.domain.checks import About
from kafkadash.domain.executor_state import Move, Observation, Work
from kafkadash.domain.executor_window import Health, content
from kafkadash.domain.messages import message_text, reason_cause
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.rack_spread import spread
from kafkadash.domain.reasons import CodedReason, joined, reason_columns
from kafkadash.domain.reassignment_checks import Seen, judge
from kafkadash.domain.row_reasons import NoLeader, UnderMinIsr
from kafkadash.domain.run_reasons import (
    CheckFailed,
    ClusterReadOnly,
    LacksPermission,
    ListingUnread,
    LookedOnceMore,
    MoreLikeIt,
    NotReadLately,
    NotWatched,
    QuorumSilent,
    RowHeldUp,
    StartRefused,
    TopicsUnread,
    WindowNotOpen,
)
from kafkadash.domain.workflow_states import State, Trigger
from kafkadash.kafka.changing import KafkaClient
from kafkadash.kafka.port import NotSupported
from kafkadash.observe.models import Kind
from kafkadash.reassign.checks import limits_of, plan_rows
from kafkadash.reassign.run.budget import Budget
from kafkadash.reassign.run.lease import next_turn
from kafkadash.reassign.run.look import Look, look, window_open
from kafkadash.reassign.run.moves import insert
from kafkadash.reassign.run.queue import in_front_of, wake_those_that_wait
from kafkadash.reassign.run.rest_of_cluster import known
from kafkadash.reassign.run.running import Running
from kafkadash.reassign.topology import load_topology

AGAIN_S = 10.0
"""A run that cannot begin is tried again after so long."""
SURE_S = 2.0
"""Content that a broker's late metadata could feign to be wrong is looked at once more, so much later."""

MOST_PERMISSIONS = 5
_ON_CLUSTER = ("Alter", "AlterConfigs")
_NOT_HEALTH = frozenset({"window", "throttle"})
"""Of the stored checks: that the run fits its window is an estimate, and its rate can be changed while it runs."""


def take_turn(running: Running, client: KafkaClient, budget: Budget) -> None:
    """One try. Raises KafkaFailure, SecretError, AnotherCluster where the cluster cannot be asked."""
    now = running.now()
    if in_front_of(running.execution, now) is not None:
        _blocked(running, None)
        return
    if not has_digested_content(running.request):
        _turn_stale(running, [message_text(ChangeErrorCode.CONTENT_ALTERED, name=f"#{running.request.pk}")])
        return
    rows = plan_rows(running.request.artifact_id or "")
    loaded = load_topology(running.cluster, frozenset(row.topic for row in rows)).seen
    works = _works(rows, loaded.topology)
    why = _not_allowed(running, now) or _old(loaded, now) or _unhealthy(running, rows, loaded, now)
    if why:
        _blocked(running, why)
        return
    seen = _look(running, client, works, budget)
    why = _not_seen(seen.observation)
    if why:
        _blocked(running, why)
        return
    judged = [_judged(Move(work), seen.observation, running.options, running.now()) for work in works]
    wrong = [move for move in judged if move.ended]
    if wrong:
        _not_as_approved(running, wrong)
        return
    why = _unwell(works, seen.observation) or _not_permitted(client, {row.topic for row in rows}, budget)
    if why:
        _blocked(running, why)
        return
    insert(running.lease, running.execution.pk, works)
    _begin(running, len(works))


def _works(rows: Sequence[Row], topology: Topology) -> list[Work]:
    """With the sizes as they are now, for the order in which rows are submitted."""
    racks = topology.racks
    number = len(set(racks.values()))
    sizes = {(t.name, p.partition): p.size_bytes for t in topology.topics.values() for p in t.partitions}

    def mends(row: Row) -> bool:
        return number > 1 and spread(row.target, racks, number).moves < spread(row.current, racks, number).moves

    return [Work(row, sizes.get((row.topic, row.partition)), mends(row)) for row in rows]


def _not_allowed(running: Running, now: datetime) -> CodedReason | None:
    """Return why nothing is begun on this cluster now; None when nothing stands against it."""
    cluster = running.cluster
    if cluster.read_only:
        return ClusterReadOnly(cluster.name)
    if not cluster.enabled:
        return NotWatched(cluster.name)
    return None if window_open(running.options, now) else WindowNotOpen()


def _old(seen: Seen, now: datetime) -> CodedReason | None:
    """Stored facts decide what is not asked live: disks, and the rest of the cluster's partitions."""
    kinds = {Kind.METADATA: seen.metadata, Kind.REASSIGNMENTS: seen.reassignments, Kind.LOG_DIRS: seen.log_dirs}
    if not seen.zookeeper:
        kinds[Kind.QUORUM] = seen.quorum
    old = tuple(kind.value for kind, read in kinds.items() if read.stale(now))
    return NotReadLately(old) if old else None


def _unhealthy(running: Running, rows: Sequence[Row], seen: Seen, now: datetime) -> CodedReason | None:
    """The first thing that the stored facts have against it. What cannot be told at all was shown to who approved."""
    found = judge(rows, running.options, limits_of(running.request.input), seen, now)
    failed = [check for check in found.failed(About.HEALTH) if check.code not in _NOT_HEALTH]
    problems = [problem for check in failed for problem in check.problems]
    if not problems:
        return None
    total = sum(max(check.problem_count, len(check.problems)) for check in failed)
    return _with_more(CheckFailed(failed[0].code, problems[0], failed[0].then), total)


def _look(running: Running, client: KafkaClient, works: Sequence[Work], budget: Budget) -> Look:
    moves = [Move(work) for work in works]
    return look(
        client,
        running.cluster,
        moves,
        budget.reading(settings.KAFKA_DEADLINE),
        now=running.now(),
        known=known(running.cluster, {work.row.topic for work in works}, running.now()),
        options=running.options,
        disk_limit=running.disk_limit,
    )


def _not_seen(seen: Observation) -> CodedReason | None:
    if not seen.quorum:
        return QuorumSilent()
    if not seen.listing:
        return ListingUnread()
    return TopicsUnread(len(seen.unread), tuple(sorted(seen.unread)[:5])) if seen.unread else None


def _judged(move: Move, seen: Observation, options: Options, now: datetime) -> Move:
    """As if a second look had said the same, so that it says what is wrong."""
    once = content(move, seen, options, now)
    if once.hint is None:
        return once
    again = content(once, replace(seen, at=seen.at + timedelta(microseconds=1)), options, now)
    return replace(again, hint=once.hint)


def _not_as_approved(running: Running, wrong: Sequence[Move]) -> None:
    """STALE; but what a broker's late metadata could feign is looked at once more before approvals are void."""
    said = [f"{move.work.row.name}: {reason_cause(move.reason)}" for move in wrong]
    sure = any(move.hint is None for move in wrong)
    once_more = _with_more(LookedOnceMore(wrong[0].work.row.name, wrong[0].reason), len(wrong))
    if not sure and running.execution.blocked != once_more:
        _blocked(running, once_more, again=SURE_S)
        return
    _turn_stale(running, said)


def _turn_stale(running: Running, said: Sequence[str]) -> None:
    shown = list(said[:MOST_REASONS])
    if len(said) > len(shown):
        shown = [*shown, f"And {len(said) - len(shown):,} more."]
    with running.write_state() as request:
        running.move(
            request,
            Trigger.CONTENT_FAILED,
            reason=said[0],
            fields={"stale_reasons": shown},
            also={"reasons": len(said)},
        )


def _unwell(works: Sequence[Work], seen: Observation) -> CodedReason | None:
    health = Health(seen)
    wrong: dict[CodedReason, str] = {}
    for work in works:
        why = health.wrong(work)
        if why:
            wrong.setdefault(why, work.row.name)
    for why, name in wrong.items():
        return _with_more(RowHeldUp(name, why) if isinstance(why, NoLeader | UnderMinIsr) else why, len(wrong))
    return None


def _not_permitted(client: KafkaClient, topics: Collection[str], budget: Budget) -> CodedReason | None:
    """What the principal lacks, where the brokers tell it: an unknown permission keeps nobody from trying."""
    try:
        own = client.permissions(deadline=budget.reading(settings.KAFKA_DEADLINE))
    except NotSupported:
        return None
    lacks = [(needed, "") for needed in _ON_CLUSTER if own.cluster and needed not in own.cluster]
    for topic in sorted(topics):
        held = own.topics.get(topic)
        if held is not None and "AlterConfigs" not in held:
            lacks.append(("AlterConfigs", topic))
    if not lacks:
        return None
    return _with_more(LacksPermission(tuple(lacks[:MOST_PERMISSIONS])), len(lacks) - MOST_PERMISSIONS + 1)


def _blocked(running: Running, why: CodedReason | None, *, again: float = AGAIN_S) -> None:
    """Store why the run waits; None where only others are in front of it."""
    own = running.execution
    with running.write():
        running.save(
            **reason_columns(why, "blocked"),
            blocked_at=None if why is None else own.blocked_at if own.blocked else Now(),
            **reason_columns(None, "error"),
            failures=0,
            looked_at=running.now(),
            next_at=next_turn(running.lease, again),
        )
        if why is not None and own.blocked is None:
            wake_those_that_wait(running.cluster.pk, but=own.pk)  # some may pass it now
    if why != own.blocked:
        running.hint()


def _begin(running: Running, rows: int) -> None:
    """QUEUED → EXECUTING with its rows, in one transaction; or, if something came between, another try."""
    try:
        with running.write_state() as request:
            if request.state != State.QUEUED or request.digest != running.request.digest:
                return
            running.move(request, Trigger.TURN, also={"rows": rows})
            running.save(
                active=True,
                started_at=running.now(),
                **reason_columns(None, "blocked"),
                blocked_at=None,
                rows=rows,
                **reason_columns(None, "error"),
                failures=0,
                next_at=next_turn(running.lease, 0),
            )
    except IntegrityError:
        return  # another run of the cluster became active at this instant; the next try waits for it
    except Refused as refused:
        _blocked(running, StartRefused(str(refused)))
        return
    running.publish()


def _with_more(first: CodedReason, total: int) -> CodedReason:
    return joined(first, MoreLikeIt(total - 1)) if total > 1 else first
