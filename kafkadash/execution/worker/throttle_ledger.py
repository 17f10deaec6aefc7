"""The throttle ledger of one run, between the pure step and Kafka.

A step calls ``prepare``, plans with ``throttles``, then ``intend`` and, in the transaction that stores the step,
``commit``. Only what is committed is sent: ``send_limits`` before rows are submitted, ``send_restores`` after; a second
``commit`` stores the answers. ``send_limits`` without a commit raises RuntimeError, since a worker that died then would
leave a throttle that nobody knows of.

A run may end when the step is ``over`` and ``ledger.pending(now)`` is not.

A step does not read every place: a run with hundreds of topics would read hundreds of lists every two seconds. It reads
calls without an answer, and values that others removed less than a minute ago; all other places every ``EVERY``
seconds, so that a change by others shows by then. Places that are about to be changed are read right before, because
the value to restore depends on it. Changes are sent as IncrementalAlterConfigs (KIP-339).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from kafkadash.accounts.services import record
from kafkadash.changes.transitions import OBJECT
from kafkadash.core.formatting import capitalize_first, listed_shortly
from kafkadash.core.messages import (
    CodedMessage,
    CodedReason,
    PlainReason,
    coded,
    message_reason,
    reason_columns,
    reason_text,
)
from kafkadash.execution.command_answers import NoForeignThrottle, ThrottleSetOver, ThrottleStays
from kafkadash.execution.engine.reasons import (
    NotSentYet,
    RateInUse,
    RateNotApplied,
    RowReasonCode,
    ThrottleAnswerLost,
    ThrottleCallRefused,
    ThrottleMissing,
    ThrottleNotRead,
    ThrottleRemoved,
    TopicDeleted,
)
from kafkadash.execution.engine.state import CallReply, Key
from kafkadash.execution.engine.step import (
    NONE,
    Action,
    ChangeLists,
    ClearRate,
    Pair,
    SetRate,
    StepThrottles,
    ThrottledPairs,
)
from kafkadash.execution.engine.throttle_ledger import (
    AGAIN_EVERY,
    BROKER_RATES,
    LedgerEntry,
    LedgerEvent,
    LedgerState,
    PlaceReading,
    SettledEntry,
    ThrottlePlace,
    ValueSource,
    answered,
    appended,
    appends,
    before_others,
    clearing,
    deleted,
    emptied,
    intend_list,
    intend_rate,
    leaves_empty,
    left_to_others,
    list_value,
    may_be_deleted,
    open_pairs,
    settle_list,
    settle_rate,
    subtracted,
    subtracts,
    wanted_away,
)
from kafkadash.execution.models import Execution, OrderType, ThrottleEntry
from kafkadash.execution.worker import fail_points
from kafkadash.execution.worker.snapshot import OTHERS_CLEAR, ClusterSnapshot
from kafkadash.kafka.api import (
    UNKNOWN_TOPIC_OR_PARTITION,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ItemError,
    KafkaAdmin,
    KafkaClient,
    KafkaFailure,
    ResourceConfigs,
)
from kafkadash.kafka.api import ConfigOrigin as KafkaSource
from kafkadash.kafka.throttles import FOLLOWER_LIST, LEADER_LIST, LISTS, RATES
from kafkadash.monitoring.models import CollectorKind, ThrottledResource, ThrottleState
from kafkadash.monitoring.schedule import read_soon
from kafkadash.planning.errors import ReassignmentErrorCode

EVERY = timedelta(seconds=10)

_KEYS = (*RATES, *LISTS)
_SOURCES: Mapping[KafkaSource, ValueSource] = {
    KafkaSource.DYNAMIC_TOPIC_CONFIG: ValueSource.TOPIC,
    KafkaSource.DYNAMIC_BROKER_CONFIG: ValueSource.BROKER,
    KafkaSource.DYNAMIC_DEFAULT_BROKER_CONFIG: ValueSource.CLUSTER_DEFAULT,
    KafkaSource.STATIC_BROKER_CONFIG: ValueSource.STATIC,
    KafkaSource.DEFAULT_CONFIG: ValueSource.DEFAULT,
}


def due(entries: Iterable[LedgerEntry], now: datetime, read_at: datetime | None) -> tuple[list[ThrottlePlace], bool]:
    """Places that are read in this step before anything is decided, and whether those are all there are."""
    everything = read_at is None or now - read_at >= EVERY
    return [entry.place for entry in entries if everything or _unsure(entry, now)], everything


def _unsure(entry: LedgerEntry, now: datetime) -> bool:
    under_way = entry.state in (LedgerState.INTENT, LedgerState.CLEARING)
    return (
        under_way
        or entry.missing_at is not None
        or (entry.lost_at is not None and entry.state is not LedgerState.OBLIGED)
        or (entry.again_at is not None and entry.open and not entry.may_set_again(now))
    )


def read_places(
    client: KafkaAdmin, places: Collection[ThrottlePlace], alive: Collection[int], *, deadline: float
) -> dict[ThrottlePlace, PlaceReading]:
    """Each place with what stands there, or why that is not known; a broker that is not ``alive`` is not asked."""
    resources = {place: resource_of(place) for place in places if place.resource != ThrottledResource.BROKER}
    reads = {}
    for place in places:
        if place.resource == ThrottledResource.BROKER:
            if int(place.name) in alive:
                resources[place] = resource_of(place)
            else:
                reads[place] = _unread(coded(ReassignmentErrorCode.BROKER_OF_THROTTLE_AWAY, broker=place.name))
    if not resources:
        return reads
    try:
        answer = client.describe_configs(set(resources.values()), deadline=deadline, keys=_KEYS)
    except KafkaFailure as failure:
        return reads | {place: _unread(failure.message) for place in resources}
    return reads | {place: _read(answer, resource, place.key) for place, resource in resources.items()}


def set_lately(cluster_id: int, values: Mapping[ThrottlePlace, str], since: datetime) -> frozenset[ThrottlePlace]:
    """Places of brokers whose value the collectors have not seen unchanged since then. One statement, or none."""
    if not values:
        return frozenset()
    rows = ThrottleState.objects.filter(
        cluster=cluster_id,
        resource=ThrottledResource.BROKER,
        name__in={place.name for place in values},
        changed_at__lte=since,
    )
    old = {(row.name, row.key, row.value) for row in rows.only("name", "key", "value")}
    return frozenset(place for place, value in values.items() if (place.name, place.key, value) not in old)


def resource_of(place: ThrottlePlace) -> ConfigResource:
    if place.resource == ThrottledResource.TOPIC:
        return ConfigResource.topic(place.name)
    return ConfigResource.broker(int(place.name))


def _read(answer: ResourceConfigs, resource: ConfigResource, key: str) -> PlaceReading:
    error = answer.errors.get(resource)
    if error is not None:
        return _failed(resource, error)
    entry: ConfigEntry | None = answer.resources[resource].get(key)
    if entry is None:
        return PlaceReading()
    return PlaceReading(entry.value, _SOURCES.get(entry.source, ValueSource.OTHER))


def _failed(resource: ConfigResource, error: ItemError) -> PlaceReading:
    if resource.type is ConfigResourceType.TOPIC and error.code == UNKNOWN_TOPIC_OR_PARTITION:
        return PlaceReading(gone=True)
    return _unread(error.message)


def _unread(why: CodedMessage) -> PlaceReading:
    return PlaceReading(unreadable=ThrottleNotRead(message_reason(why)))


@dataclass(frozen=True, slots=True)
class ConfigCall:
    """Operation on one key, and what its answer makes of the entry. ``guards``: rows wait for this call."""

    place: ThrottlePlace
    operation: ConfigOperation
    value: str | None
    answered: Callable[[LedgerEntry, CallReply, CodedReason | None, datetime], LedgerEntry]
    guards: bool = False

    @property
    def point(self) -> fail_points.FailCall:
        return fail_points.FailCall.THROTTLE_SET if self.guards else fail_points.FailCall.THROTTLE_CLEAR


def sets(entries: Iterable[LedgerEntry]) -> list[ConfigCall]:
    return [
        ConfigCall(entry.place, ConfigOperation.SET, entry.requested, answered, guards=True)
        for entry in entries
        if entry.state is LedgerState.INTENT and entry.place.key not in LISTS
    ]


def append_calls(entries: Iterable[LedgerEntry]) -> list[ConfigCall]:
    return [
        ConfigCall(entry.place, ConfigOperation.APPEND, list_value(pairs), appended, guards=True)
        for entry in entries
        if entry.place.key in LISTS and (pairs := appends(entry))
    ]


def subtract_calls(entries: Iterable[LedgerEntry]) -> list[ConfigCall]:
    return [
        ConfigCall(entry.place, ConfigOperation.SUBTRACT, list_value(pairs), subtracted)
        for entry in entries
        if entry.place.key in LISTS and (pairs := subtracts(entry))
    ]


def deletes(entries: Iterable[LedgerEntry]) -> list[ConfigCall]:
    """Return the calls that delete lists that were just read and are empty."""
    return [ConfigCall(entry.place, ConfigOperation.DELETE, None, deleted) for entry in entries]


def restores(entries: Iterable[LedgerEntry]) -> list[ConfigCall]:
    return [
        ConfigCall(
            entry.place,
            ConfigOperation.DELETE if entry.restores is None else ConfigOperation.SET,
            entry.restores,
            answered,
        )
        for entry in entries
        if entry.state is LedgerState.CLEARING and entry.place.key not in LISTS
    ]


def sends(
    client: KafkaClient, calls: Sequence[ConfigCall], deadline: float
) -> Iterator[tuple[ConfigCall, CallReply, CodedReason | None]]:
    """Each call with its answer and, where it was not done, why; a call that nothing of reached Kafka is refused."""
    changes = [ConfigChange(resource_of(call.place), call.place.key, call.operation, call.value) for call in calls]
    try:
        with fail_points.around(call.point for call in calls):
            answer = client.alter_configs(changes, deadline=deadline)
    except KafkaFailure as failure:
        why = ThrottleCallRefused(message_reason(failure.message))
        yield from ((call, CallReply.REFUSED, why) for call in calls)
        return
    for call, change in zip(calls, changes, strict=True):
        if change.resource in answer.done:
            yield call, CallReply.ACCEPTED, None
        elif change.resource in answer.refused:
            yield call, CallReply.REFUSED, ThrottleCallRefused(message_reason(answer.refused[change.resource].message))
        else:
            lost = answer.lost.get(change.resource)
            message = lost.message if lost else coded(ReassignmentErrorCode.OUTCOME_NOT_TOLD)
            yield call, CallReply.LOST, ThrottleAnswerLost(message_reason(message))


def entity_of(row: Mapping[str, Any]) -> str:
    """The place of a row of ``Execution.foreign`` as an order names it."""
    return f"{row['resource']} {row['name']} {row['key']}"


class ForeignThrottles:
    """Foreign throttles of one run, as in ``Execution.foreign``; an entity is a place as an order names it."""

    def __init__(self, rows: Collection[Mapping[str, Any]]) -> None:
        self._rows: dict[str, dict[str, Any]] = {entity_of(row): dict(row) for row in rows}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Foreign throttles as they are stored."""
        return list(self._rows.values())

    def value(self, entity: str) -> str | None:
        """Return the foreign value at the place, None where the value is ours or nothing."""
        row = self._rows.get(entity)
        return None if row is None else row["value"]

    def stands(self, place: ThrottlePlace, theirs: str, ours: str, now: datetime) -> bool:
        """Note that a read showed ``theirs`` at the place; return whether that is news."""
        if self.value(str(place)) == theirs:
            return False
        self._rows[str(place)] = {
            "resource": place.resource,
            "name": place.name,
            "key": place.key,
            "value": theirs,
            "ours": ours,
            "at": now.isoformat(),
        }
        return True

    def leave(self, entity: str, user: str) -> None:
        """``user`` decided that it stays."""
        self._rows[entity] = {**self._rows[entity], "left": user}

    def drop(self, entity: str) -> None:
        """Remove a foreign throttle that is gone, or is not respected any more."""
        self._rows.pop(entity, None)


