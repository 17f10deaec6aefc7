"""Judges what became of runs, by Kafka's own tools, the cluster's metadata log, and the rows and audit of the product.

    before = Before.of(tools)                       # nothing of ours runs
    …                                               # runs, faults, everything healed, the runs have ended
    problems = judge(tools, [number, …], before)    # sentences; empty when nothing was lost, doubled or left behind

Nothing here uses the product's adapter. Rows are read with its models, so Django has to be set up on its database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kafkadash.accounts.models import AuditEvent
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import OVER, TABLE, ChangeState
from kafkadash.changes.transitions import OBJECT
from kafkadash.core.messages import find_reason
from kafkadash.execution.engine.reasons import OrderNotRestored
from kafkadash.execution.engine.state import ENDED
from kafkadash.execution.engine.state import RowState as Row
from kafkadash.execution.models import Execution, Move, Order, ThrottleEntry
from tests.agreement.tools import DescribedPartition, DescribedTopic, Tools
from tests.chaos.metadata_log import Begun, ConfigSet, History, Stood, history

THROTTLED = ".replication.throttled."
CLOCKS = timedelta(seconds=1)
SEEN = timedelta(seconds=1)
"""What stood for less, whoever sets over it may not have been able to read. Kafka has no compare-and-set here."""
STEP = timedelta(seconds=20)
"""Controllers and the database round their times differently."""

Place = tuple[str, str, str]
"""Resource ("broker" or "topic"), its name, the key."""


@dataclass(frozen=True, slots=True)
class Before:
    """What was set before any of it: place → value, of throttles of brokers and topics."""

    throttles: Mapping[Place, str]

    @classmethod
    def of(cls, tools: Tools) -> Before:
        return cls(throttles_of(tools))


@dataclass(slots=True)
class Disturbed:
    """What was done to the cluster beside the product, and is nobody's fault but the disturber's.

    ``throttles``: place → value that somebody else set and that has to stand at the end, None for one that was taken
    away. ``covered``: place → value of others over which ours may have stood when somebody took away what stood there:
    it may be back at the end, or not. ``moves``: (topic, partition) that Kafka's own tool moved or cancelled, and when
    it was done with that. ``begun``: (topic, partition) → how many reassignments of others were begun on it.
    ``second_rate``: what a second installation sets for its moves, '' where there is none.
    """

    throttles: dict[Place, str | None] = field(default_factory=dict)
    covered: dict[Place, str | None] = field(default_factory=dict)
    moves: dict[tuple[str, int], datetime] = field(default_factory=dict)
    begun: Counter[tuple[str, int]] = field(default_factory=Counter)
    second_rate: str = ""


def judge(tools: Tools, numbers: Sequence[int], before: Before, disturbed: Disturbed | None = None) -> list[str]:
    """Every problem, one sentence each. ``numbers`` are requests in the order in which they ran; the last is judged
    against the cluster as it is now, those before it are only where no later one moved the same partition.
    """
    others = disturbed or Disturbed()
    topics = tools.topics()
    controller = tools.quorum_status().leader_id
    log = history(tools.playground, controller)
    said: list[str] = []
    moved_later: set[tuple[str, int]] = set()
    for number in reversed(numbers):
        said += [f"#{number}: {problem}" for problem in _request(number)]
        run = Execution.objects.filter(request=number).first()
        if run is None:
            continue
        rows = list(Move.objects.filter(execution=run))
        theirs = {key for key, at in others.moves.items() if run.ended_at and at > run.ended_at - CLOCKS}
        judged = [row for row in rows if _key(row) not in moved_later | theirs]
        whole = ChangeRequest.objects.filter(pk=number, state=ChangeState.CANCELLED).exists()
        said += [f"#{number}: {p}" for p in _rows(judged, topics, log, others, cancelled=whole)]
        said += [f"#{number}: {p}" for p in _submits(run, rows, log.begun, others)]
        moved_later |= {_key(row) for row in rows if row.attempt}
    said += _listed(tools, numbers, others)
    said += _throttles(tools, numbers, before, others)
    if others.second_rate:
        ours = {value for run in numbers for value in _our_rates(run)}
        said += _set_over(log.configs, ours - {others.second_rate}, others.second_rate)
    return said


def throttles_of(tools: Tools) -> dict[Place, str]:
    """All that is set now, by ``kafka-configs``."""
    return {
        (kind, owner, key): value
        for kind in ("broker", "topic")
        for owner, configs in tools.dynamic_configs(f"{kind}s").items()
        for key, (value, _) in configs.items()
        if THROTTLED in key
    }


# --- the request and its audit ---


def _request(number: int) -> Iterator[str]:
    change = ChangeRequest.objects.filter(pk=number).first()
    if change is None:
        yield "it is gone."
        return
    if ChangeState(change.state) not in OVER:
        yield f"it is {change.state}, which is no end."
    yield from _chain(change)
    yield from _orders(number)
    run = Execution.objects.filter(request=number).first()
    if run is not None and ChangeState(change.state) in OVER:
        if run.active or run.ended_at is None:
            yield "its run is active although it is over."
        if not run.report:
            yield "it has no report."


def _chain(change: ChangeRequest) -> Iterator[str]:
    """Each transition is one event that begins where the one before it ended, and is in the table."""
    events = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(change.pk)).order_by("id")
    steps = [
        (event.action.removeprefix("change."), event.before["state"], event.after["state"])
        for event in events
        if event.before and event.after and "state" in event.before and "state" in event.after
    ]
    moves = [step for step in steps if step[1] != step[2]]
    possible = {(edge.trigger.value, edge.source.value, edge.target.value) for edge in TABLE}
    for step in moves:
        if step not in possible:
            yield f"the audit has {step[0]} from {step[1]} to {step[2]}, which is no transition."
    if not events or events[0].action != "change.created":
        yield "the audit does not begin with its creation."
    at = ChangeState.DRAFT.value
    for verb, source, target in moves:
        if source != at:
            yield f"the audit says {verb} from {source}, but it was {at} by the event before."
        at = target
    if at != change.state:
        yield f"the audit ends at {at}, the request is {change.state}."


def _orders(number: int) -> Iterator[str]:
    for order in Order.objects.filter(execution__request=number):
        if order.taken_at is None:
            yield f"the order “{order}” was never answered."
    asked = Order.objects.filter(execution__request=number).count()
    told = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(number), action="change.ordered").count()
    if asked != told:
        yield f"{asked} orders, but {told} events about them."


# --- the rows ---


def _rows(
    rows: Sequence[Move], topics: Mapping[str, DescribedTopic], log: History, others: Disturbed, *, cancelled: bool
) -> Iterator[str]:
    """``cancelled``: the run as a whole, which is reason enough for each of its rows."""
    for row in rows:
        state = Row(row.state)
        if state not in ENDED:
            yield f"{row} is {state}, which is no end."
            continue
        there = _described(row, topics)
        if state is Row.DONE and others.begun[_key(row)] and _was_there(row, log):
            continue  # others took it from there before the run ended
        problem = _wrong_end(row, state, there, deleted=there is None)
        if not problem and not row.reason and state is not Row.DONE and not (cancelled and state is Row.CANCELLED):
            problem = "nothing says why."
        if problem:
            yield f"{row} is {state} ({row.reason_code or 'no reason'}), but {problem}"


def _was_there(row: Move, log: History) -> bool:
    """Whether it had its target, and nothing was moving it, in the step that said it is done."""
    assert row.since is not None
    known: list[Begun | Stood] = [*log.begun, *log.stood]
    changes = [each for each in known if (each.topic_id, each.partition) == (row.topic_id, row.partition)]
    changes.sort(key=lambda each: each.at)
    since, step_over = row.since, row.since + STEP
    return any(
        isinstance(each, Stood)
        and each.replicas == tuple(row.target)
        and each.at <= step_over
        and (left is None or left.at >= since)
        for each, left in zip(changes, (*changes[1:], None), strict=True)
    )


def _described(row: Move, topics: Mapping[str, DescribedTopic]) -> DescribedPartition | None:
    """None where the topic is not there, or is another one."""
    topic = topics.get(row.topic)
    if topic is None or topic.topic_id != row.topic_id:
        return None
    return topic.partitions.get(row.partition)


def _wrong_end(row: Move, state: Row, there: DescribedPartition | None, *, deleted: bool) -> str:
    if state is Row.TOPIC_DELETED:
        return "" if deleted else "its topic is there."
    if there is None:
        # It may have ended before somebody deleted its topic.
        return ""
    replicas, current, target = there.replicas, tuple(row.current), tuple(row.target)
    said = f"kafka-topics says {list(replicas)}, from {list(current)} to {list(target)}."
    if state is Row.DONE:
        return "" if replicas == target else said
    if state in (Row.SKIPPED, Row.FAILED):
        return "" if row.attempt == 0 or replicas == current else said
    if state is Row.CANCELLED:
        restored = replicas == current or (set(replicas) == set(current) and find_reason(row.reason, OrderNotRestored))
        return "" if restored else said
    return said if replicas == target and not row.hint else ""


# --- what Kafka did ---


def _submits(run: Execution, rows: Sequence[Move], log: Sequence[Begun], others: Disturbed) -> Iterator[str]:
    """No row's move was begun twice, and none that is done was never begun."""
    if run.started_at is None:
        return
    until = run.ended_at or datetime.max.replace(tzinfo=run.started_at.tzinfo)
    within = [each for each in log if run.started_at - CLOCKS <= each.at <= until + CLOCKS]
    times = Counter((each.topic_id, each.partition) for each in within)
    for row in rows:
        adds = set(row.target) - set(row.current)
        if not adds:
            continue
        began = times[row.topic_id, row.partition]
        theirs = others.begun[_key(row)]
        if began > 1 + theirs:
            yield f"{row} was begun {began} times by the metadata log ({row.attempt} attempts, {theirs} by others)."
        if began > row.attempt + theirs:
            yield f"{row} was begun {began} times, of which the rows know {row.attempt} and {theirs} are of others."
        if row.state == Row.DONE and not began and not theirs:
            yield f"{row} is done, but the metadata log has no beginning of it."


