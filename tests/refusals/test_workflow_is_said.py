"""The life of a change: what is refused on its page, or by the one function that moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import Policy
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.domain.workflow import Deed, NotPossible, Request, Rules, step
from kafkadash.domain.workflow_errors import WorkflowErrorCode
from kafkadash.domain.workflow_states import State, Trigger, Who
from tests.changes.parcels import approved
from tests.factories import NOW
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each, refused

PAGE = pytest.mark.django_db
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
REQUEST = Request(
    42, State.PROPOSED, "d1", 1, frozenset({1}), needed=1, expires_at=AT + timedelta(hours=1), starts=True
)
LONG = "x" * 10_001


def stepped(request: Request, trigger: Trigger, **fields: object) -> str:
    deed = Deed(trigger, **{"user": 2, "capacities": frozenset(Who), "digest": "d1", **fields})  # type: ignore[arg-type]
    return refused(NotPossible, lambda: step(request, deed, Rules(), AT))


def approves_twice(desk: Desk) -> str:
    change = desk.change(approvals_needed=2)
    approved(change, desk.people["bob"])
    return desk.post("bob", change, "approve")


def glass_forbidden(desk: Desk) -> str:
    with desk.can_run():
        return desk.post("adam", desk.change(), "break-glass", glass_reason="All burns.")


def glass_without_reason(desk: Desk) -> str:
    Policy.objects.create(cluster=desk.cluster, break_glass=True)
    return desk.post("adam", desk.change(), "break-glass")


def runnable(see: Callable[[Desk], str]) -> Callable[[Desk], str]:
    """The same with a kind of change that can be run."""

    def seen(desk: Desk) -> str:
        with desk.can_run():
            return see(desk)

    return seen


def lacks_approvals(desk: Desk) -> str:
    with desk.can_run():
        return desk.post("alice", desk.change(State.APPROVED), "start", key="1")


def other_round(desk: Desk) -> str:
    with desk.can_run():
        change = desk.change(State.APPROVED)
        approved(change, desk.people["bob"])
        return desk.post("alice", change, "start", round="9")


def read_only(desk: Desk) -> str:
    change = desk.change()
    Cluster.objects.update(read_only=True)
    return desk.post("bob", change, "approve")


@each(
    case(
        WorkflowErrorCode.WRONG_ROLE,
        lambda: stepped(REQUEST, Trigger.APPROVE, capacities=frozenset()),
        roles="approver",
    ),
    case(
        WorkflowErrorCode.NO_NEW_PLAN,
        lambda: stepped(replace(REQUEST, state=State.STALE), Trigger.REFRESH, digest=""),
        name="#42",
    ),
    case(WorkflowErrorCode.NOT_A_PERSON, lambda: stepped(REQUEST, Trigger.APPROVE, user=None)),
    case(WorkflowErrorCode.DECLINE_REASON, lambda: stepped(REQUEST, Trigger.DECLINE)),
    case(WorkflowErrorCode.NOT_DUE, lambda: stepped(REQUEST, Trigger.EXPIRE), name="#42"),
    case(
        WorkflowErrorCode.WINDOW_NOT_BEGUN,
        lambda: stepped(
            replace(REQUEST, state=State.QUEUED, broke_glass=True, not_before=AT + timedelta(hours=1)), Trigger.TURN
        ),
        name="#42",
    ),
    case(
        WorkflowErrorCode.WINDOW_OVER,
        lambda: stepped(replace(REQUEST, state=State.DRAFT, not_after=AT), Trigger.SUBMIT),
        name="#42",
    ),
    case(
        WorkflowErrorCode.WINDOW_TOO_FAR,
        lambda: stepped(replace(REQUEST, state=State.DRAFT, not_before=AT + timedelta(days=2)), Trigger.SUBMIT),
        hours="24 hours",
    ),
)
def test_by_the_table_of_states(one: Case) -> None:
    one.check()


@PAGE
@each(
    case(WorkflowErrorCode.OWN_HANDS, lambda d: d.post("ann", d.change(author="ann"), "approve")),
    case(WorkflowErrorCode.APPROVED_ALREADY, approves_twice),
    case(ChangeErrorCode.DECLINE_REASON_TYPED, lambda d: d.post("bob", d.change(), "decline")),
    case(ChangeErrorCode.WITHDRAW_REASON, lambda d: d.post("alice", d.change(), "withdraw")),
    case(WorkflowErrorCode.GLASS_FORBIDDEN, glass_forbidden),
    case(WorkflowErrorCode.GLASS_REASON, runnable(glass_without_reason)),
    case(
        WorkflowErrorCode.TIME_OVER, lambda d: d.post("bob", d.change(expires_at=NOW - timedelta(hours=1)), "approve")
    ),
    case(WorkflowErrorCode.CANNOT_RUN, lambda d: d.post("alice", d.change(State.APPROVED), "start")),
    case(WorkflowErrorCode.LACKS_APPROVALS, lacks_approvals),
    case(WorkflowErrorCode.OTHER_CONTENT, lambda d: d.post("bob", d.change(), "approve", digest="0" * 64)),
    case(WorkflowErrorCode.OTHER_ROUND, lambda d: d.post("bob", d.change(), "approve", round="9")),
    case(WorkflowErrorCode.FINAL, lambda d: d.post("alice", d.change(State.DECLINED), "edit"), state="declined"),
    case(
        WorkflowErrorCode.WITHDRAW_FIRST, lambda d: d.post("alice", d.change(State.APPROVED), "edit"), state="approved"
    ),
    case(WorkflowErrorCode.NOT_NEEDED, lambda d: d.post("bob", d.change(State.APPROVED), "approve")),
    case(WorkflowErrorCode.NOTHING_TO_REFRESH, lambda d: d.post("alice", d.change(), "refresh"), state="proposed"),
    case(
        WorkflowErrorCode.NOT_FROM_HERE,
        lambda d: d.post("alice", d.change(State.EXECUTING), "withdraw", reason="No."),
        state="executing",
        done="withdrawn",
    ),
    case(ChangeErrorCode.STILL_A_DRAFT, lambda d: d.see("vera", d.change(State.DRAFT)), author="alice"),
    case(ChangeErrorCode.STALE_FIRST, lambda d: d.see("bob", d.change(State.STALE))),
    case(
        ChangeErrorCode.WAITS_FOR_START,
        runnable(lambda d: d.see("bob", d.change(State.APPROVED))),
        roles="operator",
        cluster="demo",
    ),
    case(ChangeErrorCode.DECIDED, lambda d: d.see("bob", d.change(State.EXECUTING))),
    case(
        ChangeErrorCode.TOO_FEW_APPROVERS,
        lambda d: d.see("vera", d.change(author="ann", approvals_needed=3)),
        needed="3 approvals",
        who="only bob may give one",
        cluster="demo",
    ),
    case(ChangeErrorCode.DECIDING_NEEDS_ROLE, lambda d: d.see("alice", d.change(author="ann")), cluster="demo"),
    case(ChangeErrorCode.DECIDING_OWN, lambda d: d.see("ann", d.change(author="ann"))),
    case(ClusterErrorCode.READ_ONLY, read_only, cluster="demo"),
    case(
        ClusterErrorCode.NEEDS_ROLE, lambda d: d.post("vera", d.change(), "approve"), cluster="demo", roles="approver"
    ),
    case(ChangeErrorCode.NO_SUCH_CHANGE, lambda d: d.get("vera", "/changes/4711/"), number=4711),
    case(ClusterErrorCode.NO_SUCH_CLUSTER, lambda d: d.get("vera", "/clusters/nowhere/"), slug="'nowhere'"),
    case(ClusterErrorCode.NEEDS_ROLE_SOMEWHERE, lambda d: d.get("vera", "/audit/")),
    case(ClusterErrorCode.NEEDS_ROLE_EVERYWHERE, lambda d: d.get("vera", "/settings/register/"), roles="admin"),
    case(
        ChangeErrorCode.CHECKS_NOT_MADE,
        lambda d: d.post("bob", d.change(checked_at=None), "approve"),
        doing="Approving",
    ),
    case(
        ChangeErrorCode.CHECKS_TOO_OLD,
        lambda d: d.post("bob", d.change(checked_at=NOW - timedelta(hours=2)), "approve"),
        doing="Approving",
        age="2 h",
    ),
    case(
        ChangeErrorCode.TYPED_TOO_LONG,
        lambda d: d.post("bob", d.change(), "comment", text=LONG),
        length=10_001,
        most=10_000,
    ),
    case(ChangeErrorCode.COMMENT_MISSING, lambda d: d.post("bob", d.change(), "comment", text=" ")),
    case(ChangeErrorCode.CHANGED_MEANWHILE, other_round),
    case(ChangeErrorCode.ONLY_A_DRAFT_IS_DELETED, lambda d: d.post("alice", d.change(), "delete")),
    case(ChangeErrorCode.KEPT_ONCE_PROPOSED, lambda d: d.post("alice", d.change(State.DRAFT, round=1), "delete")),
)
def test_on_its_page(one: Case, desk: Desk) -> None:
    one.check(desk)


def policy(desk: Desk, **typed: str) -> str:
    form = {
        "approvals_low": "1",
        "approvals_medium": "2",
        "approvals_high": "3",
        "valid_hours": "48",
        "reason": "Two more clusters depend on this one.",
    }
    return desk.sent("adam", "/settings/clusters/demo/policy/", {**form, **typed})


@PAGE
@each(
    case(ChangeErrorCode.POLICY_APPROVALS, lambda d: policy(d, approvals_low="0"), most=5),
    case(ChangeErrorCode.POLICY_ORDER, lambda d: policy(d, approvals_low="3")),
    case(ChangeErrorCode.POLICY_HOURS, lambda d: policy(d, valid_hours="721"), most=720, days=30),
    case(ChangeErrorCode.POLICY_NO_NUMBER, lambda d: policy(d, approvals_low="one")),
    case(ChangeErrorCode.POLICY_REASON, lambda d: policy(d, reason="")),
)
def test_on_the_page_of_the_policy(one: Case, desk: Desk) -> None:
    one.check(desk)