_SAME = ("value", "requested", "late", "previous", "previous_source", "lost_at", "again_at", "missing_at")
_WRITTEN = (*_SAME, "pairs", "already", "state", "reason_code", "reason_params", "changed_at")

OPEN = ~Q(state=LedgerState.CLEARED.value) | Q(lost_at__isnull=False)
"""Entries that a step needs: open ones, and those of which a lost call may still arrive."""


@dataclass(frozen=True, slots=True)
class LoadedEntries:
    """``own`` of the run; ``others``: what other runs of the cluster have open at a place, the newest; ``under_way``:
    places of those of them that is under way.
    """

    own: dict[ThrottlePlace, LedgerEntry]
    others: dict[ThrottlePlace, LedgerEntry]
    under_way: frozenset[ThrottlePlace]


def load(execution_id: int, cluster_id: int) -> LoadedEntries:
    """Load the run's entries and the entries that other runs have open in the cluster. One statement."""
    still_open = ~Q(state=LedgerState.CLEARED.value)
    rows = ThrottleEntry.objects.filter(
        OPEN & Q(execution=execution_id) | still_open & Q(execution__cluster=cluster_id)
    ).annotate(under_way=F("execution__active"))
    own: dict[ThrottlePlace, LedgerEntry] = {}
    others: dict[ThrottlePlace, LedgerEntry] = {}
    under_way = set()
    for row in rows.order_by("pk"):
        entry = entry_of(row)
        if row.execution_id == execution_id:
            own[entry.place] = entry
            continue
        others[entry.place] = entry
        if row.under_way:
            under_way.add(entry.place)
    return LoadedEntries(own, others, frozenset(under_way))


