"""What people read of a plan that a planner made with a fault: nothing of it is stored, and the job tells each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.impact import Impact
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Directory, Topology
from kafkadash.domain.refusals import checked, checks
from kafkadash.domain.rule import Rule
from kafkadash.reassign.plan_words import _rule
from kafkadash.reassign.plan_work import _faults
from tests.domain.test_checker import ASKED, CLUSTER, OWN, PLAN
from tests.domain.topologies import broker, topology
from tests.refusals.driving import Case, case, each


def stored(rules: Sequence[Rule]) -> str:
    """As the job stores what failed, and as the page of the plan shows what cannot be judged."""
    rows = [rule.as_json() for rule in rules]
    judged = " ".join(str(fault) for fault in _faults({"rules": rows}))
    return " ".join([judged, *(text for row in rows if row[1] is None for text in _rule(row).problems)])


def told(
    rows: Sequence[Row], cluster: Topology = CLUSTER, asked: Asked = ASKED, impact: Impact | None = None
) -> Callable[[], str]:
    return lambda: stored(check(rows, cluster, asked, impact))


def first(**changes: object) -> Callable[[], str]:
    """The plan with another first row: of t-0, on 1, 2 and 3."""
    return told([replace(PLAN[0], **changes), *PLAN[1:]])  # type: ignore[arg-type]


def moving() -> Topology:
    topic = CLUSTER.topics["t"]
    partitions = (replace(topic.partitions[0], moving=True), *topic.partitions[1:])
    return replace(CLUSTER, topics={"t": replace(topic, partitions=partitions)})


def uneven() -> Callable[[], str]:
    cluster = topology({"t": [[1, 4, 2, 3]]}, [*OWN, broker(10, "a")])
    row = Row("t", "id-t", 0, (1, 4, 2, 3), (1, 4, 2, 10))
    return told([row], cluster, Asked("drain", frozenset({3}), fewer_racks=True))


def large() -> Callable[[], str]:
    two = replace(broker(6), dirs=(Directory("/a", 1000, 790), Directory("/b", 1000, 785)))
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), two], size=20)
    return told([Row("t", "id-t", 0, (1, 2, 3), (1, 2, 6))], cluster)


def unknown() -> Callable[[], str]:
    own = [broker(1), broker(2), broker(3), broker(6, used=None), replace(broker(4), rack=None)]
    return told([Row("t", "id-t", 0, (1, 2, 3), (1, 2, 6))], topology({"t": [[1, 2, 3]]}, own))


def unsized() -> Callable[[], str]:
    topic = CLUSTER.topics["t"]
    partitions = (replace(topic.partitions[0], size_bytes=None), *topic.partitions[1:])
    return told(PLAN, replace(CLUSTER, topics={"t": replace(topic, partitions=partitions)}))


def many() -> Callable[[], str]:
    cluster = topology({"t": [[1, 2, 3]] * 150}, OWN)
    return told([Row("t", "id-t", n, (1, 2, 3), (1, 2)) for n in range(150)], cluster)


OF_ANOTHER = told(PLAN, impact=impact_of(PLAN[1:], CLUSTER))


@each(
    case(checked.ROW_TWICE, told([*PLAN, PLAN[0]]), row="t-0"),
    case(checked.ROW_OF_NOTHING, first(partition=77), row="t-77"),
    case(checked.ROW_OF_NAMESAKE, first(topic_id="other"), row="t-0"),
    case(checked.ROW_ELSEWHERE, first(current=(1, 3, 2)), row="t-0", there="1, 2, 3", expected="1, 3, 2"),
    case(checked.ROW_CHANGES_DISK, first(log_dirs=("/a", "any", "any")), row="t-0", broker=1, path="/a"),
    case(checked.ROW_CHANGES_NOTHING, first(target=(1, 2, 3)), row="t-0"),
    case(checked.ROW_MOVES_ALREADY, told(PLAN, moving()), row="t-0"),
    case(checked.ROW_WITH_OTHER_FACTOR, first(target=(1, 2)), row="t-0", after=2, before=3),
    case(checked.ROW_WITHOUT_REPLICAS, first(target=()), row="t-0"),
    case(checked.ROW_TWICE_ON_ONE, first(target=(1, 2, 2)), row="t-0", brokers="1, 2, 2"),
    case(checked.ROW_ON_INELIGIBLE, first(target=(1, 2, 8)), row="t-0", broker=8),
    case(checked.ROW_LEAVES_OTHERS, first(target=(1, 5, 6)), row="t-0", brokers="2"),
    case(checked.ROW_ON_DRAINED, first(target=(3, 1, 2)), row="t-0", brokers="3"),
    case(checked.ROW_ON_LEFT_OUT, told(PLAN, asked=replace(ASKED, targets=frozenset({1, 2}))), brokers="6"),
    case(checked.ROW_NOT_ASKED_FOR, told([*PLAN, Row("t", "id-t", 2, (4, 5, 6), (5, 4, 6))]), row="t-2"),
    case(checked.ROW_REORDERED, first(target=(2, 1, 6)), row="t-0"),
    case(checked.ROW_IN_FEWER_RACKS, first(target=(1, 2, 4)), row="t-0", after="2 racks", before=3),
    case(checked.ROW_UNEVEN, uneven(), row="t-0", held=3, rack="a", fewer=0, other="c"),
    case(checked.BROKER_NOT_EMPTY, told(PLAN[1:]), broker=3, replicas="1 replica"),
    case(checked.BROKER_OVER_LIMIT, first(target=(1, 2, 9)), broker=9, peak="805 B", total="1.0 kB", limit=80.0),
    case(checked.NO_DIRECTORY_HOLDS_IT, large(), broker=6, size="20 B"),
    case(checked.TOTAL_COPIED_DIFFERS, OF_ANOTHER, rows="30 B", report="20 B"),
    case(checked.TOTAL_ROWS_DIFFERS, OF_ANOTHER, rows=3, report=2),
    case(checked.TOTAL_OF_BROKER_DIFFERS, OF_ANOTHER, broker=6, rows=30, report=20),
    case(checked.MORE_FAULTS, many(), more=50),
    case(checked.BROKERS_WITHOUT_RACK, unknown(), brokers="4"),
    case(checks.DISK_NOT_KNOWN, unknown(), brokers="broker 6"),
    case(checks.SIZE_NOT_KNOWN, unsized(), partitions="1 partition"),
)
def test_against_a_plan(one: Case) -> None:
    one.check()
