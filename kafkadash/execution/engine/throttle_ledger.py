"""The throttle ledger: values that a run set on one broker or topic, values from before, and what is owed (KIP-73).

Functions return what becomes of an entry: by a read, by what a step wants, and by Kafka's answer. No function performs
I/O or reads a clock.

Lists of throttled replicas: only pairs of the run are added or removed. APPEND and SUBTRACT leave the pairs of others
as they are, in their order. ``*`` names every replica: nothing is added to it (Kafka refuses that with error 40) and
nothing is removed from it. SUBTRACT of the last pair leaves the list set to ''; where it was not set before, it is
deleted by a call of its own, right after a read that shows it empty, because nothing protects a new pair between read
and DELETE.

Rates: a rate is set over the value from before, which the entry keeps and puts back: SET where it was the broker's own,
else DELETE, so that a cluster default or static value shows through again. Only a value that is still ours is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from kafkadash.core.messages import CodedReason, PlainReason, join_reasons
from kafkadash.execution.engine.reasons import (
    LedgerReasonCode,
    PairsOfOthersStay,
    PairsRemovedByOthers,
    RateNotPutBack,
    RateOfOthersLeft,
    RateRestored,
    ThrottleNotRead,
)
from kafkadash.execution.engine.state import UNANSWERED, CallReply
from kafkadash.execution.engine.step import Pair
from kafkadash.kafka.throttles import FOLLOWER_RATE, LEADER_RATE, LISTS, WORDS, ThrottledReplicas, throttled_replicas

AGAIN_EVERY = timedelta(minutes=1)
"""Interval after which a throttle that others removed may be set again."""

SHOWS_LATE = timedelta(seconds=6)
"""So long a broker may still show what stood there before a change that Kafka has confirmed."""

BROKER_RATES = (LEADER_RATE, FOLLOWER_RATE)
"""Set together: a destination leads other partitions that are sources."""


class LedgerState(StrEnum):
    """The values are stored. An entry stands in the database before its call."""

    INTENT = "intent"
    SET = "set"
    CLEARING = "clearing"
    CLEARED = "cleared"
    OBLIGED = "obliged"


class ValueSource(StrEnum):
    """Origin of a config value, as far as the ledger needs it; values as in ``monitoring.models.ConfigSource``."""

    TOPIC = "topic"
    BROKER = "broker"
    CLUSTER_DEFAULT = "cluster_default"
    STATIC = "static"
    DEFAULT = "default"
    OTHER = "other"


OWN = frozenset({ValueSource.TOPIC, ValueSource.BROKER})
"""Set on the broker or topic itself. Anything else shows through and comes back when the own value is deleted."""


@dataclass(frozen=True, slots=True, order=True)
class ThrottlePlace:
    """Config key of a broker or topic; ``resource`` is "broker" or "topic", ``name`` the broker's id or the topic."""

    resource: str
    name: str
    key: str

    def __str__(self) -> str:
        """Return the place as an order names it."""
        return f"{self.resource} {self.name} {self.key}"

    @property
    def words(self) -> str:
        return f"{self.resource} {self.name}, {WORDS[self.key]}"


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """Reading of a place. ``value`` is None where there is none; ``unreadable``: why the value is not known.

    ``gone``: the topic does not exist any more.
    """

    value: str | None = None
    source: str = ValueSource.DEFAULT
    unreadable: ThrottleNotRead | None = None
    gone: bool = False

    @property
    def own(self) -> str | None:
        """The value that is set here itself. Kafka shows a list that was never set as '' by default."""
        return self.value if self.source in OWN else None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Throttle that the run set at one place.

    Of a rate, ``value`` is ours as last known to be set, ``requested`` what is being set now, ``late`` what lost calls
    may still set, separated by blanks. Of a list, ``pairs`` are ours, each with its own state (CLEARED: a lost call may
    still add it), and ``already`` those of them that stood there before and are never subtracted. ``previous`` is what
    stood there before us, None for nothing, with its ``ValueSource``. ``reason``: what became of it, or why it is
    obliged. ``lost_at``: of the last call of which nobody has the answer; ``again_at``: when what others had taken away
    was last set again; ``missing_at``: when a rate of ours was first read as taken away and was not set again since.
    """

    place: ThrottlePlace
    state: LedgerState = LedgerState.INTENT
    value: str = ""
    requested: str = ""
    late: str = ""
    pairs: Mapping[Pair, LedgerState] = field(default_factory=dict)
    already: frozenset[Pair] = frozenset()
    previous: str | None = None
    previous_source: str = ""
    reason: CodedReason | None = None
    changed_at: datetime | None = None
    lost_at: datetime | None = None
    again_at: datetime | None = None
    missing_at: datetime | None = None

    @property
    def open(self) -> bool:
        return self.state is not LedgerState.CLEARED

    @property
    def restores(self) -> str | None:
        """Value that a rate is restored to: the one that was set on the broker itself; None: ours is deleted.

        A cluster default or static value comes back by itself and is never written.
        """
        return self.previous if self.previous_source in OWN else None

    def may_come_late(self, now: datetime) -> bool:
        return self.lost_at is not None and now - self.lost_at < UNANSWERED

    def may_show_late(self, now: datetime) -> bool:
        """Return whether a read may be older than our last change here; such a read is no proof of a foreign change."""
        return self.changed_at is not None and now - self.changed_at < SHOWS_LATE

    def watched_until_shown(self, now: datetime) -> datetime:
        """``lost_at`` of an entry that was just cleared: it is read until brokers must have heard of it."""
        least = now - UNANSWERED + SHOWS_LATE
        return least if self.lost_at is None else max(self.lost_at, least)

    def may_set_again(self, now: datetime) -> bool:
        return self.again_at is None or now - self.again_at >= AGAIN_EVERY


class LedgerEvent(StrEnum):
    """Event of a read that people have to be told of; the values are verbs of audit events."""

    VANISHED = "throttle_vanished"
    FOREIGN = "throttle_foreign"
    LEFT = "throttle_left"
    LATE = "throttle_late"
    OBLIGED = "throttle_obliged"


@dataclass(frozen=True, slots=True)
class SettledEntry:
    """An entry after a read. ``missing``: ours was taken away and may not be set again yet.

    ``foreign`` is the value of somebody else that stands where ours should.
    """

    entry: LedgerEntry
    found: LedgerEvent | None = None
    missing: bool = False
    foreign: str | None = None


_UNDER_WAY = frozenset({LedgerState.INTENT, LedgerState.CLEARING})


def settle_list(entry: LedgerEntry, read: PlaceReading, now: datetime) -> SettledEntry:
    """The entry by what stands there now, each pair by itself.

    After this its pairs are SET or OBLIGED, or CLEARED while a lost call may still add them. A CLEARING without other
    pairs is a list that is left empty and has to be deleted.
    """
    if read.unreadable:
        return _unreadable_list(entry, read.unreadable, now)
    if read.gone:
        ended = replace(entry, state=LedgerState.CLEARED, pairs={}, already=frozenset(), lost_at=None)
        reason = PlainReason(LedgerReasonCode.LIST_DELETED_WITH_TOPIC) if entry.open else entry.reason
        return SettledEntry(_changed(entry, replace(ended, reason=reason), now))
    entry = _lost_list(entry)
    found = _PairStates(entry, _listed(read), keep_late=entry.may_come_late(now))
    if not entry.may_come_late(now):
        entry = replace(entry, lost_at=None)
    missing = bool(found.vanished) and not entry.may_set_again(now)
    if found.vanished and entry.may_show_late(now):
        return SettledEntry(replace(entry, pairs=found.pairs | dict.fromkeys(found.vanished, LedgerState.SET)))
    if missing:
        found.pairs |= dict.fromkeys(found.vanished, LedgerState.SET)
    elif found.vanished:
        reason = PairsRemovedByOthers(len(found.vanished))
        entry = replace(entry, again_at=now, reason=reason, already=entry.already.difference(found.vanished))
    settled = _with(entry, found.pairs, read, now)
    if found.vanished and not missing:
        return SettledEntry(settled, LedgerEvent.VANISHED)
    came_late = bool(found.late) and not entry.may_show_late(now)
    return SettledEntry(settled, LedgerEvent.LATE if came_late else None, missing=missing)


def intend_list(
    entry: LedgerEntry | None,
    place: ThrottlePlace,
    add: Collection[Pair],
    remove: Collection[Pair],
    read: PlaceReading,
    now: datetime,
) -> LedgerEntry:
    """Return the settled entry with the step's pairs added and removed; INTENT and CLEARING pairs need a call.

    ``read`` is of this step and was readable. What it shows of ``add`` already stands there and needs no call.
    """
    if entry is None or not open_pairs(entry):
        entry = _fresh_list(entry, place, read)
    listed = _listed(read)
    pairs, already, late = dict(entry.pairs), set(entry.already), entry.may_come_late(now)
    for pair in add:
        if pairs.get(pair) is LedgerState.SET:
            continue  # a read of this step has just shown it to be ours
        there = listed.names(*pair)
        pairs[pair] = LedgerState.SET if there else LedgerState.INTENT
        (already.add if there else already.discard)(pair)
    for pair in remove:
        if pair not in pairs:
            continue
        there = listed.names(*pair) or entry.may_show_late(now)
        if pair not in already and not listed.everything and there:
            pairs[pair] = LedgerState.CLEARING
        else:
            pairs = _without(pairs, {pair}, late=late and pair not in already)
            already.discard(pair)
    reason = PlainReason(LedgerReasonCode.LIST_NAMES_EVERY_REPLICA) if listed.everything else entry.reason
    return _with(replace(entry, already=frozenset(already), reason=reason), pairs, read, now)


def appends(entry: LedgerEntry) -> frozenset[Pair]:
    return _in(entry, LedgerState.INTENT)


def subtracts(entry: LedgerEntry) -> frozenset[Pair]:
    return _in(entry, LedgerState.CLEARING)


def leaves_empty(entry: LedgerEntry) -> bool:
    """Return whether a list has no pair of ours left and may have to be deleted, because it was not set before.

    Never true for a rate, which is cleared by a call of its own.
    """
    return entry.place.key in LISTS and entry.state is LedgerState.CLEARING and not open_pairs(entry)


def appended(entry: LedgerEntry, reply: CallReply, why: CodedReason | None, now: datetime) -> LedgerEntry:
    """After Kafka's answer to an APPEND of ``appends``; ``why``: of what was refused or lost."""
    if reply is CallReply.LOST:
        return replace(entry, lost_at=now, reason=why)
    ours = appends(entry)
    if reply is CallReply.ACCEPTED:
        return _state({**entry.pairs, **dict.fromkeys(ours, LedgerState.SET)}, entry, now)
    left = _without(entry.pairs, ours, late=entry.may_come_late(now))
    return _state(left, replace(entry, reason=why), now)


