"""Part "tools": the process that answers for Kafka's tools in tests says what each tool's script says, word for word.

On a cluster at rest, once for each use that tests make of a tool, and once with an option that the tool refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafkadash.devtools.playground.cluster import TOOLS, KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.proof.extent import Extent
from tests.tool_server import ToolServer, compare_with_script, tools_share_a_process

TOPIC = "proof-tools"


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second round would ask the same."""
    del extent
    playground = KafkaPlayground(folder / "kafka")
    playground.up(brokers=2, racks=("a", "b"))
    try:
        load_topics(playground.bootstrap, [LoadTopic(TOPIC, placement=[(1, 2), (2, 1)], fill_bytes=200_000)])
        with tools_share_a_process(folder):
            differing = [line for name, args in _calls(folder) if (line := _difference(playground, name, args))]
    finally:
        ToolServer(folder).stop()
        playground.down()
    for line in differing:
        print(f"tools: {line}")  # noqa: T201
    print(f"tools: {len(list(_calls(folder)))} calls of {len(TOOLS)} tools, {len(differing)} differ")  # noqa: T201
    return not differing


def _difference(playground: KafkaPlayground, name: str, args: Sequence[str]) -> str:
    try:
        compare_with_script(playground, name, *args)
    except AssertionError as error:
        return str(error)
    return ""


def _calls(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    plan = folder / "plan.json"
    row = {"topic": TOPIC, "partition": 0, "replicas": [1, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}), encoding="utf-8")
    yield "cluster", ["cluster-id"]
    yield "cluster", ["list-endpoints", "--include-fenced-brokers"]
    yield "quorum", ["describe", "--status"]
    yield "topics", ["--describe"]
    yield "topics", ["--describe", "--under-replicated-partitions"]
    yield "topics", ["--describe", "--topic", "no-such-topic"]
    yield "log-dirs", ["--describe"]
    yield "configs", ["--describe", "--entity-type", "brokers"]
    yield "configs", ["--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"]
    yield "configs", ["--describe", "--entity-type", "topics", "--entity-name", TOPIC, "--all"]
    yield "configs", ["--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "no.such.config"]
    yield "reassign", ["--list"]
    yield "reassign", ["--reassignment-json-file", str(plan), "--verify", "--preserve-throttles"]
    yield "reassign", ["--reassignment-json-file", str(plan), "--cancel"]
    yield "reassign", ["--reassignment-json-file", str(folder / "no-such-file.json"), "--verify"]
    yield "consumer-groups", ["--describe", "--all-groups"]
    yield "consumer-groups", ["--list"]
    yield "groups", ["--list"]
    yield "leader-election", ["--election-type", "preferred", "--all-topic-partitions"]
    for name in TOOLS:
        yield name, ["--no-such-option"]
