"""Other releases of Kafka that the contract runs on, by the lock files of their jars."""

from __future__ import annotations

from pathlib import Path

from kafkadash.devtools.playground.jars import ZOOKEEPER_LOCK

_HERE = Path(__file__).parent
RELEASES = {
    "kraft-3.9": ZOOKEEPER_LOCK,
    "kraft-4.0": _HERE / "kafka-4.0.2.lock",
    "kraft-4.4": _HERE / "kafka-4.4.0.lock",
}
"""In KRaft mode. The release in between is the playground's own."""