def subtracted(entry: LedgerEntry, reply: CallReply, why: CodedReason | None, now: datetime) -> LedgerEntry:
    """After Kafka's answer to a SUBTRACT of ``subtracts``; it may leave an empty list (``leaves_empty``)."""
    if reply is CallReply.LOST:
        return replace(entry, lost_at=now, reason=why)
    ours = subtracts(entry)
    if reply is CallReply.REFUSED:
        return _state({**entry.pairs, **dict.fromkeys(ours, LedgerState.OBLIGED)}, replace(entry, reason=why), now)
    # A broker that still shows them shall not have us take them for somebody else's.
    entry = replace(entry, lost_at=entry.watched_until_shown(now))
    left = _without(entry.pairs, ours, late=True)
    if any(state is not LedgerState.CLEARED for state in left.values()):
        return _state(left, entry, now)
    if entry.restores is not None:
        return replace(_ended_list(entry, now, PlainReason(LedgerReasonCode.LIST_AS_BEFORE)), pairs=left)
    return replace(entry, pairs=left, state=LedgerState.CLEARING, changed_at=now)


def emptied(entry: LedgerEntry, read: PlaceReading, now: datetime) -> LedgerEntry:
    """An entry that ``leaves_empty``, after a read that followed the SUBTRACT: CLEARING still if DELETE is called."""
    if read.unreadable:
        return replace(entry, reason=read.unreadable)
    listed = _listed(read)
    if (read.own == "" and entry.restores is None) or any(listed.names(*pair) for pair in entry.pairs):
        return entry
    return _ended_list(entry, now, _left(read))


