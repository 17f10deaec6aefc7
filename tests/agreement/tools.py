"""What Kafka's own command-line tools print, read into plain values; nothing here uses the product's adapter."""

from __future__ import annotations

import base64
import json
import re
import uuid
from dataclasses import dataclass
from typing import Any

from kafkadash.playground.cluster import Playground
from tests.contract import raw

LIST_OFFSETS, METADATA, DESCRIBE_CLUSTER = 2, 3, 60  # API keys
LATEST, EARLIEST = -1, -2
# ListOffsets' replica_id with which a broker answers for its own copy (class ListOffsetsRequest, DEBUGGING_REPLICA_ID).
REPLICA_ITSELF = -2

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListedMove:
    """A row of ``kafka-reassign-partitions --list``."""

    topic: str
    partition: int
    replicas: Ids
    adding: Ids
    removing: Ids


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """``kafka-metadata-quorum describe --status``; voters and observers are (id, directory id)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: frozenset[tuple[int, str]]
    observers: frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A row of ``kafka-topics --describe``; ``leader`` is None where the tool says none."""

    leader: int | None
    replicas: Ids
    isr: Ids


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """``topic_id`` as the 36 characters of a UUID; the tool prints the 22 of url-safe base64."""

    topic_id: str
    partitions: dict[int, DescribedPartition]


@dataclass(frozen=True, slots=True)
class Tools:
    playground: Playground

    def run(self, name: str, *args: str) -> str:
        done = self.playground.tool(name, args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def cluster_id(self) -> str:
        return self.run("cluster", "cluster-id").strip().removeprefix("Cluster ID: ")

    def brokers(self) -> dict[int, tuple[str, int, str, bool]]:
        """Id → host, port, rack, fenced; of ``kafka-cluster list-endpoints --include-fenced-brokers``."""
        text = self.run("cluster", "list-endpoints", "--include-fenced-brokers")
        rows = re.findall(r"^(\d+)\s+(\S+)\s+(\d+)\s+(\S+)\s+(fenced|unfenced)\s", text, re.MULTILINE)
        return {int(node): (host, int(port), rack, state == "fenced") for node, host, port, rack, state in rows}

    def moves(self) -> list[ListedMove]:
        text = self.run("reassign", "--list")
        assert "partition reassignments" in text, text
        rows = re.findall(
            r"^(\S+)-(\d+): replicas: ([\d,]+)\.(?: adding: ([\d,]+)\.)?(?: removing: ([\d,]+)\.)?", text, re.MULTILINE
        )
        return [ListedMove(t, int(p), _ids(replicas), _ids(add), _ids(remove)) for t, p, replicas, add, remove in rows]

    def quorum_status(self) -> QuorumStatus:
        text = self.run("quorum", "describe", "--status")
        found = dict(re.findall(r"^(\w+):\s+(.*)$", text, re.MULTILINE))
        return QuorumStatus(
            leader_id=int(found["LeaderId"]),
            leader_epoch=int(found["LeaderEpoch"]),
            high_watermark=int(found["HighWatermark"]),
            voters=_members(found["CurrentVoters"]),
            observers=_members(found["CurrentObservers"]),
        )

    def quorum_log_ends(self) -> dict[tuple[int, str], int]:
        """(id, "Leader" | "Follower" | "Observer") → log end offset; of ``describe --replication``."""
        text = self.run("quorum", "describe", "--replication")
        rows = re.findall(r"^(\d+)\s+\S+\s+(\d+)\s+\d+\s+-?\d+\s+-?\d+\s+(\w+)", text, re.MULTILINE)
        return {(int(node), status): int(end) for node, end, status in rows}

    def sizes(self, topic: str) -> dict[int, dict[str, dict[int, int]]]:
        """Broker → directory → partition of ``topic`` → bytes; of ``kafka-log-dirs --describe``."""
        text = self.run("log-dirs", "--describe", "--topic-list", topic)
        document = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        return {
            broker["broker"]: {
                directory["logDir"]: {
                    int(row["partition"].rpartition("-")[2]): row["size"] for row in directory["partitions"]
                }
                for directory in broker["logDirs"]
            }
            for broker in document["brokers"]
        }

    def topics(self, *options: str) -> dict[str, DescribedTopic]:
        """Name → what ``kafka-topics --describe`` says."""
        text = self.run("topics", "--describe", *options)
        topics = {
            name: DescribedTopic(str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{key}=="))), {})
            for name, key in re.findall(r"^Topic: (\S+)\s+TopicId: (\S+)", text, re.MULTILINE)
        }
        rows = re.findall(
            r"^\s+Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]*)",
            text,
            re.MULTILINE,
        )
        for name, partition, leader, replicas, isr in rows:
            described = DescribedPartition(None if leader == "none" else int(leader), _ids(replicas), _ids(isr))
            topics[name].partitions[int(partition)] = described
        return topics

    def partitions_that_are(self, problem: str) -> set[tuple[str, int]]:
        """(topic, partition) listed with ``--under-replicated-partitions``, ``--unavailable-partitions``, …"""
        text = self.run("topics", "--describe", f"--{problem}-partitions")
        return {(t, int(p)) for t, p in re.findall(r"^\s+Topic: (\S+)\s+Partition: (\d+)", text, re.MULTILINE)}

    # Raw requests, where a tool's second per question is too slow.

    def offset(self, broker: int, topic: str, timestamp: int) -> int:
        """Log end (LATEST) or log start (EARLIEST) of the broker's own copy of partition 0."""
        types = raw.request_types(LIST_OFFSETS, 7)
        partition = types.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
        asked = types.ListOffsetsTopic(name=topic, partitions=(partition,))
        address = self._address(broker)
        answer = raw.ask(address, LIST_OFFSETS, 7, replica_id=REPLICA_ITSELF, isolation_level=0, topics=(asked,))
        [row] = answer.topics[0].partitions
        assert row.error_code == 0, row
        return int(row.offset)

    def replicas(self, topic: str) -> Ids:
        """Of partition 0, as every broker says; () where one does not know the topic, or they differ."""
        answers = {broker: self._partitions(broker, topic) for broker in self._live_brokers(1)}
        said = {tuple(rows[0].replica_nodes) if rows else () for rows in answers.values()}
        return said.pop() if len(said) == 1 else ()

    def in_sync(self) -> bool:
        """Whether every replica of every partition is in its ISR."""
        return all(set(row.isr_nodes) == set(row.replica_nodes) for row in self._partitions(1))

    def fenced(self, broker: int) -> bool:
        return broker not in self._live_brokers(1)

    def _partitions(self, broker: int, topic: str | None = None) -> list[Any]:
        types = raw.request_types(METADATA, 8)
        answer = raw.ask(
            self._address(broker),
            METADATA,
            8,
            topics=None if topic is None else (types.MetadataRequestTopic(name=topic),),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        return [partition for row in answer.topics if row.error_code == 0 for partition in row.partitions]

    def _live_brokers(self, asked: int) -> list[int]:
        answer = raw.ask(
            self._address(asked),
            DESCRIBE_CLUSTER,
            2,
            include_cluster_authorized_operations=False,
            endpoint_type=1,
            include_fenced_brokers=False,
        )
        return [broker.broker_id for broker in answer.brokers]

    def _address(self, broker: int) -> str:
        node = next(node for node in self.playground.cluster.brokers if node.node_id == broker)
        return f"127.0.0.1:{node.broker_port}"


def _ids(text: str) -> Ids:
    return tuple(int(part) for part in text.split(",") if part)


def _members(text: str) -> frozenset[tuple[int, str]]:
    return frozenset((member["id"], member["directoryId"]) for member in json.loads(text))
