"""Commands of people to a run in progress: another throttle, other limits, and actions on one row or one throttle.

Each command writes an order for the next step of the executor, and its audit event, in one transaction; no command
calls Kafka. The limits are columns that the executor never writes, changed by their own UPDATE, and no row of a request
is locked here: so neither waits for the other's transaction nor overwrites the other's changes.

All commands need a reason, except a lower throttle, which must not wait for text. All raise Refused, or its subclasses
AsksAgain (a question has to be answered first), WrongField (one field is wrong) and Changed (another user was first).
``may_of`` returns what a user may do with a run now; each permission is checked again when the command is executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import RunOptions
from kafkadash.changes.request_validation import require_permission, text_of
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.transitions import OBJECT, announce_changes, audit_change, has_digested_content
from kafkadash.clusters.access import START
from kafkadash.core.messages import CodedMessage, coded, join_messages
from kafkadash.execution.engine.state import ENDED, RowState
from kafkadash.execution.models import Execution, Move, MoveState, Order, OrderType
from kafkadash.execution.worker.lease import wake_active, wake_run
from kafkadash.execution.worker.measure import inbound_of
from kafkadash.execution.worker.throttle_ledger import entity_of
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.options import SLOW_BELOW, BadRate, bytes_per_second, format_megabytes, format_rate
from kafkadash.planning.proposal import options_of

STEERED = (ChangeState.QUEUED, ChangeState.EXECUTING, ChangeState.PAUSED)
"""States of a request in which the limits of its run may be changed."""
TAKES_ORDERS = (ChangeState.EXECUTING, ChangeState.PAUSED, ChangeState.CANCELLING)
"""States in which a step takes orders."""

ROW_DEEDS = (OrderType.CANCEL_ROW, OrderType.AGAIN, OrderType.GIVE_UP, OrderType.ELECT)
THROTTLE_DEEDS = (OrderType.SET_THROTTLE, OrderType.LEAVE_THROTTLE)

_ENDING = (OrderType.CANCEL_ROW, OrderType.GIVE_UP)
"""Orders that only end something: allowed on a read-only cluster too."""


class AsksAgain(ChangeRefused):
    """Refusal until the user confirms by sending each of ``asks`` as true ("twice", "force" → the question)."""

    def __init__(self, asks: Mapping[str, CodedMessage]) -> None:
        super().__init__(join_messages(asks.values()))
        self.asks = asks


class WrongField(ChangeRefused):
    """``field`` ("reason", "per_broker" or "per_cluster") is missing or wrong."""

    def __init__(self, message: CodedMessage, *, field: str) -> None:
        super().__init__(message)
        self.field = field


def set_throttle(
    change: ChangeRequest,
    user: User,
    rate: str,
    reason: str,
    *,
    twice: bool = False,
    force: bool = False,
    seen: int | None = None,
    request: HttpRequest | None = None,
) -> int:
    """Another throttle from the next step on; returns it in bytes per second. ``rate`` is MB/s as it was typed.

    To lower it needs no reason: it is what one does when the cluster suffers.
    ``seen`` is the rate in force that the person saw, in bytes per second; None where that is not said. ``twice``: yes,
    less than 1 MB/s; ``force``: yes, though it may be too little ever to end.
    """
    text = _clean_reason(reason)
    try:
        wanted = bytes_per_second(rate)
    except BadRate as bad:
        raise ChangeRefused(bad.message) from bad
    with transaction.atomic():
        run = _require_steerable_run(change, user)
        if seen is not None and seen != run.throttle:
            raise ChangedMeanwhile(_throttle_changed(run))
        _refuse_outside(run, wanted)
        if wanted == run.throttle:
            return wanted
        if wanted > run.throttle:
            _require_reason(text)
        asks = _questions(run, wanted)
        open_asks = {name: asks[name] for name, yes in (("twice", twice), ("force", force)) if name in asks and not yes}
        if open_asks:
            raise AsksAgain(open_asks)
        also = {"confirmed": [str(ask) for ask in asks.values()]} if asks else {}
        _update_limits(run, "throttle_changed", {"throttle": wanted}, user, text, request, also)
    return wanted


def set_parallel(
    change: ChangeRequest,
    user: User,
    per_broker: int,
    per_cluster: int,
    reason: str,
    *,
    request: HttpRequest | None = None,
) -> None:
    """Other numbers of moves at once, per broker and direction and in the whole run; no more than were approved."""
    text = _require_reason(reason)
    with transaction.atomic():
        run = _require_steerable_run(change, user)
        approved = _require_options(run)
        for field, wanted, most, words in (
            ("per_broker", per_broker, approved.per_broker, "per broker and direction"),
            ("per_cluster", per_cluster, approved.per_cluster, "in the whole run"),
        ):
            if wanted < 1:
                raise WrongField(coded(ReassignmentErrorCode.MOVES_TOO_FEW, where=words), field=field)
            if wanted > most:
                more = coded(
                    ReassignmentErrorCode.MOVES_NOT_APPROVED,
                    name=change_name(run),
                    most=most,
                    where=words,
                )
                raise WrongField(more, field=field)
        wanted_now = {"per_broker": per_broker, "per_cluster": per_cluster}
        if wanted_now != {name: getattr(run, name) for name in wanted_now}:
            _update_limits(run, "parallel_changed", wanted_now, user, text, request)


def order_row(
    change: ChangeRequest,
    user: User,
    topic: str,
    partition: int,
    order_type: str,
    reason: str,
    *,
    request: HttpRequest | None = None,
) -> Order:
    """An order for one row (``ROW_DEEDS``); the same one that nobody took yet is that order and no error."""
    order_type, text = _parse_order_type(order_type, ROW_DEEDS), _require_reason(reason)
    with transaction.atomic():
        run = _taking_orders(change, user, order_type)
        move = Move.objects.filter(execution=run, topic=topic, partition=partition).first()
        if move is None:
            raise ChangeRefused(ReassignmentErrorCode.NO_SUCH_ROW, row=f"{topic}-{partition}", name=change_name(run))
        _refuse_row(run, move, order_type)
        return _create_order(run, user, order_type, text, {"topic": topic, "partition": partition}, request)


def throttle_owner(
    change: ChangeRequest,
    user: User,
    entity: str,
    order_type: str,
    reason: str,
    *,
    request: HttpRequest | None = None,
) -> Order:
    """Store an order about a throttle that others set (``THROTTLE_DEEDS``); ``entity`` as in ``Order``."""
    order_type, text = _parse_order_type(order_type, THROTTLE_DEEDS), _require_reason(reason)
    with transaction.atomic():
        run = _taking_orders(change, user, order_type)
        if entity not in set(map(entity_of, run.foreign)):
            raise ChangeRefused(ReassignmentErrorCode.NO_FOREIGN_THROTTLE, entity=entity)
        return _create_order(run, user, order_type, text, {"entity": entity}, request)


def change_name(run: Execution) -> str:
    return f"#{run.request_id}"


def _require_steerable_run(change: ChangeRequest, user: User) -> Execution:
    """The run, whose limits this person may change now. Raises Refused."""
    run = _get_run(change)
    require_permission(user, START, run.cluster)
    if run.request.state not in STEERED:
        raise ChangeRefused(ReassignmentErrorCode.LIMITS_MATTER_NO_MORE, name=change_name(run), state=run.request.state)
    if not has_digested_content(run.request):
        raise ChangeRefused(ChangeErrorCode.CONTENT_ALTERED, name=change_name(run))
    return run


def _taking_orders(change: ChangeRequest, user: User, order_type: OrderType) -> Execution:
    run = _get_run(change)
    require_permission(user, START, run.cluster, read_only_too=order_type in _ENDING)
    if run.request.state not in TAKES_ORDERS:
        raise ChangeRefused(ReassignmentErrorCode.NOTHING_UNDER_WAY, name=change_name(run), state=run.request.state)
    if run.request.state == ChangeState.CANCELLING and order_type is not OrderType.GIVE_UP:
        raise ChangeRefused(ReassignmentErrorCode.CANCELLED_AS_A_WHOLE, name=change_name(run))
    return run


def _get_run(change: ChangeRequest) -> Execution:
    run = (
        Execution.objects.select_related("request", "cluster")
        .defer("samples", "report")
        .filter(request=change.pk)
        .first()
    )
    if run is None:
        raise ChangeRefused(ReassignmentErrorCode.NO_RUN, number=change.pk)
    return run


def _require_options(run: Execution) -> RunOptions:
    options = options_of(run.request.options)
    assert options is not None, "nothing is queued without its limits"
    return options


def _require_reason(reason: str) -> str:
    text = _clean_reason(reason)
    if not text:
        raise WrongField(coded(ReassignmentErrorCode.ORDER_REASON), field="reason")
    return text


def _clean_reason(reason: str) -> str:
    """Return "" where no reason is given."""
    try:
        return text_of(reason, "The reason")
    except ChangeRefused as wrong:
        raise WrongField(wrong.message, field="reason") from wrong


def _parse_order_type(written: str, possible: tuple[OrderType, ...]) -> OrderType:
    if written not in possible:
        raise ChangeRefused(ReassignmentErrorCode.NO_SUCH_DEED, order_type=written[:30])
    return OrderType(written)


def _refuse_outside(run: Execution, wanted: int) -> None:
    options = _require_options(run)
    if not options.throttle_min <= wanted <= options.throttle_max:
        raise ChangeRefused(
            ReassignmentErrorCode.RATE_NOT_APPROVED,
            name=change_name(run),
            least=format_megabytes(options.throttle_min),
            most=format_megabytes(options.throttle_max),
            wanted=format_rate(wanted),
        )


def _questions(run: Execution, wanted: int) -> dict[str, CodedMessage]:
    """Return the questions to confirm for the wanted rate, keyed by the name of the answer."""
    asks = {}
    if wanted < SLOW_BELOW:
        asks["twice"] = coded(ReassignmentErrorCode.RATE_SLOW, wanted=format_rate(wanted))
    least, whence = inbound_of(run)
    if least is not None and wanted <= least:
        inbound = f"{least / 1e6:,.2f} MB/s"
        asks["force"] = coded(
            ReassignmentErrorCode.RATE_BELOW_INBOUND, wanted=format_rate(wanted), inbound=inbound, whence=whence
        )
    elif least is None and wanted < run.throttle:
        asks["force"] = coded(ReassignmentErrorCode.RATE_INBOUND_UNKNOWN, whence=whence, wanted=format_rate(wanted))
    return asks


def _throttle_changed(run: Execution) -> CodedMessage:
    """Return the message with the throttle's present rate, and with who set it and when if the audit has it."""
    event = (
        AuditEvent.objects.filter(object_type=OBJECT, object_id=str(run.request_id), action="change.throttle_changed")
        .order_by("-at", "-id")
        .first()
    )
    now = format_megabytes(run.throttle)
    if event is None:
        return coded(ReassignmentErrorCode.RATE_CHANGED, now=now)
    at = f"{event.at.astimezone(UTC):%-d %b at %H:%M:%S} UTC"
    return coded(ReassignmentErrorCode.RATE_CHANGED_BY, who=event.actor_name, now=now, at=at)


