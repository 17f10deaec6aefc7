"""Tiered topics (KIP-405, KIP-1023) on brokers with a remote storage that is a folder of this machine.

What is shown of their tiers, and of moves of their partitions, equals what Kafka's own tools and raw offsets say.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.jars import fetch
from kafkadash.monitoring.models import CollectorKind, ReassignmentSnapshot, TopicState
from kafkadash.monitoring.tiers.rules import PartitionTiers
from kafkadash.monitoring.tiers.stored import load_tiers
from tests.agreement.conftest import Mover, Refresher
from tests.agreement.tools import LATEST, Tools
from tests.embedded_plugin import RUN_FOLDER
from tests.kafka_releases import (
    COPIES_UNTIERED_ONLY,
    OWN_STORAGE,
    RELEASES,
    REMOTE_STORAGE,
    name_asked,
    release_asked,
)
from tests.real_kafka import running_release
from tests.waiting import wait_until

RECORDS, RECORD_BYTES = 620, 10_000
LEADER, TARGET = 1, 2
RATE = 200_000
"""Bytes per second: a copy of what is on the disk takes ten seconds."""
TOPICS = ("copied-local", "copied-pending")


@pytest.fixture(scope="module")
def playground(kafka_runtime: None) -> Iterator[KafkaPlayground]:
    """Two brokers of the release with tiered storage, instead of those that the other tests share."""
    folder = Path(os.environ[RUN_FOLDER]) / f"tiered-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    class_name, class_path = _find_storage(folder.with_name(f"{folder.name}-classes"))
    properties = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": class_name,
        "remote.log.storage.manager.class.path": class_path,
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rsm.config.dir": folder / "remote",
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "remote.log.metadata.topic.min.isr": 1,
        "remote.log.manager.task.interval.ms": 500,
        "log.retention.check.interval.ms": 1000,
        "log.initial.task.delay.ms": 500,
    }
    # Kafka has no remote storage for brokers of several log directories.
    with running_release(folder, brokers=2, racks=("a", "b"), dirs=1, properties=properties) as playground:
        yield playground


def _find_storage(folder: Path) -> tuple[str, str]:
    """Name and class path of a remote storage manager: Kafka's own, or ours compiled into ``folder``."""
    if (published := REMOTE_STORAGE.get(release_asked())) is not None:
        return "org.apache.kafka.server.log.remote.storage.LocalTieredStorage", fetch(published).classpath
    compiler = shutil.which("javac")
    assert compiler is not None, "the remote storage of the tests is compiled: install a JDK"
    jars = fetch(RELEASES[name_asked()]).classpath
    subprocess.run([compiler, "-proc:none", "-cp", jars, "-d", str(folder), str(OWN_STORAGE)], check=True)
    return OWN_STORAGE.stem, str(folder)


