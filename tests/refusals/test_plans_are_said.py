"""What is wrong with a file or with what is asked for, as the planners say it: Kafka's JSON, draining, an assignment.

The pages of a plan and of a verification list these sentences (tests/reassign/test_planning_an_assignment.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafkadash.domain.kafka_json import Parsed, read_reassignment
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.planned import Planned
from kafkadash.domain.planner.request import DRAIN, PlanRequest
from kafkadash.domain.planner.topology import Directory, Topology
from kafkadash.domain.planner.topology_json import BadTopology, read_topology
from kafkadash.domain.refusals import asked, files, planning
from tests.domain.test_drain import THREE
from tests.domain.test_explicit import CLUSTER
from tests.domain.test_explicit import plan as assign
from tests.domain.test_kafka_json import entry
from tests.domain.topologies import broker, topology
from tests.plan_job.test_plan_job import given as given_to_the_job
from tests.plan_job.test_plan_job import run as run_the_job
from tests.refusals.driving import Case, case, each, refused


def told(found: Parsed | Planned) -> str:
    return " ".join(str(one) for one in (*found.problems, *found.notices))


def brought(content: str | bytes) -> str:
    return told(read_reassignment(content))


def one(**fields: Any) -> str:
    """Of a file with one entry."""
    return told(entry(json.dumps({"topic": "t", "partition": 0, "replicas": [1]} | fields)))


def twice() -> str:
    row = '{"topic":"t","partition":0,"replicas":[1]}'
    return told(entry(f"{row},\n{row}"))


def exported(content: object) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content)
    return refused(BadTopology, lambda: read_topology(text))


PARTITION = {"partition": 0, "replicas": [1]}
HUGE = {**PARTITION, "size_bytes": 9 * 10**16}
ENTRY = '{"topic":"t","partition":0,"replicas":[1]}'


@each(
    case(files.MARK_IGNORED, lambda: brought("\ufeff{}")),
    case(files.UTF_16, lambda: brought("{}".encode("utf-16"))),
    case(files.NOT_UTF_8, lambda: brought("{ä}".encode("latin-1")), byte=0xE4),
    case(files.NOTHING_IN_IT, lambda: brought(" ")),
    case(files.NOT_JSON, lambda: brought("hello"), fault="a value is missing here"),
    case(
        files.GENERATED,
        lambda: brought("Current partition replica assignment\n{}"),
        heading="Proposed partition reassignment configuration",
    ),
    case(files.NO_OBJECT, lambda: brought("[]"), found="a list"),
    case(files.TOPICS_TO_MOVE, lambda: brought('{"topics":[]}')),
    case(files.NOTHING_ASKED_FOR, lambda: brought('{"partitions":[]}'), field='"partitions"'),
    case(files.OTHER_VERSION, lambda: brought(f'{{"version":2,"partitions":[{ENTRY}]}}'), found="2"),
    case(files.VERSION_MISSING, lambda: brought(f'{{"partitions":[{ENTRY}]}}')),
    case(files.FIELD_UNKNOWN, lambda: one(colour="red"), field='"colour"', more=""),
    case(files.FIELD_MISSING, lambda: brought('{"version":1}'), where="The object", field='"partitions"'),
    case(
        files.FIELD_OF_OTHER_SHAPE,
        lambda: one(replicas=7),
        field='t-0: "replicas"',
        found="a number",
        wanted="a list of broker ids",
    ),
    case(files.FIELD_TWICE, lambda: told(entry('{"topic":"t","topic":"t"}')), field='"topic"'),
    case(files.STANDS_TWICE, twice, again="t-0", line=3),
    case(files.TOO_MANY_PROBLEMS, lambda: brought('{"partitions":[' + "1,\n" * 10_001 + "1]}"), most=10_000),
    case(files.NO_NAME_OF_A_TOPIC, lambda: one(topic="a b"), field='"topic"', found='"a b"'),
    case(files.NO_REPLICAS, lambda: one(replicas=[]), row="t-0"),
    case(files.NO_ID_OF_A_BROKER, lambda: one(replicas=[-2]), row="t-0", found="-2", more=""),
    case(files.REPLICA_TWICE, lambda: one(replicas=[1, 2, 1]), row="t-0", broker=1, times="twice"),
    case(files.DIRECTORIES_NO_LIST, lambda: one(log_dirs="/d"), row="t-0", field='"log_dirs"'),
    case(
        files.DIRECTORIES_NOT_AS_MANY,
        lambda: one(log_dirs=["/a", "/b"]),
        replicas="1 replica",
        directories="2 log directories",
    ),
    case(files.DIRECTORY_NOT_ABSOLUTE, lambda: one(log_dirs=["d"]), row="t-0"),
    case(files.DIRECTORY_IMPOSSIBLE, lambda: one(log_dirs=["/\t"]), path='"/\\t"'),
    case(files.TOPOLOGY_NOT_UTF_8, lambda: exported(b"\xff{")),
    case(files.TOPOLOGY_NOT_JSON, lambda: exported(b"{")),
    case(files.TOPOLOGY_TWICE, lambda: exported({"brokers": [{"id": 1}] * 2, "topics": []}), one="Broker 1"),
    case(
        files.TOPOLOGY_PARTITION_TWICE,
        lambda: exported({"brokers": [], "topics": [{"name": "t", "partitions": [PARTITION] * 2}]}),
        where="Topic t",
        partition=0,
    ),
    case(
        files.TOPOLOGY_TOO_LARGE,
        lambda: exported({"brokers": [], "topics": [{"name": "t", "partitions": [HUGE, {**HUGE, "partition": 1}]}]}),
        total="180.0 PB",
        most="144.1 PB",
    ),
    case(files.TOPOLOGY_SHAPE, lambda: exported([]), field="The topology", wanted="an object"),
)
def test_what_is_wrong_with_a_file(one: Case) -> None:
    one.check()


def drained(*brokers: int, cluster: Topology = THREE, **how: Any) -> str:
    return told(plan(cluster, PlanRequest(DRAIN, brokers, **how)))


def with_partition(cluster: Topology, **changes: Any) -> Topology:
    topic = cluster.topics["t"]
    return replace(cluster, topics={"t": replace(topic, partitions=(replace(topic.partitions[0], **changes),))})


SMALL = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), broker(6, used=790)], size=40)
"""Only broker 6 can take what leaves broker 3."""
IN_TWO_DIRECTORIES = replace(broker(6), dirs=(Directory("/a", 1000, 790), Directory("/b", 1000, 785)))
RACKLESS = topology({"t": [[1, 2, 3]]}, [*(broker(n) for n in range(1, 7)), broker(7)])


def small(size: int | None = 40, last: Any = SMALL.brokers[6]) -> str:
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), last], size=size)
    return drained(3, cluster=cluster, disk_limit=0.8)


@each(
    case(asked.NO_BROKER_NAMED, drained),
    case(asked.BROKERS_UNKNOWN, lambda: drained(9), brokers="broker 9", there="there are 1, 2, 3, 4, 5 and 6"),
    case(asked.TARGETS_UNKNOWN, lambda: drained(3, targets=(7,)), brokers="broker 7"),
    case(asked.ALL_WOULD_BE_DRAINED, lambda: drained(1, 2, 3, 4, 5, 6)),
    case(asked.NO_TARGET, lambda: drained(3, targets=())),
    case(asked.NOTHING_TO_DRAIN, lambda: drained(3, cluster=topology({"t": [[1, 2]]})), brokers="Broker 3"),
    case(asked.HOLDS_NOTHING, lambda: drained(1, 3, cluster=topology({"t": [[1, 2]]})), brokers="Broker 3"),
    case(asked.TOO_FEW_BROKERS, lambda: drained(3, 4, 5, 6), topic="t", replicas="3 replicas", brokers="2 brokers"),
    case(asked.RACKS_MIXED, lambda: drained(3, cluster=RACKLESS), brokers="Broker 7", verb="names"),
    case(asked.LAST_OF_A_RACK, lambda: drained(3, 6), brokers="Brokers 3 and 6", racks="rack c"),
    case(
        asked.LEADER_MISSING,
        lambda: drained(3, cluster=with_partition(THREE, leader=None, replicas=(3, 1, 2))),
        partitions="t-0",
    ),
    case(asked.MOVES_ALREADY, lambda: drained(3, cluster=with_partition(THREE, moving=True)), row="t-0"),
    case(asked.DISK_LIMIT, small, broker=6, share="83.0 %", used="790 B", coming="40 B", limit=80, room="10 B"),
    case(
        asked.DISK_LIMIT_OF_A_DIRECTORY,
        lambda: small(20, IN_TWO_DIRECTORIES),
        broker=6,
        replica="20 B",
        room="15 B",
        limit=80,
    ),
    case(asked.DISK_UNJUDGED, lambda: small(10, broker(6, total=None, used=None)), brokers="broker 6"),
    case(asked.SIZE_UNJUDGED, lambda: small(None), partitions="1 partition that moves"),
)
def test_what_cannot_be_drained(one: Case) -> None:
    one.check()


def assigned(*entries: Sequence[int] | dict[str, Any], cluster: Topology = CLUSTER) -> str:
    """To a cluster where 6 is fenced and 7 away: t-0 is on 1, 2, 3; t-1 on 2, 3, 1; t-2 on 7, 1, 2."""
    return told(assign([one if isinstance(one, dict) else {"replicas": one} for one in entries], cluster))


@each(
    case(asked.ALL_AS_ASKED, lambda: assigned([1, 2, 3]), partitions="The only partition of the file is"),
    case(
        asked.SOME_AS_ASKED,
        lambda: assigned([1, 2, 4], {"partition": 1, "replicas": [2, 3, 1]}),
        partitions="1 partition",
    ),
    case(asked.PARTITION_UNKNOWN, lambda: assigned({"partition": 9, "replicas": [1]}), row="t-9", topic="t"),
    case(asked.TOPIC_UNKNOWN, lambda: assigned({"topic": "x", "replicas": [1]}), topic="x", more=""),
    case(asked.BROKER_UNKNOWN, lambda: assigned([1, 2, 9]), broker=9, more=""),
    case(asked.BROKER_UNFIT, lambda: assigned([1, 2, 6]), broker=6, why="is fenced", more=""),
    case(
        asked.KEPT_ON_ONE_AWAY,
        lambda: assigned({"partition": 2, "replicas": [7, 1, 3]}),
        partitions="1 partition",
        keep="keeps",
        broker=7,
    ),
    case(asked.OTHER_FACTOR, lambda: assigned([1, 2]), row="t-0", replicas="3 replicas", target=2),
    case(
        asked.DIRECTORY_UNKNOWN,
        lambda: assigned({"replicas": [1, 2, 4], "log_dirs": ["any", "any", "/x"]}),
        broker=4,
        path="/x",
        paths="/d",
    ),
    case(
        asked.DIRECTORIES_ONLY,
        lambda: assigned({"replicas": [1, 2, 3], "log_dirs": ["/d", "any", "any"]}),
        row="t-0",
    ),
    case(
        asked.DIRECTORY_OF_ONE_THAT_STAYS,
        lambda: assigned({"replicas": [1, 2, 4], "log_dirs": ["any", "/d", "/d"]}),
        broker=2,
        path="/d",
    ),
)
def test_what_cannot_be_assigned(one: Case) -> None:
    one.check()


def out_of_memory(folder: Path) -> str:
    upload = b'{"version":1,"partitions":[' + b" " * 80_000_000 + b"]}"
    given_to_the_job(folder, {"mode": "explicit"}, upload, memory_bytes=270_000_000)
    _, result, _ = run_the_job(folder)
    return " ".join(problem["sentence"] for problem in result["problems"])


@each(case(planning.PLANNER_OUT_OF_MEMORY, out_of_memory, most=0.3))
def test_in_the_process_that_plans(one: Case, tmp_path: Path) -> None:
    one.check(tmp_path)
