"""A topic's lists of throttled replicas in the ledger: recovery, adding, taking away (04-changes.md §4, KIP-73).

Only our own pairs are ever added or taken away: APPEND and SUBTRACT leave the pairs of others as they are, in their
order. ``*`` names every replica: nothing is added to it (Kafka refuses that with 40) and nothing is taken from it.
SUBTRACT of the last pair leaves the list set to ''; where it was not set before, it is deleted in a call of its own,
right after a read that shows it empty, because between that read and the DELETE nobody's pair is protected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from kafkadash.domain.executor_state import Reply
from kafkadash.domain.executor_throttles import Pair
from kafkadash.domain.ledger import Entry, EntryState, Found, Place, Read, Settled
from kafkadash.domain.throttled_replicas import ThrottledReplicas, throttled_replicas
from kafkadash.domain.throttles import LISTS
from kafkadash.domain.wording import count

EVERY_REPLICA_WORDS = "The list is “*”, which names every replica; it was left as it is."
_UNDER_WAY = frozenset({EntryState.INTENT, EntryState.CLEARING})


def settle(entry: Entry, read: Read, now: datetime) -> Settled:
    """The entry by what stands there now, each pair by itself.

    After this its pairs are SET or OBLIGED, or CLEARED while a lost call may still add them. A CLEARING without other
    pairs is a list that is left empty and has to be deleted.
    """
    if read.unreadable:
        return _unreadable(entry, read, now)
    if read.gone:
        ended = replace(entry, state=EntryState.CLEARED, pairs={}, already=frozenset(), lost_at=None)
        words = "The topic was deleted, and its list with it." if entry.open else entry.words
        return Settled(_changed(entry, replace(ended, words=words), now))
    entry = _lost(entry)
    found = _Pairs(entry, _listed(read), keep_late=entry.may_come_late(now))
    if not entry.may_come_late(now):
        entry = replace(entry, lost_at=None)
    missing = bool(found.vanished) and not entry.may_set_again(now)
    if found.vanished and entry.may_show_late(now):
        return Settled(replace(entry, pairs=found.pairs | dict.fromkeys(found.vanished, EntryState.SET)))
    if missing:
        found.pairs |= dict.fromkeys(found.vanished, EntryState.SET)
    elif found.vanished:
        words = f"Somebody else removed {count(len(found.vanished), 'pair')} of ours."
        entry = replace(entry, again_at=now, words=words, already=entry.already.difference(found.vanished))
    settled = _with(entry, found.pairs, read, now)
    if found.vanished and not missing:
        return Settled(settled, Found.VANISHED)
    came_late = bool(found.late) and not entry.may_show_late(now)
    return Settled(settled, Found.LATE if came_late else None, missing=missing)


def intended(
    entry: Entry | None, place: Place, add: Collection[Pair], remove: Collection[Pair], read: Read, now: datetime
) -> Entry:
    """What a step's change makes of a settled entry; pairs that are INTENT or CLEARING are to be called.

    ``read`` is of this step and was readable. What it shows of ``add`` already stands there and needs no call.
    """
    if entry is None or not open_pairs(entry):
        entry = _fresh(entry, place, read)
    listed = _listed(read)
    pairs, already, late = dict(entry.pairs), set(entry.already), entry.may_come_late(now)
    for pair in add:
        if pairs.get(pair) is EntryState.SET:
            continue  # a read of this step has just shown it to be ours
        there = listed.names(*pair)
        pairs[pair] = EntryState.SET if there else EntryState.INTENT
        (already.add if there else already.discard)(pair)
    words = entry.words
    for pair in remove:
        if pair not in pairs:
            continue
        there = listed.names(*pair) or entry.may_show_late(now)
        if pair not in already and not listed.everything and there:
            pairs[pair] = EntryState.CLEARING
        else:
            pairs = _without(pairs, {pair}, late=late and pair not in already)
            already.discard(pair)
    if listed.everything:
        words = EVERY_REPLICA_WORDS
    return _with(replace(entry, already=frozenset(already), words=words), pairs, read, now)


def appends(entry: Entry) -> frozenset[Pair]:
    return _in(entry, EntryState.INTENT)


def subtracts(entry: Entry) -> frozenset[Pair]:
    return _in(entry, EntryState.CLEARING)


def leaves_empty(entry: Entry) -> bool:
    """Whether nothing of ours is in the list any more, and it may have to be deleted because it was not set before.

    Never of a rate, which is cleared by a call of its own.
    """
    return entry.place.key in LISTS and entry.state is EntryState.CLEARING and not open_pairs(entry)


def appended(entry: Entry, reply: Reply, words: str, now: datetime) -> Entry:
    """After Kafka's answer to an APPEND of ``appends``."""
    if reply is Reply.LOST:
        return replace(entry, lost_at=now, words=words)
    ours = appends(entry)
    if reply is Reply.ACCEPTED:
        return _state({**entry.pairs, **dict.fromkeys(ours, EntryState.SET)}, entry, now)
    left = _without(entry.pairs, ours, late=entry.may_come_late(now))
    return _state(left, replace(entry, words=words), now)


