"""Rates of brokers in the ledger: recovery, setting, restoring (04-changes.md §4).

A rate is set over whatever stood there, which is kept in the entry and put back: SET where it was the broker's own,
else DELETE, so that a cluster default or static value shows through again. Only a value that is still ours is touched.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kafkadash.domain.executor_state import Reply
from kafkadash.domain.ledger import Entry, EntryState, Found, Place, Read, Settled, Source
from kafkadash.domain.throttled_replicas import rate_of
from kafkadash.domain.wording import capital

_MOST_LATE = 4


def settle(entry: Entry, read: Read, now: datetime) -> Settled:
    """The entry by what stands there now: an intent whose value is there is set, one that left no trace is dropped.

    What cannot be read is obliged if a call was under way. After this an entry is SET, OBLIGED or CLEARED.
    """
    if read.unreadable:
        return _unreadable(entry, read, now)
    entry = _lost(entry)
    late = entry.late.split()
    if read.own and read.own in (late if entry.state is EntryState.CLEARED else [entry.value, entry.asked, *late]):
        if entry.state is EntryState.SET and read.own != entry.value and entry.may_show_late(now):
            # An older value of ours, which the broker may only still show: the newer one would be taken for another's.
            return Settled(entry)
        came_late = entry.state is EntryState.CLEARED and not entry.may_show_late(now)
        found = Found.LATE if came_late else None
        return Settled(_quiet(_is_set(entry, read.own, now), now), found)
    match entry.state:
        case EntryState.CLEARED:
            return Settled(_quiet(entry, now))
        case EntryState.SET:
            return _not_ours(entry, read, now)
        case EntryState.INTENT if entry.value:
            return _not_ours(replace(entry, state=EntryState.SET, asked=""), read, now)
        case EntryState.INTENT:
            return Settled(_quiet(_ended(entry, now, "It was not set."), now))
        case _:
            return _given_back(entry, read, now)


def before_others(others: Entry | None, read: Read) -> Read:
    """What stood there before us: what another run still has to take away is no value to go back to.

    ``others``: what that run has open here. What it found there itself is put back in its stead.
    """
    if others is None or read.unreadable or read.own is None:
        return read
    if read.own not in (others.value, others.asked, *others.late.split()):
        return read
    return Read(others.previous, others.previous_source or Source.DEFAULT)


def intended(
    entry: Entry | None, place: Place, rate: int, read: Read, now: datetime, before: Read | None = None
) -> Entry:
    """What a rate in bytes per second makes of a settled entry; INTENT is to be called. ``read`` is of this step,
    ``before`` what is put back at the end where that is not what was read.

    What was there before, if it was the broker's own and the same, needs no call and is nobody's to clear. Where
    somebody else's value stands in the place of ours nothing is adjusted.
    """
    asked = str(rate)
    if entry is None or entry.state is EntryState.CLEARED:
        fresh = _fresh(entry, place, before or read)
        if read.own == asked:
            return replace(fresh, state=EntryState.SET, value=asked, changed_at=now)
        return replace(fresh, state=EntryState.INTENT, asked=asked, changed_at=now)
    if entry.state is EntryState.SET and entry.value != asked and read.own == entry.value:
        return replace(entry, state=EntryState.INTENT, asked=asked, changed_at=now)
    return entry


def clearing(entry: Entry, read: Read, now: datetime, *, away: bool = False) -> Settled:
    """What becomes of a settled entry that nothing uses any more; CLEARING is to be called.

    ``away``: the broker cannot be asked, and the call may still go through the controllers.
    """
    if entry.state is EntryState.CLEARED:
        return Settled(entry)
    if read.unreadable and not away:
        return Settled(_obliged(entry, read.unreadable, now), Found.OBLIGED)
    if not read.unreadable and read.own != entry.value:
        return Settled(entry) if entry.may_show_late(now) else _given_back(entry, read, now)
    if not away and read.own == entry.restores:
        return Settled(_ended(entry, now, "It stood there before, and stays."))
    return Settled(replace(entry, state=EntryState.CLEARING, changed_at=now))


def left_to_others(entry: Entry, read: Read, now: datetime) -> Settled:
    """What becomes of a CLEARING whose place was read right before its call and showed somebody else's value."""
    return _given_back(entry, read, now)


def answered(entry: Entry, reply: Reply, words: str, now: datetime) -> Entry:
    """After Kafka's answer to the call of an INTENT or of a CLEARING; ``words`` are Kafka's own, of a refusal."""
    if reply is Reply.LOST:
        return _lost(replace(entry, lost_at=None, changed_at=now, words=words))
    if entry.state is EntryState.INTENT:
        if reply is Reply.ACCEPTED:
            return _is_set(entry, entry.asked, now)
        if entry.value:
            return replace(entry, state=EntryState.SET, asked="", words=words, changed_at=now)
        return _ended(entry, now, f"It was not set. {words}".strip())
    if entry.state is EntryState.CLEARING:
        if reply is Reply.REFUSED:
            return _obliged(entry, words, now)
        # A broker that still shows ours shall not have us take it for somebody else's.
        late = " ".join(dict.fromkeys([*entry.late.split(), *([entry.value] if entry.value else [])]))
        cleared = replace(entry, late=late, lost_at=entry.watched_until_shown(now))
        return _ended(cleared, now, _restored(entry))
    return entry


