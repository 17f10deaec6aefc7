"""What Kafka's own command-line tools print, read into plain values; nothing here uses the product's adapter."""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkadash.devtools.playground.cluster import KafkaPlayground
from tests.contract import raw
from tests.kafka_releases import has_quorum, tells_fenced
from tests.waiting import wait_until

ELR_FEATURE = "eligible.leader.replicas.version"
LIST_OFFSETS, METADATA, DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS, DESCRIBE_CLUSTER = 2, 3, 32, 35, 60  # API keys
LATEST, EARLIEST = -1, -2
# ListOffsets' replica_id with which a broker answers for its own copy (class ListOffsetsRequest, DEBUGGING_REPLICA_ID).
REPLICA_ITSELF = -2

DEFAULT = "DEFAULT_CONFIG"  # a source of configs
OWN_SOURCES = (1, 2)  # of a topic's or a broker's own values, in requests (class DescribeConfigsResponse.ConfigSource)

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
class QuorumRow:
    """A row of ``kafka-metadata-quorum describe --replication``; stamps in ms on the leader's clock, −1 unknown."""

    directory_id: str
    log_end: int
    lag: int
    last_fetch_ms: int
    last_caught_up_ms: int
    role: str


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
    playground: KafkaPlayground

    def run(self, name: str, *args: str) -> str:
        done = self.playground.tool(name, args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def cluster_id(self) -> str:
        return self.run("cluster", "cluster-id").strip().removeprefix("Cluster ID: ")

    def features(self) -> dict[str, tuple[str, str, str]]:
        """Feature → lowest and highest level that is supported, and the level in force; metadata.version by release.

        Levels whose release the tool does not know, as they are much older or newer than it is, are numbers.
        """
        text = re.sub(r"UNKNOWN \[?(\d+)\]?", r"\1", self.run("features", "describe"))
        row = r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)"
        return {name: (low, high, level) for name, low, high, level in re.findall(row, text)}

    def brokers(self) -> dict[int, tuple[str, int, str, bool | None]]:
        """Id → host, port, rack, fenced; of ``kafka-cluster list-endpoints --include-fenced-brokers``.

        Brokers before 4.0 tell only of those that are alive, and not which are fenced.
        """
        if not tells_fenced():
            text = self.run("cluster", "list-endpoints")
            rows = re.findall(r"^(\d+)\s+(\S+)\s+(\d+)\s+(\S+)\s", text, re.MULTILINE)
            return {int(node): (host, int(port), rack, None) for node, host, port, rack in rows}
        text = self.run("cluster", "list-endpoints", "--include-fenced-brokers")
        rows = re.findall(r"^(\d+)\s+(\S+)\s+(\d+)\s+(\S.*?)\s+(fenced|unfenced)\s", text, re.MULTILINE)
        return {int(node): (host, int(port), rack, state == "fenced") for node, host, port, rack, state in rows}

    def moves(self) -> list[ListedMove]:
        text = self.run("reassign", "--list")
        assert "partition reassignments" in text, text
        rows = re.findall(
            r"^(\S+)-(\d+): replicas: ([\d,]+)\.(?: adding: ([\d,]+)\.)?(?: removing: ([\d,]+)\.)?", text, re.MULTILINE
        )
        return [ListedMove(t, int(p), _ids(replicas), _ids(add), _ids(remove)) for t, p, replicas, add, remove in rows]

    def verify(self, file: Path) -> list[str]:
        """The sentences of ``kafka-reassign-partitions --verify``; throttles stay as they are."""
        text = self.run("reassign", "--reassignment-json-file", str(file), "--verify", "--preserve-throttles")
        assert "Status of partition reassignment:" in text, text
        return [line for line in text.splitlines() if line.startswith(("Reassignment ", "There is no ", "Partition "))]

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

    def controller(self) -> int:
        """Id of the active controller; with ZooKeeper the one that a broker names."""
        if has_quorum():
            return self.quorum_status().leader_id
        return int(self._describe_cluster(1).controller_id)

    def quorum_log_ends(self) -> dict[tuple[int, str], int]:
        """(id, "Leader" | "Follower" | "Observer") → log end offset; of ``describe --replication``."""
        text = self.run("quorum", "describe", "--replication")
        rows = re.findall(r"^(\d+)\s+\S+\s+(\d+)\s+\d+\s+-?\d+\s+-?\d+\s+(\w+)", text, re.MULTILINE)
        return {(int(node), status): int(end) for node, end, status in rows}

    def all_sizes(self, brokers: Collection[int]) -> dict[int, dict[str, dict[tuple[str, int], int]]]:
        """Broker → directory → (topic, partition) → bytes; of ``kafka-log-dirs --describe``."""
        text = self.run("log-dirs", "--describe", "--broker-list", ",".join(map(str, brokers)))
        document = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        return {
            broker["broker"]: {
                directory["logDir"]: {
                    (row["partition"].rpartition("-")[0], int(row["partition"].rpartition("-")[2])): row["size"]
                    for row in directory["partitions"]
                }
                for directory in broker["logDirs"]
            }
            for broker in document["brokers"]
        }

    def quorum_replication(self) -> dict[int, QuorumRow]:
        """Node → its row; of ``describe --replication``."""
        text = self.run("quorum", "describe", "--replication")
        rows = re.findall(r"^(\d+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(-?\d+)\s+(-?\d+)\s+(\w+)", text, re.MULTILINE)
        return {
            int(node): QuorumRow(directory, int(end), int(lag), int(fetched), int(caught_up), role)
            for node, directory, end, lag, fetched, caught_up, role in rows
        }

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

    def configs(self, owner: str | int | None) -> dict[str, tuple[str | None, str]]:
        """Config name → value, source; of a topic (its name), a broker (its id), or None: what is set for all brokers.

        Of ``kafka-configs --describe --all``. The source is that of the first synonym, which is the one in force; what
        has none is the default. A value that is kept back, or missing, is None.
        """
        text = self.run("configs", "--describe", *_entity(owner), *([] if owner is None else ["--all"]))
        rows = re.findall(r"^  (\S+?)=(.*) sensitive=(true|false) synonyms=\{(.*)\}$", text, re.MULTILINE)
        return {
            name: (None if sensitive == "true" or value == "null" else value, synonyms.partition(":")[0] or DEFAULT)
            for name, value, sensitive, synonyms in rows
        }

    def dynamic_configs(self, kind: str) -> dict[str, dict[str, tuple[str, str]]]:
        """Topic or broker ('' for the default of all brokers) → config name → value, source; what is set, of all.

        ``kind`` is "topics" or "brokers"; of ``kafka-configs --describe``.
        """
        found: dict[str, dict[str, tuple[str, str]]] = {}
        owner = ""
        for line in self.run("configs", "--describe", "--entity-type", kind).splitlines():
            if heading := re.match(r"Dynamic configs for \w+ (\S+) are:|Default configs for", line):
                owner = heading[1] or ""
            elif row := re.match(r"  (\S+?)=(.*) sensitive=\w+ synonyms=\{(\w+):", line):
                found.setdefault(owner, {})[row[1]] = (row[2], row[3])
        return found

    def set_config(self, owner: str | int | None, **configs: str) -> None:
        """Underscores in the names stand for dots. Returns when every broker that is up knows of it."""
        values = {name.replace("_", "."): value for name, value in configs.items()}
        added = ",".join(f"{name}=[{value}]" for name, value in values.items())
        self.run("configs", "--alter", *_entity(owner), "--add-config", added)
        for name, value in values.items():
            wait_until(lambda n=name, v=value: self._told(owner, n) == {v}, f"{name} is {value}", 20)  # type: ignore[misc]

    def delete_config(self, owner: str | int | None, *names: str) -> None:
        self.run("configs", "--alter", *_entity(owner), "--delete-config", ",".join(names))

    def topic_names(self) -> list[str]:
        """As ``kafka-topics --list`` says; ``--describe`` fails where a topic is deleted meanwhile."""
        return self.run("topics", "--list").split()

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

    def keeps_eligible(self) -> bool:
        """Return whether a level of ELR is in force, by ``kafka-features``."""
        return has_quorum() and self.features().get(ELR_FEATURE, ("", "", "0"))[2] != "0"

    def eligible(self, topic: str) -> dict[int, tuple[Ids, Ids]]:
        """Partition → ELR and last known ELR, of ``kafka-topics --describe``."""
        text = self.run("topics", "--describe", "--topic", topic)
        row = r"^\s+Topic: \S+\s+Partition: (\d+)\s.*Elr: ([\d,]*)\s+LastKnownElr: ([\d,]*)"
        rows = re.findall(row, text, re.MULTILINE)
        return {int(partition): (_ids(elr), _ids(last)) for partition, elr, last in rows}

    def partitions_that_are(self, problem: str) -> set[tuple[str, int]]:
        """Pairs (topic, partition) listed with ``--under-replicated-partitions`` and options like it."""
        text = self.run("topics", "--describe", f"--{problem}-partitions")
        return {(t, int(p)) for t, p in re.findall(r"^\s+Topic: (\S+)\s+Partition: (\d+)", text, re.MULTILINE)}

    # Raw requests, where a tool's second per question is too slow, or where no tool tells.

    def cordoned(self, broker: int) -> dict[str, bool]:
        """Directory → whether it takes no new replicas (KIP-1066), which kafka-log-dirs of 4.3 does not print."""
        answer = raw.ask(self._address(broker), DESCRIBE_LOG_DIRS, 5, topics=None)
        return {row.log_dir: row.is_cordoned for row in answer.results}

    def throttles(self, *owners: str | int) -> dict[tuple[str | int, str], str]:
        """(topic or broker, config name) → value, of all replication throttles that are set right there.

        As each broker itself, and broker 1 for topics, answers; an empty list that is set counts, defaults do not.
        """
        types = raw.request_types(DESCRIBE_CONFIGS, 1)
        found: dict[tuple[str | int, str], str] = {}
        for owner in owners:
            kind, asked = (2, 1) if isinstance(owner, str) else (4, owner)
            resource = types.DescribeConfigsResource(
                resource_type=kind, resource_name=str(owner), configuration_keys=None
            )
            answer = raw.ask(self._address(asked), DESCRIBE_CONFIGS, 1, resources=(resource,), include_synonyms=False)
            for config in answer.results[0].configs:
                if ".replication.throttled." in config.name and config.config_source in OWN_SOURCES:
                    found[owner, config.name] = config.value
        return found

    def offset(self, broker: int, topic: str, timestamp: int) -> int:
        """Log end (LATEST) or log start (EARLIEST) of the broker's own copy of partition 0."""
        row = self._offset(broker, topic, timestamp)
        assert row.error_code == 0, row
        return int(row.offset)

    def has_copy(self, broker: int, topic: str) -> bool:
        """Return whether the broker has begun a copy of partition 0."""
        return bool(self._offset(broker, topic, LATEST).error_code == 0)

    def _offset(self, broker: int, topic: str, timestamp: int) -> Any:
        types = raw.request_types(LIST_OFFSETS, 7)
        partition = types.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
        asked = types.ListOffsetsTopic(name=topic, partitions=(partition,))
        address = self._address(broker)
        answer = raw.ask(address, LIST_OFFSETS, 7, replica_id=REPLICA_ITSELF, isolation_level=0, topics=(asked,))
        [row] = answer.topics[0].partitions
        return row

    def replicas(self, topic: str) -> Ids:
        """Of partition 0, as every broker says; () where one does not know the topic, or they differ."""
        answers = [self._partitions(broker, topic) for broker in self._live_brokers(1)]
        first = [[row for row in rows if row.partition_index == 0] for rows in answers]  # they come in any order
        said = {tuple(rows[0].replica_nodes) if rows else () for rows in first}
        return said.pop() if len(said) == 1 else ()

    def in_sync(self) -> bool:
        """Whether every replica of every partition is in its ISR."""
        return all(set(row.isr_nodes) == set(row.replica_nodes) for row in self._partitions(1))

    def fenced(self, broker: int) -> bool:
        return broker not in self._live_brokers(1)

    def _told(self, owner: str | int | None, name: str) -> set[str | None]:
        """The values that brokers tell of a config: the one concerned, or each."""
        types = raw.request_types(DESCRIBE_CONFIGS, 1)
        kind, named = (2, owner) if isinstance(owner, str) else (4, "" if owner is None else str(owner))
        asked = types.DescribeConfigsResource(resource_type=kind, resource_name=named, configuration_keys=(name,))
        told: set[str | None] = set()
        for broker in [owner] if isinstance(owner, int) else self._live_brokers(1):
            [answer] = raw.ask(
                self._address(broker), DESCRIBE_CONFIGS, 1, resources=(asked,), include_synonyms=False
            ).results
            told.update([config.value for config in answer.configs] or [None])
        return told

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
        return [broker.broker_id for broker in self._describe_cluster(asked).brokers]

    def _describe_cluster(self, asked: int) -> Any:
        return raw.ask(
            self._address(asked),
            DESCRIBE_CLUSTER,
            1,
            include_cluster_authorized_operations=False,
            endpoint_type=1,
        )

    def _address(self, broker: int) -> str:
        node = next(node for node in self.playground.cluster.brokers if node.node_id == broker)
        return f"127.0.0.1:{node.broker_port}"


def _entity(owner: str | int | None) -> list[str]:
    if isinstance(owner, str):
        return ["--entity-type", "topics", "--entity-name", owner]
    which = ["--entity-default"] if owner is None else ["--entity-name", str(owner)]
    return ["--entity-type", "brokers", *which]


def _ids(text: str) -> Ids:
    return tuple(int(part) for part in text.split(",") if part)


def _members(text: str) -> frozenset[tuple[int, str]]:
    return frozenset((member["id"], member["directoryId"]) for member in json.loads(text))
