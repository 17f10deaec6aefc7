"""The cluster's own metadata log, as Kafka's dump tool prints it: every reassignment and config a controller ever took.

A request for what is in flight already leaves no record (class ReplicationControlManager: a change that changes nothing
is not written), so each record that begins to add replicas is a submission that was carried out.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafkadash.devtools.playground.cluster import KafkaPlayground, prepare_runtime

DUMP = "org.apache.kafka.tools.DumpLogSegments"
DUMP_SECONDS = 120.0
METADATA = "__cluster_metadata-0"
RESOURCES = {2: "topic", 4: "broker"}  # class ConfigResource.Type


@dataclass(frozen=True, slots=True)
class Begun:
    """A reassignment of a partition that began to add these replicas; ``at`` is on the controller's clock."""

    topic_id: str
    partition: int
    adding: frozenset[int]
    at: datetime


@dataclass(frozen=True, slots=True)
class Stood:
    """A partition that had these replicas from ``at`` on, none of them being added or removed."""

    topic_id: str
    partition: int
    replicas: tuple[int, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """A dynamic config of a broker or a topic, from ``at`` on; ``value`` is None where it was taken away."""

    resource: str
    name: str
    key: str
    value: str | None
    at: datetime


@dataclass(slots=True)
class History:
    """All that a controller's log still has, in order."""

    begun: list[Begun] = field(default_factory=list)
    stood: list[Stood] = field(default_factory=list)
    configs: list[ConfigSet] = field(default_factory=list)


def history(playground: KafkaPlayground, controller: int) -> History:
    """Of this controller's log. Ask the active one: its log is the longest."""
    node = next(node for node in playground.cluster.controllers if node.node_id == controller)
    folder = playground.layout.metadata_dir(node) / METADATA
    adding: dict[tuple[str, int], frozenset[int]] = {}
    found = History()
    for at, kind, data in _records(sorted(folder.glob("*.log"))):
        if kind == "CONFIG_RECORD" and data["resourceType"] in RESOURCES:
            resource = RESOURCES[data["resourceType"]]
            found.configs.append(ConfigSet(resource, data["resourceName"], data["name"], data["value"], at))
            continue
        key = (_id(data["topicId"]), data["partitionId"]) if "partitionId" in data and "topicId" in data else None
        if key is None or kind not in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            continue
        now = data.get("addingReplicas")
        if now is None:
            continue  # a change of something else
        new = frozenset(now) - adding.get(key, frozenset())
        adding[key] = frozenset(now)
        if new:
            found.begun.append(Begun(*key, frozenset(now), at))
        elif not now and not data.get("removingReplicas") and data.get("replicas"):
            found.stood.append(Stood(*key, tuple(data["replicas"]), at))
    return found


def _records(files: list[Path]) -> Iterator[tuple[datetime, str, dict[str, Any]]]:
    if not files:
        return
    arguments = ["--cluster-metadata-decoder", "--files", ",".join(map(str, files))]
    done = prepare_runtime(lambda _: None).run_class(DUMP, arguments, DUMP_SECONDS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    for line in done.stdout.splitlines():
        head, found, payload = line.partition(" payload: ")
        if not found or "CreateTime: " not in head:
            continue
        record = json.loads(payload)
        millis = int(head.partition("CreateTime: ")[2].split()[0])
        yield datetime.fromtimestamp(millis / 1000, UTC), record["type"], record["data"]


def _id(text: str) -> str:
    """The 36 characters of a UUID; the tool prints the 22 of url-safe base64."""
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}==")))
