"""The throttle ledger of one run (04-changes.md §4), between the pure step and Kafka.

In one step, in this order::

    ledger = Ledger.load(execution)                                  # 1 statement
    ledger.look(client, alive, now, deadline=…)                      # Kafka: what has to be read again
    taken = step(moves, …, throttles=ledger.throttles())             # pure
    ledger.intend(client, taken.actions, alive, now, deadline=…)     # Kafka: what is about to be touched
    with lease.write(): …; ledger.store(now)                         # the intents, in the transaction of the step
    wrong = ledger.set(client, now, deadline=…, may=…)               # lists and rates, before anything is submitted
    …                                                                # 45 but for the rows in ``wrong``; cancels
    ledger.clear(client, now, deadline=…, may=…)                     # rates that nothing uses any more
    with lease.write(): …; ledger.store(now)

A run may end when the step is ``over`` and ``ledger.pending(now)`` is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from kafkadash.accounts.audit import record
from kafkadash.changes.transitions import OBJECT
from kafkadash.domain import ledger_lists, ledger_rates
from kafkadash.domain.executor import Action
from kafkadash.domain.executor_state import Key, Reply
from kafkadash.domain.executor_throttles import NONE, ChangeLists, ClearRate, Pair, Pairs, SetRate, Throttles
from kafkadash.domain.ledger import AGAIN_EVERY, BROKER_RATES, Entry, EntryState, Found, Place, Read, Settled
from kafkadash.domain.messages import message_text
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    NoTimeForThrottle,
    NotSentYet,
    RateInUse,
    ThrottleChangedMeanwhile,
    ThrottleNotSet,
    TopicDeleted,
)
from kafkadash.domain.run_reasons import ThrottleMissing, ThrottleRemoved
from kafkadash.domain.throttles import FOLLOWER_LIST, LEADER_LIST, LISTS, RATES
from kafkadash.domain.wording import capital, listed_shortly
from kafkadash.kafka.changing import KafkaClient
from kafkadash.observe.lease import read_soon
from kafkadash.observe.models import Kind, ThrottledResource
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Deed, Execution
from kafkadash.reassign.run import ledger_rows, throttle_reads
from kafkadash.reassign.run.foreign_throttles import ForeignThrottles
from kafkadash.reassign.run.ledger_calls import Call, appends, deletes, restores, sends, sets, subtracts
from kafkadash.reassign.run.look import Look
from kafkadash.reassign.run.order_answers import NoForeignThrottle, ThrottleSetOver, ThrottleStays
from kafkadash.reassign.run.rest_of_cluster import OTHERS_CLEAR

EXECUTOR = "executor"
"""Who acts, in the audit."""

_SETTLES = timedelta(minutes=1)
"""So long a run that could end waits for something that could not be read although its broker is there."""
_NAMED = 20
_CODES = {
    Found.VANISHED: ReassignmentErrorCode.OURS_REMOVED,
    Found.FOREIGN: ReassignmentErrorCode.OTHER_RATE_SET,
    Found.LEFT: ReassignmentErrorCode.OTHERS_LEFT,
    Found.LATE: ReassignmentErrorCode.CALL_CAME_LATE,
    Found.OBLIGED: ReassignmentErrorCode.OWED,
}


class Ledger:
    """What one run set, as the step sees and changes it; nothing is written before ``store``."""

    def __init__(
        self, execution: Execution, entries: Mapping[Place, Entry], others: Mapping[Place, Entry] | None = None
    ) -> None:
        self._execution = execution
        self._others = others or {}
        self._left_alone: dict[Place, Entry] = {}
        self._stored = dict(entries)
        self._entries = dict(entries)
        self._reads: dict[Place, Read] = {}
        self._of_others: dict[int, str] = {}
        self._overruled: set[Place] = set()
        self._alive: Collection[int] = ()
        self._missing: set[Place] = set()
        self._foreign = ForeignThrottles(execution.foreign)
        self._read_at = execution.throttles_read_at
        self.found: dict[Found, list[Place]] = defaultdict(list)
        self._users: dict[Place, Mapping[Key, None]] = {}
        self._wrong: dict[Key, CodedReason] = {}

    @classmethod
    def load(cls, execution: Execution) -> Ledger:
        """Entries that are open, and those of which a lost call may still arrive. One statement.

        Of a run that has ended, what the one under way uses is left alone until that one is done with it.
        """
        loaded = ledger_rows.load(execution.pk, execution.cluster_id)
        ledger = cls(execution, loaded.own, loaded.others)
        if not execution.active:
            for place in loaded.under_way & loaded.own.keys():
                ledger._left_alone[place] = ledger._entries.pop(place)
        return ledger

    @property
    def entries(self) -> Collection[Entry]:
        return self._entries.values()

    # ---- before the pure step

    def look(
        self, client: KafkaClient, alive: Collection[int], now: datetime, *, deadline: float, everything: bool = False
    ) -> None:
        """Reads what has to be read again and settles what was left open: intents, obligations, others' changes.

        ``alive`` are the brokers that can be asked. What cannot be read stays open and is no failure of the step.
        """
        self._alive = alive
        places, whole = throttle_reads.due(self._entries.values(), now, None if everything else self._read_at)
        if whole and places:
            self._read_at = now
        self._take(throttle_reads.read(client, places, alive, deadline=deadline), now)

    def rates_of_others(
        self, client: KafkaClient, seen: Look, brokers: Collection[int], now: datetime, *, deadline: float
    ) -> Mapping[int, str]:
        """Broker → the rate that somebody else uses there; of ``brokers`` that are about to be given one by this run.

        In use is what moves of others need, and what was set less than ``OTHERS_CLEAR`` ago: it is not told to Kafka
        whose a rate is, and a short move comes and goes between two looks. What a run of ours has put back stood there
        before it. Two statements where a rate stands.
        """
        places = [
            place
            for broker in sorted(brokers)
            for place in (Place(ThrottledResource.BROKER.value, str(broker), key) for key in BROKER_RATES)
            if place not in self._overruled and (place not in self._entries or not self._entries[place].open)
        ]
        unread = [place for place in places if place not in self._reads]
        self._take(throttle_reads.read(client, unread, seen.alive, deadline=deadline), now)
        theirs = {
            place: own
            for place in places
            if (own := self._reads[place].own)
            and own not in _values(self._entries.get(place))
            and own not in _values(self._others.get(place))
        }
        cluster_id = self._execution.cluster_id
        young = throttle_reads.set_lately(cluster_id, theirs, now - OTHERS_CLEAR)
        young -= ledger_rows.put_back(cluster_id, {place: theirs[place] for place in young}, now - 2 * OTHERS_CLEAR)
        used = {int(p.name): own for p, own in theirs.items() if p in young or int(p.name) in seen.others_move}
        self._of_others |= used
        return used

    def order(self, deed: Deed, entity: str, user: str) -> CodedReason:
        """What an operator decided about a throttle of others (``Order.entity``); returns the answer. After look."""
        theirs = self._foreign.value(entity)
        place = next((place for place in self._entries if str(place) == entity), None)
        if theirs is None or place is None:
            return NoForeignThrottle(entity)
        if deed is Deed.LEAVE_THROTTLE:
            self._foreign.leave(entity, user)
            return ThrottleStays(theirs, place.words)
        self._foreign.drop(entity)
        self._overruled.add(place)
        # As if it were touched for the first time: theirs is what stood there before, and is put back at the end.
        self._entries[place] = replace(self._entries[place], state=EntryState.CLEARED, value="", again_at=None)
        return ThrottleSetOver(theirs, place.words)

    def throttles(self) -> Throttles:
        """Ours in force, neither obliged nor cleared."""
        pairs: dict[str, dict[str, frozenset[Pair]]] = defaultdict(dict)
        rates: dict[int, list[str]] = defaultdict(list)
        for place, entry in self._entries.items():
            if place.key in LISTS:
                held = frozenset(pair for pair, state in entry.pairs.items() if state is EntryState.SET)
                if held:
                    pairs[place.name][place.key] = held
            elif entry.state is EntryState.SET:
                rates[int(place.name)].append(entry.value)
        return Throttles(
            {
                t: Pairs(own.get(LEADER_LIST, frozenset()), own.get(FOLLOWER_LIST, frozenset()))
                for t, own in pairs.items()
            },
            {broker: _joint(values) for broker, values in rates.items()},
            self._held(),
        )

    # ---- after the pure step

    def intend(
        self, client: KafkaClient, actions: Sequence[Action], alive: Collection[int], now: datetime, *, deadline: float
    ) -> None:
        """Turns the throttle's actions of a step into intents; what was there before is read here, in this step.

        Other actions are passed over. Raises nothing for what cannot be read: ``set`` names the rows concerned.
        """
        self._alive = alive
        touched = {place for action in actions for place in _places(action)}
        unread = [place for place in sorted(touched) if place not in self._reads]
        self._take(throttle_reads.read(client, unread, alive, deadline=deadline), now)
        for action in actions:
            match action:
                case ChangeLists():
                    self._change_lists(action, now)
                case SetRate():
                    self._set_rate(action, now)
                case ClearRate():
                    self._clear_rate(action, now)

    def store(self, now: datetime) -> None:
        """Entries that changed, the throttles of others found, and audit events. None where nothing changed; in the
        caller's transaction.
        """
        changed = [entry for place, entry in self._entries.items() if self._stored.get(place) != entry]
        ledger_rows.store(self._execution.pk, changed, now)
        if any(entry.state in (EntryState.SET, EntryState.CLEARED) for entry in changed):
            # What the pages have of it is from before.
            cluster_id = self._execution.cluster_id
            transaction.on_commit(lambda: read_soon(cluster_id, [Kind.CONFIGS]))
        self._stored = dict(self._entries)
        written = self.take_over()
        if written:
            Execution.objects.filter(pk=self._execution.pk).update(**written)
        for found, places in self.found.items():
            self._tell(found, places)
        self.found.clear()

    def take_over(self) -> dict[str, Any]:
        """Puts what it found into the execution; returns the columns that changed."""
        run = self._execution
        written = {"foreign": self._foreign.rows, "throttles_read_at": self._read_at}
        if [*run.foreign] == written["foreign"] and run.throttles_read_at == self._read_at:
            return {}
        run.foreign, run.throttles_read_at = written["foreign"], self._read_at
        return written

    # ---- calls

    @property
    def calls_left(self) -> bool:
        """Whether ``set`` or ``clear`` has anything to send: also what an earlier step left half done."""
        return any(entry.state in (EntryState.INTENT, EntryState.CLEARING) for entry in self.entries)

    def set(
        self, client: KafkaClient, now: datetime, *, deadline: float, may: Callable[[], bool] = lambda: True
    ) -> Mapping[Key, CodedReason]:
        """Lists and rates; returns the rows that must not be submitted now, each with its reason.

        ``may`` is asked before each of its calls, at most three, and before rates are read once more.
        """
        first = [*self._as_read(client, sets(self.entries), now, deadline, may), *appends(self.entries)]
        appending = {call.place for call in first}
        alone = [call for call in subtracts(self.entries) if call.place not in appending]
        self._call(client, [*first, *alone], now, deadline, may)
        self._call(client, [c for c in subtracts(self.entries) if c.place in appending], now, deadline, may)
        self._delete_empty(client, now, deadline, may)
        return self._wrong

    def clear(
        self, client: KafkaClient, now: datetime, *, deadline: float, may: Callable[[], bool] = lambda: True
    ) -> None:
        """Rates that no row in flight uses go back to what was there before; what cannot be, is obliged."""
        self._call(client, self._as_read(client, restores(self.entries), now, deadline, may), now, deadline, may)

    # ---- at the end

    def pending(self, now: datetime) -> bool:
        """Whether a later step has still to look after something that can be settled now."""
        return any(self._waits(entry, now) for entry in self._entries.values())

    def obligations(self) -> list[str]:
        """What is still to be cleared and cannot be now, in sentences; empty: all is as it was before."""
        return [
            f"{capital(entry.place.words)}: {entry.words or 'it is still to be cleared.'}"
            for _, entry in sorted({**self._entries, **self._left_alone}.items())
            if entry.open
        ]

    def _open_brokers(self) -> list[int]:
        """Brokers with a rate that is still to be put back."""
        return sorted({int(place.name) for place, entry in self._entries.items() if place.key in RATES and entry.open})

    def takes_away(self) -> list[Action]:
        """What a step would ask for if no row were in flight any more, of brokers that are away too."""
        held = self.throttles().pairs
        lists = [ChangeLists(topic, NONE, pairs, ()) for topic, pairs in sorted(held.items())]
        return [*lists, *map(ClearRate, self._open_brokers())]

    def tell_clean(self) -> None:
        """An audit event, in the caller's transaction: what was owed is cleared."""
        cluster = self._execution.cluster
        still = f" {cluster.name} is read-only; what runs set there is taken away too." if cluster.read_only else ""
        self._record("throttle_settled", f"What the run still owed is cleared.{still}", {})

    # ---- inside

    def _waits(self, entry: Entry, now: datetime) -> bool:
        if entry.state is not EntryState.OBLIGED:
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

    def _take(self, reads: Mapping[Place, Read], now: datetime) -> None:
        self._reads.update(reads)
        for place, read in reads.items():
            entry = self._entries.get(place)
            if entry is not None:
                self._settled(
                    place, (ledger_lists if place.key in LISTS else ledger_rates).settle(entry, read, now), now
                )

    def _settled(self, place: Place, settled: Settled, now: datetime) -> None:
        self._entries[place] = settled.entry
        (self._missing.add if settled.missing else self._missing.discard)(place)
        if settled.found is not None:
            self.found[settled.found].append(place)
        if settled.foreign is not None:
            if self._foreign.stands(place, settled.foreign, settled.entry.value, now):
                self.found[Found.FOREIGN].append(place)
        elif not self._reads[place].unreadable:
            self._foreign.drop(str(place))

    def _change_lists(self, action: ChangeLists, now: datetime) -> None:
        for key, add, remove in (
            (LEADER_LIST, action.add.leader, action.remove.leader),
            (FOLLOWER_LIST, action.add.follower, action.remove.follower),
        ):
            if not add and not remove:
                continue
            place = Place(ThrottledResource.TOPIC.value, action.topic, key)
            entry, read = self._entries.get(place), self._reads[place]
            rows = {(action.topic, partition): None for partition, _ in add}
            if read.unreadable or read.gone:
                self._fail(rows, NotSentYet(read.unreadable) if read.unreadable else TopicDeleted(action.topic))
                if entry is not None and remove and read.unreadable:
                    self._entries[place] = ledger_lists.wanted_away(entry, remove, read.unreadable, now)
            elif add or (entry is not None and ledger_lists.open_pairs(entry)):
                self._entries[place] = ledger_lists.intended(entry, place, add, remove, read, now)
                self._users[place] = rows

    def _set_rate(self, action: SetRate, now: datetime) -> None:
        rows = dict.fromkeys(action.rows)
        for key in BROKER_RATES:
            place = Place(ThrottledResource.BROKER.value, str(action.broker), key)
            read = self._reads[place]
            if read.unreadable:
                self._fail(rows, NotSentYet(read.unreadable))
            elif action.broker in self._of_others and (place not in self._entries or not self._entries[place].open):
                self._fail(rows, RateInUse(action.broker, self._of_others[action.broker]))
            else:
                before = ledger_rates.before_others(self._others.get(place), read)
                entry = self._entries.get(place)
                self._entries[place] = ledger_rates.intended(entry, place, action.rate, read, now, before)
                self._users[place] = rows

    def _clear_rate(self, action: ClearRate, now: datetime) -> None:
        for key in BROKER_RATES:
            place = Place(ThrottledResource.BROKER.value, str(action.broker), key)
            entry = self._entries.get(place)
            if entry is not None:
                away = action.broker not in self._alive
                self._settled(place, ledger_rates.clearing(entry, self._reads[place], now, away=away), now)

    def _as_read(
        self, client: KafkaClient, calls: Sequence[Call], now: datetime, deadline: float, may: Callable[[], bool]
    ) -> list[Call]:
        """Those of the calls at whose places a rate stands that was there when the step read it.

        Kafka has no compare-and-set for configs, so the time between reading and setting is made as short as it can be.
        """
        places = [call.place for call in calls if int(call.place.name) in self._alive]
        if not places or not may():
            return list(calls)
        again = throttle_reads.read(client, places, self._alive, deadline=deadline)
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
                self._entries[call.place] = call.answered(entry, Reply.REFUSED, read.unreadable, now)
                why = NotSentYet(read.unreadable) if read.unreadable else ThrottleChangedMeanwhile()
                self._fail(self._users.get(call.place, {}), why)
            else:
                self._settled(call.place, ledger_rates.left_to_others(entry, read, now), now)
        return same

    def _call(
        self, client: KafkaClient, calls: Sequence[Call], now: datetime, deadline: float, may: Callable[[], bool]
    ) -> None:
        """All in one request; what is not sent stays an intent, which the next step resolves."""
        if not calls:
            return
        if not may():
            for call in calls:
                self._fail(self._users.get(call.place, {}), NoTimeForThrottle())
            return
        for call, reply, words in sends(client, calls, deadline):
            before = self._entries[call.place]
            after = self._entries[call.place] = call.answered(before, reply, words, now)
            if before.state is EntryState.CLEARING and after.state is EntryState.OBLIGED:
                self.found[Found.OBLIGED].append(call.place)
            if call.guards and reply is not Reply.ACCEPTED:
                self._fail(self._users.get(call.place, {}), NotSentYet(words) if words else ThrottleNotSet())

    def _delete_empty(self, client: KafkaClient, now: datetime, deadline: float, may: Callable[[], bool]) -> None:
        """Lists that we emptied and that were not set before; read once more, so that nobody's new pair is deleted."""
        places = [entry.place for entry in self.entries if ledger_lists.leaves_empty(entry)]
        if not places or not may():
            return
        empty: list[Entry] = []
        for place, read in throttle_reads.read(client, places, self._alive, deadline=deadline).items():
            self._entries[place] = entry = ledger_lists.emptied(self._entries[place], read, now)
            if ledger_lists.may_be_deleted(entry, read):
                empty.append(entry)
        self._call(client, deletes(empty), now, deadline, may)

    def _fail(self, rows: Iterable[Key], why: CodedReason) -> None:
        for row in rows:
            self._wrong.setdefault(row, why)

    def _tell(self, found: Found, places: Sequence[Place]) -> None:
        words = [place.words for place in places]
        said = message_text(_CODES[found], places=listed_shortly(words, 5))
        self._record(found.value, said, {"throttles": len(places), "places": words[:_NAMED]})

    def _record(self, verb: str, said: str, after: Mapping[str, Any]) -> None:
        run = self._execution
        about = (OBJECT, str(run.request_id))
        record(EXECUTOR, f"change.{verb}", about, cluster=run.cluster.slug, reason=said, after=after or None)


def _values(entry: Entry | None) -> Collection[str]:
    """Rates that may be ours at its place."""
    return () if entry is None else (entry.value, entry.asked, *entry.late.split())


def _places(action: Action) -> Iterable[Place]:
    if isinstance(action, ChangeLists):
        for key, add, remove in (
            (LEADER_LIST, action.add.leader, action.remove.leader),
            (FOLLOWER_LIST, action.add.follower, action.remove.follower),
        ):
            if add or remove:
                yield Place(ThrottledResource.TOPIC.value, action.topic, key)
    elif isinstance(action, SetRate | ClearRate):
        for key in BROKER_RATES:
            yield Place(ThrottledResource.BROKER.value, str(action.broker), key)


def _listed(places: Collection[Place]) -> str:
    return listed_shortly([place.words for place in sorted(places)])


def _joint(values: Sequence[str]) -> int:
    """The rate of a broker whose two rates are both ours and alike, else 0: it has to be set again."""
    return int(values[0]) if len(values) == len(BROKER_RATES) and len(set(values)) == 1 else 0