def may_be_deleted(entry: LedgerEntry, read: PlaceReading) -> bool:
    """Return whether the read after ``emptied`` showed an empty list, for an entry that is still CLEARING."""
    return leaves_empty(entry) and read.own == "" and entry.restores is None


def deleted(entry: LedgerEntry, reply: CallReply, why: CodedReason | None, now: datetime) -> LedgerEntry:
    """After Kafka's answer to the DELETE of an empty list. Refused or lost, it is tried again: empty means off."""
    if reply is CallReply.ACCEPTED:
        return _ended_list(entry, now, PlainReason(LedgerReasonCode.THROTTLE_CLEARED))
    return replace(entry, reason=why)


def obliged(entry: LedgerEntry, why: CodedReason, now: datetime) -> LedgerEntry:
    """Return the entry with its pairs under way as OBLIGED: they cannot be read, and so not removed now."""
    pairs = {pair: LedgerState.OBLIGED if state in _UNDER_WAY else state for pair, state in entry.pairs.items()}
    return _state(pairs, replace(entry, reason=why), now)


def wanted_away(entry: LedgerEntry, pairs: Iterable[Pair], why: CodedReason, now: datetime) -> LedgerEntry:
    """Pairs that should go while their list cannot be read: they are obliged."""
    held = {pair: LedgerState.OBLIGED for pair in pairs if pair in entry.pairs}
    return _state({**entry.pairs, **held}, replace(entry, reason=why), now)


