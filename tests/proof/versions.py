"""Part "versions": contract, agreement and secured listeners on each release of Kafka that the product is meant for.

Each time on three brokers and three controllers, or one ZooKeeper server, changed and asked with Kafka's own tools.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.kafka_releases import RELEASES, VARIABLE, ZOOKEEPER
from tests.proof.extent import Extent

OWN = "kraft"  # the playground's own release
CLUSTERS = (*RELEASES, OWN, ZOOKEEPER)
COUNTED = r"^(?:=+ )?(\d+ passed.*?)(?: =+)?$"


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second round would ask the same. KAFKADASH_RELEASE limits it to one cluster."""
    del extent
    asked = [name for name in CLUSTERS if (os.environ.get(VARIABLE) or name) == name]
    outcomes = [_run_suite(folder, cluster, suite) for cluster in asked for suite in _list_suites(cluster)]
    return bool(outcomes) and all(outcomes)


def _list_suites(cluster: str) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Name of a suite, what pytest is asked for, and the environment."""
    yield "contract", ["tests/contract", "-k", cluster], {"KAFKADASH_CONTRACT": cluster}
    release = {VARIABLE: "" if cluster == OWN else cluster}
    yield "agreement", ["tests/agreement"], release
    yield "secured", ["tests/jobs/test_secured_kafka.py"], release


def _run_suite(folder: Path, cluster: str, suite: tuple[str, list[str], dict[str, str]]) -> bool:
    name, asked, variables = suite
    log = folder / f"{cluster}-{name}.log"
    command = [sys.executable, "-m", "pytest", *asked, "-n0", "-v", "--tb=short", "--no-header"]
    environment = {**os.environ, VARIABLE: "", **variables}
    with log.open("w", encoding="utf-8") as out:
        code = subprocess.run(command, env=environment, stdout=out, stderr=out, check=False).returncode
    text = log.read_text(encoding="utf-8")
    counted = re.findall(COUNTED, text, re.MULTILINE)
    print(f"  {cluster:<12} {name:<10} {counted[-1] if counted else 'nothing ran'}", flush=True)  # noqa: T201
    for line in re.findall(r"^(?:FAILED|ERROR) .*$", text, re.MULTILINE):
        print(f"    {line[:200]}", flush=True)  # noqa: T201
    for line in re.findall(r"^tests/\S+: needs .*$", text, re.MULTILINE):
        print(f"    left out: {line}", flush=True)  # noqa: T201
    return code == 0 and bool(counted)
