"""What people ask of a run that goes on: another throttle, other limits, something of one row or of one throttle.

Each writes what the next step of the executor takes up, and its audit event, in one transaction; nothing asks Kafka.
The limits are columns that the executor never writes, changed by an UPDATE of their own, and no row of a request is
locked here: neither waits for the other's transaction nor undoes what the other wrote.

All need a reason but a lower throttle, which must not wait for words. All raise Refused with a sentence: its kind
AsksAgain where a question has to be answered first, WrongField where one thing that was typed is wrong, Changed where
somebody else was first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import refuse
from kafkadash.changes.live import tell
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.transitions import OBJECT, audit, has_digested_content
from kafkadash.changes.written import text_of
from kafkadash.clusters.access import START
from kafkadash.domain.executor_state import ENDED
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import CodedMessage, coded, message_text
from kafkadash.domain.plan import Options
from kafkadash.domain.wording import count
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.asked import options_of
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Deed, Execution, Move, MoveState, Order
from kafkadash.reassign.rates import SLOW_BELOW, BadRate, both, bytes_per_second, megabytes
from kafkadash.reassign.run.foreign_throttles import entity_of
from kafkadash.reassign.run.lease import wake, wake_active
from kafkadash.reassign.run.measure import inbound_of

STEERED = (State.QUEUED, State.EXECUTING, State.PAUSED)
"""States of a request in which the limits of its run may be changed."""
TAKES_ORDERS = (State.EXECUTING, State.PAUSED, State.CANCELLING)
"""States in which a step takes orders."""

ROW_DEEDS = (Deed.CANCEL_ROW, Deed.AGAIN, Deed.GIVE_UP, Deed.ELECT)
THROTTLE_DEEDS = (Deed.SET_THROTTLE, Deed.LEAVE_THROTTLE)

_ENDING = (Deed.CANCEL_ROW, Deed.GIVE_UP)
"""What only ends something is done on a read-only cluster too."""


class AsksAgain(Refused):
    """It is done if the person says yes: sent again with each of ``asks`` true ("twice", "force" → the question)."""

    def __init__(self, asks: Mapping[str, str]) -> None:
        super().__init__(" ".join(asks.values()))
        self.asks = asks


class WrongField(Refused):
    """``field`` ("reason", "per_broker" or "per_cluster") is missing or wrong."""

    def __init__(self, message: CodedMessage | str, *, field: str) -> None:
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
    said = _written(reason)
    try:
        wanted = bytes_per_second(rate)
    except BadRate as bad:
        raise Refused(str(bad)) from bad
    with transaction.atomic():
        run = _steered(change, user)
        if seen is not None and seen != run.throttle:
            raise Changed(_throttle_changed(run))
        _refuse_outside(run, wanted)
        if wanted == run.throttle:
            return wanted
        if wanted > run.throttle:
            _reason(said)
        asks = _questions(run, wanted)
        open_asks = {name: asks[name] for name, yes in (("twice", twice), ("force", force)) if name in asks and not yes}
        if open_asks:
            raise AsksAgain(open_asks)
        also = {"confirmed": list(asks.values())} if asks else {}
        _update(run, "throttle_changed", {"throttle": wanted}, user, said, request, also)
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
    said = _reason(reason)
    with transaction.atomic():
        run = _steered(change, user)
        approved = _options(run)
        for field, wanted, most, words in (
            ("per_broker", per_broker, approved.per_broker, "per broker and direction"),
            ("per_cluster", per_cluster, approved.per_cluster, "in the whole run"),
        ):
            if wanted < 1:
                raise WrongField(coded(ReassignmentErrorCode.MOVES_TOO_FEW, where=words), field=field)
            if wanted > most:
                more = message_text(
                    ReassignmentErrorCode.MOVES_NOT_APPROVED,
                    name=change_name(run),
                    most=count(most, "move"),
                    where=words,
                )
                raise WrongField(more, field=field)
        wanted_now = {"per_broker": per_broker, "per_cluster": per_cluster}
        if wanted_now != {name: getattr(run, name) for name in wanted_now}:
            _update(run, "parallel_changed", wanted_now, user, said, request)


def row(
    change: ChangeRequest,
    user: User,
    topic: str,
    partition: int,
    deed: str,
    reason: str,
    *,
    request: HttpRequest | None = None,
) -> Order:
    """An order for one row (``ROW_DEEDS``); the same one that nobody took yet is that order and no error."""
    asked, said = _deed(deed, ROW_DEEDS), _reason(reason)
    with transaction.atomic():
        run = _taking_orders(change, user, asked)
        move = Move.objects.filter(execution=run, topic=topic, partition=partition).first()
        if move is None:
            raise Refused(ReassignmentErrorCode.NO_SUCH_ROW, row=f"{topic}-{partition}", name=change_name(run))
        _refuse_row(run, move, asked)
        return _order(run, user, asked, said, {"topic": topic, "partition": partition}, request)


def throttle_owner(
    change: ChangeRequest,
    user: User,
    entity: str,
    deed: str,
    reason: str,
    *,
    request: HttpRequest | None = None,
) -> Order:
    """What is done about a throttle of others (``THROTTLE_DEEDS``); ``entity`` as in ``Order``."""
    asked, said = _deed(deed, THROTTLE_DEEDS), _reason(reason)
    with transaction.atomic():
        run = _taking_orders(change, user, asked)
        if entity not in set(map(entity_of, run.foreign)):
            raise Refused(ReassignmentErrorCode.NO_FOREIGN_THROTTLE, entity=entity)
        return _order(run, user, asked, said, {"entity": entity}, request)


def change_name(run: Execution) -> str:
    return f"#{run.request_id}"


def _steered(change: ChangeRequest, user: User) -> Execution:
    """The run, whose limits this person may change now. Raises Refused."""
    run = _run(change)
    refuse(user, START, run.cluster)
    if run.request.state not in STEERED:
        raise Refused(ReassignmentErrorCode.LIMITS_MATTER_NO_MORE, name=change_name(run), state=run.request.state)
    if not has_digested_content(run.request):
        raise Refused(ChangeErrorCode.CONTENT_ALTERED, name=change_name(run))
    return run


def _taking_orders(change: ChangeRequest, user: User, deed: Deed) -> Execution:
    run = _run(change)
    refuse(user, START, run.cluster, read_only_too=deed in _ENDING)
    if run.request.state not in TAKES_ORDERS:
        raise Refused(ReassignmentErrorCode.NOTHING_UNDER_WAY, name=change_name(run), state=run.request.state)
    if run.request.state == State.CANCELLING and deed is not Deed.GIVE_UP:
        raise Refused(ReassignmentErrorCode.CANCELLED_AS_A_WHOLE, name=change_name(run))
    return run


def _run(change: ChangeRequest) -> Execution:
    run = (
        Execution.objects.select_related("request", "cluster")
        .defer("samples", "report")
        .filter(request=change.pk)
        .first()
    )
    if run is None:
        raise Refused(ReassignmentErrorCode.NO_RUN, number=change.pk)
    return run


def _options(run: Execution) -> Options:
    options = options_of(run.request.options)
    assert options is not None, "nothing is queued without its limits"
    return options


def _reason(reason: str) -> str:
    said = _written(reason)
    if not said:
        raise WrongField(coded(ReassignmentErrorCode.ORDER_REASON), field="reason")
    return said


def _written(reason: str) -> str:
    """ "" where no reason is given."""
    try:
        return text_of(reason, "The reason")
    except Refused as wrong:
        raise WrongField(str(wrong), field="reason") from wrong


def _deed(written: str, possible: tuple[Deed, ...]) -> Deed:
    if written not in possible:
        raise Refused(ReassignmentErrorCode.NO_SUCH_DEED, deed=written[:30])
    return Deed(written)


def _refuse_outside(run: Execution, wanted: int) -> None:
    options = _options(run)
    if not options.throttle_min <= wanted <= options.throttle_max:
        raise Refused(
            ReassignmentErrorCode.RATE_NOT_APPROVED,
            name=change_name(run),
            least=megabytes(options.throttle_min),
            most=megabytes(options.throttle_max),
            wanted=both(wanted),
        )


def _questions(run: Execution, wanted: int) -> dict[str, str]:
    """What has to be confirmed for this rate, by the name of the answer."""
    asks = {}
    if wanted < SLOW_BELOW:
        asks["twice"] = message_text(ReassignmentErrorCode.RATE_SLOW, wanted=both(wanted))
    least, whence = inbound_of(run)
    if least is not None and wanted <= least:
        inbound = f"{least / 1e6:,.2f} MB/s"
        asks["force"] = message_text(
            ReassignmentErrorCode.RATE_BELOW_INBOUND, wanted=both(wanted), inbound=inbound, whence=whence
        )
    elif least is None and wanted < run.throttle:
        asks["force"] = message_text(ReassignmentErrorCode.RATE_INBOUND_UNKNOWN, whence=whence, wanted=both(wanted))
    return asks


def _throttle_changed(run: Execution) -> str:
    """Who set it to what it is now."""
    event = (
        AuditEvent.objects.filter(object_type=OBJECT, object_id=str(run.request_id), action="change.throttle_changed")
        .order_by("-at", "-id")
        .first()
    )
    now = megabytes(run.throttle)
    if event is None:
        return message_text(ReassignmentErrorCode.RATE_CHANGED, now=now)
    at = f"{event.at.astimezone(UTC):%-d %b at %H:%M:%S} UTC"
    return message_text(ReassignmentErrorCode.RATE_CHANGED_BY, who=event.actor_name, now=now, at=at)


def _update(
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
        raise Changed(ReassignmentErrorCode.LIMITS_CHANGED, name=change_name(run))
    wake(run.pk)
    audit(run.request, user, verb, reason=reason, before=before, after={**wanted, **(also or {})}, request=request)
    tell(run.request_id, listed=False)


def _refuse_row(run: Execution, move: Move, deed: Deed) -> None:
    state = RowState(move.state)
    if deed is Deed.CANCEL_ROW and state in ENDED:
        raise Refused(ReassignmentErrorCode.ROW_HAS_ENDED, row=move, state=MoveState(state).label)
    if deed is Deed.CANCEL_ROW and state is RowState.CANCELLING:
        raise Refused(ReassignmentErrorCode.ROW_BEING_CANCELLED, row=move)
    if deed in (Deed.AGAIN, Deed.GIVE_UP) and not move.asks:
        raise Refused(ReassignmentErrorCode.ROW_DOES_NOT_ASK, row=move, state=MoveState(state).label)
    if deed is Deed.AGAIN and run.request.state != State.EXECUTING:
        raise Refused(ReassignmentErrorCode.NOTHING_IS_SUBMITTED, name=change_name(run), state=run.request.state)


def _order(
    run: Execution, user: User, deed: Deed, reason: str, of: Mapping[str, Any], request: HttpRequest | None
) -> Order:
    """Written only while the run is held under way, so that a step takes it, or the end of the run answers it."""
    if not wake_active(run.pk):
        raise Changed(ReassignmentErrorCode.ENDED_MEANWHILE, name=change_name(run))
    waiting = Order.objects.filter(execution=run, deed=deed, taken_at=None, **of).first()
    if waiting is not None:
        return waiting
    order = Order.objects.create(
        execution=run, deed=deed, user=user, user_name=user.get_username(), reason=reason, **of
    )
    audit(run.request, user, "ordered", reason=reason, after={"deed": deed.value, **of}, request=request)
    tell(run.request_id, listed=False)
    return order