def test_tiers_and_moves__are_those_of_kafkas_own_tools(
    cluster: Cluster, refresh: Refresher, playground: KafkaPlayground, tools: Tools, mover: Mover
) -> None:
    for topic in TOPICS:
        _make_tiered(playground, tools, topic)
    wait_until(lambda: all(_is_uploaded(tools, topic) for topic in TOPICS), "segments are in remote storage only", 60)
    for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.LOG_DIRS):
        refresh(kind)
    for topic in TOPICS:
        stored = load_tiers(cluster, TopicState.objects.get(name=topic))
        assert stored is not None
        [found] = stored.partitions.values()
        assert found == PartitionTiers(*_tell_offsets(tools, topic), _tell_size(tools, topic, LEADER))
        files = sum(file.stat().st_size for file in _remote(playground.folder).glob(f"{topic}-*/*.log"))
        assert found.remote_bytes == pytest.approx(files, rel=0.05)

    local, pending = (_tell_offsets(tools, topic) for topic in TOPICS)
    begin = local[1]
    mover.start(TOPICS[0], [LEADER, TARGET], throttle=RATE)
    wait_until(lambda: _copied_to(tools, TOPICS[0]) > begin, "the first records have come", 30)
    least = _copied_to(tools, TOPICS[0])
    refresh(CollectorKind.REASSIGNMENTS)
    most = _copied_to(tools, TOPICS[0])
    row = ReassignmentSnapshot.objects.get(topic=TOPICS[0])
    assert row.percent is not None
    assert _share(begin, least) <= row.percent <= _share(begin, most)
    assert row.size_bytes == _tell_size(tools, TOPICS[0], LEADER)

    if release_asked() < COPIES_UNTIERED_ONLY:
        mover.let_go(TOPICS[0])
        wait_until(tools.in_sync, "the copy is complete", 60)
        assert _tell_size(tools, TOPICS[0], TARGET) == _tell_size(tools, TOPICS[0], LEADER)
        return
    tools.set_config(None, follower_fetch_last_tiered_offset_enable="true")
    mover.start(TOPICS[1], [LEADER, TARGET], throttle=1_000, beside=True)
    refresh(CollectorKind.REASSIGNMENTS)
    before = ReassignmentSnapshot.objects.get(topic=TOPICS[1])
    assert before.percent == 0.0
    for topic in TOPICS:
        mover.let_go(topic)
    wait_until(tools.in_sync, "both copies are complete", 60)
    assert _tell_size(tools, TOPICS[0], TARGET) == _tell_size(tools, TOPICS[0], LEADER)
    assert _tell_offsets(tools, TOPICS[1]) == pending
    known = load_tiers(cluster, TopicState.objects.get(name=TOPICS[1]))
    assert known is not None
    assert _tell_size(tools, TOPICS[1], TARGET) == pytest.approx(known.whole.pending_bytes, rel=0.05)


def _remote(folder: Path) -> Path:
    return folder / "remote" / "kafka-tiered-storage"


def _make_tiered(playground: KafkaPlayground, tools: Tools, topic: str) -> None:
    configs = {
        "remote.storage.enable": "true",
        "segment.bytes": 1 << 20,
        "local.retention.bytes": 2_500_000,
        "retention.ms": -1,
    }
    options = [each for key, value in configs.items() for each in ("--config", f"{key}={value}")]
    tools.run("topics", "--create", "--topic", topic, "--replica-assignment", str(LEADER), *options)
    producer = Producer({"bootstrap.servers": playground.bootstrap, "linger.ms": 20})
    for _ in range(RECORDS):
        producer.produce(topic, os.urandom(RECORD_BYTES), partition=0)
    assert producer.flush(60) == 0


def _tell_offsets(tools: Tools, topic: str) -> tuple[int, int, int, int]:
    """Log start, local log start, last tiered offset and log end, as kafka-get-offsets prints them: none for -1."""
    times = ("earliest", "earliest-local", "latest-tiered", "latest")
    printed = [tools.run("get-offsets", "--topic", topic, "--time", time) for time in times]
    start, local, tiered, end = (int(line.strip().rpartition(":")[2] or -1) for line in printed)
    return start, local, tiered, end


def _is_uploaded(tools: Tools, topic: str) -> bool:
    """All but the newest segment are in remote storage, and old ones on no disk any more."""
    _, local, tiered, end = _tell_offsets(tools, topic)
    return local > 0 and (end - 1 - tiered) * RECORD_BYTES < 1 << 20 and _tell_size(tools, topic, LEADER) < 3_600_000


def _tell_size(tools: Tools, topic: str, broker: int) -> int:
    return sum(sizes.get(0, 0) for sizes in tools.sizes(topic).get(broker, {}).values())


def _copied_to(tools: Tools, topic: str) -> int:
    return tools.offset(TARGET, topic, LATEST) if tools.has_copy(TARGET, topic) else 0


def _share(begin: int, end: int) -> float:
    return 100.0 * (end - begin) / (RECORDS - begin)
