"""A large cluster of fake brokers in a process of its own: ``python -m tests.bench.big_kafka TOPICS``.

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

from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel

BROKERS = 30
PARTITIONS = 20  # of each topic
REPLICAS = 3
RACKS = ("a", "b", "c")


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
def big_kafka(topics: int) -> Iterator[BigKafka]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.big_kafka", str(topics)],
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


def model(topics: int) -> ClusterModel:
    """A tenth of the topics has a config of its own, and some a throttle."""
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
    return model


def main(topics: int) -> None:
    with FakeKafka(model(topics)) as kafka:
        print(json.dumps(kafka.bootstrap_servers), flush=True)  # noqa: T201
        for line in sys.stdin:
            name = line.strip()
            kafka.model.drop_from_isr(name, 0)
            print(name, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
