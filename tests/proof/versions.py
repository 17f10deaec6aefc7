"""Part "versions": the contract of the Kafka port holds on each release of Kafka that it is meant for.

Each time on three brokers and three controllers, or one ZooKeeper server, changed and asked with Kafka's own tools.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.kafka_releases import RELEASES
from tests.proof.extent import Extent

CLUSTERS = (*RELEASES, "kraft", "zookeeper")


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second round would ask the same."""
    del extent
    held = True
    for cluster in CLUSTERS:
        log = folder / f"{cluster}.log"
        command = [sys.executable, "-m", "pytest", "tests/contract", "-k", cluster, "-n0", "-q", "--no-header"]
        environment = {**os.environ, "KAFKADASH_CONTRACT": cluster}
        with log.open("w", encoding="utf-8") as out:
            code = subprocess.run(command, env=environment, stdout=out, stderr=out, check=False).returncode
        counted = re.findall(r"^\d+ passed.*$", log.read_text(encoding="utf-8"), re.MULTILINE)
        print(f"  {cluster:<12} {counted[-1] if counted else 'nothing ran'}", flush=True)  # noqa: T201
        held = held and code == 0 and bool(counted)
    return held