def put_back(cluster_id: int, values: Mapping[ThrottlePlace, str], since: datetime) -> frozenset[ThrottlePlace]:
    """Places at which a run of the cluster found this value and put it back after ``since``. One statement, or none."""
    if not values:
        return frozenset()
    cleared = ThrottleEntry.objects.filter(
        execution__cluster=cluster_id,
        state=LedgerState.CLEARED.value,
        name__in={place.name for place in values},
        changed_at__gt=since,
    )
    found = set(cleared.values_list("resource", "name", "key", "previous"))
    return frozenset(p for p, value in values.items() if (p.resource, p.name, p.key, value) in found)


def store(execution_id: int, entries: Collection[LedgerEntry], now: datetime) -> None:
    """Inserts or overwrites; one statement, none without entries. An entry that was cleared long ago begins anew."""
    if entries:
        ThrottleEntry.objects.bulk_create(
            [_row(execution_id, entry, now) for entry in entries],
            update_conflicts=True,
            unique_fields=["execution", "resource", "name", "key"],
            update_fields=_WRITTEN,
        )


def entry_of(row: ThrottleEntry) -> LedgerEntry:
    return LedgerEntry(
        place=ThrottlePlace(row.resource, row.name, row.key),
        state=LedgerState(row.state),
        value=row.value,
        requested=row.requested,
        late=row.late,
        pairs={_pair(text): LedgerState(state) for text, state in row.pairs.items()},
        already=frozenset(map(_pair, row.already)),
        previous=row.previous,
        previous_source=row.previous_source,
        reason=row.reason,
        changed_at=row.changed_at,
        lost_at=row.lost_at,
        again_at=row.again_at,
        missing_at=row.missing_at,
    )