def list_value(pairs: Iterable[Pair]) -> str:
    """Return the sorted pairs as Kafka's operations take them: "partition:broker", separated by commas."""
    return ",".join(f"{partition}:{broker}" for partition, broker in sorted(pairs))


def open_pairs(entry: LedgerEntry) -> frozenset[Pair]:
    return frozenset(pair for pair, state in entry.pairs.items() if state is not LedgerState.CLEARED)


@dataclass(slots=True, init=False)
class _PairStates:
    """The pairs of an entry by what is listed; ``vanished`` were set, ``late`` were given up."""

    pairs: dict[Pair, LedgerState]
    vanished: frozenset[Pair]
    late: frozenset[Pair]

    def __init__(self, entry: LedgerEntry, listed: ThrottledReplicas, *, keep_late: bool) -> None:
        self.pairs = {}
        vanished, late = set(), set()
        for pair, state in entry.pairs.items():
            if listed.names(*pair):
                # Under “*”, a pair that was given up is not ours to take away.
                if state is not LedgerState.CLEARED or not listed.everything:
                    self.pairs[pair] = LedgerState.SET
                if state is LedgerState.CLEARED and not listed.everything:
                    late.add(pair)
                elif state is LedgerState.CLEARED and keep_late:
                    self.pairs[pair] = state
                continue
            if state is LedgerState.SET:
                vanished.add(pair)
            if keep_late:
                self.pairs[pair] = LedgerState.CLEARED
        self.vanished, self.late = frozenset(vanished), frozenset(late)


def _unreadable_list(entry: LedgerEntry, why: CodedReason, now: datetime) -> SettledEntry:
    if not any(state in _UNDER_WAY for state in entry.pairs.values()):
        return SettledEntry(entry)
    return SettledEntry(obliged(_lost_list(entry), why, now), LedgerEvent.OBLIGED)


def _lost_list(entry: LedgerEntry) -> LedgerEntry:
    """Pairs found under way have a call without an answer; the last such call is what may still come late."""
    if not any(state in _UNDER_WAY for state in entry.pairs.values()):
        return entry
    known = [at for at in (entry.lost_at, entry.changed_at) if at is not None]
    return replace(entry, lost_at=max(known, default=None))


def _with(entry: LedgerEntry, pairs: Mapping[Pair, LedgerState], read: PlaceReading, now: datetime) -> LedgerEntry:
    """The entry with these pairs; without open ones it ends, unless it leaves an empty list behind."""
    if any(state is not LedgerState.CLEARED for state in pairs.values()):
        return _state(pairs, entry, now)
    # A SUBTRACT that comes late sets a list to '' that was deleted since.
    ours = entry.open or entry.may_come_late(now)
    if ours and read.own == "" and entry.restores is None:
        return _changed(entry, replace(entry, pairs=dict(pairs), state=LedgerState.CLEARING), now)
    if not entry.open:
        return _changed(entry, replace(entry, pairs=dict(pairs)), now)
    return replace(_ended_list(entry, now, entry.reason or _left(read)), pairs=dict(pairs))


def _state(pairs: Mapping[Pair, LedgerState], entry: LedgerEntry, now: datetime) -> LedgerEntry:
    """The state of a list is that of its most urgent pair."""
    states = set(pairs.values())
    urgent = (LedgerState.INTENT, LedgerState.CLEARING, LedgerState.OBLIGED, LedgerState.SET)
    state = next((each for each in urgent if each in states), LedgerState.CLEARED)
    already = entry.already.intersection(pairs)
    return _changed(entry, replace(entry, pairs=dict(pairs), already=already, state=state), now)