def subtracted(entry: Entry, reply: Reply, words: str, now: datetime) -> Entry:
    """After Kafka's answer to a SUBTRACT of ``subtracts``; it may leave an empty list (``leaves_empty``)."""
    if reply is Reply.LOST:
        return replace(entry, lost_at=now, words=words)
    ours = subtracts(entry)
    if reply is Reply.REFUSED:
        return _state({**entry.pairs, **dict.fromkeys(ours, EntryState.OBLIGED)}, replace(entry, words=words), now)
    # A broker that still shows them shall not have us take them for somebody else's.
    entry = replace(entry, lost_at=entry.watched_until_shown(now))
    left = _without(entry.pairs, ours, late=True)
    if any(state is not EntryState.CLEARED for state in left.values()):
        return _state(left, entry, now)
    if entry.restores is not None:
        return replace(_ended(entry, now, "Removed; what was set before stays."), pairs=left)
    return replace(entry, pairs=left, state=EntryState.CLEARING, changed_at=now)


def emptied(entry: Entry, read: Read, now: datetime) -> Entry:
    """An entry that ``leaves_empty``, after a read that followed the SUBTRACT: CLEARING still if DELETE is called."""
    if read.unreadable:
        return replace(entry, words=read.unreadable)
    listed = _listed(read)
    if (read.own == "" and entry.restores is None) or any(listed.names(*pair) for pair in entry.pairs):
        return entry
    return _ended(entry, now, _left_words(read))


def may_be_deleted(entry: Entry, read: Read) -> bool:
    """Of an entry that is CLEARING still after ``emptied``: whether that read showed an empty list."""
    return leaves_empty(entry) and read.own == "" and entry.restores is None


def deleted(entry: Entry, reply: Reply, words: str, now: datetime) -> Entry:
    """After Kafka's answer to the DELETE of an empty list. Refused or lost, it is tried again: empty means off."""
    if reply is Reply.ACCEPTED:
        return _ended(entry, now, "Removed.")
    return replace(entry, words=words)


def obliged(entry: Entry, why: str, now: datetime) -> Entry:
    """What is under way and cannot be read, and so cannot be taken away now."""
    pairs = {pair: EntryState.OBLIGED if state in _UNDER_WAY else state for pair, state in entry.pairs.items()}
    return _state(pairs, replace(entry, words=why), now)


def wanted_away(entry: Entry, pairs: Iterable[Pair], why: str, now: datetime) -> Entry:
    """Pairs that should go while their list cannot be read: they are obliged."""
    held = {pair: EntryState.OBLIGED for pair in pairs if pair in entry.pairs}
    return _state({**entry.pairs, **held}, replace(entry, words=why), now)


def list_value(pairs: Iterable[Pair]) -> str:
    """As Kafka's operations take it."""
    return ",".join(f"{partition}:{broker}" for partition, broker in sorted(pairs))


def open_pairs(entry: Entry) -> frozenset[Pair]:
    return frozenset(pair for pair, state in entry.pairs.items() if state is not EntryState.CLEARED)


@dataclass(slots=True, init=False)
class _Pairs:
    """The pairs of an entry by what is listed; ``vanished`` were set, ``late`` were given up."""

    pairs: dict[Pair, EntryState]
    vanished: frozenset[Pair]
    late: frozenset[Pair]

    def __init__(self, entry: Entry, listed: ThrottledReplicas, *, keep_late: bool) -> None:
        self.pairs = {}
        vanished, late = set(), set()
        for pair, state in entry.pairs.items():
            if listed.names(*pair):
                # Under “*”, a pair that was given up is not ours to take away.
                if state is not EntryState.CLEARED or not listed.everything:
                    self.pairs[pair] = EntryState.SET
                if state is EntryState.CLEARED and not listed.everything:
                    late.add(pair)
                elif state is EntryState.CLEARED and keep_late:
                    self.pairs[pair] = state
                continue
            if state is EntryState.SET:
                vanished.add(pair)
            if keep_late:
                self.pairs[pair] = EntryState.CLEARED
        self.vanished, self.late = frozenset(vanished), frozenset(late)


