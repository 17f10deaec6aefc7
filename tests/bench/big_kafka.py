"""A large cluster of fake brokers in a process of its own: ``python -m tests.bench.big_kafka TOPICS [GROUPS]``.

Prints its addresses as JSON when it listens. ``TOPIC`` on a line of input takes a replica of that topic out of the ISR
and is answered with a line. Ends with its input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.contract.fake_answers import LIST_OFFSETS
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import GROUP_ANSWERS, FakeMember
from tests.contract.fake_model import ClusterModel

BROKERS = 30
PARTITIONS = 20  # of each topic
REPLICAS = 3
RACKS = ("a", "b", "c")
TOPICS_OF_GROUP = 2  # each read by a member of its own


@dataclass(frozen=True, slots=True)
class BigKafka:
    """The process, seen from the one that collects."""

    process: subprocess.Popen[str]
    bootstrap: str

    def shrink_isr(self, topic: str) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{topic}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == topic


@contextmanager
def big_kafka(topics: int, groups: int = 0) -> Iterator[BigKafka]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.big_kafka", str(topics), str(groups)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            yield BigKafka(process, ",".join(json.loads(process.stdout.readline())[:3]))
        finally:
            process.kill()


def topic_name(number: int) -> str:
    return f"topic-{number:05d}"


def model(topics: int, groups: int = 0) -> ClusterModel:
    """A tenth of the topics has a config of its own, and some a throttle. A tenth of the groups has no members."""
    model = ClusterModel(BROKERS, racks=RACKS)
    for number in range(topics):
        name = topic_name(number)
        first = number * PARTITIONS
        placement = [[(first + p + r) % BROKERS + 1 for r in range(REPLICAS)] for p in range(PARTITIONS)]
        model.add_topic(name, placement, records=100)
        if number % 10 == 0:
            model.set_config(name, "min.insync.replicas", "2")
        if number % 1000 == 0:
            model.set_config(name, "leader.replication.throttled.replicas", "*")
    for number in range(groups):
        theirs = [topic_name((number * TOPICS_OF_GROUP + n) % topics) for n in range(TOPICS_OF_GROUP)]
        everything = tuple(range(PARTITIONS))
        members = [FakeMember(f"member-{topic}", "billing", {topic: everything}) for topic in theirs]
        model.add_group(
            f"group-{number:05d}",
            type="consumer" if number % 2 else "classic",
            members=members if number % 10 else [],
            committed={topic: dict.fromkeys(everything, 90) for topic in theirs},
        )
    return model


def main(topics: int, groups: int = 0) -> None:
    with FakeKafka(model(topics, groups)) as kafka:
        kafka.cached |= {LIST_OFFSETS, *GROUP_ANSWERS}
        kafka.versions[LIST_OFFSETS] = (1, 9)  # later ones carry a time limit, and no two requests are equal
        print(json.dumps(kafka.bootstrap_servers), flush=True)  # noqa: T201
        for line in sys.stdin:
            name = line.strip()
            kafka.model.drop_from_isr(name, 0)
            print(name, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
