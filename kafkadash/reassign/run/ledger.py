"""The throttle ledger of one run (04-changes.md §4), between the pure step and Kafka.

In one step, in this order::

    ledger = Ledger.load(execution)                                  # 1 statement
    ledger.look(client, alive, now, deadline=…)   # Kafka: what has to be read again
    taken = step(moves, …, throttles=ledger.throttles())             # pure
    ledger.intend(client, taken.actions, alive, now, deadline=…)     # Kafka: what is about to be touched
    with lease.write(): …; ledger.store()                            # the intents, in the transaction of the step
    wrong = ledger.set(client, now, deadline=…, may=…)               # lists and rates, before anything is submitted
    …                                                                # 45 but for the rows in ``wrong``; cancels
    ledger.clear(client, now, deadline=…, may=…)                     # rates that nothing uses any more
    with lease.write(): …; ledger.store()

A run may end when the step is ``over`` and ``ledger.pending(now)`` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from kafkadash.domain.executor import Action
from kafkadash.domain.executor_state import Key
from kafkadash.domain.executor_throttles import Throttles
from kafkadash.kafka.changing import KafkaClient
from kafkadash.reassign.models import Deed, Execution


class Ledger:
    """What one run set, as the step sees and changes it; nothing is written before ``store``."""

    @classmethod
    def load(cls, execution: Execution) -> Ledger:
        """Entries that are open, and those of which a lost call may still arrive. One statement."""
        raise NotImplementedError

    def look(self, client: KafkaClient, alive: Collection[int], now: datetime, *, deadline: float) -> None:
        """Reads what has to be read again and settles what was left open: intents, obligations, others' changes.

        ``alive`` are the brokers that can be asked. Raises KafkaFailure, with nothing changed.
        """
        raise NotImplementedError

    def order(self, deed: Deed, entity: str, now: datetime) -> str:
        """What an operator decided about a throttle of others (``Order.entity``); returns the answer. After look."""
        raise NotImplementedError

    def throttles(self) -> Throttles:
        """Ours in force, neither obliged nor cleared."""
        raise NotImplementedError

    def intend(
        self, client: KafkaClient, actions: Sequence[Action], alive: Collection[int], now: datetime, *, deadline: float
    ) -> None:
        """Turns the throttle's actions of a step into intents; what was there before is read here, in this step.

        Other actions are passed over. Raises nothing for what cannot be read: ``set`` names the rows concerned.
        """
        raise NotImplementedError

    def store(self) -> None:
        """Entries that changed, the throttles of others found, and audit events. Three statements at most, none where
        nothing changed; in the caller's transaction.
        """
        raise NotImplementedError

    def set(
        self, client: KafkaClient, now: datetime, *, deadline: float, may: Callable[[], bool] = lambda: True
    ) -> Mapping[Key, str]:
        """Lists and rates; returns the rows that must not be submitted now, each with the sentence why.

        ``may`` is asked before each of its calls, at most three.
        """
        raise NotImplementedError

    def clear(
        self, client: KafkaClient, now: datetime, *, deadline: float, may: Callable[[], bool] = lambda: True
    ) -> None:
        """Rates that no row in flight uses go back to what was there before; what cannot be, is obliged."""
        raise NotImplementedError

    def pending(self, now: datetime) -> bool:
        """Whether a later step has still to look after something that can be settled now."""
        raise NotImplementedError

    def obligations(self) -> list[str]:
        """What is still to be cleared and cannot be now, in sentences; empty: all is as it was before."""
        raise NotImplementedError


def obliged(execution_ids: Collection[int] | None = None) -> list[int]:
    """Ids of executions that ended and still owe something, for the dispatcher to hand out every 30 s."""
    raise NotImplementedError


def work_off(execution_id: int, client: KafkaClient, alive: Collection[int], now: datetime, *, deadline: float) -> bool:
    """Clears what an ended run still owes, as far as its brokers are back; whether nothing is owed any more.

    Under the run's lease, outside a transaction; it opens its own.
    """
    raise NotImplementedError
