"""Groups that do not read: a finding each while they are few, a sum of the rest, nothing of old data."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.facts import Facts, GroupFact, Partitions
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.findings import evaluate
from kafkadash.domain.judges.groups import MORE, MOST_NAMED, MOST_STOPPED, shortened
from kafkadash.domain.lag import LagState
from kafkadash.domain.reconcile import Known, reconcile
from kafkadash.domain.status import State
from tests.domain.well_cluster import FRESH, NOW, WELL, ago, state, title

LAG, LOSS = FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS
READ_AT: datetime = ago(seconds=3)


def group(key: str = "k", worst: LagState = LagState.STALL, **more: Any) -> GroupFact:
    values: dict[str, Any] = {
        "name": "invoice-writer",
        "taken_at": READ_AT,
        "place": "orders.paid-14",
        "place_lag": 41_870,
        "lag": 42_515,
        "partitions": 48,
        "failing": 1,
        "members": 6,
        "since": ago(minutes=11),
        **more,
    }
    return GroupFact(key, worst=worst, **values)


def facts_with(*groups: GroupFact, named: frozenset[str] = frozenset()) -> Facts:
    return replace(WELL, groups_in_trouble=groups, groups_named=named)


def found(*groups: GroupFact, named: frozenset[str] = frozenset()) -> list[Finding]:
    return list(evaluate(facts_with(*groups, named=named), NOW).found)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (
            group(),
            "Group invoice-writer stalls on orders.paid-14: nothing is committed while 42,515 records wait.",
        ),
        (group(worst=LagState.STOP), "Group invoice-writer has no members while 42,515 records wait."),
        (group(worst=LagState.REWIND), "Group invoice-writer was set back on orders.paid-14; 42,515 records wait."),
        (group(worst=LagState.ERR, lag=1), "Group invoice-writer stands still on orders.paid-14; 1 record waits."),
    ],
)
def test_a_group_that_does_not_read_is_a_warning(own: GroupFact, sentence: str) -> None:
    (finding,) = found(own)
    assert (finding.kind, finding.scope, finding.sentence) == (LAG, "k", sentence)
    assert (finding.value, finding.unit, finding.threshold) == (own.lag, "records", 0)
    assert (finding.taken_at, finding.since, finding.state) == (READ_AT, ago(minutes=11), State.WARNING)


def test_it_says_where_most_waits_and_what_is_allowed() -> None:
    (finding,) = found(group(allowed=500))
    assert finding.detail == "1 of 48 partitions · 41,870 wait in orders.paid-14 · 6 members in the group"
    assert (finding.measured, finding.limit) == ("42,515 records", "allowed 500 a partition")
    assert title(facts_with(group())) == "demo has a consumer group that stalls: invoice-writer."
    assert title(facts_with(group("a"), group("b"))) == "demo has several groups that do not read."


@pytest.mark.parametrize("worst", [LagState.OK, LagState.WARN, LagState.UNKNOWN])
def test_what_reads_or_cannot_be_judged_is_no_finding(worst: LagState) -> None:
    assert found(group(worst=worst)) == []


def test_records_that_were_deleted_unread_are_a_finding_of_their_own() -> None:
    (finding,) = found(group(worst=LagState.OK, lost=1200))
    assert (finding.kind, finding.value, finding.measured) == (LOSS, 1200, "1,200 records")
    assert finding.sentence == "Up to 1,200 records were deleted before group invoice-writer read them."
    (one,) = found(group(worst=LagState.UNKNOWN, lost=1))
    assert one.sentence == "1 record was deleted before group invoice-writer read it."
    assert found(group(worst=LagState.OK, lost=0)) == []


def test_it_opens_at_the_second_reading_and_closes_under_the_same_name() -> None:
    first = evaluate(facts_with(group()), NOW)
    (begun,) = reconcile([], first, NOW).begin
    assert begun[1] is False
    known = Known(LAG, "k", False, 1, READ_AT, None)
    assert not reconcile([known], first, NOW).seen[0].opens
    later = evaluate(facts_with(group(taken_at=ago(seconds=1))), NOW)
    assert reconcile([known], later, NOW).seen[0].opens
    opened = replace(known, opened=True, looks=2)
    ((closed, _),) = reconcile([opened], evaluate(facts_with(), NOW), NOW).close
    assert closed is opened


def test_a_group_whose_data_is_old_is_not_judged_and_its_finding_stays() -> None:
    old = group(taken_at=ago(minutes=5), lost=7)
    judged = evaluate(facts_with(old), NOW)
    assert judged.found == ()
    assert judged.cannot_tell(LAG, "k")
    assert judged.cannot_tell(LOSS, "k")
    assert judged.cannot_tell(LAG, MORE)
    assert not judged.cannot_tell(LAG, "another")
    known = Known(LAG, "k", True, 2, ago(minutes=5), None)
    assert reconcile([known], judged, NOW).close == ()


def test_without_a_leader_nothing_is_told_of_what_it_leads() -> None:
    own = group(worst=LagState.OK, lag_unknown=1)
    away = evaluate(replace(facts_with(own), offline=Partitions(1, ("orders.paid-14",))), NOW)
    assert away.cannot_tell(LAG, "k")
    assert away.cannot_tell(LOSS, "k")
    assert away.cannot_tell(LOSS, MORE)
    assert not evaluate(facts_with(own), NOW).cannot_tell(LAG, "k"), "never committed, with all leaders there"


def test_groups_that_nobody_collects_are_no_reason_to_doubt_the_rest() -> None:
    facts = replace(WELL, groups=None, groups_in_trouble=(group(),))
    judged = evaluate(facts, NOW)
    assert judged.found == ()
    assert LAG in judged.blind
    assert state(facts) is State.OK


def many(number: int, worst: LagState, prefix: str) -> list[GroupFact]:
    return [group(f"{prefix}{n:05}", worst, name=f"{prefix}-{n}", lag=n) for n in range(number)]


def test_thousands_are_few_findings_with_a_sum() -> None:
    findings = found(*many(9000, LagState.STOP, "s"), *many(30, LagState.STALL, "m"))
    named = [f.scope for f in findings if f.scope != MORE]
    assert len(named) == MOST_NAMED + MOST_STOPPED
    assert sum(scope.startswith("m") for scope in named) == MOST_NAMED
    assert {"m00029", "s08999"} <= set(named)
    (rest,) = [f for f in findings if f.scope == MORE]
    assert rest.value == 9030 - len(named)
    assert rest.sentence == "9,000 more consumer groups do not read: 10 stall and 8,990 have no members."
    assert rest.detail.startswith("m-9, m-8, m-7 and 8,997 more · ")


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (many(12, LagState.STOP, "s"), "2 more consumer groups do not read: they have no members."),
        (many(21, LagState.STALL, "m"), "1 more consumer group does not read: it stalls."),
    ],
)
def test_a_sum_of_one_sort_says_it_once(groups: list[GroupFact], sentence: str) -> None:
    assert [f.sentence for f in found(*groups) if f.scope == MORE] == [sentence]


def test_who_has_a_finding_keeps_it_while_others_get_worse() -> None:
    """Otherwise a finding would close although nothing is over."""
    groups = many(60, LagState.STALL, "m")
    before = {f.scope for f in found(*groups)} - {MORE}
    worse = [replace(each, lag=10_000 if each.key not in before else 1) for each in groups]
    assert {f.scope for f in found(*worse, named=frozenset(before))} - {MORE} == before


_STATES = st.sampled_from([LagState.STALL, LagState.STOP, LagState.REWIND, LagState.ERR])
_GROUPS = st.dictionaries(st.integers(0, 80), st.tuples(_STATES, st.integers(1, 9)), min_size=1, max_size=80)


@given(st.lists(_GROUPS, min_size=1, max_size=6))
def test_each_group_is_told_once_and_none_closes_before_it_is_over(readings: list[dict[int, Any]]) -> None:
    named: frozenset[str] = frozenset()
    for reading in readings:
        groups = [group(f"{n}k", worst, lag=lag) for n, (worst, lag) in reading.items()]
        findings = found(*groups, named=named)
        own = {f.scope for f in findings if f.scope != MORE}
        summed = sum(int(f.value or 0) for f in findings if f.scope == MORE)
        assert len(own) + summed == len(groups)
        assert len(own) <= MOST_NAMED + MOST_STOPPED
        assert named & {g.key for g in groups} <= own
        named = frozenset(own)


@pytest.mark.parametrize("name", ["", "²", "9" * 5000, "x" * 32_767, "a:b", "\u202e", "7:x"])
def test_no_name_of_a_group_breaks_the_judgement(name: str) -> None:
    (finding,) = found(group(name[:9] or "k", name=name))
    assert len(finding.sentence) < 250
    assert len(shortened(name)) <= 80


def test_scopes_that_look_like_numbers_are_put_in_order_all_the_same() -> None:
    names = ["²", "9" * 5000, "10:b", "9:a"]
    assert [f.scope for f in found(*(group(name) for name in names))] == ["9" * 5000, "²", "9:a", "10:b"]


def test_lost_records_come_before_lag_and_both_between_disks_and_throttles() -> None:
    assert FindingKind.DISK_SOON.rank < FindingKind.DISK_FULL.rank < LOSS.rank < LAG.rank
    assert LAG.rank < FindingKind.ORPHAN_THROTTLE.rank
    assert FRESH.taken_at is not None