def _listed(tools: Tools, numbers: Sequence[int], others: Disturbed) -> Iterator[str]:
    ours = set(Move.objects.filter(execution__request__in=numbers).values_list("topic", "partition"))
    for move in tools.moves():
        if (move.topic, move.partition) in ours - others.moves.keys():
            yield f"{move.topic}-{move.partition} still moves: kafka-reassign-partitions lists it."


def _throttles(tools: Tools, numbers: Sequence[int], before: Before, others: Disturbed) -> Iterator[str]:
    """As before but for what others did; what of ours is still there has to stand in the ledger as owed."""
    owed = {
        (entry.resource, entry.name, entry.key)
        for entry in ThrottleEntry.objects.filter(execution__request__in=numbers, state="obliged")
    }
    for entry in ThrottleEntry.objects.filter(execution__request__in=numbers).exclude(state__in=("cleared", "obliged")):
        yield f"the ledger has {entry} as {entry.state}, which is no end."
    wanted: dict[Place, str | None] = {**before.throttles, **others.throttles}
    now = throttles_of(tools)
    for place in sorted(wanted.keys() | now.keys()):
        was, stands = wanted.get(place), now.get(place)
        back = stands is not None and stands == others.covered.get(place)
        if was != stands and not back and place not in owed:
            yield f"{' '.join(place)} is {stands!r} by kafka-configs, not {was!r}."


def _our_rates(number: int) -> Iterator[str]:
    yield str(ChangeRequest.objects.get(pk=number).options["throttle"])
    for value in ThrottleEntry.objects.filter(execution__request=number, resource="broker").values_list("value"):
        yield from value


def _set_over(configs: Sequence[ConfigSet], ours: Collection[str], theirs: str) -> Iterator[str]:
    """Rates of one installation that the other set its own over, though they had stood for long enough to be seen."""
    stood: dict[Place, ConfigSet] = {}
    for each in configs:
        place = (each.resource, each.name, each.key)
        before, stood[place] = stood.get(place), each
        if before is None or before.value is None or each.at - before.at < SEEN:
            continue
        if (before.value in ours and each.value == theirs) or (before.value == theirs and each.value in ours):
            yield f"{' '.join(place)} was {before.value} from {before.at:%H:%M:%S} and was set over with {each.value}."


def _key(row: Move) -> tuple[str, int]:
    return row.topic, row.partition
