"""What is left of an earlier plan: the rows of its file that the cluster does not have yet."""

from __future__ import annotations

from dataclasses import replace

from kafkadash.domain.kafka_json import JsonRow, Parsed
from kafkadash.domain.planner.explicit import explicit
from kafkadash.domain.planner.planned import Planned, answer
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import placing, plan_requests
from kafkadash.domain.wording import listed_shortly

MOST_NAMED = 5


def finish(parsed: Parsed, topology: Topology, *, disk_limit: float | None = None) -> Planned:
    """Like an explicit assignment, but what moves now, or is gone since, is left out; factors may change as they were
    to change then. That nothing is left is the problem "nothing to do".
    """
    there = {(name, p.partition): p for name, topic in topology.topics.items() for p in topic.partitions}
    gone = [row for row in parsed.rows if (row.topic, row.partition) not in there]
    known = [row for row in parsed.rows if (row.topic, row.partition) in there]
    busy = [row for row in known if there[row.topic, row.partition].moving]
    left = [row for row in known if not there[row.topic, row.partition].moving]
    notices = list(parsed.notices)
    if gone:
        are = "is" if len(gone) == 1 else "are"
        notices.append(Problem(ProblemCode.GONE, plan_requests.GONE_LEFT_OUT(partitions=_named(gone), are=are)))
    if busy:
        are = "is" if len(busy) == 1 else "are"
        notices.append(Problem(ProblemCode.LEFT_OUT, placing.MOVING_LEFT_OUT(partitions=_named(busy), are=are)))
    if not left and not parsed.problems:
        return answer((), [Problem(ProblemCode.NOTHING_TO_DO, plan_requests.NOTHING_LEFT_TO_FINISH())], notices)
    return explicit(replace(parsed, rows=left, notices=notices), topology, change_rf=True, disk_limit=disk_limit)


def _named(rows: list[JsonRow]) -> str:
    return listed_shortly([row.name for row in rows], MOST_NAMED)
