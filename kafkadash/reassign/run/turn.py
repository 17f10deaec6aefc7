"""A queued run: whose turn it is, whether the cluster is as was approved and well, and how it begins.

Content that is wrong makes the request STALE, a sentence per row. What is unwell keeps it queued with the sentence why,
and it is tried again until its window ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError
from django.db.models.functions import Now

from kafkadash.changes.recheck import MOST_REASONS
from kafkadash.changes.refusals import Refused
from kafkadash.changes.transitions import has_digested_content
from kafkadash.clusters.access import read_only_text
from kafkadash.domain.checks import About
from kafkadash.domain.executor_state import Move, Observation, Work
from kafkadash.domain.executor_window import Health, content
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.rack_spread import spread
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.reassignment_checks import Seen, judge
from kafkadash.domain.refusals import checks as checks_said
from kafkadash.domain.refusals import turns
from kafkadash.domain.row_reasons import NoLeader, UnderMinIsr
from kafkadash.domain.wording import count, listed
from kafkadash.domain.workflow_states import State, Trigger
from kafkadash.kafka.changing import KafkaClient
from kafkadash.kafka.port import NotSupported
from kafkadash.messages import reason_cause, reason_text
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

_ON_CLUSTER = ("Alter", "AlterConfigs")
_NOT_HEALTH = frozenset({"window", "throttle"})
"""Of the stored checks: that the run fits its window is an estimate, and its rate can be changed while it runs."""


def take_turn(running: Running, client: KafkaClient, budget: Budget) -> None:
    """One try. Raises KafkaFailure, SecretError, AnotherCluster where the cluster cannot be asked."""
    now = running.now()
    if in_front_of(running.execution, now) is not None:
        _blocked(running, "")
        return
    if not has_digested_content(running.request):
        _turn_stale(running, [checks_said.CONTENT_ALTERED(name=f"#{running.request.pk}")])
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


def _not_allowed(running: Running, now: datetime) -> str:
    """Why nothing is begun on this cluster now; '' when nothing stands against it."""
    cluster = running.cluster
    if cluster.read_only:
        return read_only_text(cluster)
    if not cluster.enabled:
        return turns.NOT_WATCHED(cluster=cluster.name)
    if not window_open(running.options, now):
        return turns.WINDOW_CLOSED()
    return ""


def _old(seen: Seen, now: datetime) -> str:
    """What was stored about the cluster decides what is not asked live: disks, and the rest of its partitions."""
    kinds = {"topics and brokers": seen.metadata, "reassignments": seen.reassignments, "log directories": seen.log_dirs}
    if not seen.zookeeper:
        kinds["controller quorum"] = seen.quorum
    old = [words for words, read in kinds.items() if read.stale(now)]
    return turns.NOT_READ_LATELY(facts=listed(old)) if old else ""


def _unhealthy(running: Running, rows: Sequence[Row], seen: Seen, now: datetime) -> str:
    """The first thing that the stored facts have against it. What cannot be told at all was shown to who approved."""
    found = judge(rows, running.options, limits_of(running.request.input), seen, now)
    failed = [check for check in found.failed(About.HEALTH) if check.code not in _NOT_HEALTH]
    if not failed:
        return ""
    said = [problem for check in failed for problem in check.problems]
    total = sum(max(check.problem_count, len(check.problems)) for check in failed)
    return f"{_first(said, total)} {failed[0].then}"


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


def _not_seen(seen: Observation) -> str:
    if not seen.quorum:
        return turns.QUORUM_SILENT()
    if not seen.listing:
        return turns.LISTING_UNREAD()
    if seen.unread:
        return turns.TOPICS_UNREAD(many=count(len(seen.unread), "topic"), topics=listed(sorted(seen.unread)[:5]))
    return ""


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
    once_more = turns.LOOKED_ONCE_MORE(first=_first(said, len(said)))
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


def _unwell(works: Sequence[Work], seen: Observation) -> str:
    health = Health(seen)
    wrong: dict[CodedReason, str] = {}
    for work in works:
        why = health.wrong(work)
        if why:
            wrong.setdefault(why, work.row.name)
    texts = [
        f"{name}: {reason_text(why)}" if isinstance(why, NoLeader | UnderMinIsr) else reason_text(why)
        for why, name in wrong.items()
    ]
    return _first(texts, len(texts))


def _not_permitted(client: KafkaClient, topics: Collection[str], budget: Budget) -> str:
    """What the principal lacks, where the brokers tell it: an unknown permission keeps nobody from trying."""
    try:
        own = client.permissions(deadline=budget.reading(settings.KAFKA_DEADLINE))
    except NotSupported:
        return ""
    lacks = []
    if own.cluster:
        lacks += [f"{needed} on the cluster" for needed in _ON_CLUSTER if needed not in own.cluster]
    for topic in sorted(topics):
        held = own.topics.get(topic)
        if held is not None and "AlterConfigs" not in held:
            lacks.append(f"AlterConfigs on the topic {topic}")
    if not lacks:
        return ""
    more = f" and {count(len(lacks) - 5, 'other permission')}" if len(lacks) > 5 else ""
    return turns.LACKS_PERMISSION(permissions=f"{', '.join(lacks[:5])}{more}")


def _blocked(running: Running, why: str, *, again: float = AGAIN_S) -> None:
    """It waits, with the sentence why; '' where only others are in front of it."""
    own = running.execution
    with running.write():
        running.save(
            blocked=why,
            blocked_at=(own.blocked_at if own.blocked and why else Now()) if why else None,
            error="",
            failures=0,
            looked_at=running.now(),
            next_at=next_turn(running.lease, again),
        )
        if why and not own.blocked:
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
                blocked="",
                blocked_at=None,
                rows=rows,
                error="",
                failures=0,
                next_at=next_turn(running.lease, 0),
            )
    except IntegrityError:
        return  # another run of the cluster became active at this instant; the next try waits for it
    except Refused as refused:
        _blocked(running, str(refused))
        return
    running.publish()


def _first(said: Sequence[str], total: int) -> str:
    if not said:
        return ""
    return said[0] if total <= 1 else f"{said[0]} And {count(total - 1, 'more thing')} like it."