def _unreadable(entry: Entry, read: Read, now: datetime) -> Settled:
    if not any(state in _UNDER_WAY for state in entry.pairs.values()):
        return Settled(entry)
    return Settled(obliged(_lost(entry), read.unreadable, now), Found.OBLIGED)


def _lost(entry: Entry) -> Entry:
    """Pairs found under way have a call without an answer; the last such call is what may still come late."""
    if not any(state in _UNDER_WAY for state in entry.pairs.values()):
        return entry
    known = [at for at in (entry.lost_at, entry.changed_at) if at is not None]
    return replace(entry, lost_at=max(known, default=None))


def _with(entry: Entry, pairs: Mapping[Pair, EntryState], read: Read, now: datetime) -> Entry:
    """The entry with these pairs; without open ones it ends, unless it leaves an empty list behind."""
    if any(state is not EntryState.CLEARED for state in pairs.values()):
        return _state(pairs, entry, now)
    # A SUBTRACT that comes late sets a list to '' that was deleted since.
    ours = entry.open or entry.may_come_late(now)
    if ours and read.own == "" and entry.restores is None:
        return _changed(entry, replace(entry, pairs=dict(pairs), state=EntryState.CLEARING), now)
    if not entry.open:
        return _changed(entry, replace(entry, pairs=dict(pairs)), now)
    return replace(_ended(entry, now, entry.words or _left_words(read)), pairs=dict(pairs))


def _state(pairs: Mapping[Pair, EntryState], entry: Entry, now: datetime) -> Entry:
    """The state of a list is that of its most urgent pair."""
    states = set(pairs.values())
    urgent = (EntryState.INTENT, EntryState.CLEARING, EntryState.OBLIGED, EntryState.SET)
    state = next((each for each in urgent if each in states), EntryState.CLEARED)
    already = entry.already.intersection(pairs)
    return _changed(entry, replace(entry, pairs=dict(pairs), already=already, state=state), now)


def _changed(before: Entry, after: Entry, now: datetime) -> Entry:
    return before if after == before else replace(after, changed_at=now)


def _ended(entry: Entry, now: datetime, words: str) -> Entry:
    late = {pair: state for pair, state in entry.pairs.items() if state is EntryState.CLEARED}
    return replace(entry, state=EntryState.CLEARED, pairs=late, already=frozenset(), words=words, changed_at=now)


def _fresh(entry: Entry | None, place: Place, read: Read) -> Entry:
    """Nothing of ours stands there: what does, is what was before. That others removed ours is past.

    But for an empty list that we left and have not deleted yet: it is ours.
    """
    if entry is not None and leaves_empty(entry) and read.own == "":
        return entry
    late = {} if entry is None else dict(entry.pairs)
    words = entry.words if entry is not None and entry.again_at is not None else ""
    return Entry(
        place,
        pairs=late,
        previous=read.own,
        previous_source=read.source if read.own is not None else "",
        words=words,
        changed_at=entry.changed_at if entry else None,
        lost_at=entry.lost_at if entry else None,
        again_at=entry.again_at if entry else None,
    )


def _left_words(read: Read) -> str:
    if not read.own:
        return "Removed."
    listed = throttled_replicas(read.own)
    if listed.everything:
        return EVERY_REPLICA_WORDS
    return f"Removed; {count(len(listed.pairs), 'pair')} of others stay."


def _listed(read: Read) -> ThrottledReplicas:
    return throttled_replicas(read.own or "")


def _in(entry: Entry, state: EntryState) -> frozenset[Pair]:
    return frozenset(pair for pair, own in entry.pairs.items() if own is state)


def _without(pairs: Mapping[Pair, EntryState], away: Collection[Pair], *, late: bool) -> dict[Pair, EntryState]:
    """``late``: a lost call may still add them, so they are given up and not forgotten."""
    left = {pair: state for pair, state in pairs.items() if pair not in away}
    return {**left, **dict.fromkeys(away, EntryState.CLEARED)} if late else left
