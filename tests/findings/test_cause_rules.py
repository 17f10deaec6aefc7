"""Causes of findings, from the facts alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kafkadash.core.status import RefreshStatus
from kafkadash.findings.causes import (
    LEADERS_SETTLE,
    OF_REPLICAS,
    REPLICAS_SETTLE,
    CauseCandidate,
    ExplainedFinding,
    FindingCause,
    find_cause,
    may_follow,
)
from kafkadash.findings.facts import BrokerFact, ClusterFacts, PartitionFacts
from kafkadash.findings.judges import UNSEEN
from kafkadash.findings.kinds import FindingKind
from tests.findings.well_cluster import NOW, WELL, ago, with_brokers

pytestmark = pytest.mark.domain

DOWN = FindingKind.BROKER_DOWN
Candidate = CauseCandidate[str]


def down(broker: int | str, began: datetime = NOW, closed: datetime | None = None) -> Candidate:
    return CauseCandidate(DOWN, str(broker), began, closed, f"down {broker}")


def lacking(*brokers: int, facts: ClusterFacts = WELL) -> ClusterFacts:
    return replace(facts, under_replicated=PartitionFacts(4, absent=frozenset(brokers)))


def cause(
    facts: ClusterFacts,
    *candidates: Candidate,
    kind: FindingKind = FindingKind.UNDER_REPLICATED,
    scope: str = "",
    seen: bool = True,
    before: FindingCause[str] = FindingCause(),  # noqa: B008  frozen
) -> FindingCause[str]:
    return find_cause(ExplainedFinding(kind, scope, seen, before), facts, candidates, NOW)


NOTHING: FindingCause[str] = FindingCause()


@pytest.mark.parametrize("kind", sorted(OF_REPLICAS))
def test_partitions__that_lack_replicas_on_brokers_that_are_down_only__follow_from_it(kind: FindingKind) -> None:
    columns = {
        FindingKind.OFFLINE: "offline",
        FindingKind.UNDER_MIN_ISR: "under_min_isr",
        FindingKind.AT_MIN_ISR: "at_min_isr",
        FindingKind.UNDER_REPLICATED: "under_replicated",
    }
    facts = replace(WELL, **{columns[kind]: PartitionFacts(4, absent=frozenset({3}))})  # type: ignore[arg-type]
    assert cause(facts, down(3), kind=kind) == FindingCause("down 3")
    assert cause(facts, down(2), kind=kind) == NOTHING
    assert may_follow(kind, facts)


def test_partitions__that_also_lack_a_replica_of_a_broker_that_is_up__follow_from_nothing() -> None:
    assert cause(lacking(2, 3), down(3)) == NOTHING


def test_partitions__that_were_not_all_looked_at__follow_from_nothing() -> None:
    facts = replace(WELL, under_replicated=PartitionFacts(4, missing=(3,)))
    assert cause(facts, down(3)) == NOTHING
    assert not may_follow(FindingKind.UNDER_REPLICATED, facts)


def test_two_brokers_are_down__the_cause_is_the_last_and_stays_the_same() -> None:
    facts = lacking(2, 3)
    first, second = down(3, began=ago(minutes=2)), down(2)
    assert cause(facts, second, first) == FindingCause("down 2")
    assert cause(facts, second, first, before=FindingCause("down 3")) == FindingCause("down 3")
    assert cause(facts, down(2, closed=NOW), first) == FindingCause("down 3")


def test_brokers_that_were_never_seen__explain_what_lacks_their_replicas() -> None:
    facts = lacking(9, facts=with_brokers(BrokerFact(3, replicas=9)))
    assert cause(facts, down(UNSEEN)) == FindingCause(f"down {UNSEEN}")


@pytest.mark.parametrize(("later", "expected"), [(REPLICAS_SETTLE, True), (2 * REPLICAS_SETTLE, False)])
def test_a_broker_that_came_back__explains_replicas_that_catch_up_for_a_while(later: timedelta, expected: bool) -> None:
    found = cause(lacking(3), down(3, closed=NOW - later))
    assert found == (FindingCause("down 3") if expected else NOTHING)


def test_partitions__that_nobody_can_judge_now__keep_their_cause_while_it_holds() -> None:
    kept = FindingCause("down 3")
    assert cause(WELL, down(3), seen=False, before=kept) == kept
    assert cause(WELL, seen=False, before=kept) == NOTHING


def test_a_cluster_that_is_unreachable__explains_all_that_is_of_it() -> None:
    old = RefreshStatus(ago(hours=1), 30, failures=4)
    facts = replace(lacking(3), metadata=old)
    root = CauseCandidate(FindingKind.UNREACHABLE, "", NOW, None, "unreachable")
    for kind in (FindingKind.UNDER_REPLICATED, DOWN, FindingKind.RUN_TROUBLE, FindingKind.CONSUMER_LAG):
        assert cause(facts, down(3), root, kind=kind) == FindingCause("unreachable")
    for kind in (FindingKind.UNREACHABLE, FindingKind.PIPELINE_STILL):
        assert cause(facts, down(3), root, kind=kind) == NOTHING
    off = replace(facts, enabled=False)
    assert cause(off, root, before=FindingCause("down 3")) == FindingCause("down 3")


def test_a_broker_that_leads_fewer__follows_from_its_absence_until_leaders_are_back() -> None:
    skew = FindingKind.LEADER_SKEW
    for later, expected in ((LEADERS_SETTLE, FindingCause("down 3")), (2 * LEADERS_SETTLE, NOTHING)):
        assert cause(WELL, down(3, closed=NOW - later), kind=skew, scope="3") == expected
    assert cause(WELL, down(3, closed=NOW), kind=skew, scope="1") == NOTHING


def test_a_run_that_moves_replicas_of_a_broker__explains_its_leaders() -> None:
    facts = replace(WELL, moved_by={3: 42})
    assert cause(facts, kind=FindingKind.LEADER_SKEW, scope="3") == FindingCause(run=42)
    assert cause(facts, kind=FindingKind.LEADER_SKEW, scope="1") == NOTHING


def test_troubles_of_one_run__follow_from_its_most_urgent_one() -> None:
    kind = FindingKind.RUN_TROUBLE
    own = [CauseCandidate(kind, scope, NOW, None, scope) for scope in ("42:stuck", "42:asks", "7:blocked", "8:failed")]
    assert cause(WELL, *own, kind=kind, scope="8:owes") == FindingCause("8:failed")
    assert cause(WELL, *own, kind=kind, scope="42:asks") == FindingCause("42:stuck")
    assert cause(WELL, *own, kind=kind, scope="42:stuck") == NOTHING
    assert cause(WELL, *own, kind=FindingKind.DISK_FULL, scope="3:/a") == NOTHING
