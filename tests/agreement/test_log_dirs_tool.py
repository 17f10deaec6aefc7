"""Sizes of replicas as stored, against ``kafka-log-dirs``."""

from __future__ import annotations

import json
import zlib

from kafkadash.clusters.models import Cluster
from kafkadash.domain.topology import two_digits
from kafkadash.observe.models import BrokerWeights, Kind, TopicState
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools


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