def _update_limits(
    run: Execution,
    verb: str,
    wanted: Mapping[str, int],
    user: User,
    reason: str,
    request: HttpRequest | None,
    also: Mapping[str, Any] | None = None,
) -> None:
    """If these columns are as ``run`` has them, and the request is still in a state in which they matter."""
    before = {name: getattr(run, name) for name in wanted}
    same = Execution.objects.filter(pk=run.pk, request__state__in=STEERED, **before)
    if not same.update(**wanted):
        raise ChangedMeanwhile(ReassignmentErrorCode.LIMITS_CHANGED, name=change_name(run))
    wake_run(run.pk)
    audit_change(
        run.request, user, verb, reason=reason, before=before, after={**wanted, **(also or {})}, request=request
    )
    announce_changes(run.request_id, listed=False)


def _refuse_row(run: Execution, move: Move, order_type: OrderType) -> None:
    state = RowState(move.state)
    if order_type is OrderType.CANCEL_ROW and state in ENDED:
        raise ChangeRefused(ReassignmentErrorCode.ROW_HAS_ENDED, row=move, state=MoveState(state).label)
    if order_type is OrderType.CANCEL_ROW and state is RowState.CANCELLING:
        raise ChangeRefused(ReassignmentErrorCode.ROW_BEING_CANCELLED, row=move)
    if order_type in (OrderType.AGAIN, OrderType.GIVE_UP) and not move.asks:
        raise ChangeRefused(ReassignmentErrorCode.ROW_DOES_NOT_ASK, row=move, state=MoveState(state).label)
    if order_type is OrderType.AGAIN and run.request.state != ChangeState.EXECUTING:
        raise ChangeRefused(ReassignmentErrorCode.NOTHING_IS_SUBMITTED, name=change_name(run), state=run.request.state)


