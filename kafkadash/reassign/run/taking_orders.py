"""What people asked of a run, as the next step takes it up: an order ends with an answer, whatever came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.domain.executor import answered, cancelled
from kafkadash.domain.executor_state import Key, Move
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.refusals import runs
from kafkadash.domain.row_reasons import EndedByOperator, EndedByOperatorWithNote
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Deed, MoveState, Order
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.run.running import Running


@dataclass(slots=True)
class Taken:
    """``rows`` as the orders make them; ``elections`` are to be sent. Nothing is written before ``store``."""

    orders: list[Order] = field(default_factory=list)
    rows: dict[Key, Move] = field(default_factory=dict)

    @property
    def elections(self) -> list[Key]:
        return [key_of(order) for order in self.orders if order.deed == Deed.ELECT and not order.answer]

    def store(self, now: datetime) -> None:
        """In the transaction of the step. An election is taken when it is answered: sent twice, it does no harm."""
        self._take([order for order in self.orders if order.answer], now)

    def store_elected(self, elected: Mapping[Key, str], now: datetime) -> None:
        """What came of elections: '' for done, Kafka's words else."""
        asked = [order for order in self.orders if order.deed == Deed.ELECT and not order.answer]
        for order in asked:
            words = elected.get(key_of(order))
            refused = runs.ELECTION_UNKNOWN() if words is None else runs.ELECTION_REFUSED(why=words)
            order.answer = "Its preferred replica leads it." if words == "" else refused
        self._take(asked, now)

    @staticmethod
    def _take(orders: Sequence[Order], now: datetime) -> None:
        for order in orders:
            order.taken_at = now
        if orders:
            Order.objects.bulk_update(orders, ["taken_at", "answer"])


def take_orders(running: Running, moves: Sequence[Move], ledger: Ledger) -> Taken:
    """One query, and none where nobody asked for anything."""
    if not running.orders:
        return Taken()
    taken = Taken(list(Order.objects.filter(execution=running.execution, taken_at=None)))
    wanted = {key_of(order) for order in taken.orders}
    rows = {move.key: move for move in moves if move.key in wanted}
    for order in taken.orders:
        if order.entity:
            order.answer = ledger.order(Deed(order.deed), order.entity, order.user_name)
            continue
        move = rows.get(key_of(order))
        if move is None:
            order.answer = runs.ORDER_NO_ROW()
            continue
        after, order.answer = _ROW_DEEDS[Deed(order.deed)](move, order, running)
        if after is not move:
            rows[move.key] = taken.rows[move.key] = after
    return taken


def key_of(order: Order) -> Key:
    return order.topic, order.partition or 0


def _cancel(move: Move, order: Order, running: Running) -> tuple[Move, str]:
    after = cancelled(move, running.now(), _reason(order))
    if after is move:
        return move, runs.ORDER_TOO_LATE(state=MoveState(move.state).label)
    return after, "It is being cancelled." if after.in_flight else "It had not begun, and is left out."


def _again(move: Move, order: Order, running: Running) -> tuple[Move, str]:
    if running.state is State.CANCELLING:
        return move, runs.ORDER_CANCELLING()
    return _answer(move, order, running, again=True, said="It takes its turn again.")


def _give_up(move: Move, order: Order, running: Running) -> tuple[Move, str]:
    return _answer(move, order, running, again=False, said="It was given up.")


def _answer(move: Move, order: Order, running: Running, *, again: bool, said: str) -> tuple[Move, str]:
    if not move.asks:
        return move, runs.ORDER_DOES_NOT_ASK(state=MoveState(move.state).label)
    return answered(move, running.now(), again=again, reason=_reason(order)), said


def _elect(move: Move, _order: Order, _running: Running) -> tuple[Move, str]:
    """It is answered when Kafka was asked."""
    return move, ""


def _reason(order: Order) -> CodedReason:
    name, note = order.user_name, order.reason
    return EndedByOperatorWithNote(name, note) if note else EndedByOperator(name)


_ROW_DEEDS: Mapping[Deed, Callable[[Move, Order, Running], tuple[Move, str]]] = {
    Deed.CANCEL_ROW: _cancel,
    Deed.AGAIN: _again,
    Deed.GIVE_UP: _give_up,
    Deed.ELECT: _elect,
}
