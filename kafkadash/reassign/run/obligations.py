"""What an ended run still owes: throttles on brokers that were away, cleared as soon as they can be."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.reasons import reason_columns
from kafkadash.domain.run_reasons import StillGoing
from kafkadash.kafka.changing import KafkaClient
from kafkadash.reassign.models import Move as Stored
from kafkadash.reassign.run import fail_points
from kafkadash.reassign.run.budget import CALL_S, Budget
from kafkadash.reassign.run.lease import OBLIGATIONS_EVERY_S, next_turn, ready
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.run.look import refuse_another
from kafkadash.reassign.run.running import Running


def work_off(running: Running, client: KafkaClient, budget: Budget) -> None:
    """What an ended run still owes: throttles on brokers that were away. Not while moves of it still go on."""
    refuse_another(client, running.cluster, budget.reading(settings.KAFKA_DEADLINE))
    lease = running.lease
    going = _still_going(running, client, budget)
    if going:
        with running.write():
            running.save(
                next_at=next_turn(lease, OBLIGATIONS_EVERY_S), failures=0, **reason_columns(StillGoing(going), "error")
            )
        return

    def may() -> bool:
        if budget.left <= 0:
            return False
        ready(lease, CALL_S)
        return True

    owed = _clear(running, client, budget, may)
    with running.write():
        error = running.execution.error if owed else None
        running.save(next_at=next_turn(lease, OBLIGATIONS_EVERY_S), failures=0, **reason_columns(error, "error"))
    running.publish()


def _still_going(running: Running, client: KafkaClient, budget: Budget) -> int:
    """How many rows that it left in flight, because nobody could see them any more, Kafka still lists."""
    left = Stored.objects.filter(execution=running.execution, state=RowState.UNKNOWN)
    keys = set(left.values_list("topic", "partition"))
    if not keys:
        return 0
    listing = client.list_reassignments(deadline=budget.reading(settings.KAFKA_DEADLINE))
    return sum((row.topic, row.partition) in keys for row in listing.rows)


def _clear(running: Running, client: KafkaClient, budget: Budget, may: Callable[[], bool]) -> list[str]:
    """Clears what can be cleared; returns what it owes then, in sentences.

    In two transactions; ``budget`` is for all of at most eight calls. Raises KafkaFailure where the cluster does not
    answer at all.
    """
    now = running.now()
    ledger = Ledger.load(running.execution)
    owed = bool(ledger.obligations())
    alive = {b.id for b in client.describe_cluster(deadline=budget.reading(CALL_S)).brokers if not b.fenced}
    ledger.look(client, alive, now, deadline=budget.reading(CALL_S), everything=True)
    ledger.intend(client, ledger.takes_away(), alive, now, deadline=budget.reading(CALL_S))
    with running.write():
        ledger.store(now)
    ledger.set(client, now, deadline=CALL_S, may=may)
    ledger.clear(client, now, deadline=CALL_S, may=may)
    left = ledger.obligations()
    with running.write():
        ledger.store(now)
        if owed and not left:
            ledger.tell_clean()
    fail_points.answers_stored()
    return left