def _changed(before: LedgerEntry, after: LedgerEntry, now: datetime) -> LedgerEntry:
    return before if after == before else replace(after, changed_at=now)


def _ended_list(entry: LedgerEntry, now: datetime, reason: CodedReason) -> LedgerEntry:
    late = {pair: state for pair, state in entry.pairs.items() if state is LedgerState.CLEARED}
    return replace(entry, state=LedgerState.CLEARED, pairs=late, already=frozenset(), reason=reason, changed_at=now)


def _fresh_list(entry: LedgerEntry | None, place: ThrottlePlace, read: PlaceReading) -> LedgerEntry:
    """Nothing of ours stands there: what does, is what was before. That others removed ours is past.

    But for an empty list that we left and have not deleted yet: it is ours.
    """
    if entry is not None and leaves_empty(entry) and read.own == "":
        return entry
    late = {} if entry is None else dict(entry.pairs)
    return LedgerEntry(
        place,
        pairs=late,
        previous=read.own,
        previous_source=read.source if read.own is not None else "",
        reason=entry.reason if entry is not None and entry.again_at is not None else None,
        changed_at=entry.changed_at if entry else None,
        lost_at=entry.lost_at if entry else None,
        again_at=entry.again_at if entry else None,
    )


def _left(read: PlaceReading) -> CodedReason:
    if not read.own:
        return PlainReason(LedgerReasonCode.THROTTLE_CLEARED)
    listed = throttled_replicas(read.own)
    return (
        PlainReason(LedgerReasonCode.LIST_NAMES_EVERY_REPLICA)
        if listed.everything
        else PairsOfOthersStay(len(listed.pairs))
    )


def _listed(read: PlaceReading) -> ThrottledReplicas:
    return throttled_replicas(read.own or "")


def _in(entry: LedgerEntry, state: LedgerState) -> frozenset[Pair]:
    return frozenset(pair for pair, own in entry.pairs.items() if own is state)


def _without(pairs: Mapping[Pair, LedgerState], offline: Collection[Pair], *, late: bool) -> dict[Pair, LedgerState]:
    """``late``: a lost call may still add them, so they are given up and not forgotten."""
    left = {pair: state for pair, state in pairs.items() if pair not in offline}
    return {**left, **dict.fromkeys(offline, LedgerState.CLEARED)} if late else left


_MOST_LATE = 4


def settle_rate(entry: LedgerEntry, read: PlaceReading, now: datetime) -> SettledEntry:
    """The entry by what stands there now: an intent whose value is there is set, one that left no trace is dropped.

    What cannot be read is obliged if a call was under way. After this an entry is SET, OBLIGED or CLEARED.
    """
    if read.unreadable:
        return _unreadable_rate(entry, read.unreadable, now)
    entry = _lost_rate(entry)
    late = entry.late.split()
    if read.own and read.own in (late if entry.state is LedgerState.CLEARED else [entry.value, entry.requested, *late]):
        if entry.state is LedgerState.SET and read.own != entry.value and entry.may_show_late(now):
            # An older value of ours, which the broker may only still show: the newer one would be taken for another's.
            return SettledEntry(entry)
        came_late = entry.state is LedgerState.CLEARED and not entry.may_show_late(now)
        found = LedgerEvent.LATE if came_late else None
        return SettledEntry(_quiet(_is_set(entry, read.own, now), now), found)
    match entry.state:
        case LedgerState.CLEARED:
            return SettledEntry(_quiet(entry, now))
        case LedgerState.SET:
            return _not_ours(entry, read, now)
        case LedgerState.INTENT if entry.value:
            return _not_ours(replace(entry, state=LedgerState.SET, requested=""), read, now)
        case LedgerState.INTENT:
            return SettledEntry(_quiet(_ended_rate(entry, now, PlainReason(LedgerReasonCode.RATE_NOT_SET)), now))
        case _:
            return _given_back(entry, read, now)


def before_others(others: LedgerEntry | None, read: PlaceReading) -> PlaceReading:
    """Return the broker's value from before this run, or the one another run found if its value is still set.

    ``others``: that run's open entry here. Its value is not restored, because that run still has to remove it.
    """
    if others is None or read.unreadable or read.own is None:
        return read
    if read.own not in (others.value, others.requested, *others.late.split()):
        return read
    return PlaceReading(others.previous, others.previous_source or ValueSource.DEFAULT)


