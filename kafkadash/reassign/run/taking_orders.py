"""What people asked of a run, as the next step takes it up: an order ends with an answer, whatever came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.domain.executor import answered, cancelled
from kafkadash.domain.executor_state import Key, Move
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import EndedByOperator, EndedByOperatorWithNote
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Deed, Order
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.run.order_answers import (
    CameTooLate,
    CancelBegan,
    DoesNotAsk,
    ElectionUnknown,
    NoSuchRow,
    RowGivenUp,
    RowLeftOut,
    RunIsCancelled,
    TakesItsTurn,
)
from kafkadash.reassign.run.running import Running


@dataclass(slots=True)
class Taken:
    """``rows`` as the orders make them; ``elections`` are to be sent. Nothing is written before ``store``."""

    orders: list[Order] = field(default_factory=list)
    rows: dict[Key, Move] = field(default_factory=dict)

    @property
    def elections(self) -> list[Key]:
        return [key_of(order) for order in self._unanswered]

    @property
    def _unanswered(self) -> list[Order]:
        """Elections, which are answered when Kafka was asked."""
        return [order for order in self.orders if order.answer is None]

    def store(self, now: datetime) -> None:
        """In the transaction of the step. An election is taken when it is answered: sent twice, it does no harm."""
        self._take([order for order in self.orders if order.answer is not None], now)

    def store_elected(self, elected: Mapping[Key, CodedReason], now: datetime) -> None:
        """Answer elections by what came of them."""
        asked = self._unanswered
        for order in asked:
            order.answer = elected.get(key_of(order)) or ElectionUnknown()
        self._take(asked, now)

    @staticmethod
    def _take(orders: Sequence[Order], now: datetime) -> None:
        for order in orders:
            order.taken_at = now
        if orders:
            Order.objects.bulk_update(orders, ["taken_at", "answer_code", "answer_params"])


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
            order.answer = NoSuchRow()
            continue
        after, answer = _ROW_DEEDS[Deed(order.deed)](move, order, running)
        if answer is not None:
            order.answer = answer
        if after is not move:
            rows[move.key] = taken.rows[move.key] = after
    return taken


def key_of(order: Order) -> Key:
    return order.topic, order.partition or 0


def _cancel(move: Move, order: Order, running: Running) -> tuple[Move, CodedReason]:
    after = cancelled(move, running.now(), _reason(order))
    if after is move:
        return move, CameTooLate(move.state.value)
    return after, CancelBegan() if after.in_flight else RowLeftOut()


def _again(move: Move, order: Order, running: Running) -> tuple[Move, CodedReason]:
    if running.state is State.CANCELLING:
        return move, RunIsCancelled()
    return _answer(move, order, running, again=True)


def _give_up(move: Move, order: Order, running: Running) -> tuple[Move, CodedReason]:
    return _answer(move, order, running, again=False)


def _answer(move: Move, order: Order, running: Running, *, again: bool) -> tuple[Move, CodedReason]:
    if not move.asks:
        return move, DoesNotAsk(move.state.value)
    after = answered(move, running.now(), again=again, reason=_reason(order))
    return after, TakesItsTurn() if again else RowGivenUp()


def _elect(move: Move, _order: Order, _running: Running) -> tuple[Move, None]:
    """It is answered when Kafka was asked."""
    return move, None


def _reason(order: Order) -> CodedReason:
    name, note = order.user_name, order.reason
    return EndedByOperatorWithNote(name, note) if note else EndedByOperator(name)


_ROW_DEEDS: Mapping[Deed, Callable[[Move, Order, Running], tuple[Move, CodedReason | None]]] = {
    Deed.CANCEL_ROW: _cancel,
    Deed.AGAIN: _again,
    Deed.GIVE_UP: _give_up,
    Deed.ELECT: _elect,
}
