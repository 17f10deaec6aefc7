"""The checker passes what is right, and every rule finds what it is there for.

The checks of a reassignment before it runs, with the code for every way to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.core.failures import FailureKind
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.status import NEVER, RefreshStatus
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.impact import impact_of
from kafkadash.planning.preconditions import ClusterSeen, MovingPartitions, PreconditionLimits, check_preconditions
from kafkadash.planning.problem_codes import CheckedRule, CheckTitle, FactKind, RuleCode
from kafkadash.planning.problem_codes import CheckErrorCode as Code
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.request import DRAIN, PlanRequest
from kafkadash.planning.topology import ClusterTopology, LogDirectory
from tests.planning.topologies import RACKS, broker, clusters, row, topology

pytestmark = pytest.mark.domain

OWN = [*(broker(n) for n in range(1, 7)), broker(8, "c", fenced=True), broker(9, "c", used=795)]
CHECKED_CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [1, 5, 3]]}, OWN)
ASKED = CheckRequest("drain", frozenset({3}), disk_limit=0.8)
PLAN = plan(CHECKED_CLUSTER, PlanRequest(DRAIN, (3,), disk_limit=0.8)).rows


def failed(
    rows: Sequence[PartitionMove], cluster: ClusterTopology = CHECKED_CLUSTER, asked: CheckRequest = ASKED
) -> dict[RuleCode | str, CodedMessage]:
    return {rule.code: rule.problems[0] for rule in check(rows, cluster, asked) if rule.passed is False}


def test_a_plan_as_it_should_be__passes_every_rule() -> None:
    rules = check(PLAN, CHECKED_CLUSTER, ASKED, impact_of(PLAN, CHECKED_CLUSTER))
    assert [(rule.code, rule.passed) for rule in rules] == [
        (RuleCode.CURRENT_ASSIGNMENT, True),
        (RuleCode.REPLICATION_FACTOR, True),
        (RuleCode.DISTINCT_BROKERS, True),
        (RuleCode.ELIGIBLE_BROKERS, True),
        (RuleCode.ONLY_AS_ASKED, True),
        (RuleCode.SPREAD_OVER_RACKS, True),
        (RuleCode.COUNTS, True),
        (RuleCode.DISK, True),
        (RuleCode.TOTALS, True),
    ]
    assert rules[0].figure == "3 of 3"
    assert unpack_dataclass(CheckedRule, pack_dataclass(rules[0])) == rules[0]


Mutant = Callable[[list[PartitionMove]], list[PartitionMove]]


def first(**changes: object) -> Mutant:
    """The plan with another first row: of t-0, on 1, 2 and 3."""
    return lambda rows: [replace(rows[0], **changes), *rows[1:]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mutant", "rule", "problem"),
    [
        (lambda rows: [*rows, rows[0]], RuleCode.CURRENT_ASSIGNMENT, coded(Code.ROW_TWICE, row="t-0")),
        (first(partition=77), RuleCode.CURRENT_ASSIGNMENT, coded(Code.ROW_OF_NOTHING, row="t-77")),
        (first(topic_id="other"), RuleCode.CURRENT_ASSIGNMENT, coded(Code.ROW_OF_NAMESAKE, row="t-0")),
        (
            first(current=(1, 3, 2)),
            RuleCode.CURRENT_ASSIGNMENT,
            coded(Code.ROW_ELSEWHERE, row="t-0", there=(1, 2, 3), expected=(1, 3, 2)),
        ),
        (first(target=(1, 2, 3)), RuleCode.CURRENT_ASSIGNMENT, coded(Code.ROW_CHANGES_NOTHING, row="t-0")),
        (
            first(log_dirs=("/a", "any", "any")),
            RuleCode.CURRENT_ASSIGNMENT,
            coded(Code.ROW_CHANGES_DISK, row="t-0", broker=1, path="/a"),
        ),
        (
            first(target=(1, 2)),
            RuleCode.REPLICATION_FACTOR,
            coded(Code.ROW_WITH_OTHER_FACTOR, row="t-0", after=2, before=3),
        ),
        (first(target=()), RuleCode.DISTINCT_BROKERS, coded(Code.ROW_WITHOUT_REPLICAS, row="t-0")),
        (
            first(target=(1, 2, 2)),
            RuleCode.DISTINCT_BROKERS,
            coded(Code.ROW_TWICE_ON_ONE, row="t-0", brokers=(1, 2, 2)),
        ),
        *(
            (
                first(target=(1, 2, broker)),
                RuleCode.ELIGIBLE_BROKERS,
                coded(Code.ROW_ON_INELIGIBLE, row="t-0", broker=broker),
            )
            for broker in (8, 99)
        ),
        (first(target=(1, 5, 6)), RuleCode.ONLY_AS_ASKED, coded(Code.ROW_LEAVES_OTHERS, row="t-0", brokers=(2,))),
        (first(target=(2, 1, 6)), RuleCode.ONLY_AS_ASKED, coded(Code.ROW_REORDERED, row="t-0")),
        (first(target=(3, 1, 2)), RuleCode.ONLY_AS_ASKED, coded(Code.ROW_ON_DRAINED, row="t-0", brokers=(3,))),
        (
            lambda rows: [*rows, PartitionMove("t", "id-t", 2, (4, 5, 6), (5, 4, 6))],
            RuleCode.ONLY_AS_ASKED,
            coded(Code.ROW_NOT_ASKED_FOR, row="t-2"),
        ),
        (
            first(target=(1, 2, 4)),
            RuleCode.SPREAD_OVER_RACKS,
            coded(Code.ROW_IN_FEWER_RACKS, row="t-0", after=2, before=3),
        ),
        (lambda rows: rows[1:], RuleCode.COUNTS, coded(Code.BROKER_NOT_EMPTY, broker=3, replicas=1)),
        (
            first(target=(1, 2, 9)),
            RuleCode.DISK,
            coded(Code.BROKER_OVER_LIMIT, broker=9, peak=805, total=1000, limit=80.0),
        ),
    ],
)
def test_a_plan_with_a_fault__fails_the_rule_for_it(mutant: Mutant, rule: RuleCode, problem: CodedMessage) -> None:
    assert failed(mutant(list(PLAN)))[rule] == problem


def test_a_row_that_moves_already__is_found() -> None:
    topic = CHECKED_CLUSTER.topics["t"]
    moving = replace(topic, partitions=(replace(topic.partitions[0], moving=True), *topic.partitions[1:]))
    problems = failed(PLAN, replace(CHECKED_CLUSTER, topics={"t": moving}))
    assert problems[RuleCode.CURRENT_ASSIGNMENT] == coded(Code.ROW_MOVES_ALREADY, row="t-0")


def test_a_broker_that_was_left_out__is_found() -> None:
    problems = failed(PLAN, asked=replace(ASKED, targets=frozenset({1, 2})))
    assert problems[RuleCode.ONLY_AS_ASKED] == coded(Code.ROW_ON_LEFT_OUT, row="t-0", brokers=(6,))


def test_a_rack_with_more_than_its_share__is_found() -> None:
    cluster = topology({"t": [[1, 4, 2, 3, 6]]}, [broker(n) for n in range(1, 7)])
    rows = [PartitionMove("t", "id-t", 0, (1, 4, 2, 3, 6), (1, 4, 2, 5, 6))]
    asked = CheckRequest("drain", frozenset({3}))
    assert RuleCode.SPREAD_OVER_RACKS not in failed(rows, cluster, asked)
    cluster = topology({"t": [[1, 4, 2, 3]]}, [*OWN, broker(10, "a")])
    rows = [PartitionMove("t", "id-t", 0, (1, 4, 2, 3), (1, 4, 2, 10))]
    asked = CheckRequest("drain", frozenset({3}), fewer_racks=True)
    assert failed(rows, cluster, asked)[RuleCode.SPREAD_OVER_RACKS] == coded(
        Code.ROW_UNEVEN, row="t-0", held=3, rack="a", fewer=0, other="c"
    )


def test_a_replica_larger_than_any_directory__is_found() -> None:
    two = replace(broker(6), dirs=(LogDirectory("/a", 1000, 790), LogDirectory("/b", 1000, 785)))
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), two], size=20)
    rows = [PartitionMove("t", "id-t", 0, (1, 2, 3), (1, 2, 6))]
    assert failed(rows, cluster)[RuleCode.DISK] == coded(Code.NO_DIRECTORY_HOLDS_IT, broker=6, size=20)


def test_totals_of_another_plan__are_found() -> None:
    rules = check(PLAN, CHECKED_CLUSTER, ASKED, impact_of(PLAN[1:], CHECKED_CLUSTER))
    assert rules[-1].passed is False
    assert rules[-1].problems == (
        coded(Code.TOTAL_COPIED_DIFFERS, rows=30, report=20),
        coded(Code.TOTAL_ROWS_DIFFERS, rows=3, report=2),
        coded(Code.TOTAL_OF_BROKER_DIFFERS, broker=6, rows=30, report=20),
    )


def test_what_cannot_be_judged__is_neither_passed_nor_failed() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=None), replace(broker(4), rack=None)]
    cluster = topology({"t": [[1, 2, 3]]}, own)
    rules = {r.code: r for r in check([PartitionMove("t", "id-t", 0, (1, 2, 3), (1, 2, 6))], cluster, ASKED)}
    for rule, problem in (
        (rules[RuleCode.DISK], coded(Code.DISK_NOT_KNOWN, brokers=(6,))),
        (rules[RuleCode.SPREAD_OVER_RACKS], coded(Code.BROKERS_WITHOUT_RACK, brokers=(4,))),
    ):
        assert (rule.passed, rule.problems) == (None, (problem,))


def test_many_problems__are_counted_where_they_are_not_listed() -> None:
    cluster = topology({"t": [[1, 2, 3]] * 150}, OWN)
    rows = [PartitionMove("t", "id-t", n, (1, 2, 3), (1, 2)) for n in range(150)]
    rule = check(rows, cluster, ASKED)[1]
    assert (len(rule.problems), rule.problems[-1], rule.figure) == (101, coded(Code.MORE_FAULTS, more=50), "0 of 150")


@given(clusters(), st.data())
def test_every_drain_of_any_cluster__passes(cluster: ClusterTopology, data: st.DataObject) -> None:
    leaving = tuple(sorted(data.draw(st.sets(st.sampled_from(sorted(cluster.brokers)), min_size=1, max_size=3))))
    accept = data.draw(st.booleans())
    request = PlanRequest(DRAIN, leaving, disk_limit=0.9, accept_fewer_racks=accept)
    planned = plan(cluster, request)
    assume(not planned.problems)
    asked = CheckRequest("drain", frozenset(leaving), disk_limit=0.9, fewer_racks=accept)
    rules = check(planned.rows, cluster, asked, impact_of(planned.rows, cluster))
    assert [rule for rule in rules if not rule.passed] == []


@given(clusters(racks=True), st.data())
def test_a_drain_with_one_target_changed_to_something_else_that_stays__never_passes(
    cluster: ClusterTopology, data: st.DataObject
) -> None:
    planned = plan(cluster, PlanRequest(DRAIN, (1,), accept_fewer_racks=True))
    assume(planned.rows)
    index = data.draw(st.integers(0, len(planned.rows) - 1))
    row = planned.rows[index]
    kept = [b for b in row.current if b != 1]
    assume(kept)
    gone = data.draw(st.sampled_from(kept))
    free = [b for b in sorted(cluster.brokers) if b not in row.target and b not in row.current]
    assume(free)
    target = tuple(free[0] if b == gone else b for b in row.target)
    rows = [*planned.rows[:index], replace(row, target=target), *planned.rows[index + 1 :]]
    assert RuleCode.ONLY_AS_ASKED in failed(rows, cluster, CheckRequest("drain", frozenset({1}), fewer_racks=True))


NOW = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
READ = NOW - timedelta(seconds=10)
FRESH = RefreshStatus(READ)
CLUSTER = topology({"orders": [[1, 2, 3], [3, 1, 2]]}, [broker(n) for n in RACKS], min_isr=2)
ROWS = [row(CLUSTER, "orders", 0, [1, 2, 6]), row(CLUSTER, "orders", 1, [1, 6, 2])]
OPTIONS = RunOptions(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000)
SEEN = ClusterSeen(CLUSTER, {}, FRESH, FRESH, FRESH, FRESH)
ONE_WORSE = "0 → 1 violation, 1 worse"


def checked(
    seen: ClusterSeen = SEEN,
    rows: Sequence[PartitionMove] = ROWS,
    options: RunOptions = OPTIONS,
    limits: PreconditionLimits = PreconditionLimits(disk=0.8),  # noqa: B008  immutable
) -> CheckOutcome:
    return check_preconditions(rows, options, limits, seen, NOW)


def one(code: str, **given: Any) -> ChangeCheck:
    return next(check for check in checked(**given).checks if check.code == code)


def failing(code: str, **given: Any) -> list[CodedMessage]:
    check = one(code, **given)
    assert check.result is CheckResult.FAILED
    assert check.problem_count >= len(check.problems)
    return list(check.problems)


def with_partition(number: int, cluster: ClusterTopology = CLUSTER, **changes: Any) -> ClusterSeen:
    topic = cluster.topics["orders"]
    partitions = tuple(replace(p, **changes) if p.partition == number else p for p in topic.partitions)
    return with_topic(partitions=partitions)


def with_topic(**changes: Any) -> ClusterSeen:
    topic = replace(CLUSTER.topics["orders"], **changes)
    return replace(SEEN, topology=replace(CLUSTER, topics={"orders": topic}))


def with_broker(id_: int, **changes: Any) -> ClusterSeen:
    changed = replace(CLUSTER.brokers[id_], **changes)
    return replace(SEEN, topology=replace(CLUSTER, brokers={**CLUSTER.brokers, id_: changed}))


def test_everything_is_well__all_pass_in_the_order_of_the_page() -> None:
    result = checked()
    assert [(c.code, c.about, c.result, c.figure) for c in result.checks] == [
        ("as_planned", CheckSubject.CONTENT, CheckResult.PASSED, "2 of 2"),
        ("not_moving", CheckSubject.CONTENT, CheckResult.PASSED, "0"),
        ("replication_factor", CheckSubject.CONTENT, CheckResult.PASSED, "2 of 2"),
        ("targets_alive", CheckSubject.HEALTH, CheckResult.PASSED, "1 of 1"),
        ("not_cordoned", CheckSubject.HEALTH, CheckResult.PASSED, "1 of 1"),
        ("quorum", CheckSubject.HEALTH, CheckResult.PASSED, ""),
        ("disk", CheckSubject.HEALTH, CheckResult.PASSED, "12.0 %, broker 6"),
        ("rack_spread", CheckSubject.HEALTH, CheckResult.PASSED, "0 → 0 violations"),
        ("min_isr", CheckSubject.HEALTH, CheckResult.PASSED, "0"),
        ("throttle", CheckSubject.HEALTH, CheckResult.PASSED, "60.0 > 0.0 MB/s"),
        ("window", CheckSubject.HEALTH, CheckResult.PASSED, "no end"),
    ]
    assert result.facts_at == READ
    assert result.checks[6].title == coded(CheckTitle.DISK_BELOW_LIMIT, limit=80.0)


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        *(
            (
                with_partition(0, replicas=there),
                coded(Code.OTHER_THAN_PLANNED, row="orders-0", replicas=there, expected=(1, 2, 3)),
            )
            for there in ((2, 6, 4), (2, 1, 3))
        ),
        (
            with_partition(0, replicas=(1, 2, 6)),
            coded(Code.AS_PLANNED_ALREADY, row="orders-0", replicas=(1, 2, 6), expected=(1, 2, 3)),
        ),
        (with_topic(id="another"), coded(Code.TOPIC_REPLACED, topic="orders")),
        (with_topic(partitions=CLUSTER.topics["orders"].partitions[:1]), coded(Code.GONE, name="orders-1")),
        (replace(SEEN, topology=replace(CLUSTER, topics={})), coded(Code.GONE, name="orders")),
    ],
)
def test_content__another_cluster_than_planned__tells_which_row_and_how(
    seen: ClusterSeen, problem: CodedMessage
) -> None:
    assert failing("as_planned", seen=seen) == [problem]


def test_content__figures_count_rows_where_one_problem_is_for_all_of_a_topic() -> None:
    assert one("as_planned", seen=with_topic(id="another")).figure == "0 of 2"


def test_content__somebody_moves_a_partition__is_told_once() -> None:
    moving = {("orders", 1): MovingPartitions(frozenset({5}), frozenset({2}))}
    seen = replace(with_partition(1, replicas=(3, 1, 2, 5)), moving=moving)
    assert failing("not_moving", seen=seen) == [
        coded(Code.MOVING_BY_OTHERS, row="orders-1", adding=(5,), removing=(2,))
    ]
    assert one("as_planned", seen=seen).result is CheckResult.PASSED


def test_content__replication_factor__changes_only_with_the_word_for_it() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2])]
    assert failing("replication_factor", rows=rows) == [
        coded(Code.FACTOR_CHANGES, row="orders-0", replicas=3, target=2)
    ]
    allowed = one("replication_factor", rows=rows, options=replace(OPTIONS, change_rf=True))
    assert (allowed.result, allowed.figure) == (CheckResult.PASSED, "1 of 1")


def test_content__replication_factor__never_goes_below_min_isr() -> None:
    rows = [row(CLUSTER, "orders", 0, [1])]
    problems = failing("replication_factor", rows=rows, options=replace(OPTIONS, change_rf=True))
    assert problems == [coded(Code.FACTOR_UNDER_MIN_ISR, row="orders-0", target=1, needed=2)]


@pytest.mark.parametrize(
    ("code", "seen", "problem"),
    [
        ("targets_alive", with_broker(6, fenced=True), coded(Code.TARGET_FENCED, broker=6)),
        ("targets_alive", with_broker(6, alive=False), coded(Code.TARGET_NOT_REGISTERED, broker=6)),
        ("targets_alive", with_broker(6, silent=True), coded(Code.TARGET_SILENT, broker=6)),
        (
            "not_cordoned",
            with_broker(6, dirs=(replace(broker(6).dirs[0], cordoned=True),)),
            coded(Code.TARGET_CORDONED, broker=6),
        ),
        (
            "disk",
            with_broker(6, dirs=(replace(broker(6).dirs[0], used_bytes=790),)),
            coded(Code.DISK_TOO_SMALL, broker=6, share=0.81, coming=20, room=10),
        ),
        (
            "disk",
            with_broker(6, dirs=tuple(LogDirectory(f"/{n}", 1000, 795) for n in range(4))),
            coded(Code.DIRECTORIES_TOO_SMALL, broker=6, replica=10, room=5),
        ),
        (
            "quorum",
            replace(SEEN, quorum=RefreshStatus(READ, failures=2, failure=FailureKind.QUORUM_UNAVAILABLE)),
            coded(Code.QUORUM_LOST),
        ),
        (
            "min_isr",
            with_partition(0, isr=(1,)),
            coded(Code.LAGGING, row="orders-0", in_sync=1, needed=2, brokers=(2, 3)),
        ),
        ("min_isr", with_partition(0, leader=None), coded(Code.LEADERLESS, row="orders-0")),
        (
            "throttle",
            with_partition(0, bytes_in_per_s=70e6),
            coded(Code.THROTTLE_TOO_LOW, broker=6, inbound=pytest.approx(70.0), throttle=60.0),
        ),
    ],
)
def test_health__what_is_wrong__is_told(code: str, seen: ClusterSeen, problem: CodedMessage) -> None:
    assert failing(code, seen=seen) == [problem]


def test_health__under_min_isr__is_no_reason_where_the_row_repairs_it_or_the_missing_broker_is_away() -> None:
    repaired = [row(CLUSTER, "orders", 0, [1, 5, 6])]
    assert one("min_isr", seen=with_partition(0, isr=(1,)), rows=repaired).result is CheckResult.PASSED
    away = {n: replace(CLUSTER.brokers[n], fenced=n in (2, 3)) for n in CLUSTER.brokers}
    seen = with_partition(0, isr=(1,))
    offline = replace(seen, topology=replace(seen.topology, brokers=away))
    assert one("min_isr", seen=offline).result is CheckResult.PASSED


def test_health__spread_that_gets_worse__fails_unless_it_was_accepted() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2, 4])]
    assert failing("rack_spread", rows=rows) == [coded(Code.SPREAD_WORSE, row="orders-0", replicas=(1, 2, 4))]
    accepted = one("rack_spread", rows=rows, options=replace(OPTIONS, may_lose_racks=True))
    assert (accepted.result, accepted.title) == (CheckResult.PASSED, coded(CheckTitle.SPREAD_AS_ACCEPTED))
    assert (accepted.figure, accepted.lasting) == (ONE_WORSE, False)


def test_health__spread_of_before__is_allowed_to_a_rollback_and_said() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2, 4])]
    back = one(
        "rack_spread",
        rows=rows,
        options=replace(OPTIONS, may_lose_racks=True),
        limits=PreconditionLimits(0.8, taken_back=7),
    )
    assert (back.result, back.title) == (CheckResult.PASSED, coded(CheckTitle.SPREAD_AS_BEFORE, number=7))
    assert back.figure == ONE_WORSE


def test_lasting__is_what_no_time_mends() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2, 4])]
    assert one("rack_spread", rows=rows).lasting
    assert not one("rack_spread").lasting


@pytest.mark.parametrize(
    ("window", "result", "figure", "problems"),
    [
        (("", "2026-11-22T04:00:00Z"), CheckResult.PASSED, "12 s of 6 h", ()),
        (("2026-11-21T23:00:00Z", ""), CheckResult.PASSED, "no end", ()),
        (
            ("", "2026-11-21T21:00:00Z"),
            CheckResult.FAILED,
            "",
            (coded(Code.WINDOW_HAS_ENDED, closed="2026-11-21T21:00:00+00:00"),),
        ),
        (
            ("2026-11-22T03:59:59Z", "2026-11-22T04:00:00Z"),
            CheckResult.FAILED,
            "32 s of 1 s",
            (coded(Code.WINDOW_TOO_SHORT, needs=32.0, length=1.0),),
        ),
    ],
)
def test_health__the_run_has_to_fit_the_window(
    window: tuple[str, str], result: CheckResult, figure: str, problems: tuple[CodedMessage, ...]
) -> None:
    slow = 1 if result is CheckResult.FAILED else OPTIONS.throttle
    options = replace(OPTIONS, not_before=window[0], not_after=window[1], throttle=slow)
    check = one("window", options=options)
    assert (check.result, check.figure, check.problems) == (result, figure, problems)
    assert check.amount == 20  # bytes through the busiest broker, by the sizes of now
    assert unpack_dataclass(ChangeCheck, pack_dataclass(check)) == check


OLD = RefreshStatus(NOW - timedelta(minutes=5))


@pytest.mark.parametrize(
    ("kind", "facts", "codes"),
    [
        ("metadata", FactKind.TOPICS_AND_BROKERS, {"as_planned", "targets_alive", "rack_spread", "min_isr"}),
        ("reassignments", FactKind.REASSIGNMENTS, {"not_moving"}),
        ("log_dirs", FactKind.LOG_DIRECTORIES, {"not_cordoned", "disk"}),
        ("quorum", None, {"quorum"}),
    ],
)
def test_facts_that_are_missing_or_old__leave_their_checks_unknown_and_never_passed(
    kind: str, facts: FactKind | None, codes: set[str]
) -> None:
    never, long_ago = coded(Code.QUORUM_NEVER_READ), coded(Code.QUORUM_READ_LONG_AGO, ago=300.0)
    if facts:
        never = coded(Code.FACTS_NEVER_READ, facts=facts)
        long_ago = coded(Code.FACTS_READ_LONG_AGO, facts=facts, ago=300.0)
    for read, why in ((NEVER, never), (OLD, long_ago)):
        result = checked(seen=replace(SEEN, **{kind: read}))  # type: ignore[arg-type]
        assert {check.code for check in result.unknown} == codes
        assert all(check.problems == (why,) for check in result.unknown)
        assert result.facts_at == read.taken_at


@pytest.mark.parametrize(
    ("code", "seen", "why"),
    [
        ("not_cordoned", with_broker(6, dirs=()), coded(Code.DIRECTORIES_UNREAD, brokers=(6,))),
        ("disk", with_broker(6, dirs=()), coded(Code.DISK_NOT_KNOWN, brokers=(6,))),
        ("disk", with_partition(0, size_bytes=None), coded(Code.SIZE_NOT_KNOWN, partitions=1)),
        (
            "min_isr",
            with_topic(min_isr=None),
            coded(Code.MIN_ISR_UNREAD, setting="min.insync.replicas", topics=1),
        ),
        ("throttle", with_partition(0, bytes_in_per_s=None), coded(Code.INBOUND_UNKNOWN, partitions=1)),
        ("rack_spread", with_broker(4, rack=None), coded(Code.RACKS_NOT_NAMED)),
    ],
)
def test_what_was_not_read_of_some__is_unknown_too(code: str, seen: ClusterSeen, why: CodedMessage) -> None:
    check = one(code, seen=seen)
    assert (check.result, check.problems) == (CheckResult.UNKNOWN, (why,))


def test_inbound_of_no_partition_measured__there_is_no_check_of_the_throttle() -> None:
    silent = tuple(replace(p, bytes_in_per_s=None) for p in CLUSTER.topics["orders"].partitions)
    codes = [check.code for check in checked(seen=with_topic(partitions=silent)).checks]
    assert "throttle" not in codes
    assert "window" in codes


def test_zookeeper__has_no_quorum_to_wait_for() -> None:
    seen = replace(SEEN, zookeeper=True, quorum=NEVER)
    quorum = one("quorum", seen=seen)
    assert (quorum.result, quorum.title) == (CheckResult.PASSED, coded(CheckTitle.CONTROLLER_ANSWERS))
    assert checked(seen=seen).facts_at == READ


def test_many_problems__the_first_are_listed_and_all_are_counted() -> None:
    cluster = topology({"orders": [[1, 2, 3]] * 300})
    rows = [replace(row(cluster, "orders", n, [1, 2, 6]), current=(3, 2, 1)) for n in range(300)]
    check = one("as_planned", rows=rows, seen=replace(SEEN, topology=cluster))
    assert (len(check.problems), check.problem_count, check.figure) == (200, 300, "0 of 300")


def test_stored_and_read_again__is_the_same() -> None:
    for made in checked(seen=with_topic(id="another")).checks:
        assert unpack_dataclass(ChangeCheck, pack_dataclass(made)) == made