def intend_rate(
    entry: LedgerEntry | None,
    place: ThrottlePlace,
    rate: int,
    read: PlaceReading,
    now: datetime,
    before: PlaceReading | None = None,
) -> LedgerEntry:
    """Return the settled entry changed to a rate in bytes per second; INTENT needs a call. ``read`` is of this step,
    ``before`` what is restored at the end where that is not ``read``.

    What was there before, if it was the broker's own and the same, needs no call and is nobody's to clear. Where
    somebody else's value stands in the place of ours nothing is adjusted.
    """
    requested = str(rate)
    if entry is None or entry.state is LedgerState.CLEARED:
        fresh = _fresh_rate(entry, place, before or read)
        if read.own == requested:
            return replace(fresh, state=LedgerState.SET, value=requested, changed_at=now)
        return replace(fresh, state=LedgerState.INTENT, requested=requested, changed_at=now)
    if entry.state is LedgerState.SET and entry.value != requested and read.own == entry.value:
        return replace(entry, state=LedgerState.INTENT, requested=requested, changed_at=now)
    return entry


def clearing(entry: LedgerEntry, read: PlaceReading, now: datetime, *, offline: bool = False) -> SettledEntry:
    """Return the next state of a settled entry that nothing uses any more; CLEARING needs a call.

    ``offline``: the broker cannot be asked, and the call may still go through the controllers.
    """
    if entry.state is LedgerState.CLEARED:
        return SettledEntry(entry)
    if read.unreadable and not offline:
        return SettledEntry(_obliged(entry, read.unreadable, now), LedgerEvent.OBLIGED)
    if not read.unreadable and read.own != entry.value:
        return SettledEntry(entry) if entry.may_show_late(now) else _given_back(entry, read, now)
    if not offline and read.own == entry.restores:
        return SettledEntry(_ended_rate(entry, now, PlainReason(LedgerReasonCode.RATE_STOOD_BEFORE)))
    return SettledEntry(replace(entry, state=LedgerState.CLEARING, changed_at=now))


def left_to_others(entry: LedgerEntry, read: PlaceReading, now: datetime) -> SettledEntry:
    """Return the end of a CLEARING entry: the read right before its call showed somebody else's value."""
    return _given_back(entry, read, now)


def answered(entry: LedgerEntry, reply: CallReply, why: CodedReason | None, now: datetime) -> LedgerEntry:
    """After Kafka's answer to the call of an INTENT or of a CLEARING; ``why``: of what was refused or lost."""
    if reply is CallReply.LOST:
        return _lost_rate(replace(entry, lost_at=None, changed_at=now, reason=why))
    if entry.state is LedgerState.INTENT:
        if reply is CallReply.ACCEPTED:
            return _is_set(entry, entry.requested, now)
        if entry.value:
            return replace(entry, state=LedgerState.SET, requested="", reason=why, changed_at=now)
        return _ended_rate(
            entry,
            now,
            join_reasons(PlainReason(LedgerReasonCode.RATE_NOT_SET), why)
            if why
            else PlainReason(LedgerReasonCode.RATE_NOT_SET),
        )
    if entry.state is LedgerState.CLEARING:
        if reply is CallReply.REFUSED:
            return _obliged(entry, why, now)
        # A broker that still shows ours shall not have us take it for somebody else's.
        late = " ".join(dict.fromkeys([*entry.late.split(), *([entry.value] if entry.value else [])]))
        cleared = replace(entry, late=late, lost_at=entry.watched_until_shown(now))
        return _ended_rate(cleared, now, _restored(entry))
    return entry


def _unreadable_rate(entry: LedgerEntry, why: CodedReason, now: datetime) -> SettledEntry:
    if entry.state in (LedgerState.INTENT, LedgerState.CLEARING):
        return SettledEntry(_obliged(_lost_rate(entry), why, now), LedgerEvent.OBLIGED)
    # Cleared past a broker that is away, it is not watched until that one comes back.
    return SettledEntry(_quiet(entry, now) if entry.state is LedgerState.CLEARED else entry)


