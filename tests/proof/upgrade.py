"""Part "upgrade": Kafka is upgraded from 3.9 to 4.3, node by node, while the product moves partitions.

Controllers first, then brokers, then the feature levels. All the while another thread reads the same facts with raw
requests from every broker. Each figure that the product stored has to be one that brokers told at that time, or to be
unknown. The brokers of two releases are a finding for as long as they are, the move ends, and no throttle is left.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.kafka_releases import RELEASES
from tests.proof.extent import Extent
from tests.proof.points import QUICK
from tests.stack.stack import Shape, Stack
from tests.tool_server import ToolServer, tools_share_a_process

RACKS = ("a", "b", "c")
OFTEN = {**QUICK, "INTERVAL_VERSIONS": "3", "INTERVAL_METADATA_CHEAP": "5", "INTERVAL_FINDINGS": "3"}


def prove(folder: Path, extent: Extent) -> bool:
    """Once; a second upgrade would need a cluster of its own."""
    del extent
    began = time.monotonic()
    stack = Stack(folder / "stack", Shape(racks=RACKS, webs=0), environment={"": OFTEN})
    stack.playground.lock = RELEASES["kraft-3.9"]
    try:
        with tools_share_a_process(folder), stack:
            stack.provision()
            os.environ.update(
                stack.addresses() | {"DJANGO_SETTINGS_MODULE": "kafkadash.settings", "LOG_LEVEL": "ERROR"}
            )
            import django

            django.setup()
            from tests.proof.upgrade_run import RollingUpgrade

            problems = RollingUpgrade(stack).run()
    finally:
        ToolServer(folder).stop()
    stack.remove()
    for problem in problems[:20]:
        print(f"  WRONG: {problem}")  # noqa: T201
    print(f"  {time.monotonic() - began:.0f} s")  # noqa: T201
    return not problems
