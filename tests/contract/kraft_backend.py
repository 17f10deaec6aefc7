"""The contract suite's cluster that is real: asked and changed with Kafka's own tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.kafka.api import ClusterConnection, OngoingReassignment
from tests.contract import raw
from tests.frozen_nodes import alive_by, fenced_broker, frozen_nodes
from tests.waiting import wait_until

RECORD_BYTES = 16 * 1024
THROTTLE = 400_000  # bytes/s: a move of a few MiB lasts as long as a test looks at it


class KraftBackend:
    """Real Kafka 4.x: three brokers, three controllers of their own, two log directories each."""

    name = "kraft"
    has_quorum = True

    def __init__(self, playground: KafkaPlayground, scratch: Path, release: tuple[int, int] = (4, 3)) -> None:
        self.release = release
        self._playground = playground
        self._scratch = scratch
        self.connection = ClusterConnection("kraft", 1, tuple(playground.bootstrap.split(",")))
        self.broker_ids = [node.node_id for node in playground.cluster.brokers]

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        size = records * RECORD_BYTES * len(placement)
        load_topics(self._playground.bootstrap, [LoadTopic(name, placement=placement, fill_bytes=size)])

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

    def elect_preferred_leaders(self) -> None:
        """The tool's exit code is 1 where a topic of another test has its first replica out of sync."""
        self._playground.tool("leader-election", ("--election-type", "preferred", "--all-topic-partitions"))

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
        with frozen_nodes(self._playground, broker):
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
    def fenced(self, broker: int) -> Iterator[None]:
        """SIGSTOP, and the cluster takes it for dead; ends when the cluster lists all brokers again."""
        with fenced_broker(self._playground, broker):
            yield
        self._wait_until_whole()

    @contextmanager
    def without_controllers(self) -> Iterator[None]:
        """The leader and one more of three controllers are stopped; ends when there is a leader again."""
        leader = self.controller()
        other = next(voter for voter in self.voters() if voter != leader)
        with frozen_nodes(self._playground, leader, other):
            yield
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        wait_until(self._is_whole, "all brokers are unfenced and a controller leads", 60)

    def _is_whole(self) -> bool:
        try:
            for broker in self.broker_ids:
                if alive_by(self._address(broker)) != self.broker_ids:
                    return False
                if raw.quorum_leader(self._address(broker)) not in self.voters():
                    return False
        except OSError:
            return False
        return True

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
