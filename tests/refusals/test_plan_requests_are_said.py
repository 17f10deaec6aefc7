"""What a plan is asked for that cannot be given, as every way of asking says it."""

from __future__ import annotations

import json
from typing import Any

from kafkadash.domain.kafka_json import read_reassignment
from kafkadash.domain.planner.finish import finish
from kafkadash.domain.planner.request import ADD, BALANCE, DRAIN, REPLACE, SET_RF, PlanRequest
from kafkadash.domain.planner.request_problems import problems_of
from kafkadash.domain.refusals import plan_requests
from tests.domain.topologies import broker, topology
from tests.refusals.driving import Case, case, each

CLUSTER = topology({"t": [[1, 2, 3]], "u": [[4, 5, 6]]}, [*(broker(n) for n in range(1, 6)), broker(6, used=850)])


def asked(mode: str, *brokers: int, **more: Any) -> str:
    return " ".join(str(one) for one in problems_of(PlanRequest(mode, brokers, **more), CLUSTER))


def finished(*rows: tuple[str, int]) -> str:
    entries = [{"topic": topic, "partition": number, "replicas": [1, 2, 3]} for topic, number in rows]
    planned = finish(read_reassignment(json.dumps({"version": 1, "partitions": entries})), CLUSTER)
    return " ".join(str(one) for one in (*planned.notices, *planned.problems))


@each(
    case(plan_requests.NO_BROKERS_TO_ADD, lambda: asked(ADD)),
    case(plan_requests.NO_BROKERS_TO_REPLACE, lambda: asked(REPLACE)),
    case(plan_requests.NO_REPLACEMENTS, lambda: asked(REPLACE, 3), brokers="broker 3"),
    case(plan_requests.REPLACED_BY_ITSELF, lambda: asked(REPLACE, 3, replacements=(3,)), brokers="Broker 3"),
    case(plan_requests.NO_FACTOR, lambda: asked(SET_RF)),
    case(plan_requests.FACTOR_TOO_LOW, lambda: asked(SET_RF, factor=0), factor=0),
    case(plan_requests.FACTOR_TOO_HIGH, lambda: asked(SET_RF, factor=7), factor=7, verb="are", brokers=6, most=6),
    case(
        plan_requests.PATTERN_WRONG,
        lambda: asked(BALANCE, pattern="t("),
        pattern="t(",
        fault="missing ), unterminated subpattern at character 2",
    ),
    case(plan_requests.PATTERN_WRONG, lambda: asked(BALANCE, excluded="*"), pattern="*"),
    case(
        plan_requests.PATTERN_WRONG,
        lambda: asked(BALANCE, pattern="a{99999999999999}"),
        fault="it is too large or too deep",
    ),
    case(
        plan_requests.NO_TOPIC_CHOSEN,
        lambda: asked(DRAIN, 3, pattern="x.*"),
        topics="2 topics",
        why="no name matches “x.*”",
    ),
    case(
        plan_requests.NO_TOPIC_CHOSEN,
        lambda: asked(DRAIN, 3, pattern="t", excluded="."),
        why="“.” excludes them",
    ),
    case(plan_requests.TOPICS_UNKNOWN, lambda: asked(DRAIN, 3, topics=("t", "x")), topics="x"),
    case(plan_requests.EPS_OUTSIDE, lambda: asked(BALANCE, eps=5.0), eps=5.0),
    case(plan_requests.DISK_LIMIT_OUTSIDE, lambda: asked(DRAIN, 3, disk_limit=80.0), limit=80.0),
    case(
        plan_requests.DISK_LIMIT_PASSED,
        lambda: asked(DRAIN, 3, targets=(6,), disk_limit=0.8),
        broker=6,
        share="85.0 %",
        used="850 B",
        total="1.0 kB",
        more="",
        limit=80.0,
    ),
    case(plan_requests.GONE_LEFT_OUT, lambda: finished(("old", 7)), partitions="old-7", are="is"),
    case(plan_requests.NOTHING_LEFT_TO_FINISH, lambda: finished(("old", 7))),
    case(plan_requests.MOST_REPLICAS_TOO_LOW, lambda: asked(BALANCE, most_replicas=0), most=0),
)
def test_what_cannot_be_given(one: Case) -> None:
    one.check()
