"""The table of states, and the sentences with which it refuses.

Several people, roles, edits, refreshes, expiries and policies: no path runs what was not approved.

The machine knows the design's table by heart and keeps a diary of what was done; what the workflow lets through is
compared with the diary, not with what the workflow remembers.

The risk floor: what weighs how much, and that nothing more or unknown ever lowers it.

What is approved has one name: the same rows and options give the same digest, in every order and every process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkadash.changes.plan import (
    BadPlan,
    PartitionMove,
    PlanErrorCode,
    RunOptions,
    canonical_bytes,
    compute_digest,
    hash_artifact,
    read_rows,
    way_back,
)
from kafkadash.changes.risk import RiskCode, RiskFacts, RiskFloor, RiskLevel, compute_floor, level_of
from kafkadash.changes.state_machine import (
    OVER,
    TABLE,
    ActorKind,
    ChangeState,
    ChangeTrigger,
    GivenApproval,
    NotPossible,
    OutdatedContent,
    PolicyRules,
    TransitionRequest,
    WorkflowErrorCode,
    WorkflowRequest,
    count_approvals,
    decide_transition,
    is_due,
    required_approvals,
)
from kafkadash.core.messages import CodedMessage, coded

pytestmark = pytest.mark.domain

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULES = PolicyRules(break_glass=True)
ALL = frozenset(ActorKind)
PROPOSED = WorkflowRequest(
    42,
    ChangeState.PROPOSED,
    digest="d1",
    round=1,
    contributor_ids=frozenset({1}),
    level=RiskLevel.LOW,
    needed=1,
    expires_at=NOW + HOUR,
    starts=True,
)
APPROVED = replace(PROPOSED, state=ChangeState.APPROVED, approvals=(GivenApproval(2, "d1", 1),))


def done(
    request: WorkflowRequest, trigger: ChangeTrigger, user: int | None = 2, now: datetime = NOW, *, reason: str = ""
) -> WorkflowRequest:
    return decide_transition(request, TransitionRequest(trigger, user, ALL, digest="d1", reason=reason), RULES, now)


def test_every_state_is_reached_and_left_or_final() -> None:
    assert {edge.target for edge in TABLE} | {ChangeState.DRAFT} == set(ChangeState)
    assert set(ChangeState) - {edge.source for edge in TABLE} == set(OVER)


def test_each_trigger_leads_to_one_place() -> None:
    assert len({(edge.source, edge.trigger) for edge in TABLE}) == len(TABLE)


@pytest.mark.parametrize("state", OVER)
@pytest.mark.parametrize("trigger", ChangeTrigger)
def test_what_is_over_says_that_it_is_final(state: ChangeState, trigger: ChangeTrigger) -> None:
    with pytest.raises(OutdatedContent, match=f"#42 is {state.value}, and this is final. Copy it as a new draft"):
        done(replace(PROPOSED, state=state), trigger)


def test_an_approved_one_is_withdrawn_before_it_is_edited() -> None:
    with pytest.raises(
        OutdatedContent, match=r"#42 is approved\. Withdraw it before you edit it; its approvals are void then"
    ):
        done(APPROVED, ChangeTrigger.EDIT)
    assert done(APPROVED, ChangeTrigger.WITHDRAW).approvals == ()


@pytest.mark.parametrize("state", [ChangeState.PROPOSED, ChangeState.APPROVED])
def test_only_a_stale_one_is_refreshed(state: ChangeState) -> None:
    with pytest.raises(NotPossible, match=f"#42 is {state.value}, not stale, so it needs no new plan"):
        done(replace(PROPOSED, state=state), ChangeTrigger.REFRESH)


def test_a_stale_one_without_a_new_plan__is_not_refreshed() -> None:
    with pytest.raises(NotPossible) as refused:
        decide_transition(
            replace(PROPOSED, state=ChangeState.STALE), TransitionRequest(ChangeTrigger.REFRESH, 2, ALL), RULES, NOW
        )
    assert refused.value.code == WorkflowErrorCode.NO_NEW_PLAN


def test_an_approval_by_nobody__is_refused() -> None:
    with pytest.raises(NotPossible) as refused:
        done(PROPOSED, ChangeTrigger.APPROVE, user=None)
    assert refused.value.code == WorkflowErrorCode.NOT_A_PERSON


def test_a_window_beyond_the_validity_is_not_submitted() -> None:
    draft = replace(PROPOSED, state=ChangeState.DRAFT, not_before=NOW + 24 * HOUR)
    with pytest.raises(NotPossible, match="valid for 24 hours, but the window starts later"):
        done(draft, ChangeTrigger.SUBMIT)
    assert done(replace(draft, not_before=NOW + 23 * HOUR), ChangeTrigger.SUBMIT).state is ChangeState.PROPOSED


def test_a_window_that_is_over_is_not_submitted() -> None:
    with pytest.raises(NotPossible, match=r"The window of #42 is over\. Choose another window"):
        done(replace(PROPOSED, state=ChangeState.DRAFT, not_after=NOW), ChangeTrigger.SUBMIT)


def test_an_approval_for_another_digest_or_round_or_by_a_hand_counts_for_nothing() -> None:
    others = (
        GivenApproval(2, "d0", 1),
        GivenApproval(3, "d1", 0),
        GivenApproval(1, "d1", 1),
        GivenApproval(None, "d1", 1),
    )
    assert count_approvals(replace(PROPOSED, approvals=others), RULES) == 0
    assert count_approvals(replace(PROPOSED, approvals=(*others, GivenApproval(2, "d1", 1))), RULES) == 1


def test_it_is_queued_when_its_window_begins_and_not_before() -> None:
    scheduled = replace(APPROVED, not_before=NOW + HOUR / 2)
    with pytest.raises(NotPossible, match="window of #42 has not started"):
        done(scheduled, ChangeTrigger.SCHEDULE, None)
    assert done(scheduled, ChangeTrigger.SCHEDULE, None, NOW + HOUR / 2).state is ChangeState.QUEUED


def test_its_turn_waits_for_the_window_too() -> None:
    queued = replace(APPROVED, state=ChangeState.QUEUED, not_before=NOW + HOUR)
    with pytest.raises(NotPossible, match="window of #42 has not started"):
        done(queued, ChangeTrigger.TURN, None)
    assert done(queued, ChangeTrigger.TURN, None, NOW + HOUR).state is ChangeState.EXECUTING


def test_what_is_queued_does_not_expire_by_its_validity_but_by_its_window() -> None:
    queued = replace(APPROVED, state=ChangeState.QUEUED, expires_at=NOW - HOUR)
    with pytest.raises(NotPossible, match="has not expired yet"):
        done(queued, ChangeTrigger.EXPIRE, None)
    assert done(replace(queued, not_after=NOW), ChangeTrigger.EXPIRE, None).state is ChangeState.EXPIRED


def test_a_kind_that_cannot_run_yet_is_not_queued() -> None:
    for request, trigger in ((APPROVED, ChangeTrigger.START), (PROPOSED, ChangeTrigger.BREAK_GLASS)):
        with pytest.raises(NotPossible, match="This version of kafkadash cannot run #42"):
            done(replace(request, starts=False), trigger, reason="all burns")


def test_the_glass_is_broken_with_a_reason_by_a_policy_that_allows_it() -> None:
    with pytest.raises(NotPossible, match="Enter why this change cannot wait"):
        done(PROPOSED, ChangeTrigger.BREAK_GLASS)
    with pytest.raises(NotPossible, match="does not allow a start without approvals"):
        decide_transition(
            PROPOSED,
            TransitionRequest(ChangeTrigger.BREAK_GLASS, 1, ALL, "d1", reason="all burns"),
            replace(RULES, break_glass=False),
            NOW,
        )
    queued = done(PROPOSED, ChangeTrigger.BREAK_GLASS, 1, reason="all burns")
    assert (queued.state, queued.broke_glass) == (ChangeState.QUEUED, True)


def test_a_stored_approval_that_is_not_enough_is_found_out_again_before_it_runs() -> None:
    for request in (replace(APPROVED, needed=2), replace(APPROVED, approvals=()), replace(APPROVED, digest="d2")):
        with pytest.raises(NotPossible, match="#42 does not have all required approvals"):
            done(request, ChangeTrigger.START)
        with pytest.raises(NotPossible, match="#42 does not have all required approvals"):
            done(replace(request, state=ChangeState.QUEUED), ChangeTrigger.TURN, None)


def test_who_comes_too_late_to_approve_is_told_so() -> None:
    with pytest.raises(OutdatedContent, match=r"#42 already has all its approvals\. Yours is not needed any more"):
        done(APPROVED, ChangeTrigger.APPROVE, 3)
    with pytest.raises(OutdatedContent, match="#42 is a draft and cannot be approved"):
        done(replace(PROPOSED, state=ChangeState.DRAFT), ChangeTrigger.APPROVE, 3)


@pytest.mark.parametrize(("then", "today", "counts"), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (3, 5, 5)])
def test_the_stricter_of_the_policies_then_and_today_counts(then: int, today: int, counts: int) -> None:
    rules = replace(RULES, approvals_low=today, approvals_medium=today, approvals_high=today)
    request = replace(PROPOSED, needed=then)
    assert required_approvals(request, rules) == counts
    for user in range(2, counts + 2):
        assert request.state is ChangeState.PROPOSED
        request = decide_transition(request, TransitionRequest(ChangeTrigger.APPROVE, user, ALL, "d1"), rules, NOW)
    assert (request.state, request.needed) == (ChangeState.APPROVED, counts)


# The table of the design, not the one of the code.
DESIGN = {
    ChangeState.DRAFT: {ChangeState.PROPOSED},
    ChangeState.PROPOSED: {
        ChangeState.DRAFT,
        ChangeState.APPROVED,
        ChangeState.DECLINED,
        ChangeState.EXPIRED,
        ChangeState.STALE,
        ChangeState.QUEUED,
    },
    ChangeState.APPROVED: {ChangeState.QUEUED, ChangeState.STALE, ChangeState.EXPIRED, ChangeState.DRAFT},
    ChangeState.QUEUED: {ChangeState.EXECUTING, ChangeState.STALE, ChangeState.EXPIRED, ChangeState.DRAFT},
    ChangeState.STALE: {ChangeState.PROPOSED, ChangeState.DRAFT, ChangeState.EXPIRED},
    ChangeState.EXECUTING: {ChangeState.PAUSED, ChangeState.CANCELLING, ChangeState.VERIFYING, ChangeState.FAILED},
    ChangeState.PAUSED: {ChangeState.EXECUTING, ChangeState.CANCELLING},
    # A run whose cluster is gone for good is given up from here too, else it would hold the cluster's turn forever.
    ChangeState.CANCELLING: {ChangeState.CANCELLED, ChangeState.FAILED},
    ChangeState.VERIFYING: {ChangeState.DONE, ChangeState.FAILED},
    ChangeState.DONE: set(),
    ChangeState.CANCELLED: set(),
    ChangeState.FAILED: set(),
    ChangeState.DECLINED: set(),
    ChangeState.EXPIRED: set(),
}
RUNS = {
    ChangeState.QUEUED,
    ChangeState.EXECUTING,
    ChangeState.PAUSED,
    ChangeState.CANCELLING,
    ChangeState.VERIFYING,
    ChangeState.DONE,
}
PEOPLE = (1, 2, 3, 4)
START = datetime(2026, 11, 21, tzinfo=UTC)

people = st.sampled_from(PEOPLE)
levels = st.sampled_from(RiskLevel)
capacities = st.frozensets(st.sampled_from([ActorKind.OPERATOR, ActorKind.APPROVER, ActorKind.ADMIN]), max_size=3)


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
        self.policy = PolicyRules()
        self.request = WorkflowRequest(7, contributor_ids=frozenset({1}), starts=True)
        self.roles = {
            1: frozenset({ActorKind.OPERATOR, ActorKind.APPROVER}),
            2: frozenset({ActorKind.OPERATOR, ActorKind.APPROVER}),
            3: frozenset({ActorKind.APPROVER}),
            4: frozenset({ActorKind.APPROVER, ActorKind.ADMIN}),
        }
        self.plans = 0
        # The diary.
        self.touched = {1}
        self.asked_at_submission = 0
        self.approvals: list[Approved] = []
        self.glass_broken_by: int | None = None

    def deed(self, trigger: ChangeTrigger, user: int, *, digest: str = "", reason: str = "") -> bool:
        held = self.roles.get(user, frozenset())
        return self.do(TransitionRequest(trigger, user, held, digest=digest, reason=reason, level=self.request.level))

    def do(self, deed: TransitionRequest) -> bool:
        before = self.request
        try:
            after = decide_transition(before, deed, self.policy, self.now)
        except NotPossible:
            return False
        assert before.state not in OVER, "final is final"
        assert after.state in DESIGN[before.state] | {before.state}
        assert after.state is not ChangeState.FAILED or deed.trigger is ChangeTrigger.GIVE_UP
        assert after.state is not before.state or deed.trigger is ChangeTrigger.APPROVE
        self.request = after
        return True

    def new_digest(self) -> str:
        self.plans += 1
        return f"digest {self.plans}"

    @rule(hours=st.sampled_from([1, 1, 2, 3, 12, 30]))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @rule(user=people, held=capacities)
    def roles_change(self, user: int, held: frozenset[ActorKind]) -> None:
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

    @precondition(lambda self: self.request.state is ChangeState.DRAFT)
    @rule(user=people, level=levels, window=st.sampled_from([None, None, 2, 12, 60]))
    def somebody_writes_the_draft(self, user: int, level: RiskLevel, window: int | None) -> None:
        begin = None if window is None else self.now + timedelta(hours=window)
        self.request = replace(
            self.request,
            digest=self.new_digest(),
            level=level,
            contributor_ids=self.request.contributor_ids | {user},
            not_before=begin,
            not_after=None if begin is None else begin + timedelta(hours=6),
        )
        self.touched.add(user)

    @precondition(lambda self: self.request.state is ChangeState.DRAFT and self.request.digest)
    @rule(user=st.sampled_from([1, 2]))
    def submit(self, user: int) -> None:
        if self.deed(ChangeTrigger.SUBMIT, user):
            self.touched.add(user)
            self.begin_round()

    @precondition(lambda self: self.request.state is ChangeState.PROPOSED)
    @rule(user=people, other=st.sampled_from([False, False, False, True]))
    def approve(self, user: int, other: bool) -> None:
        seen = "what it was before" if other else self.request.digest
        asked = self.policy.needed(self.request.level)
        if self.deed(ChangeTrigger.APPROVE, user, digest=seen):
            assert not other, "nobody approves what he did not see"
            assert ActorKind.APPROVER in self.roles[user]
            assert user not in self.touched or self.policy.self_approval
            self.approvals.append(Approved(user, seen, user in self.touched, asked))

    @precondition(lambda self: self.request.state is ChangeState.PROPOSED and self.now > START + timedelta(hours=40))
    @rule(user=people, reason=st.sampled_from(["", "  ", "no"]))
    def decline(self, user: int, reason: str) -> None:
        if self.deed(ChangeTrigger.DECLINE, user, digest=self.request.digest, reason=reason):
            assert reason == "no"
            assert self.request.state is ChangeState.DECLINED

    @rule(user=people, trigger=st.sampled_from([ChangeTrigger.EDIT, ChangeTrigger.WITHDRAW]))
    def take_back(self, user: int, trigger: ChangeTrigger) -> None:
        if self.deed(trigger, user):
            self.end_round()

    @rule()
    def content_fails(self) -> None:
        self.itself(ChangeTrigger.CONTENT_FAILED)

    @precondition(lambda self: self.request.state is ChangeState.STALE)
    @rule(user=people, level=levels)
    def refresh(self, user: int, level: RiskLevel) -> None:
        digest = self.new_digest()
        if self.do(
            TransitionRequest(
                ChangeTrigger.REFRESH, user, self.roles.get(user, frozenset()), digest=digest, level=level
            )
        ):
            assert self.request.digest == digest
            self.touched.add(user)
            self.begin_round()

    @precondition(lambda self: self.request.state is ChangeState.PROPOSED)
    @rule(user=people, reason=st.sampled_from(["", "", "", "all burns"]))
    def break_glass(self, user: int, reason: str) -> None:
        if self.deed(ChangeTrigger.BREAK_GLASS, user, digest=self.request.digest, reason=reason):
            assert ActorKind.ADMIN in self.roles[user]
            assert reason
            assert self.policy.break_glass
            self.glass_broken_by = user

    @precondition(lambda self: self.request.state in RUNS | {ChangeState.APPROVED})
    @rule(
        user=people,
        trigger=st.sampled_from([ChangeTrigger.START, ChangeTrigger.PAUSE, ChangeTrigger.RESUME, ChangeTrigger.CANCEL]),
    )
    def operate(self, user: int, trigger: ChangeTrigger) -> None:
        self.deed(trigger, user)

    @rule(
        trigger=st.sampled_from(
            [
                ChangeTrigger.EXPIRE,
                ChangeTrigger.SCHEDULE,
                ChangeTrigger.TURN,
                ChangeTrigger.ROWS_ENDED,
                ChangeTrigger.GIVE_UP,
                ChangeTrigger.CLEAN,
                ChangeTrigger.VERIFIED,
            ]
        )
    )
    def itself(self, trigger: ChangeTrigger) -> None:
        over = is_due(self.request, self.now)
        done = self.do(TransitionRequest(trigger, capacities=frozenset({ActorKind.ITSELF})))
        if trigger is ChangeTrigger.EXPIRE:
            assert done == over, "it expires when, and only when, its time is over"

    @rule(user=people, trigger=st.sampled_from(ChangeTrigger))
    def nobody_may_do_it_without_a_role(self, user: int, trigger: ChangeTrigger) -> None:
        assert not self.do(TransitionRequest(trigger, user, digest=self.request.digest, reason="because"))

    @precondition(lambda self: self.request.state in OVER)
    @rule(user=people, trigger=st.sampled_from(ChangeTrigger))
    def what_is_over_stays_so(self, user: int, trigger: ChangeTrigger) -> None:
        assert not self.do(
            TransitionRequest(trigger, user, frozenset(ActorKind), self.request.digest, reason="because")
        )

    def begin_round(self) -> None:
        self.end_round()
        self.asked_at_submission = self.policy.needed(self.request.level)

    def end_round(self) -> None:
        self.approvals = []
        self.glass_broken_by = None

    @invariant()
    def nothing_runs_without_the_approvals_that_its_digest_needs(self) -> None:
        if self.request.state not in RUNS | {ChangeState.APPROVED}:
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
        assert self.request.contributor_ids == self.touched


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)


Number = TypeVar("Number", float, int)

NOTHING = RiskFacts(bytes_share=0.0, partitions_share=0.0)

shares = st.none() | st.floats(0, 1)
facts = st.builds(
    RiskFacts,
    bytes_share=shares,
    partitions_share=shares,
    rf_decreases=st.integers(0, 100),
    internal_topics=st.integers(0, 20),
    spread_worse=st.none() | st.integers(0, 100),
    racks_on_one_broker=st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map(tuple),
)


def told(found: RiskFloor) -> list[tuple[int, CodedMessage]]:
    return [(reason.points, reason.message) for reason in found.reasons]


def test_draining_a_broker_as_the_review_page_shows_it() -> None:
    found = compute_floor(RiskFacts(0.164, 230 / 478, internal_topics=2, racks_on_one_broker=("eu-1c",)))
    assert told(found) == [
        (14, coded(RiskCode.BYTES, share=0.164)),
        (10, coded(RiskCode.PARTITIONS, share=230 / 478)),
        (6, coded(RiskCode.INTERNAL_TOPICS, topics=2)),
        (4, coded(RiskCode.RACKS_ON_ONE_BROKER, racks=("eu-1c",))),
    ]
    assert (found.points, found.level) == (34, RiskLevel.MEDIUM)


def test_nothing_is_no_risk() -> None:
    assert compute_floor(NOTHING) == RiskFloor(0, ())
    assert compute_floor(NOTHING).level is RiskLevel.LOW


def test_what_is_not_known_is_said_and_high() -> None:
    found = compute_floor(RiskFacts(None, None, spread_worse=None))
    assert told(found) == [
        (35, coded(RiskCode.BYTES_UNKNOWN)),
        (20, coded(RiskCode.PARTITIONS_UNKNOWN)),
        (40, coded(RiskCode.SPREAD_UNKNOWN)),
    ]
    assert found.level is RiskLevel.HIGH
    assert level_of(None) is RiskLevel.HIGH


@pytest.mark.parametrize(("partitions", "level"), [(1, RiskLevel.MEDIUM), (20, RiskLevel.HIGH)])
def test_losing_replicas_for_good_is_never_low(partitions: int, level: RiskLevel) -> None:
    found = compute_floor(replace(NOTHING, rf_decreases=partitions))
    assert found.level is level
    assert told(compute_floor(replace(NOTHING, rf_decreases=1))) == [(41, coded(RiskCode.FEWER_REPLICAS, partitions=1))]


def test_a_worse_rack_spread_weighs_heavily() -> None:
    assert told(compute_floor(replace(NOTHING, spread_worse=4))) == [(24, coded(RiskCode.SPREAD_WORSE, partitions=4))]
    assert compute_floor(replace(NOTHING, spread_worse=5)).level is RiskLevel.MEDIUM


@given(facts)
def test_it_is_between_0_and_100_and_every_reason_has_points(given_facts: RiskFacts) -> None:
    found = compute_floor(given_facts)
    assert 0 <= found.points <= 100
    assert found.points == min(100, sum(reason.points for reason in found.reasons))
    assert all(reason.points > 0 for reason in found.reasons)


@given(facts, facts)
def test_more_of_anything_never_lowers_it(one: RiskFacts, other: RiskFacts) -> None:
    """The worse of two in every respect is at least as risky as either."""
    worse = RiskFacts(
        bytes_share=_worse(one.bytes_share, other.bytes_share),
        partitions_share=_worse(one.partitions_share, other.partitions_share),
        rf_decreases=max(one.rf_decreases, other.rf_decreases),
        internal_topics=max(one.internal_topics, other.internal_topics),
        spread_worse=_worse(one.spread_worse, other.spread_worse),
        racks_on_one_broker=tuple(sorted({*one.racks_on_one_broker, *other.racks_on_one_broker})),
    )
    assert compute_floor(worse).points >= max(compute_floor(one).points, compute_floor(other).points)


def _worse(one: Number | None, other: Number | None) -> Number | None:
    return None if one is None or other is None else max(one, other)


OPTIONS = RunOptions(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000)
KAFKA_ID = "4L6g3nShT-eMCtK--X86sw"

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
brokers = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True).map(tuple)
rows = st.builds(
    PartitionMove,
    topic=names,
    topic_id=names | st.just(""),
    partition=st.integers(0, 2**31 - 1),
    current=brokers,
    target=brokers,
    log_dirs=st.lists(names, max_size=3).map(tuple),
)
plans = st.lists(rows, max_size=12, unique_by=lambda row: (row.topic, row.partition))

# Sets and dictionaries of text have another order in each process with another seed.
OF_A_SET = """
from kafkadash.changes.plan import PartitionMove, RunOptions, canonical_bytes, compute_digest, hash_artifact
rows = {PartitionMove(f"topic-{n % 7}-ü", f"id-{n % 7}", n, (1, 2, 3), (2, 3, 4)) for n in range(500)}
options = {name: name for name in {"throttle", "parallel", "window", "elect_leaders", "change_rf"}}
artifact = hash_artifact(canonical_bytes(rows))
print(artifact, compute_digest("id", artifact, options), compute_digest("id", artifact, RunOptions(1, 1, 2)))
"""


def in_a_process(seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run(
        [sys.executable, "-c", OF_A_SET], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_every_process_gives_the_same_names() -> None:
    said = {in_a_process(seed) for seed in (1, 2, 77)}
    assert len(said) == 1
    assert [len(word) for word in said.pop().split()] == [64, 64, 64]


@given(plans, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(plan: list[PartitionMove], chance: Any) -> None:
    shuffled = list(plan)
    chance.shuffle(shuffled)
    assert canonical_bytes(shuffled) == canonical_bytes(plan)


@given(plans)
def test_what_is_stored_is_read_again(plan: list[PartitionMove]) -> None:
    again = read_rows(canonical_bytes(plan))
    assert list(again) == sorted(plan, key=lambda row: (row.topic, row.partition))
    assert canonical_bytes(again) == canonical_bytes(plan)


@given(plans, plans)
def test_different_plans_have_different_names(one: list[PartitionMove], other: list[PartitionMove]) -> None:
    same = sorted(one, key=repr) == sorted(other, key=repr)
    assert (hash_artifact(canonical_bytes(one)) == hash_artifact(canonical_bytes(other))) == same


@given(plans)
def test_the_way_back_of_the_way_back_is_the_way(plan: Sequence[PartitionMove]) -> None:
    without_dirs = [replace(row, log_dirs=()) for row in plan]
    assert list(way_back(way_back(without_dirs))) == without_dirs


def test_it_is_text_that_people_can_read() -> None:
    artifact = canonical_bytes(
        [PartitionMove("bestellungen-ü", "", 1, (1, 2), (2, 1)), PartitionMove("a", "x", 0, (1,), (2,), ("any",))]
    )
    assert artifact.decode() == (
        '{"format":1,"rows":[["a","x",0,[1],[2],["any"]],["bestellungen-ü","",1,[1,2],[2,1],[]]]}'
    )


def test_the_order_of_replicas_matters() -> None:
    row = PartitionMove("a", "x", 0, (1, 2), (2, 1))
    assert canonical_bytes([row]) != canonical_bytes([replace(row, target=(1, 2))])
    assert canonical_bytes([row]) != canonical_bytes([replace(row, current=(2, 1))])


@pytest.mark.parametrize(
    "changed",
    [
        {"throttle_min": 10_000_000},
        {"throttle_max": 90_000_000},
        {"per_broker": 6},
        {"per_cluster": 51},
        {"not_before": "2026-11-24T22:00:00Z"},
        {"not_after": "2026-11-25T04:00:00Z"},
        {"elect_leaders": False},
        {"change_rf": True},
    ],
)
def test_every_option_that_is_approved_is_in_the_digest(changed: dict[str, Any]) -> None:
    assert compute_digest(KAFKA_ID, "a" * 64, replace(OPTIONS, **changed)) != compute_digest(
        KAFKA_ID, "a" * 64, OPTIONS
    )


def test_the_rate_that_it_starts_with_is_not() -> None:
    """It may be changed within the bounds while it runs."""
    assert compute_digest(KAFKA_ID, "a" * 64, replace(OPTIONS, throttle=70_000_000)) == compute_digest(
        KAFKA_ID, "a" * 64, OPTIONS
    )


def test_the_cluster_and_the_artifact_are() -> None:
    one = compute_digest(KAFKA_ID, "a" * 64, OPTIONS)
    assert compute_digest("another", "a" * 64, OPTIONS) != one
    assert compute_digest(KAFKA_ID, "b" * 64, OPTIONS) != one


def test_options_as_values_and_as_json_are_the_same() -> None:
    stored = json.loads(json.dumps(OPTIONS.as_json()))
    assert compute_digest(KAFKA_ID, "a" * 64, stored) == compute_digest(KAFKA_ID, "a" * 64, OPTIONS)


@pytest.mark.parametrize(
    ("artifact", "code"),
    [
        *(
            (artifact, PlanErrorCode.PLAN_NOT_READABLE)
            for artifact in (b"", b"[]", b"{}", b'{"format":1}', b'{"format":1,"rows":[[1]]}', b"\xff", b"null")
        ),
        (b'{"format":2,"rows":[]}', PlanErrorCode.PLAN_OF_ANOTHER_FORMAT),
    ],
)
def test_what_is_no_plan_is_refused(artifact: bytes, code: PlanErrorCode) -> None:
    with pytest.raises(BadPlan) as refused:
        read_rows(artifact)
    assert refused.value.code == code


def test_fifty_thousand_rows_take_less_than_a_second() -> None:
    many = [PartitionMove(f"topic-{n // 50}", f"id-{n // 50}", n % 50, (1, 2, 3), (2, 3, 4)) for n in range(50_000)]
    began = time.process_time()
    name = compute_digest(KAFKA_ID, hash_artifact(canonical_bytes(many)), OPTIONS)
    assert time.process_time() - began <= 1.0
    assert len(name) == 64


def test_directories_are_told_apart_by_whether_the_replica_is_new() -> None:
    row = PartitionMove("t", "", 0, (1, 2, 3), (4, 2, 3), ("/new", "/kept", "any"))
    assert row.directories == ((4, "/new"),)
    assert row.kept_directories == ((2, "/kept"),)
    assert replace(row, log_dirs=()).directories == ()