def _not_ours(entry: LedgerEntry, read: PlaceReading, now: datetime) -> SettledEntry:
    """Ours should stand there, and does not."""
    if entry.may_show_late(now):
        return SettledEntry(_quiet(entry, now))
    if read.own is not None:
        return SettledEntry(_quiet(replace(entry, missing_at=None), now), foreign=read.own)
    # Whoever clears rates may be about to set others: only a second look at the same has ours set again.
    first_seen = entry.missing_at or now
    if first_seen == now or not entry.may_set_again(now):
        return SettledEntry(_quiet(replace(entry, missing_at=first_seen), now), missing=True)
    ended = _ended_rate(entry, now, PlainReason(LedgerReasonCode.RATE_REMOVED_BY_OTHERS))
    return SettledEntry(replace(ended, again_at=now, missing_at=None), LedgerEvent.VANISHED)


def _given_back(entry: LedgerEntry, read: PlaceReading, now: datetime) -> SettledEntry:
    """Ours is not there any more: it was restored, or somebody else put something in its place, which stays."""
    if read.own == entry.restores and entry.state is not LedgerState.SET:
        return SettledEntry(_quiet(_ended_rate(entry, now, _restored(entry)), now))
    return SettledEntry(_quiet(_ended_rate(entry, now, _by_others(entry, read)), now), LedgerEvent.LEFT)


def _by_others(entry: LedgerEntry, read: PlaceReading) -> CodedReason:
    if read.own == entry.restores:
        return (
            PlainReason(LedgerReasonCode.RATE_REMOVED_BY_OTHERS)
            if read.own is None
            else PlainReason(LedgerReasonCode.RATE_RESTORED_BY_OTHERS)
        )
    return RateNotPutBack(entry.restores or "") if read.own is None else RateOfOthersLeft(read.own)


def _restored(entry: LedgerEntry) -> CodedReason:
    reason = PlainReason(LedgerReasonCode.THROTTLE_CLEARED) if entry.restores is None else RateRestored(entry.restores)
    return (
        reason if entry.again_at is None else join_reasons(reason, PlainReason(LedgerReasonCode.RATE_BEFORE_UNCERTAIN))
    )


def _fresh_rate(entry: LedgerEntry | None, place: ThrottlePlace, read: PlaceReading) -> LedgerEntry:
    """With what stands there as what was before; set again after others removed it, with what was before that."""
    if entry is not None and entry.again_at is not None and read.own is None:
        return replace(entry, value="", reason=PlainReason(LedgerReasonCode.RATE_SET_AGAIN))
    previous = None if read.own is None and not read.value else read.value
    return LedgerEntry(
        place,
        previous=previous,
        previous_source=read.source if previous is not None else "",
        late=entry.late if entry else "",
        lost_at=entry.lost_at if entry else None,
        again_at=entry.again_at if entry else None,
    )


def _is_set(entry: LedgerEntry, value: str, now: datetime) -> LedgerEntry:
    if entry.state is LedgerState.SET and entry.value == value:
        return replace(entry, missing_at=None)
    reason = None if entry.state is LedgerState.OBLIGED else entry.reason
    return replace(
        entry, state=LedgerState.SET, value=value, requested="", reason=reason, changed_at=now, missing_at=None
    )


def _ended_rate(entry: LedgerEntry, now: datetime, reason: CodedReason) -> LedgerEntry:
    return replace(entry, state=LedgerState.CLEARED, requested="", reason=reason, changed_at=now)


def _obliged(entry: LedgerEntry, why: CodedReason | None, now: datetime) -> LedgerEntry:
    return _changed(entry, replace(entry, state=LedgerState.OBLIGED, reason=why), now)


def _lost_rate(entry: LedgerEntry) -> LedgerEntry:
    """An intent that is found without an answer: its call may be under way still, and set what it was to set."""
    if entry.state not in (LedgerState.INTENT, LedgerState.CLEARING) or entry.lost_at == entry.changed_at:
        return entry
    late = dict.fromkeys([*entry.late.split(), *([entry.requested] if entry.requested else [])])
    return replace(entry, lost_at=entry.changed_at, late=" ".join(list(late)[-_MOST_LATE:]))


def _quiet(entry: LedgerEntry, now: datetime) -> LedgerEntry:
    """Return the entry without its lost call, once that call is too old to arrive."""
    if entry.lost_at is None or entry.may_come_late(now):
        return entry
    return replace(entry, lost_at=None, late="")
