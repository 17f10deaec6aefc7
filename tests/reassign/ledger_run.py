"""A run that sets and clears throttles step by step, with what its caller would store; processes may die in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from kafkadash.domain.executor import Action
from kafkadash.domain.executor_throttles import Pair, Pairs, Throttles, changes
from kafkadash.domain.ledger import Entry, Place
from kafkadash.domain.throttles import FOLLOWER_LIST, LEADER_LIST
from kafkadash.kafka.port import ConfigResource
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.ledger import Ledger
from tests.reassign.config_store import ConfigStore, as_client

BROKERS = (1, 2, 3)
EVERY = timedelta(seconds=2)


class Death(Enum):
    """Where in a step the process dies."""

    NONE = "not at all"
    BEFORE_CALLS = "after the intents were stored"
    BEFORE_CLEARS = "after it set what it wanted to"
    BEFORE_STORE = "after all calls, before their answers were stored"


@dataclass
class LedgerRun:
    store: ConfigStore = field(default_factory=ConfigStore)
    client: Any = None
    before: dict[tuple[ConfigResource, str], str] | None = None
    want: Throttles = field(default_factory=Throttles)
    now: datetime = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
    rows: dict[Place, Entry] = field(default_factory=dict)
    execution: Execution = field(default_factory=lambda: Execution(throttle=1))
    found: list[str] = field(default_factory=list)

    def step(self, death: Death = Death.NONE) -> Ledger:
        client, alive = self.client or as_client(self.store), {b for b in BROKERS if b not in self.store.away}
        ledger = Ledger(self.execution, self.rows)
        ledger.look(client, alive, self.now, deadline=1)
        taken = changes(ledger.throttles(), self.want, (), alive)
        actions: list[Action] = [*taken.lists, *taken.rates, *taken.clears]
        ledger.intend(client, actions, alive, self.now, deadline=1)
        self._stored(ledger)
        if death is not Death.BEFORE_CALLS:
            ledger.set(client, self.now, deadline=1)
            if death is not Death.BEFORE_CLEARS:
                ledger.clear(client, self.now, deadline=1)
                if death is not Death.BEFORE_STORE:
                    self._stored(ledger)
        self.now += EVERY
        return ledger

    def settle(self, most: int = 90) -> Ledger:
        """Nothing is wanted and nothing fails any more; until nothing is left to be looked after."""
        self.want = Throttles()
        for _ in range(most):
            ledger = self.step()
            if not ledger.pending(self.now) and not ledger.obligations():
                return ledger
        raise AssertionError(self.rows)

    def wants(self, pairs: Mapping[str, Pairs], brokers: Iterable[int], rate: int) -> None:
        self.want = Throttles(pairs, dict.fromkeys(brokers, rate))

    def _stored(self, ledger: Ledger) -> None:
        """As ``Ledger.store``, which needs a database: what was cleared is forgotten, but for late calls."""
        ledger.take_over()
        self.found += [found.value for found in ledger.found]
        ledger.found.clear()
        self.rows = {e.place: e for e in ledger.entries if e.open or e.lost_at is not None}


def pairs_of(pairs: Iterable[Pair]) -> Pairs:
    """The same pairs in both lists."""
    return Pairs(frozenset(pairs), frozenset(pairs))


def topic(name: str) -> ConfigResource:
    return ConfigResource.topic(name)


def broker(number: int) -> ConfigResource:
    return ConfigResource.broker(number)


__all__ = ["FOLLOWER_LIST", "LEADER_LIST", "Death", "LedgerRun", "broker", "pairs_of", "topic"]
