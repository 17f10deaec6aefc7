"""Other releases of Kafka that the contract and the agreement run on, by the lock files of their jars."""

from __future__ import annotations

import os
from pathlib import Path

from kafkadash.devtools.playground.jars import ZOOKEEPER_LOCK

_HERE = Path(__file__).parent
RELEASES = {
    "kraft-3.9": ZOOKEEPER_LOCK,
    "kraft-4.0": _HERE / "kafka-4.0.2.lock",
    "kraft-4.4": _HERE / "kafka-4.4.0.lock",
}
"""In KRaft mode. The release in between is the playground's own."""
ZOOKEEPER = "zookeeper"
"""Brokers of the last release with ZooKeeper mode."""
VARIABLE = "KAFKADASH_RELEASE"
OWN, LAST_WITH_ZOOKEEPER = (4, 3), (3, 9)
REMOTE_STORAGE = {
    (3, 9): _HERE / "remote-storage-3.9.2.lock",
    (4, 0): _HERE / "remote-storage-4.0.2.lock",
    (4, 3): _HERE / "remote-storage-4.3.1.lock",
}
"""The remote storage manager that Kafka publishes among its tests: a folder of the machine (KIP-405).

Of Kafka 4.4 there is none, and its brokers do not start with that of 4.3.
"""
OWN_STORAGE = _HERE / "FolderStorage.java"
"""For releases without a published one; its compiler is in any JDK."""
STREAMS_EXAMPLES = _HERE / "streams-examples-4.3.1.lock"
"""Kafka's examples of Streams applications, beside the jars of the playground's own release, without RocksDB."""
COPIES_UNTIERED_ONLY = (4, 3)
"""The first release whose new replicas can leave out what is in remote storage (KIP-1023)."""
TELL_FENCED = (4, 0)
"""The first release whose brokers tell which are fenced, and that has consumer groups of the protocol of KIP-848."""


def name_asked() -> str:
    """Return the cluster that KAFKADASH_RELEASE names, '' for the playground's own release in KRaft mode."""
    return os.environ.get(VARIABLE, "")


def has_quorum() -> bool:
    """Return whether the cluster of the tests is in KRaft mode."""
    return name_asked() != ZOOKEEPER


def release_asked() -> tuple[int, int]:
    """Return the release of the brokers that the tests ask."""
    name = name_asked()
    if name == ZOOKEEPER:
        return LAST_WITH_ZOOKEEPER
    return parse_release(name.removeprefix("kraft-")) if name else OWN


def tells_fenced() -> bool:
    """Return whether the cluster lists brokers that are fenced."""
    return release_asked() >= TELL_FENCED


def parse_release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


NEWER_PROTOCOL = "consumer" if tells_fenced() else "classic"
"""Newest protocol of consumer groups that the brokers speak."""