def value_words(value: str | None) -> str:
    """A rate as a sentence names it."""
    if value is None:
        return "nothing"
    number = rate_of(value)
    return f"“{value}”" if number is None else f"{number:,} bytes/s"


def _unreadable(entry: Entry, read: Read, now: datetime) -> Settled:
    if entry.state in (EntryState.INTENT, EntryState.CLEARING):
        return Settled(_obliged(_lost(entry), read.unreadable, now), Found.OBLIGED)
    # Cleared past a broker that is away, it is not watched until that one comes back.
    return Settled(_quiet(entry, now) if entry.state is EntryState.CLEARED else entry)


def _not_ours(entry: Entry, read: Read, now: datetime) -> Settled:
    """Ours should stand there, and does not."""
    if entry.may_show_late(now):
        return Settled(_quiet(entry, now))
    if read.own is not None:
        return Settled(_quiet(replace(entry, missing_at=None), now), foreign=read.own)
    # Whoever clears rates may be about to set others: only a second look at the same has ours set again.
    first_seen = entry.missing_at or now
    if first_seen == now or not entry.may_set_again(now):
        return Settled(_quiet(replace(entry, missing_at=first_seen), now), missing=True)
    words = "Somebody else removed it."
    return Settled(replace(_ended(entry, now, words), again_at=now, missing_at=None), Found.VANISHED)


def _given_back(entry: Entry, read: Read, now: datetime) -> Settled:
    """Ours is not there any more: it was restored, or somebody else put something in its place, which stays."""
    if read.own == entry.restores and entry.state is not EntryState.SET:
        return Settled(_quiet(_ended(entry, now, _restored(entry)), now))
    if read.own == entry.restores:
        words = "Somebody else removed it." if read.own is None else "Somebody else set it back to what it was before."
        return Settled(_quiet(_ended(entry, now, words), now), Found.LEFT)
    if read.own is None:
        words = f"Somebody else removed it; {value_words(entry.previous)} from before was not put back."
    else:
        words = f"{capital(value_words(read.own))} stands there now, which is not ours; it was left."
    return Settled(_quiet(_ended(entry, now, words), now), Found.LEFT)


def _restored(entry: Entry) -> str:
    words = "Removed." if entry.restores is None else f"Set back to {value_words(entry.restores)}."
    if entry.again_at is None:
        return words
    return f"{words} Somebody else had removed ours meanwhile: what stood there before is not certain."


def _fresh(entry: Entry | None, place: Place, read: Read) -> Entry:
    """With what stands there as what was before; set again after others removed it, with what was before that."""
    if entry is not None and entry.again_at is not None and read.own is None:
        return replace(entry, value="", words="Somebody else removed it; it was set again.")
    previous = None if read.own is None and not read.value else read.value
    return Entry(
        place,
        previous=previous,
        previous_source=read.source if previous is not None else "",
        late=entry.late if entry else "",
        lost_at=entry.lost_at if entry else None,
        again_at=entry.again_at if entry else None,
    )


def _is_set(entry: Entry, value: str, now: datetime) -> Entry:
    if entry.state is EntryState.SET and entry.value == value:
        return replace(entry, missing_at=None)
    words = "" if entry.state is EntryState.OBLIGED else entry.words
    return replace(entry, state=EntryState.SET, value=value, asked="", words=words, changed_at=now, missing_at=None)


def _ended(entry: Entry, now: datetime, words: str) -> Entry:
    return replace(entry, state=EntryState.CLEARED, asked="", words=words, changed_at=now)


def _obliged(entry: Entry, words: str, now: datetime) -> Entry:
    if entry.state is EntryState.OBLIGED and entry.words == words:
        return entry
    return replace(entry, state=EntryState.OBLIGED, words=words, changed_at=now)


def _lost(entry: Entry) -> Entry:
    """An intent that is found without an answer: its call may be under way still, and set what it was to set."""
    if entry.state not in (EntryState.INTENT, EntryState.CLEARING) or entry.lost_at == entry.changed_at:
        return entry
    late = dict.fromkeys([*entry.late.split(), *([entry.asked] if entry.asked else [])])
    return replace(entry, lost_at=entry.changed_at, late=" ".join(list(late)[-_MOST_LATE:]))


def _quiet(entry: Entry, now: datetime) -> Entry:
    """What was lost long ago cannot arrive any more."""
    if entry.lost_at is None or entry.may_come_late(now):
        return entry
    return replace(entry, lost_at=None, late="")
