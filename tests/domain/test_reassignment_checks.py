"""The checks of a reassignment before it runs, with the sentence for every way to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafkadash.domain.checks import About, Check, Checked, Result
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.planner.topology import Directory, Topology
from kafkadash.domain.reassignment_checks import Limits, Moving, Seen, judge
from kafkadash.domain.status import NEVER, Refreshed
from tests.domain.topologies import RACKS, broker, row, topology

NOW = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
READ = NOW - timedelta(seconds=10)
FRESH = Refreshed(READ)
CLUSTER = topology({"orders": [[1, 2, 3], [3, 1, 2]]}, [broker(n) for n in RACKS], min_isr=2)
ROWS = [row(CLUSTER, "orders", 0, [1, 2, 6]), row(CLUSTER, "orders", 1, [1, 6, 2])]
OPTIONS = Options(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000)
SEEN = Seen(CLUSTER, {}, FRESH, FRESH, FRESH, FRESH)


def checked(
    seen: Seen = SEEN,
    rows: Sequence[Row] = ROWS,
    options: Options = OPTIONS,
    limits: Limits = Limits(disk=0.8),  # noqa: B008  immutable
) -> Checked:
    return judge(rows, options, limits, seen, NOW)


def one(code: str, **given: Any) -> Check:
    return next(check for check in checked(**given).checks if check.code == code)


def failing(code: str, **given: Any) -> list[str]:
    check = one(code, **given)
    assert check.result is Result.FAILED
    assert check.problem_count >= len(check.problems)
    return list(check.problems)


def with_partition(number: int, cluster: Topology = CLUSTER, **changes: Any) -> Seen:
    topic = cluster.topics["orders"]
    partitions = tuple(replace(p, **changes) if p.partition == number else p for p in topic.partitions)
    return with_topic(partitions=partitions)


def with_topic(**changes: Any) -> Seen:
    topic = replace(CLUSTER.topics["orders"], **changes)
    return replace(SEEN, topology=replace(CLUSTER, topics={"orders": topic}))


def with_broker(id_: int, **changes: Any) -> Seen:
    changed = replace(CLUSTER.brokers[id_], **changes)
    return replace(SEEN, topology=replace(CLUSTER, brokers={**CLUSTER.brokers, id_: changed}))


def test_everything_is_well__all_pass_in_the_order_of_the_page() -> None:
    result = checked()
    assert [(c.code, c.about, c.result, c.figure) for c in result.checks] == [
        ("as_planned", About.CONTENT, Result.PASSED, "2 of 2"),
        ("not_moving", About.CONTENT, Result.PASSED, "0"),
        ("replication_factor", About.CONTENT, Result.PASSED, "2 of 2"),
        ("targets_alive", About.HEALTH, Result.PASSED, "1 of 1"),
        ("not_cordoned", About.HEALTH, Result.PASSED, "1 of 1"),
        ("quorum", About.HEALTH, Result.PASSED, ""),
        ("disk", About.HEALTH, Result.PASSED, "12.0 %, broker 6"),
        ("rack_spread", About.HEALTH, Result.PASSED, "0 → 0 violations"),
        ("min_isr", About.HEALTH, Result.PASSED, "0"),
        ("throttle", About.HEALTH, Result.PASSED, "60.0 > 0.0 MB/s"),
        ("window", About.HEALTH, Result.PASSED, "no end"),
    ]
    assert result.facts_at == READ
    assert [c.title for c in result.checks][6] == "Disk below 80 % during the move"


@pytest.mark.parametrize(
    ("seen", "sentences"),
    [
        (
            with_partition(0, replicas=(2, 6, 4)),
            ["orders-0: replicas are 2, 6, 4; the plan expects 1, 2, 3."],
        ),
        (
            with_partition(0, replicas=(2, 1, 3)),
            ["orders-0: replicas are 2, 1, 3; the plan expects 1, 2, 3."],
        ),
        (
            with_partition(0, replicas=(1, 2, 6)),
            ["orders-0: replicas are 1, 2, 6 already, as the plan asks; it expects 1, 2, 3 before."],
        ),
        (with_topic(id="another"), ["orders was deleted and created again since the plan."]),
        (with_topic(partitions=CLUSTER.topics["orders"].partitions[:1]), ["orders-1 does not exist any more."]),
        (replace(SEEN, topology=replace(CLUSTER, topics={})), ["orders does not exist any more."]),
    ],
)
def test_content__another_cluster_than_planned__says_which_row_and_how(seen: Seen, sentences: list[str]) -> None:
    assert failing("as_planned", seen=seen) == sentences


def test_content__figures_count_rows_where_one_sentence_is_for_all_of_a_topic() -> None:
    assert one("as_planned", seen=with_topic(id="another")).figure == "0 of 2"


def test_content__somebody_moves_a_partition__is_told_once() -> None:
    moving = {("orders", 1): Moving(frozenset({5}), frozenset({2}))}
    seen = replace(with_partition(1, replicas=(3, 1, 2, 5)), moving=moving)
    assert failing("not_moving", seen=seen) == ["orders-1 is being reassigned by somebody else (adding 5, removing 2)."]
    assert one("as_planned", seen=seen).result is Result.PASSED


def test_content__replication_factor__changes_only_with_the_word_for_it() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2])]
    assert failing("replication_factor", rows=rows) == ["orders-0 has 3 replicas and would have 2."]
    allowed = one("replication_factor", rows=rows, options=replace(OPTIONS, change_rf=True))
    assert (allowed.result, allowed.figure) == (Result.PASSED, "1 of 1")


@pytest.mark.parametrize(
    ("code", "seen", "sentences"),
    [
        ("targets_alive", with_broker(6, fenced=True), ["Broker 6 is fenced; a move to it would never end."]),
        ("targets_alive", with_broker(6, alive=False), ["Broker 6 is not registered; a move to it would never end."]),
        (
            "not_cordoned",
            with_broker(6, dirs=(replace(broker(6).dirs[0], cordoned=True),)),
            ["All log directories of broker 6 are cordoned."],
        ),
        (
            "disk",
            with_broker(6, dirs=(replace(broker(6).dirs[0], used_bytes=790),)),
            ["Broker 6 would come to 81.0 % of its disk: 20 B arrive, and there is room for 10 B."],
        ),
        (
            "disk",
            with_broker(6, dirs=tuple(Directory(f"/{n}", 1000, 795) for n in range(4))),
            ["No directory of broker 6 has room for 10 B of one partition: the emptiest has room for 5 B."],
        ),
        (
            "quorum",
            replace(SEEN, quorum=Refreshed(READ, failures=2, failure=FailureKind.QUORUM_UNAVAILABLE)),
            ["The quorum is lost: nothing can be changed before a majority of the controllers is back."],
        ),
        (
            "min_isr",
            with_partition(0, isr=(1,)),
            [
                "orders-0 is under min-ISR (1 of 2 needed replicas in sync); let brokers 2 and 3 catch up first.",
            ],
        ),
        ("min_isr", with_partition(0, leader=None), ["orders-0 has no leader; nothing can be copied."]),
        (
            "throttle",
            with_partition(0, bytes_in_per_s=70e6),
            [
                (
                    "The partitions that move to broker 6 receive 70.0 MB/s together; "
                    "copies at 60.0 MB/s would never catch up."
                ),
            ],
        ),
    ],
)
def test_health__what_is_wrong__is_said(code: str, seen: Seen, sentences: list[str]) -> None:
    assert failing(code, seen=seen) == sentences


def test_health__under_min_isr__is_no_reason_where_the_row_repairs_it_or_the_missing_broker_is_away() -> None:
    repaired = [row(CLUSTER, "orders", 0, [1, 5, 6])]
    assert one("min_isr", seen=with_partition(0, isr=(1,)), rows=repaired).result is Result.PASSED
    away = {n: replace(CLUSTER.brokers[n], fenced=n in (2, 3)) for n in CLUSTER.brokers}
    seen = with_partition(0, isr=(1,))
    offline = replace(seen, topology=replace(seen.topology, brokers=away))
    assert one("min_isr", seen=offline).result is Result.PASSED


def test_health__spread_that_gets_worse__fails_unless_it_was_accepted() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2, 4])]
    assert failing("rack_spread", rows=rows) == ["orders-0 would lie in fewer racks, or less evenly: 1, 2, 4."]
    accepted = one("rack_spread", rows=rows, options=replace(OPTIONS, may_lose_racks=True))
    assert (accepted.result, accepted.title) == (Result.PASSED, "Rack spread gets worse only as accepted")
    assert (accepted.figure, accepted.lasting) == ("0 → 1 violation, 1 worse", False)


def test_health__spread_of_before__is_allowed_to_a_rollback_and_said() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2, 4])]
    back = one(
        "rack_spread", rows=rows, options=replace(OPTIONS, may_lose_racks=True), limits=Limits(0.8, taken_back=7)
    )
    assert (back.result, back.title) == (Result.PASSED, "Rack spread becomes as it was before #7")
    assert back.figure == "0 → 1 violation, 1 worse"


def test_lasting__is_what_no_time_mends() -> None:
    rows = [row(CLUSTER, "orders", 0, [1, 2, 4])]
    assert one("rack_spread", rows=rows).lasting
    assert not one("rack_spread").lasting


@pytest.mark.parametrize(
    ("window", "result", "figure", "problems"),
    [
        (("", "2026-11-22T04:00:00Z"), Result.PASSED, "12 s of 6 h", ()),
        (("2026-11-21T23:00:00Z", ""), Result.PASSED, "no end", ()),
        (("", "2026-11-21T21:00:00Z"), Result.FAILED, "", ("The window ended at 21 Nov 21:00 UTC.",)),
        (
            ("2026-11-22T03:59:59Z", "2026-11-22T04:00:00Z"),
            Result.FAILED,
            "32 s of 1 s",
            ("It needs 32 s at least, and the window is open for 1 s.",),
        ),
    ],
)
def test_health__the_run_has_to_fit_the_window(
    window: tuple[str, str], result: Result, figure: str, problems: tuple[str, ...]
) -> None:
    slow = 1 if result is Result.FAILED else OPTIONS.throttle
    options = replace(OPTIONS, not_before=window[0], not_after=window[1], throttle=slow)
    check = one("window", options=options)
    assert (check.result, check.figure, check.problems) == (result, figure, problems)
    assert check.amount == 20, "bytes through the busiest broker, by the sizes of now"
    assert Check.from_json(check.as_json()) == check


OLD = Refreshed(NOW - timedelta(minutes=5))


@pytest.mark.parametrize(
    ("kind", "codes", "what"),
    [
        (
            "metadata",
            {"as_planned", "targets_alive", "rack_spread", "min_isr"},
            ("The topics and brokers of the cluster were never read.", "The topics and brokers were read 5 min ago"),
        ),
        (
            "reassignments",
            {"not_moving"},
            ("The reassignments of the cluster were never read.", "The reassignments were read 5 min ago"),
        ),
        ("quorum", {"quorum"}, ("The quorum was never read.", "The quorum was read 5 min ago")),
        (
            "log_dirs",
            {"not_cordoned", "disk"},
            ("The log directories of the cluster were never read.", "The log directories were read 5 min ago"),
        ),
    ],
)
def test_facts_that_are_missing_or_old__leave_their_checks_unknown_and_never_passed(
    kind: str, codes: set[str], what: tuple[str, str]
) -> None:
    for read, begins in ((NEVER, what[0]), (OLD, what[1])):
        result = checked(seen=replace(SEEN, **{kind: read}))  # type: ignore[arg-type]
        assert {check.code for check in result.unknown} == codes
        assert all(check.problems[0].startswith(begins) for check in result.unknown)
        assert result.facts_at == read.taken_at


def test_what_was_not_read_of_some__is_unknown_too() -> None:
    def why(code: str, seen: Seen) -> Mapping[str, Any]:
        check = one(code, seen=seen)
        assert check.result is Result.UNKNOWN
        return {"why": check.problems}

    assert why("not_cordoned", with_broker(6, dirs=())) == {"why": ("The log directories of broker 6 were not read.",)}
    assert why("disk", with_broker(6, dirs=())) == {"why": ("The disk of broker 6 is not known.",)}
    assert why("disk", with_partition(0, size_bytes=None)) == {"why": ("The size of 1 partition is not known.",)}
    assert why("min_isr", with_topic(min_isr=None)) == {"why": ("min.insync.replicas of 1 topic was not read.",)}
    assert why("throttle", with_partition(0, bytes_in_per_s=None)) == {
        "why": ("What 1 partition receives is not known.",)
    }
    unnamed = {"why": ("Some brokers name no rack, so the spread cannot be judged.",)}
    assert why("rack_spread", with_broker(4, rack=None)) == unnamed


def test_inbound_of_no_partition_measured__there_is_no_check_of_the_throttle() -> None:
    silent = tuple(replace(p, bytes_in_per_s=None) for p in CLUSTER.topics["orders"].partitions)
    codes = [check.code for check in checked(seen=with_topic(partitions=silent)).checks]
    assert "throttle" not in codes
    assert "window" in codes


def test_zookeeper__has_no_quorum_to_wait_for() -> None:
    seen = replace(SEEN, zookeeper=True, quorum=NEVER)
    assert (one("quorum", seen=seen).result, one("quorum", seen=seen).title) == (
        Result.PASSED,
        "The controller answers",
    )
    assert checked(seen=seen).facts_at == READ


def test_many_problems__the_first_are_listed_and_all_are_counted() -> None:
    cluster = topology({"orders": [[1, 2, 3]] * 300})
    rows = [replace(row(cluster, "orders", n, [1, 2, 6]), current=(3, 2, 1)) for n in range(300)]
    check = one("as_planned", rows=rows, seen=replace(SEEN, topology=cluster))
    assert (len(check.problems), check.problem_count, check.figure) == (200, 300, "0 of 300")


def test_stored_and_read_again__is_the_same() -> None:
    for check in checked(seen=with_topic(id="another")).checks:
        assert Check.from_json(check.as_json()) == check
