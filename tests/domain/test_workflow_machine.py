"""Several people, roles, edits, refreshes, expiries and policies: no path runs what was not approved.

The machine knows the design's table by heart and keeps a diary of what was done; what the workflow lets through is
compared with the diary, not with what the workflow remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkadash.domain.risk import Level
from kafkadash.domain.workflow import Deed, NotPossible, Request, Rules, due, step
from kafkadash.domain.workflow_states import OVER, State, Trigger, Who

# The table of the design, not the one of the code.
DESIGN = {
    State.DRAFT: {State.PROPOSED},
    State.PROPOSED: {State.DRAFT, State.APPROVED, State.DECLINED, State.EXPIRED, State.STALE, State.QUEUED},
    State.APPROVED: {State.QUEUED, State.STALE, State.EXPIRED, State.DRAFT},
    State.QUEUED: {State.EXECUTING, State.STALE, State.EXPIRED, State.DRAFT},
    State.STALE: {State.PROPOSED, State.DRAFT, State.EXPIRED},
    State.EXECUTING: {State.PAUSED, State.CANCELLING, State.VERIFYING, State.FAILED},
    State.PAUSED: {State.EXECUTING, State.CANCELLING},
    State.CANCELLING: {State.CANCELLED},
    State.VERIFYING: {State.DONE},
    State.DONE: set(),
    State.CANCELLED: set(),
    State.FAILED: set(),
    State.DECLINED: set(),
    State.EXPIRED: set(),
}
RUNS = {State.QUEUED, State.EXECUTING, State.PAUSED, State.CANCELLING, State.VERIFYING, State.DONE}
PEOPLE = (1, 2, 3, 4)
START = datetime(2026, 11, 21, tzinfo=UTC)

people = st.sampled_from(PEOPLE)
levels = st.sampled_from(Level)
capacities = st.frozensets(st.sampled_from([Who.OPERATOR, Who.APPROVER, Who.ADMIN]), max_size=3)


@dataclass(frozen=True)
class Approved:
    user: int
    digest: str
    own: bool
    asked: int


class Life(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.policy = Rules()
        self.request = Request(7, hands=frozenset({1}), starts=True)
        self.roles = {
            1: frozenset({Who.OPERATOR, Who.APPROVER}),
            2: frozenset({Who.OPERATOR, Who.APPROVER}),
            3: frozenset({Who.APPROVER}),
            4: frozenset({Who.APPROVER, Who.ADMIN}),
        }
        self.plans = 0
        # The diary.
        self.touched = {1}
        self.asked_at_submission = 0
        self.approvals: list[Approved] = []
        self.glass_broken_by: int | None = None

    def deed(self, trigger: Trigger, user: int, *, digest: str = "", reason: str = "") -> bool:
        held = self.roles.get(user, frozenset())
        return self.do(Deed(trigger, user, held, digest=digest, reason=reason, level=self.request.level))

    def do(self, deed: Deed) -> bool:
        before = self.request
        try:
            after = step(before, deed, self.policy, self.now)
        except NotPossible:
            return False
        assert before.state not in OVER, "final is final"
        assert after.state in DESIGN[before.state] | {before.state}
        assert after.state is not before.state or deed.trigger is Trigger.APPROVE
        self.request = after
        return True

    def new_digest(self) -> str:
        self.plans += 1
        return f"digest {self.plans}"

    @rule(hours=st.sampled_from([1, 1, 2, 3, 12, 30]))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @rule(user=people, held=capacities)
    def roles_change(self, user: int, held: frozenset[Who]) -> None:
        self.roles[user] = held

    @rule(low=st.integers(1, 2), more=st.integers(0, 2), own=st.booleans(), glass=st.booleans())
    def the_policy_changes(self, low: int, more: int, own: bool, glass: bool) -> None:
        self.policy = replace(
            self.policy,
            approvals_low=low,
            approvals_medium=low,
            approvals_high=low + more,
            self_approval=own,
            break_glass=glass,
        )

    @precondition(lambda self: self.request.state is State.DRAFT)
    @rule(user=people, level=levels, window=st.sampled_from([None, None, 2, 12, 60]))
    def somebody_writes_the_draft(self, user: int, level: Level, window: int | None) -> None:
        begin = None if window is None else self.now + timedelta(hours=window)
        self.request = replace(
            self.request,
            digest=self.new_digest(),
            level=level,
            hands=self.request.hands | {user},
            not_before=begin,
            not_after=None if begin is None else begin + timedelta(hours=6),
        )
        self.touched.add(user)

    @precondition(lambda self: self.request.state is State.DRAFT and self.request.digest)
    @rule(user=st.sampled_from([1, 2]))
    def submit(self, user: int) -> None:
        if self.deed(Trigger.SUBMIT, user):
            self.touched.add(user)
            self.begin_round()

    @precondition(lambda self: self.request.state is State.PROPOSED)
    @rule(user=people, other=st.sampled_from([False, False, False, True]))
    def approve(self, user: int, other: bool) -> None:
        seen = "what it was before" if other else self.request.digest
        asked = self.policy.needed(self.request.level)
        if self.deed(Trigger.APPROVE, user, digest=seen):
            assert not other, "nobody approves what he did not see"
            assert Who.APPROVER in self.roles[user]
            assert user not in self.touched or self.policy.self_approval
            self.approvals.append(Approved(user, seen, user in self.touched, asked))

    @precondition(lambda self: self.request.state is State.PROPOSED and self.now > START + timedelta(hours=40))
    @rule(user=people, reason=st.sampled_from(["", "  ", "no"]))
    def decline(self, user: int, reason: str) -> None:
        if self.deed(Trigger.DECLINE, user, digest=self.request.digest, reason=reason):
            assert reason == "no"
            assert self.request.state is State.DECLINED

    @rule(user=people, trigger=st.sampled_from([Trigger.EDIT, Trigger.WITHDRAW]))
    def take_back(self, user: int, trigger: Trigger) -> None:
        if self.deed(trigger, user):
            self.end_round()

    @rule()
    def content_fails(self) -> None:
        self.itself(Trigger.CONTENT_FAILED)

    @precondition(lambda self: self.request.state is State.STALE)
    @rule(user=people, level=levels)
    def refresh(self, user: int, level: Level) -> None:
        digest = self.new_digest()
        if self.do(Deed(Trigger.REFRESH, user, self.roles.get(user, frozenset()), digest=digest, level=level)):
            assert self.request.digest == digest
            self.touched.add(user)
            self.begin_round()

    @precondition(lambda self: self.request.state is State.PROPOSED)
    @rule(user=people, reason=st.sampled_from(["", "", "", "all burns"]))
    def break_glass(self, user: int, reason: str) -> None:
        if self.deed(Trigger.BREAK_GLASS, user, digest=self.request.digest, reason=reason):
            assert Who.ADMIN in self.roles[user]
            assert reason
            assert self.policy.break_glass
            self.glass_broken_by = user

    @precondition(lambda self: self.request.state in RUNS | {State.APPROVED})
    @rule(user=people, trigger=st.sampled_from([Trigger.START, Trigger.PAUSE, Trigger.RESUME, Trigger.CANCEL]))
    def operate(self, user: int, trigger: Trigger) -> None:
        self.deed(trigger, user)

    @rule(
        trigger=st.sampled_from(
            [
                Trigger.EXPIRE,
                Trigger.SCHEDULE,
                Trigger.TURN,
                Trigger.ROWS_ENDED,
                Trigger.GIVE_UP,
                Trigger.CLEAN,
                Trigger.VERIFIED,
            ]
        )
    )
    def itself(self, trigger: Trigger) -> None:
        over = due(self.request, self.now)
        done = self.do(Deed(trigger, capacities=frozenset({Who.ITSELF})))
        if trigger is Trigger.EXPIRE:
            assert done == over, "it expires when, and only when, its time is over"

    @rule(user=people, trigger=st.sampled_from(Trigger))
    def nobody_may_do_it_without_a_role(self, user: int, trigger: Trigger) -> None:
        assert not self.do(Deed(trigger, user, digest=self.request.digest, reason="because"))

    @precondition(lambda self: self.request.state in OVER)
    @rule(user=people, trigger=st.sampled_from(Trigger))
    def what_is_over_stays_so(self, user: int, trigger: Trigger) -> None:
        assert not self.do(Deed(trigger, user, frozenset(Who), self.request.digest, reason="because"))

    def begin_round(self) -> None:
        self.end_round()
        self.asked_at_submission = self.policy.needed(self.request.level)

    def end_round(self) -> None:
        self.approvals = []
        self.glass_broken_by = None

    @invariant()
    def nothing_runs_without_the_approvals_that_its_digest_needs(self) -> None:
        if self.request.state not in RUNS | {State.APPROVED}:
            return
        if self.glass_broken_by is not None:
            assert self.request.broke_glass
            return
        assert not self.request.broke_glass
        counted = {a.user for a in self.approvals if a.digest == self.request.digest}
        assert len(counted) == len(self.approvals), "nobody counts twice, nothing counts for another digest"
        assert len(counted) >= max(self.asked_at_submission, self.approvals[-1].asked)

    @invariant()
    def whoever_touched_it_is_known(self) -> None:
        assert self.request.hands == self.touched


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
