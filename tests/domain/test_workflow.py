"""The table of states, and the sentences with which it refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.domain.risk import Level
from kafkadash.domain.workflow import Approval, Deed, NotPossible, Outdated, Request, Rules, needed, standing, step
from kafkadash.domain.workflow_states import OVER, TABLE, State, Trigger, Who

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULES = Rules(break_glass=True)
ALL = frozenset(Who)
PROPOSED = Request(
    42,
    State.PROPOSED,
    digest="d1",
    round=1,
    hands=frozenset({1}),
    level=Level.LOW,
    needed=1,
    expires_at=NOW + HOUR,
    starts=True,
)
APPROVED = replace(PROPOSED, state=State.APPROVED, approvals=(Approval(2, "d1", 1),))


def done(request: Request, trigger: Trigger, user: int | None = 2, now: datetime = NOW, *, reason: str = "") -> Request:
    return step(request, Deed(trigger, user, ALL, digest="d1", reason=reason), RULES, now)


def test_every_state_is_reached_and_left_or_final() -> None:
    assert {edge.target for edge in TABLE} | {State.DRAFT} == set(State)
    assert set(State) - {edge.source for edge in TABLE} == set(OVER)


def test_each_trigger_leads_to_one_place() -> None:
    assert len({(edge.source, edge.trigger) for edge in TABLE}) == len(TABLE)


@pytest.mark.parametrize("state", OVER)
@pytest.mark.parametrize("trigger", Trigger)
def test_what_is_over_says_that_it_is_final(state: State, trigger: Trigger) -> None:
    with pytest.raises(Outdated, match=f"#42 is {state.value}, and that is final. Copy it to propose it again"):
        done(replace(PROPOSED, state=state), trigger)


def test_an_approved_one_is_withdrawn_before_it_is_edited() -> None:
    with pytest.raises(Outdated, match=r"#42 is approved\. Withdraw it to edit it; its approvals are void then"):
        done(APPROVED, Trigger.EDIT)
    assert done(APPROVED, Trigger.WITHDRAW).approvals == ()


@pytest.mark.parametrize("state", [State.PROPOSED, State.APPROVED])
def test_only_a_stale_one_is_refreshed(state: State) -> None:
    with pytest.raises(NotPossible, match=f"#42 is {state.value}, not stale: there is nothing to refresh"):
        done(replace(PROPOSED, state=state), Trigger.REFRESH)


def test_a_window_beyond_the_validity_is_not_submitted() -> None:
    draft = replace(PROPOSED, state=State.DRAFT, not_before=NOW + 24 * HOUR)
    with pytest.raises(NotPossible, match="The window begins more than 24 hours from now"):
        done(draft, Trigger.SUBMIT)
    assert done(replace(draft, not_before=NOW + 23 * HOUR), Trigger.SUBMIT).state is State.PROPOSED


def test_a_window_that_is_over_is_not_submitted() -> None:
    with pytest.raises(NotPossible, match=r"The window of #42 is over\. Choose another one"):
        done(replace(PROPOSED, state=State.DRAFT, not_after=NOW), Trigger.SUBMIT)


def test_an_approval_for_another_digest_or_round_or_by_a_hand_counts_for_nothing() -> None:
    others = (Approval(2, "d0", 1), Approval(3, "d1", 0), Approval(1, "d1", 1), Approval(None, "d1", 1))
    assert standing(replace(PROPOSED, approvals=others), RULES) == 0
    assert standing(replace(PROPOSED, approvals=(*others, Approval(2, "d1", 1))), RULES) == 1


def test_it_is_queued_when_its_window_begins_and_not_before() -> None:
    scheduled = replace(APPROVED, not_before=NOW + HOUR / 2)
    with pytest.raises(NotPossible, match="window of #42 has not begun"):
        done(scheduled, Trigger.SCHEDULE, None)
    assert done(scheduled, Trigger.SCHEDULE, None, NOW + HOUR / 2).state is State.QUEUED


def test_its_turn_waits_for_the_window_too() -> None:
    queued = replace(APPROVED, state=State.QUEUED, not_before=NOW + HOUR)
    with pytest.raises(NotPossible, match="window of #42 has not begun"):
        done(queued, Trigger.TURN, None)
    assert done(queued, Trigger.TURN, None, NOW + HOUR).state is State.EXECUTING


def test_what_is_queued_does_not_expire_by_its_validity_but_by_its_window() -> None:
    queued = replace(APPROVED, state=State.QUEUED, expires_at=NOW - HOUR)
    with pytest.raises(NotPossible, match="not over"):
        done(queued, Trigger.EXPIRE, None)
    assert done(replace(queued, not_after=NOW), Trigger.EXPIRE, None).state is State.EXPIRED


def test_a_kind_that_cannot_run_yet_is_not_queued() -> None:
    for request, trigger in ((APPROVED, Trigger.START), (PROPOSED, Trigger.BREAK_GLASS)):
        with pytest.raises(NotPossible, match="This version of kafkadash cannot run #42 yet"):
            done(replace(request, starts=False), trigger, reason="all burns")


def test_the_glass_is_broken_with_a_reason_by_a_policy_that_allows_it() -> None:
    with pytest.raises(NotPossible, match="Say why this cannot wait"):
        done(PROPOSED, Trigger.BREAK_GLASS)
    with pytest.raises(NotPossible, match="lets nobody start a change without its approvals"):
        step(
            PROPOSED,
            Deed(Trigger.BREAK_GLASS, 1, ALL, "d1", reason="all burns"),
            replace(RULES, break_glass=False),
            NOW,
        )
    queued = done(PROPOSED, Trigger.BREAK_GLASS, 1, reason="all burns")
    assert (queued.state, queued.broke_glass) == (State.QUEUED, True)


def test_a_stored_approval_that_is_not_enough_is_found_out_again_before_it_runs() -> None:
    for request in (replace(APPROVED, needed=2), replace(APPROVED, approvals=()), replace(APPROVED, digest="d2")):
        with pytest.raises(NotPossible, match="#42 does not have the approvals it needs"):
            done(request, Trigger.START)
        with pytest.raises(NotPossible, match="#42 does not have the approvals it needs"):
            done(replace(request, state=State.QUEUED), Trigger.TURN, None)


def test_who_comes_too_late_to_approve_is_told_so() -> None:
    with pytest.raises(Outdated, match=r"#42 has all its approvals already\. Yours is not needed any more"):
        done(APPROVED, Trigger.APPROVE, 3)
    with pytest.raises(Outdated, match="#42 is a draft now, so it cannot be approved"):
        done(replace(PROPOSED, state=State.DRAFT), Trigger.APPROVE, 3)


@pytest.mark.parametrize(("then", "today", "counts"), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (3, 5, 5)])
def test_the_stricter_of_the_policies_then_and_today_counts(then: int, today: int, counts: int) -> None:
    rules = replace(RULES, approvals_low=today, approvals_medium=today, approvals_high=today)
    request = replace(PROPOSED, needed=then)
    assert needed(request, rules) == counts
    for user in range(2, counts + 2):
        assert request.state is State.PROPOSED
        request = step(request, Deed(Trigger.APPROVE, user, ALL, "d1"), rules, NOW)
    assert (request.state, request.needed) == (State.APPROVED, counts)