def _row(execution_id: int, entry: LedgerEntry, now: datetime) -> ThrottleEntry:
    written: dict[str, Any] = {
        **{name: getattr(entry, name) for name in _SAME},
        **reason_columns(entry.reason),
        "pairs": {_text(pair): state.value for pair, state in sorted(entry.pairs.items())},
        "already": [_text(pair) for pair in sorted(entry.already)],
        "state": entry.state.value,
        "changed_at": entry.changed_at or now,
    }
    place = entry.place
    return ThrottleEntry(execution_id=execution_id, resource=place.resource, name=place.name, key=place.key, **written)


def _pair(text: str) -> Pair:
    partition, _, broker = text.partition(":")
    return int(partition), int(broker)


def _text(pair: Pair) -> str:
    return f"{pair[0]}:{pair[1]}"


EXECUTOR = "executor"
"""Actor in the audit."""

_SETTLES = timedelta(minutes=1)
"""So long a run that could end waits for something that could not be read although its broker is there."""
_NAMED = 20
_CODES = {
    LedgerEvent.VANISHED: ReassignmentErrorCode.OURS_REMOVED,
    LedgerEvent.FOREIGN: ReassignmentErrorCode.OTHER_RATE_SET,
    LedgerEvent.LEFT: ReassignmentErrorCode.OTHERS_LEFT,
    LedgerEvent.LATE: ReassignmentErrorCode.CALL_CAME_LATE,
    LedgerEvent.OBLIGED: ReassignmentErrorCode.OWED,
}


