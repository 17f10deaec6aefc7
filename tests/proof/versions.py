"""Part "versions": contract, agreement and secured listeners on each release of Kafka that the product is meant for.

Each time on three brokers and three controllers, or one ZooKeeper server, changed and asked with Kafka's own tools.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.kafka_releases import RELEASES, VARIABLE, ZOOKEEPER
from tests.proof.extent import Extent
from tests.proof.suites import run_suite

OWN = "kraft"  # the playground's own release
CLUSTERS = (*RELEASES, OWN, ZOOKEEPER)


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second round would ask the same. KAFKADASH_RELEASE limits it to one cluster."""
    del extent
    asked = [name for name in CLUSTERS if (os.environ.get(VARIABLE) or name) == name]
    outcomes = [
        run_suite(f"{cluster:<12} {suite}", chosen, folder / f"{cluster}-{suite}.log", {VARIABLE: "", **variables})
        for cluster in asked
        for suite, chosen, variables in _list_suites(cluster)
    ]
    return bool(outcomes) and all(outcomes)


def _list_suites(cluster: str) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Name of a suite, what pytest is asked for, and the environment."""
    yield "contract", ["tests/contract", "-k", cluster], {"KAFKADASH_CONTRACT": cluster}
    release = {VARIABLE: "" if cluster == OWN else cluster}
    yield "agreement", ["tests/agreement"], release
    yield "secured", ["tests/jobs/test_secured_kafka.py"], release
