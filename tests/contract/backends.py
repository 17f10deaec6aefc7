"""The clusters that the contract suite runs on, and how each tells the truth past the adapter.

The fake's truth is its model. Real Kafka's truth is what its own tools print, or a raw request of this package.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil

from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import OngoingReassignment
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import Topic, load
from tests.contract import raw
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel, QuorumState
from tests.waiting import wait_until

RACKS = ("a", "b", "c")
# Numbers of DescribeConfigs' sources in the words of Kafka's tools.
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
RECORD_BYTES = 16 * 1024
THROTTLE = 400_000  # bytes/s: a move of a few MiB lasts as long as a test looks at it


class Backend(Protocol):
    name: str
    connection: Connection
    broker_ids: list[int]

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        """``records`` go into each partition."""
        ...

    def start_move(self, topic: str, partition: int, target: Sequence[int]) -> None:
        """A reassignment that stays in flight, and that copies a little whenever ``keep_moving`` is called."""
        ...

    def keep_moving(self, topic: str, partition: int, broker: int) -> None: ...

    def finish_move(self, topic: str, partition: int, broker: int) -> None:
        """What is being added on ``broker`` has all records."""
        ...

    def cancel_move(self, topic: str, partition: int) -> None: ...

    def cluster_id(self) -> str: ...

    def topic(self, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """(leader, replicas, ISR) of each partition."""
        ...

    def reassignments(self) -> list[OngoingReassignment]: ...

    def sizes(self, broker: int) -> dict[tuple[str, str, int], int]:
        """(directory, topic, partition) → bytes."""
        ...

    def end_offset(self, broker: int, topic: str, partition: int) -> int: ...

    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        """Of a topic (its name), of a broker (its id), or None: of all brokers. The value None deletes it."""
        ...

    def configs(self, owner: str | int | None) -> dict[str, tuple[str | None, str]]:
        """Config name → (value or None where it is kept back, source in Kafka's words)."""
        ...

    def finalized_features(self) -> dict[str, int]: ...

    def controller(self) -> int: ...

    def voters(self) -> dict[int, str]:
        """Voter id → directory id."""
        ...

    def frozen(self, broker: int) -> AbstractContextManager[None]: ...

    def stopped(self, broker: int) -> AbstractContextManager[None]:
        """Its process ended, and the cluster knows it."""
        ...

    def controller_servers(self) -> tuple[str, ...]:
        """host:port of the controllers' own listeners."""
        ...

    def without_controllers(self) -> AbstractContextManager[None]: ...


class FakeBackend:
    name = "fake"

    def __init__(self, kafka: FakeKafka) -> None:
        self.kafka = kafka
        self.connection = Connection("fake", 1, kafka.bootstrap_servers)
        self.broker_ids = sorted(kafka.model.brokers)

    @property
    def model(self) -> ClusterModel:
        return self.kafka.model

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        self.model.add_topic(name, placement, records=records)

    def start_move(self, topic: str, partition: int, target: Sequence[int]) -> None:
        self.model.reassign(topic, partition, target)

    def keep_moving(self, topic: str, partition: int, broker: int) -> None:
        replicas = self.model.partition(topic, partition).replicas
        self.model.fetch(topic, partition, broker, replicas[broker].log_end + 1)

    def finish_move(self, topic: str, partition: int, broker: int) -> None:
        move = self.model.partition(topic, partition)
        self.model.fetch(topic, partition, broker, move.replicas[move.leader].log_end)
        self.model.complete(topic, partition)

    def cancel_move(self, topic: str, partition: int) -> None:
        self.model.cancel(topic, partition)

    def cluster_id(self) -> str:
        return self.model.cluster_id

    def topic(self, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        return [(p.leader, tuple(p.order), tuple(p.isr)) for p in self.model.topics[name].partitions]

    def reassignments(self) -> list[OngoingReassignment]:
        return [
            OngoingReassignment(p.topic, p.index, tuple(p.order), tuple(p.adding), tuple(p.removing))
            for _, p in sorted(self.model.moving.items())
        ]

    def sizes(self, broker: int) -> dict[tuple[str, str, int], int]:
        node = self.model.brokers[broker]
        return {
            (node.directories[p.replicas[broker].directory], topic, index): p.replicas[broker].size
            for (topic, index), p in node.hosted.items()
        }

    def end_offset(self, broker: int, topic: str, partition: int) -> int:
        return self.model.partition(topic, partition).replicas[broker].log_end

    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        self.model.set_config(owner, key, value)

    def configs(self, owner: str | int | None) -> dict[str, tuple[str | None, str]]:
        configs = self.model.configs
        entries: Mapping[str, tuple[str | None, int]]
        if isinstance(owner, str):
            entries = configs.of_topic(owner)
        else:
            entries = configs.of_all_brokers() if owner is None else configs.of_broker(owner, RACKS[owner - 1])
        return {key: (value, _SOURCES[source]) for key, (value, source) in entries.items()}

    def finalized_features(self) -> dict[str, int]:
        return {name: level for name, (_, _, level) in self.model.features.items() if level is not None}

    def controller(self) -> int:
        return self.model.controller

    def voters(self) -> dict[int, str]:
        return {101: "AAAAAAAAAGUAAAAAAAAAAQ", 102: "AAAAAAAAAGYAAAAAAAAAAQ", 103: "AAAAAAAAAGcAAAAAAAAAAQ"}

    @contextmanager
    def frozen(self, broker: int) -> Iterator[None]:
        self.kafka.freeze(broker)
        try:
            yield
        finally:
            self.kafka.thaw(broker)

    def controller_servers(self) -> tuple[str, ...]:
        self.kafka.start_controllers()
        return self.kafka.controller_servers

    @contextmanager
    def stopped(self, broker: int) -> Iterator[None]:
        self.kafka.kill(broker)
        self.model.fence(broker)
        try:
            yield
        finally:
            self.kafka.start(broker)
            self.model.unfence(broker)

    @contextmanager
    def without_controllers(self) -> Iterator[None]:
        self.kafka.set_quorum(QuorumState.SILENT)
        try:
            yield
        finally:
            self.kafka.set_quorum(QuorumState.LED)


class KraftBackend:
    """Real Kafka 4.x: three brokers, three controllers of their own, two log directories each."""

    name = "kraft"

    def __init__(self, playground: Playground, scratch: Path) -> None:
        self._playground = playground
        self._scratch = scratch
        self.connection = Connection("kraft", 1, tuple(playground.bootstrap.split(",")))
        self.broker_ids = [node.node_id for node in playground.cluster.brokers]

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        size = records * RECORD_BYTES * len(placement)
        load(self._playground.bootstrap, [Topic(name, placement=placement, fill_bytes=size)])

    def start_move(self, topic: str, partition: int, target: Sequence[int]) -> None:
        file = self._move_file(topic, partition, target)
        self._tool("reassign", "--reassignment-json-file", file, "--execute", "--throttle", str(THROTTLE))

    def keep_moving(self, topic: str, partition: int, broker: int) -> None:
        """Kafka does it by itself, at the throttle's pace."""

    def finish_move(self, topic: str, partition: int, broker: int) -> None:
        """Kafka does it by itself."""

    def cancel_move(self, topic: str, partition: int) -> None:
        file = self._move_file(topic, partition, self.broker_ids[:1])  # the tool asks for replicas, and ignores them
        self._tool("reassign", "--reassignment-json-file", file, "--cancel")

    def cluster_id(self) -> str:
        return self._tool("cluster", "cluster-id").strip().removeprefix("Cluster ID: ")

    def topic(self, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        text = self._tool("topics", "--describe", "--topic", name)
        rows = re.findall(r"Partition: \d+\s+Leader: (\d+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]+)", text)
        return [(int(leader), _ids(replicas), _ids(isr)) for leader, replicas, isr in rows]

    def reassignments(self) -> list[OngoingReassignment]:
        text = self._tool("reassign", "--list")
        rows = re.findall(
            r"^(\S+)-(\d+): replicas: ([\d,]+)\.(?: adding: ([\d,]+)\.)?(?: removing: ([\d,]+)\.)?", text, re.MULTILINE
        )
        return [
            OngoingReassignment(topic, int(index), _ids(replicas), _ids(adding), _ids(removing))
            for topic, index, replicas, adding, removing in sorted(rows)
        ]

    def sizes(self, broker: int) -> dict[tuple[str, str, int], int]:
        text = self._tool("log-dirs", "--describe", "--broker-list", str(broker))
        document = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        return {
            (directory["logDir"], *_topic_and_index(partition["partition"])): partition["size"]
            for directory in document["brokers"][0]["logDirs"]
            for partition in directory["partitions"]
        }

    def end_offset(self, broker: int, topic: str, partition: int) -> int:
        types = raw.request_types(2, 7)
        question = types.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=-1)
        asked = types.ListOffsetsTopic(name=topic, partitions=(question,))
        answer = raw.ask(self._address(broker), 2, 7, replica_id=-2, isolation_level=0, topics=(asked,))
        [row] = answer.topics[0].partitions
        assert row.error_code == 0, row
        return int(row.offset)

    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        """The cluster's brokers hear of it a moment later, each for itself."""
        change = ["--delete-config", key] if value is None else ["--add-config", f"{key}=[{value}]"]
        self._tool("configs", "--alter", *_entity(owner), *change)

    def configs(self, owner: str | int | None) -> dict[str, tuple[str | None, str]]:
        """Of the tool's --all; the source is that of the first synonym, which is the one in force."""
        text = self._tool("configs", "--describe", *_entity(owner), *([] if owner is None else ["--all"]))
        rows = re.findall(r"^  (\S+?)=(.*) sensitive=(true|false) synonyms=\{(.*)\}$", text, re.MULTILINE)
        return {
            name: (
                None if sensitive == "true" or value == "null" else value,
                synonyms.partition(":")[0] or "DEFAULT_CONFIG",
            )
            for name, value, sensitive, synonyms in rows
        }

    def finalized_features(self) -> dict[str, int]:
        answer = raw.ask(
            self._address(self.broker_ids[0]), 18, 4, client_software_name="test", client_software_version="1"
        )
        return {feature.name: feature.max_version_level for feature in answer.finalized_features}

    def controller(self) -> int:
        found = re.search(r"LeaderId:\s+(\d+)", self._tool("quorum", "describe", "--status"))
        assert found
        return int(found[1])

    def voters(self) -> dict[int, str]:
        return {node.node_id: node.directory_id or "" for node in self._playground.cluster.controllers}

    @contextmanager
    def frozen(self, broker: int) -> Iterator[None]:
        """SIGSTOP; ends when the cluster lists all brokers again."""
        with self._stopped([broker]):
            yield
        self._wait_until_whole()

    def controller_servers(self) -> tuple[str, ...]:
        return tuple(f"127.0.0.1:{node.controller_port}" for node in self._playground.cluster.controllers)

    @contextmanager
    def stopped(self, broker: int) -> Iterator[None]:
        """Ends when the cluster lists all brokers again."""
        self._playground.stop_broker(broker)
        try:
            yield
        finally:
            self._playground.start_broker(broker)
            self._wait_until_whole()

    @contextmanager
    def without_controllers(self) -> Iterator[None]:
        """The leader and one more of three controllers are stopped; ends when there is a leader again."""
        leader = self.controller()
        other = next(voter for voter in self.voters() if voter != leader)
        with self._stopped([leader, other]):
            yield
        self._wait_until_whole()

    @contextmanager
    def _stopped(self, nodes: Sequence[int]) -> Iterator[None]:
        pids = [status.pid for status in self._playground.status() if status.node_id in nodes]
        assert len(pids) == len(nodes)
        for pid in pids:
            assert pid
            os.kill(pid, signal.SIGSTOP)
            # The signal stops one thread after the other: until then a broker may still answer.
            wait_until(partial(_all_threads_stopped, pid), f"process {pid} stands still", 30)
        try:
            yield
        finally:
            for pid in pids:
                assert pid
                os.kill(pid, signal.SIGCONT)

    def _wait_until_whole(self) -> None:
        wait_until(self._is_whole, "all brokers are unfenced and a controller leads", 60)

    def _is_whole(self) -> bool:
        types = raw.request_types(55, 0)
        asked = types.TopicData(topic_name="__cluster_metadata", partitions=(types.PartitionData(partition_index=0),))
        try:
            for broker in self.broker_ids:
                live = raw.ask(
                    self._address(broker),
                    60,
                    2,
                    include_cluster_authorized_operations=False,
                    endpoint_type=1,
                    include_fenced_brokers=False,
                )
                if sorted(b.broker_id for b in live.brokers) != self.broker_ids:
                    return False
            quorum = raw.ask(self._address(self.broker_ids[0]), 55, 0, topics=(asked,))
        except OSError:
            return False
        return quorum.error_code == 0 and quorum.topics[0].partitions[0].leader_id in self.voters()

    def _address(self, broker: int) -> str:
        node = next(node for node in self._playground.cluster.brokers if node.node_id == broker)
        return f"127.0.0.1:{node.broker_port}"

    def _move_file(self, topic: str, partition: int, target: Sequence[int]) -> str:
        path = self._scratch / f"{topic}-{partition}.json"
        move = {"topic": topic, "partition": partition, "replicas": list(target)}
        path.write_text(json.dumps({"version": 1, "partitions": [move]}))
        return str(path)

    def _tool(self, name: str, *args: str) -> str:
        result = self._playground.tool(name, args)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


def _entity(owner: str | int | None) -> list[str]:
    """As kafka-configs names it."""
    if isinstance(owner, str):
        return ["--entity-type", "topics", "--entity-name", owner]
    which = ["--entity-default"] if owner is None else ["--entity-name", str(owner)]
    return ["--entity-type", "brokers", *which]


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _topic_and_index(name: str) -> tuple[str, int]:
    topic, _, index = name.rpartition("-")
    return topic, int(index)


def _all_threads_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():  # not Linux
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    states = [(task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] for task in tasks.iterdir()]
    return all(state == "T" for state in states)