_READ_BACK_S = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Pauses before the reads of a rate that was just set; what is not applied then, the next step reads again."""


class RunLedger:
    """Throttles that one run set, as the step sees and changes them; nothing is written before ``commit``."""

    _client: KafkaClient

    def __init__(
        self,
        execution: Execution,
        entries: Mapping[ThrottlePlace, LedgerEntry],
        others: Mapping[ThrottlePlace, LedgerEntry] | None = None,
    ) -> None:
        self._execution = execution
        self._others = others or {}
        self._left_alone: dict[ThrottlePlace, LedgerEntry] = {}
        self._stored = dict(entries)
        self._entries = dict(entries)
        self._reads: dict[ThrottlePlace, PlaceReading] = {}
        self._of_others: dict[int, str] = {}
        self._overruled: set[ThrottlePlace] = set()
        self._alive: Collection[int] = ()
        self._missing: set[ThrottlePlace] = set()
        self._foreign = ForeignThrottles(execution.foreign)
        self._read_at = execution.throttles_read_at
        self.found: dict[LedgerEvent, list[ThrottlePlace]] = defaultdict(list)
        self._users: dict[ThrottlePlace, Mapping[Key, None]] = {}
        self._wrong: dict[Key, CodedReason] = {}
        self._committed = False

    @classmethod
    def load(cls, execution: Execution) -> RunLedger:
        """Entries that are open, and those of which a lost call may still arrive. One statement.

        Of a run that has ended, what the one under way uses is left alone until that one is done with it.
        """
        loaded = load(execution.pk, execution.cluster_id)
        ledger = cls(execution, loaded.own, loaded.others)
        if not execution.active:
            for place in loaded.under_way & loaded.own.keys():
                ledger._left_alone[place] = ledger._entries.pop(place)
        return ledger

    @property
    def entries(self) -> Collection[LedgerEntry]:
        return self._entries.values()

    # ---- before the pure step

    def prepare(
        self, client: KafkaClient, alive: Collection[int], now: datetime, *, deadline: float, everything: bool = False
    ) -> None:
        """Read what has to be read again and settle what was left open: intents, obligations, others' changes.

        ``alive`` are the brokers that can be asked. What cannot be read stays open and is no failure of the step.
        """
        self._client, self._alive = client, alive
        places, whole = due(self._entries.values(), now, None if everything else self._read_at)
        if whole and places:
            self._read_at = now
        self._take(self._read(places, deadline), now)

    def rates_of_others(
        self, seen: ClusterSnapshot, brokers: Collection[int], now: datetime, *, deadline: float
    ) -> Mapping[int, str]:
        """Broker → the rate that somebody else uses there; of ``brokers`` that are about to be given one by this run.

        In use is what moves of others need, and what was set less than ``OTHERS_CLEAR`` ago: it is not told to Kafka
        whose a rate is, and a short move comes and goes between two looks. What a run of ours has put back stood there
        before it. Two statements where a rate stands.
        """
        places = [
            place
            for broker in sorted(brokers)
            for place in (ThrottlePlace(ThrottledResource.BROKER.value, str(broker), key) for key in BROKER_RATES)
            if place not in self._overruled and (place not in self._entries or not self._entries[place].open)
        ]
        unread = [place for place in places if place not in self._reads]
        self._take(self._read(unread, deadline), now)
        theirs = {
            place: own
            for place in places
            if (own := self._reads[place].own)
            and own not in _values(self._entries.get(place))
            and own not in _values(self._others.get(place))
        }
        cluster_id = self._execution.cluster_id
        young = set_lately(cluster_id, theirs, now - OTHERS_CLEAR)
        young -= put_back(cluster_id, {place: theirs[place] for place in young}, now - 2 * OTHERS_CLEAR)
        used = {int(p.name): own for p, own in theirs.items() if p in young or int(p.name) in seen.others_move}
        self._of_others |= used
        return used

    def order(self, order_type: OrderType, entity: str, user: str) -> CodedReason:
        """After ``prepare``: apply a decision on a foreign throttle (``Order.entity``); return the answer."""
        theirs = self._foreign.value(entity)
        place = next((place for place in self._entries if str(place) == entity), None)
        if theirs is None or place is None:
            return NoForeignThrottle(entity)
        if order_type is OrderType.LEAVE_THROTTLE:
            self._foreign.leave(entity, user)
            return ThrottleStays(theirs, place.words)
        self._foreign.drop(entity)
        self._overruled.add(place)
        # As if it were touched for the first time: theirs is what stood there before, and is put back at the end.
        self._entries[place] = replace(self._entries[place], state=LedgerState.CLEARED, value="", again_at=None)
        return ThrottleSetOver(theirs, place.words)

    def throttles(self) -> StepThrottles:
        """Ours in force, neither obliged nor cleared."""
        pairs: dict[str, dict[str, frozenset[Pair]]] = defaultdict(dict)
        rates: dict[int, list[str]] = defaultdict(list)
        for place, entry in self._entries.items():
            if place.key in LISTS:
                held = frozenset(pair for pair, state in entry.pairs.items() if state is LedgerState.SET)
                if held:
                    pairs[place.name][place.key] = held
            elif entry.state is LedgerState.SET:
                rates[int(place.name)].append(entry.value)
        return StepThrottles(
            {
                t: ThrottledPairs(own.get(LEADER_LIST, frozenset()), own.get(FOLLOWER_LIST, frozenset()))
                for t, own in pairs.items()
            },
            {broker: _joint(values) for broker, values in rates.items()},
            self._held(),
        )

    # ---- after the pure step

    def intend(self, actions: Sequence[Action], now: datetime, *, deadline: float) -> None:
        """Turn the throttle's actions of a step into intents; what was there before is read here, in this step.

        Other actions are passed over. What cannot be read raises nothing: ``send_limits`` names the rows concerned.
        """
        self._committed = False
        touched = {place for action in actions for place in _places(action)}
        unread = [place for place in sorted(touched) if place not in self._reads]
        self._take(self._read(unread, deadline), now)
        for action in actions:
            match action:
                case ChangeLists():
                    self._change_lists(action, now)
                case SetRate():
                    self._set_rate(action, now)
                case ClearRate():
                    self._clear_rate(action, now)

    def commit(self, now: datetime) -> None:
        """Store changed entries, the throttles of others and audit events, in the caller's transaction."""
        changed = [entry for place, entry in self._entries.items() if self._stored.get(place) != entry]
        store(self._execution.pk, changed, now)
        if any(entry.state in (LedgerState.SET, LedgerState.CLEARED) for entry in changed):
            # What the pages have of it is from before.
            cluster_id = self._execution.cluster_id
            transaction.on_commit(lambda: read_soon(cluster_id, [CollectorKind.CONFIGS]))
        self._stored = dict(self._entries)
        written = self.take_over()
        if written:
            Execution.objects.filter(pk=self._execution.pk).update(**written)
        for found, places in self.found.items():
            self._tell(found, places)
        self.found.clear()

    def take_over(self) -> dict[str, Any]:
        """Put what it found into the execution, and let intents be sent; return the columns that changed."""
        self._committed = True
        run = self._execution
        written = {"foreign": self._foreign.rows, "throttles_read_at": self._read_at}
        if [*run.foreign] == written["foreign"] and run.throttles_read_at == self._read_at:
            return {}
        run.foreign, run.throttles_read_at = written["foreign"], self._read_at
        return written

    # ---- calls

    @property
    def calls_left(self) -> bool:
        """Return whether anything is to be sent: also what an earlier step left half done."""
        return any(entry.state in (LedgerState.INTENT, LedgerState.CLEARING) for entry in self.entries)

    def send_limits(
        self, now: datetime, *, deadline: float, may: Callable[[], bool] = lambda: True
    ) -> Mapping[Key, CodedReason]:
        """Send lists and rates; return the rows that must not be submitted now, each with its reason.

        ``may`` is asked before each of its calls, at most three, and before rates are read once more.
        """
        if not self._committed:
            raise RuntimeError("intents are sent only after commit()")
        first = [*self._as_read(sets(self.entries), now, deadline, may), *append_calls(self.entries)]
        appending = {call.place for call in first}
        alone = [call for call in subtract_calls(self.entries) if call.place not in appending]
        self._call([*first, *alone], now, deadline, may)
        self._call([c for c in subtract_calls(self.entries) if c.place in appending], now, deadline, may)
        self._delete_empty(now, deadline, may)
        return self._wrong

    def await_rates(
        self,
        users: Mapping[Key, Collection[int]],
        now: datetime,
        *,
        deadline: float,
        may: Callable[[], bool] = lambda: True,
    ) -> Mapping[Key, CodedReason]:
        """Read rates back until their brokers apply them; return the rows that must not be submitted now, as before.

        ``users``: rows that are about to be submitted, each with its brokers. Kafka accepts a rate before brokers hear
        of it, from the metadata log or from ZooKeeper, and a broker shows the values that it applies
        (kafka.server.DynamicBrokerConfig). Rates that stand for longer than ``SHOWS_LATE`` were seen by ``prepare``.
        """
        places = {
            place: broker
            for broker in {broker for brokers in users.values() for broker in brokers}
            for key in BROKER_RATES
            if (entry := self._entries.get(place := ThrottlePlace(ThrottledResource.BROKER.value, str(broker), key)))
            and entry.state is LedgerState.SET
            and entry.may_show_late(now)
        }
        for pause_s in _READ_BACK_S:
            if not places or not may():
                break
            time.sleep(pause_s)
            reads = self._read(places, deadline)
            places = {place: of for place, of in places.items() if reads[place].own != self._entries[place].value}
        for row, brokers in users.items():
            late = sorted(set(places.values()) & set(brokers))
            if late:
                self._fail([row], RateNotApplied(late[0]))
        return self._wrong

    def send_restores(self, now: datetime, *, deadline: float, may: Callable[[], bool] = lambda: True) -> None:
        """Set rates that no row in flight uses back to what was there before; what cannot be, is obliged."""
        self._call(self._as_read(restores(self.entries), now, deadline, may), now, deadline, may)

    # ---- at the end

    def pending(self, now: datetime) -> bool:
        """Return whether a later step still has to look after something that can be settled now."""
        return any(self._waits(entry, now) for entry in self._entries.values())

    def obligations(self) -> list[str]:
        """Return what is still to be cleared and cannot be now, in sentences; empty: all is as it was before."""
        return [
            f"{capitalize_first(entry.place.words)}: "
            f"{reason_text(entry.reason) if entry.reason else 'still to be removed.'}"
            for _, entry in sorted({**self._entries, **self._left_alone}.items())
            if entry.open
        ]

    def _open_brokers(self) -> list[int]:
        """Brokers with a rate that is still to be put back."""
        return sorted({int(place.name) for place, entry in self._entries.items() if place.key in RATES and entry.open})

    def takes_away(self) -> list[Action]:
        """Return the actions of a step if no row were in flight any more, of brokers that are away too."""
        held = self.throttles().pairs
        lists = [ChangeLists(topic, NONE, pairs, ()) for topic, pairs in sorted(held.items())]
        return [*lists, *map(ClearRate, self._open_brokers())]

    def tell_clean(self) -> None:
        """An audit event, in the caller's transaction: what was owed is cleared."""
        cluster = self._execution.cluster
        read_only = coded(ReassignmentErrorCode.CLEARED_READ_ONLY, cluster=cluster.name)
        self._record("throttle_settled", read_only if cluster.read_only else coded(ReassignmentErrorCode.CLEARED), {})

    # ---- inside

    def _waits(self, entry: LedgerEntry, now: datetime) -> bool:
        if entry.state is not LedgerState.OBLIGED:
            return entry.open or entry.lost_at is not None
        there = entry.place.resource != ThrottledResource.BROKER or int(entry.place.name) in self._alive
        return there and entry.changed_at is not None and now - entry.changed_at < _SETTLES

    def _held(self) -> tuple[CodedReason, ...]:
        if not self._missing:
            return ()
        first = {place for place in self._missing if self._entries[place].again_at is None}
        found: list[CodedReason] = []
        if first:
            found.append(ThrottleMissing(_listed(first)))
        if self._missing - first:
            found.append(ThrottleRemoved(_listed(self._missing - first), round(AGAIN_EVERY.total_seconds() / 60)))
        return tuple(found)

    def _read(self, places: Collection[ThrottlePlace], deadline: float) -> Mapping[ThrottlePlace, PlaceReading]:
        return read_places(self._client, places, self._alive, deadline=deadline)

    def _take(self, reads: Mapping[ThrottlePlace, PlaceReading], now: datetime) -> None:
        self._reads.update(reads)
        for place, read in reads.items():
            entry = self._entries.get(place)
            if entry is not None:
                self._settled(place, (settle_list if place.key in LISTS else settle_rate)(entry, read, now), now)

    def _settled(self, place: ThrottlePlace, settled: SettledEntry, now: datetime) -> None:
        self._entries[place] = settled.entry
        (self._missing.add if settled.missing else self._missing.discard)(place)
        if settled.found is not None:
            self.found[settled.found].append(place)
        if settled.foreign is not None:
            if self._foreign.stands(place, settled.foreign, settled.entry.value, now):
                self.found[LedgerEvent.FOREIGN].append(place)
        elif not self._reads[place].unreadable:
            self._foreign.drop(str(place))

    def _change_lists(self, action: ChangeLists, now: datetime) -> None:
        for key, add, remove in (
            (LEADER_LIST, action.add.leader, action.remove.leader),
            (FOLLOWER_LIST, action.add.follower, action.remove.follower),
        ):
            if not add and not remove:
                continue
            place = ThrottlePlace(ThrottledResource.TOPIC.value, action.topic, key)
            entry, read = self._entries.get(place), self._reads[place]
            rows = {(action.topic, partition): None for partition, _ in add}
            if read.unreadable or read.gone:
                self._fail(rows, NotSentYet(read.unreadable) if read.unreadable else TopicDeleted(action.topic))
                if entry is not None and remove and read.unreadable:
                    self._entries[place] = wanted_away(entry, remove, read.unreadable, now)
            elif add or (entry is not None and open_pairs(entry)):
                self._entries[place] = intend_list(entry, place, add, remove, read, now)
                self._users[place] = rows

    def _set_rate(self, action: SetRate, now: datetime) -> None:
        rows = dict.fromkeys(action.rows)
        for key in BROKER_RATES:
            place = ThrottlePlace(ThrottledResource.BROKER.value, str(action.broker), key)
            read = self._reads[place]
            if read.unreadable:
                self._fail(rows, NotSentYet(read.unreadable))
            elif action.broker in self._of_others and (place not in self._entries or not self._entries[place].open):
                self._fail(rows, RateInUse(action.broker, self._of_others[action.broker]))
            else:
                before = before_others(self._others.get(place), read)
                entry = self._entries.get(place)
                self._entries[place] = intend_rate(entry, place, action.rate, read, now, before)
                self._users[place] = rows

    def _clear_rate(self, action: ClearRate, now: datetime) -> None:
        for key in BROKER_RATES:
            place = ThrottlePlace(ThrottledResource.BROKER.value, str(action.broker), key)
            entry = self._entries.get(place)
            if entry is not None:
                offline = action.broker not in self._alive
                self._settled(place, clearing(entry, self._reads[place], now, offline=offline), now)

    def _as_read(
        self, calls: Sequence[ConfigCall], now: datetime, deadline: float, may: Callable[[], bool]
    ) -> list[ConfigCall]:
        """Return the calls at whose places a rate stands that was there when the step read it.

        Kafka has no compare-and-set for configs, so the time between reading and setting is made as short as it can be.
        """
        places = [call.place for call in calls if int(call.place.name) in self._alive]
        if not places or not may():
            return list(calls)
        again = self._read(places, deadline)
        same = []
        for call in calls:
            before, read = self._reads.get(call.place), again.get(call.place)
            as_before = before is None or read is None or (before.own == read.own and not read.unreadable)
            if as_before or read is None or (read.unreadable and not call.guards):
                same.append(call)
                continue
            self._reads[call.place] = read
            entry = self._entries[call.place]
            if call.guards:
                self._entries[call.place] = call.answered(entry, CallReply.REFUSED, read.unreadable, now)
                why = (
                    NotSentYet(read.unreadable)
                    if read.unreadable
                    else PlainReason(RowReasonCode.THROTTLE_CHANGED_MEANWHILE)
                )
                self._fail(self._users.get(call.place, {}), why)
            else:
                self._settled(call.place, left_to_others(entry, read, now), now)
        return same

    def _call(self, calls: Sequence[ConfigCall], now: datetime, deadline: float, may: Callable[[], bool]) -> None:
        """All in one request; what is not sent stays an intent, which the next step resolves."""
        if not calls:
            return
        if not may():
            for call in calls:
                self._fail(self._users.get(call.place, {}), PlainReason(RowReasonCode.NO_TIME_FOR_THROTTLE))
            return
        for call, reply, why in sends(self._client, calls, deadline):
            before = self._entries[call.place]
            after = self._entries[call.place] = call.answered(before, reply, why, now)
            if before.state is LedgerState.CLEARING and after.state is LedgerState.OBLIGED:
                self.found[LedgerEvent.OBLIGED].append(call.place)
            if call.guards and why is not None:
                self._fail(self._users.get(call.place, {}), NotSentYet(why))

    def _delete_empty(self, now: datetime, deadline: float, may: Callable[[], bool]) -> None:
        """Lists that we emptied and that were not set before; read once more, so that nobody's new pair is deleted."""
        places = [entry.place for entry in self.entries if leaves_empty(entry)]
        if not places or not may():
            return
        empty: list[LedgerEntry] = []
        for place, read in self._read(places, deadline).items():
            self._entries[place] = entry = emptied(self._entries[place], read, now)
            if may_be_deleted(entry, read):
                empty.append(entry)
        self._call(deletes(empty), now, deadline, may)

    def _fail(self, rows: Iterable[Key], why: CodedReason) -> None:
        for row in rows:
            self._wrong.setdefault(row, why)

    def _tell(self, found: LedgerEvent, places: Sequence[ThrottlePlace]) -> None:
        words = [place.words for place in places]
        message = coded(_CODES[found], places=listed_shortly(words, 5))
        self._record(found.value, message, {"throttles": len(places), "places": words[:_NAMED]})

    def _record(self, verb: str, message: CodedMessage, after: Mapping[str, Any]) -> None:
        run = self._execution
        about = (OBJECT, str(run.request_id))
        record(EXECUTOR, f"change.{verb}", about, cluster=run.cluster.slug, reason=message, after=after or None)


def _values(entry: LedgerEntry | None) -> Collection[str]:
    """Rates that may be ours at its place."""
    return () if entry is None else (entry.value, entry.requested, *entry.late.split())


def _places(action: Action) -> Iterable[ThrottlePlace]:
    if isinstance(action, ChangeLists):
        for key, add, remove in (
            (LEADER_LIST, action.add.leader, action.remove.leader),
            (FOLLOWER_LIST, action.add.follower, action.remove.follower),
        ):
            if add or remove:
                yield ThrottlePlace(ThrottledResource.TOPIC.value, action.topic, key)
    elif isinstance(action, SetRate | ClearRate):
        for key in BROKER_RATES:
            yield ThrottlePlace(ThrottledResource.BROKER.value, str(action.broker), key)


def _listed(places: Collection[ThrottlePlace]) -> str:
    return listed_shortly([place.words for place in sorted(places)])


def _joint(values: Sequence[str]) -> int:
    """The rate of a broker whose two rates are both ours and alike, else 0: it has to be set again."""
    return int(values[0]) if len(values) == len(BROKER_RATES) and len(set(values)) == 1 else 0