def _create_order(
    run: Execution, user: User, order_type: OrderType, reason: str, of: Mapping[str, Any], request: HttpRequest | None
) -> Order:
    """Written only while the run is held under way, so that a step takes it, or the end of the run answers it."""
    if not wake_active(run.pk):
        raise ChangedMeanwhile(ReassignmentErrorCode.ENDED_MEANWHILE, name=change_name(run))
    waiting = Order.objects.filter(execution=run, order_type=order_type, taken_at=None, **of).first()
    if waiting is not None:
        return waiting
    order = Order.objects.create(
        execution=run, order_type=order_type, user=user, user_name=user.get_username(), reason=reason, **of
    )
    audit_change(
        run.request, user, "ordered", reason=reason, after={"order_type": order_type.value, **of}, request=request
    )
    announce_changes(run.request_id, listed=False)
    return order


@dataclass(frozen=True, slots=True)
class RunPermissions:
    """``steer``: another throttle and other limits; ``order``: something of a row; ``end_rows``: only what ends one, as
    on a read-only cluster. The state of the request is ``changes.decision``'s.
    """

    steer: bool
    order: bool
    end_rows: bool


def may_of(change: ChangeRequest, may: frozenset[str]) -> RunPermissions:
    """``may``: see ``clusters.access.actions_allowed``. A read-only cluster refuses what leads to changes."""
    state = ChangeState(change.state)
    starts = START in may
    going = state in (ChangeState.EXECUTING, ChangeState.PAUSED)
    writes = starts and not change.cluster.read_only
    return RunPermissions(
        steer=writes and (going or state is ChangeState.QUEUED),
        order=writes and going,
        end_rows=starts and (going or state is ChangeState.CANCELLING),
    )
