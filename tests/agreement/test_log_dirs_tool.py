"""Sizes of replicas as stored, against ``kafka-log-dirs``."""

from __future__ import annotations

import json
import zlib

from kafkadash.clusters.models import Cluster
from kafkadash.domain.topology import two_digits
from kafkadash.observe.models import BrokerWeights, Kind, TopicState
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until


def test_log_dirs__sizes_of_each_replica__equal_describe(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2], [2, 3]], mib=3)
    refresh(Kind.METADATA)
    refresh(Kind.LOG_DIRS)
    printed = tools.sizes(topic)
    flat = {broker: {p: s for sizes in dirs.values() for p, s in sizes.items()} for broker, dirs in printed.items()}
    weights = {row.broker_id: row for row in BrokerWeights.objects.filter(cluster=cluster)}
    stored = {broker: sizes_of(row, topic) for broker, row in weights.items()}
    assert stored == flat
    assert {broker: set(sizes) for broker, sizes in flat.items()} == {1: {0}, 2: {0, 1}, 3: {1}}
    assert min(size for sizes in flat.values() for size in sizes.values()) > 1_000_000
    paths = {broker: {directory["path"] for directory in row.dirs} for broker, row in weights.items()}
    assert paths == {broker: set(dirs) for broker, dirs in printed.items()}

    everything = sum(size for sizes in flat.values() for size in sizes.values())
    assert TopicState.objects.get(cluster=cluster, name=topic).size_bytes == two_digits(everything)


def sizes_of(row: BrokerWeights, topic: str) -> dict[int, int]:
    sizes = json.loads(zlib.decompress(row.data))
    return {int(partition): size for partition, size in sizes.get(topic, {}).items()}


def test_log_dirs__a_directory_is_cordoned__only_that_one_says_so(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools
) -> None:
    make_topic([[1, 2]])
    [first, second] = sorted(tools.cordoned(1))
    tools.set_config(1, cordoned_log_dirs=first)
    try:
        wait_until(lambda: tools.cordoned(1)[first], "the directory is cordoned", 20)
        refresh(Kind.LOG_DIRS)
        assert directories(cluster, 1, "cordoned") == tools.cordoned(1) == {first: True, second: False}
        assert directories(cluster, 2, "cordoned") == tools.cordoned(2)
    finally:
        tools.delete_config(1, "cordoned.log.dirs")


def replica_bytes(cluster: Cluster, brokers: list[int]) -> dict[int, dict[str, object]]:
    return {broker: directories(cluster, broker, "replica_bytes") for broker in brokers}


def printed_bytes(tools: Tools, brokers: list[int]) -> dict[int, dict[str, object]]:
    return {
        broker: {path: sum(sizes.values()) for path, sizes in dirs.items()}
        for broker, dirs in tools.all_sizes(brokers).items()
    }


def directories(cluster: Cluster, broker: int, field: str) -> dict[str, object]:
    """Path → one of its figures."""
    return {d["path"]: d[field] for d in BrokerWeights.objects.get(cluster=cluster, broker_id=broker).dirs}
