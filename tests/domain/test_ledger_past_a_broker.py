"""A rate that was cleared through the controllers while its broker is away."""

from datetime import UTC, datetime, timedelta

from kafkadash.domain.executor_state import Reply
from kafkadash.domain.ledger import SHOWS_LATE, Entry, EntryState, Place, Read
from kafkadash.domain.ledger_rates import answered, clearing, settle

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
PLACE = Place("broker", "3", "leader.replication.throttled.rate")
AWAY = Read(unreadable="Broker 3 is away.")


def test_it_is_watched_for_a_while_and_not_until_the_broker_comes_back() -> None:
    entry = Entry(PLACE, EntryState.SET, value="200000", changed_at=NOW - timedelta(minutes=5))
    asked = clearing(entry, AWAY, NOW, away=True).entry
    assert asked.state is EntryState.CLEARING
    cleared = answered(asked, Reply.ACCEPTED, "", NOW)
    assert cleared.state is EntryState.CLEARED

    soon = settle(cleared, AWAY, NOW + SHOWS_LATE / 2).entry
    assert soon.lost_at is not None
    later = settle(soon, AWAY, NOW + SHOWS_LATE).entry
    assert (later.state, later.lost_at) == (EntryState.CLEARED, None)
