"""Faults of a plan, as the job, the checker and the commands report them.

Faults of files and requests that cannot be met are tested by code with their planners (``tests/planning``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkadash.changes.plan import PartitionMove, PlanErrorCode
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.job import _list_checker_faults
from kafkadash.planning.kafka_json import ParsedFile
from kafkadash.planning.problem_codes import CheckedRule, CheckErrorCode, FileErrorCode
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.request import ADD, BALANCE, DRAIN, REPLACE, SET_RF, PlanProof, PlanRequest
from kafkadash.planning.solver.request_problems import PlanAnswer, problems_of
from kafkadash.planning.topology import BadTopology, ClusterTopology, read_topology
from kafkadash.planning.wizard import _rule
from tests.planning.test_checks import ASKED, CHECKED_CLUSTER, PLAN
from tests.planning.test_kafka_json import entry
from tests.planning.test_plan_requests import THREE
from tests.planning.test_planning_commands import Desk
from tests.planning.topologies import GB, broker, row, topology
from tests.refusals.driving import Case, case, each, refused


def told(found: ParsedFile | PlanAnswer) -> str:
    return " ".join(str(one) for one in (*found.problems, *found.notices))


def one(**fields: Any) -> str:
    """Of a file with one entry."""
    return told(entry(json.dumps({"topic": "t", "partition": 0, "replicas": [1]} | fields)))


def exported(content: object) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content)
    return refused(BadTopology, lambda: read_topology(text))


PARTITION = {"partition": 0, "replicas": [1]}
HUGE = {**PARTITION, "size_bytes": 9 * 10**16}


@each(
    case(
        FileErrorCode.TOPOLOGY_TOO_LARGE,
        lambda: exported({"brokers": [], "topics": [{"name": "t", "partitions": [HUGE, {**HUGE, "partition": 1}]}]}),
        total=180 * 10**15,
    ),
)
def test_what_is_wrong_with_a_file(one: Case) -> None:
    one.check()


def drained(*brokers: int, cluster: ClusterTopology = THREE, **how: Any) -> str:
    return told(plan(cluster, PlanRequest(DRAIN, brokers, **how)))


def with_partition(cluster: ClusterTopology, **changes: Any) -> ClusterTopology:
    topic = cluster.topics["t"]
    return replace(cluster, topics={"t": replace(topic, partitions=(replace(topic.partitions[0], **changes),))})


"""Only broker 6 can take what leaves broker 3."""


@each(
    case(
        PlanErrorCode.LEADER_MISSING,
        lambda: drained(3, cluster=with_partition(THREE, leader=None, replicas=(3, 1, 2))),
        partitions=("t-0",),
    ),
)
def test_what_cannot_be_drained(one: Case) -> None:
    one.check()


REQUESTED_CLUSTER = topology(
    {"t": [[1, 2, 3]], "u": [[4, 5, 6]]}, [*(broker(n) for n in range(1, 6)), broker(6, used=850)]
)


def asked(mode: str, *brokers: int, **more: Any) -> str:
    return " ".join(str(one) for one in problems_of(PlanRequest(mode, brokers, **more), REQUESTED_CLUSTER))


@each(
    case(PlanErrorCode.NO_BROKERS_TO_REPLACE, lambda: asked(REPLACE)),
    case(PlanErrorCode.REPLACED_BY_ITSELF, lambda: asked(REPLACE, 3, replacements=(3,)), brokers=(3,)),
    case(
        PlanErrorCode.ALL_TOPICS_EXCLUDED,
        lambda: asked(DRAIN, 3, pattern="t", excluded="."),
        topics=2,
        pattern=".",
    ),
    case(PlanErrorCode.TOPICS_UNKNOWN, lambda: asked(DRAIN, 3, topics=("t", "x")), topics=("x",)),
)
def test_what_cannot_be_given(one: Case) -> None:
    one.check()


RACKLESS_BROKERS = [broker(n, "a") for n in range(1, 5)]
SKEWED = topology({"t": [[1, 2], [1, 2], [1, 2]], "u": [[3]]}, RACKLESS_BROKERS)
RACKS = topology({"t": [[1, 2, 3], [1, 2, 3]]})
TWO = topology({"t": [[1, 2], [2, 1]]}, RACKLESS_BROKERS)


def planned(cluster: ClusterTopology, request: PlanRequest) -> str:
    found = plan(cluster, request)
    return " ".join(str(one) for one in (*found.problems, *found.notices))


def balanced_of(sizes: Sequence[int], brokers: int = 4) -> str:
    """Of partitions with one replica each on brokers of one rack."""
    cluster = topology(
        {"t": [[1 + n % brokers] for n in range(len(sizes))]}, [broker(n + 1, "a") for n in range(brokers)]
    )
    topic = cluster.topics["t"]
    partitions = tuple(replace(p, size_bytes=size) for p, size in zip(topic.partitions, sizes, strict=True))
    return planned(
        replace(cluster, topics={"t": replace(topic, partitions=partitions)}), PlanRequest(BALANCE, eps=0.05)
    )


@each(
    case(
        PlanErrorCode.KEEPS_MORE_THAN_ALLOWED,
        lambda: planned(SKEWED, PlanRequest(SET_RF, factor=3, most_replicas=2)),
        broker=1,
        replicas=3,
        most=2,
    ),
    case(PlanErrorCode.OUTSIDE_FOR_A_LARGE_ONE, lambda: balanced_of([900, 10, 10, 10]), broker=1, partition="t-0"),
    case(PlanErrorCode.OUTSIDE_FOR_THE_REST, lambda: balanced_of([900, 10, 10, 10]), broker=2),
    case(
        PlanErrorCode.OUTSIDE_AND_STUCK,
        lambda: balanced_of([50, 50, 60, 10, 70, 80, 30]),
        broker=1,
        held=100,
        mean=88,
    ),
    case(PlanErrorCode.MORE_OUTSIDE, lambda: balanced_of([900] * 2 + [1] * 6, brokers=8), brokers=3),
)
def test_what_a_placement_cannot_give(one: Case) -> None:
    one.check()


def judged(
    rows: Sequence[PartitionMove],
    request: PlanRequest,
    cluster: ClusterTopology = TWO,
    proof: PlanProof | None = None,
    **limits: Any,
) -> str:
    """As the job tells what failed."""
    rules: Sequence[CheckedRule] = check(
        rows, cluster, CheckRequest.of_request(replace(request, **limits)), None, proof
    )
    return " ".join(str(fault) for fault in _list_checker_faults({"rules": [pack_dataclass(rule) for rule in rules]}))


ADDED = PlanRequest(ADD, (3,))
CLAIM = PlanProof(moved=20, bound=20, prices={}, widened={})


@each(
    case(
        CheckErrorCode.ROW_OUTSIDE,
        lambda: judged([row(RACKS, "t", 0, (1, 2, 6))], PlanRequest(BALANCE, topics=("x",)), RACKS),
        row="t-0",
    ),
    case(
        CheckErrorCode.ROW_TAKES_WHAT_STAYS,
        lambda: judged([row(RACKS, "t", 0, (1, 5, 6))], PlanRequest(SET_RF, factor=3), _two_of(RACKS)),
        row="t-0",
        broker=2,
    ),
    case(
        CheckErrorCode.ROW_KEEPS_WHAT_LEAVES,
        lambda: judged([], PlanRequest(DRAIN, (1,), rebalance=True), TWO),
        row="t-0",
        broker=1,
    ),
    case(CheckErrorCode.ROW_WITH_WRONG_FACTOR, lambda: judged([], PlanRequest(SET_RF, factor=3)), row="t-0", factor=3),
    case(
        CheckErrorCode.ROW_UNEVEN_IN_RACK,
        lambda: judged([row(RACKS, "t", 0, (1, 4, 2))], PlanRequest(BALANCE), RACKS),
        row="t-0",
        held=2,
        rack="a",
        wanted=(1, 1),
    ),
    case(CheckErrorCode.BROKER_OUT_OF_BOUNDS, lambda: judged([], ADDED), broker=3, replicas=0, low=1, high=2),
    case(
        CheckErrorCode.NO_PLAN_MEETS_IT,
        lambda: judged([], PlanRequest(SET_RF, factor=5)),
        partitions=2,
    ),
    case(CheckErrorCode.BOUND_DIFFERS, lambda: judged([], PlanRequest(BALANCE), proof=CLAIM), report=20),
    case(
        CheckErrorCode.BROKER_NOT_WITHIN_EPS,
        lambda: judged([], PlanRequest(BALANCE, eps=0.05), SKEWED, proof=replace(CLAIM, disk_bound=20)),
        broker=3,
        held=10,
        eps=5,
    ),
    case(CheckErrorCode.MOVED_DIFFERS, lambda: judged([], PlanRequest(BALANCE), proof=CLAIM), rows=0, report=20),
)
def test_a_plan_that_is_not_what_was_asked_for(one: Case) -> None:
    one.check()


def _two_of(cluster: ClusterTopology) -> ClusterTopology:
    """With two replicas of each partition, so that a third is to come."""
    topic = cluster.topics["t"]
    partitions = tuple(replace(p, replicas=p.replicas[:2], isr=p.replicas[:2]) for p in topic.partitions)
    return replace(cluster, topics={"t": replace(topic, partitions=partitions)})


def stored(rules: Sequence[CheckedRule]) -> str:
    """As the job stores what failed, and as the page of the plan shows what cannot be judged."""
    rows = [pack_dataclass(rule) for rule in rules]
    judged = " ".join(str(fault) for fault in _list_checker_faults({"rules": rows}))
    return " ".join([judged, *(text for row in rows if row["passed"] is None for text in _rule(row).problems)])


def tell_check(
    rows: Sequence[PartitionMove],
    cluster: ClusterTopology = CHECKED_CLUSTER,
    asked: CheckRequest = ASKED,
    impact: PlanImpact | None = None,
) -> Callable[[], str]:
    return lambda: stored(check(rows, cluster, asked, impact))


def first(**changes: object) -> Callable[[], str]:
    """The plan with another first row: of t-0, on 1, 2 and 3."""
    return tell_check([replace(PLAN[0], **changes), *PLAN[1:]])  # type: ignore[arg-type]


def moving() -> ClusterTopology:
    topic = CHECKED_CLUSTER.topics["t"]
    partitions = (replace(topic.partitions[0], moving=True), *topic.partitions[1:])
    return replace(CHECKED_CLUSTER, topics={"t": replace(topic, partitions=partitions)})


class Teller(Desk):
    def told(self, mode: str, *words: str) -> str:
        return "".join(str(part) for part in self.plans(mode, *words))

    def not_written(self) -> str:
        self.path("plan.json.unfinished").mkdir()
        return self.told("leaders")

    def checked(self, *words: str) -> str:
        return "".join(str(part) for part in self.checks(self.brings(("t", 0, [1, 2, 3]), ("t", 1, [4, 1, 2])), *words))

    def with_no_report(self) -> str:
        return self.checked("--report", str(self.path("topology.json")))

    def with_no_topology(self) -> str:
        self.path("topology.json").write_text("{")
        return self.told("leaders")

    def with_another_report(self) -> str:
        self.plans("drain", "--brokers", "3")
        return self.checked("--report", str(self.path("report.json")))

    def with_disks_alone(self) -> str:
        given = {"brokers": [{"id": id_, "disk_bytes": GB} for id_ in (1, 2)], "topics": []}
        self.path("topology.json").write_text(json.dumps(given))
        return self.told("balance")


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    return Teller(tmp_path)


@each(
    case(
        ReassignmentErrorCode.OPTION_NO_IDS,
        lambda t: t.told("drain", "--brokers", "3,b"),
        option="--brokers",
        given="3,b",
    ),
    case(
        ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER,
        lambda t: t.told("set-rf", "--rf", "three"),
        option="--rf",
        given="three",
    ),
    case(
        ReassignmentErrorCode.OPTION_NO_WHOLE_NUMBER,
        lambda t: t.told("balance", "--max-replicas-per-broker", "x"),
        option="--max-replicas-per-broker",
    ),
    case(
        ReassignmentErrorCode.OPTION_NO_SHARE,
        lambda t: t.told("balance", "--disk-limit", "80 %"),
        option="--disk-limit",
    ),
    case(ReassignmentErrorCode.FILE_REFUSED, Teller.with_no_topology, file="topology.json"),
    case(ReassignmentErrorCode.FILE_NOT_WRITTEN, Teller.not_written, fault="Is a directory"),
    case(
        ReassignmentErrorCode.ONE_FILE_FOR_BOTH,
        lambda t: "".join(
            map(
                str,
                t.types("plan", "--topology", "x", "--mode", "leaders", "--out", "both.json", "--report", "both.json"),
            )
        ),
        file="both.json",
    ),
    case(ReassignmentErrorCode.NO_REPORT_OF_A_PLAN, Teller.with_no_report),
    case(ReassignmentErrorCode.REPORT_OF_ANOTHER_PLAN, Teller.with_another_report),
    case(ReassignmentErrorCode.ROWS_AS_NOW, Teller.checked, partitions=1),
    case(ReassignmentErrorCode.DISK_USE_RECKONED, Teller.with_disks_alone, brokers=(1, 2)),
)
def test_what_is_said(one: Case, teller: Teller) -> None:
    one.check(teller)
