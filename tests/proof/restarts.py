"""Part "restarts": each of five brokers is stopped in turn; what ``restart-check`` foretold is what Kafka's tools list.

No yes may be false: a broker that may be restarted takes no partition offline and none under min-ISR. While a broker is
away or behind, no other may be restarted. Broker 1 is the only voter, so it never may.
"""

from __future__ import annotations

import time
from pathlib import Path

from kafkadash.devtools.playground.cluster import KafkaPlayground
from tests.bench.server import empty_database
from tests.proof.extent import Extent
from tests.tool_server import ToolServer, tools_share_a_process

BROKERS = 5


def prove(folder: Path, extent: Extent) -> bool:
    began = time.monotonic()
    playground = KafkaPlayground(folder / "kafka")
    problems: list[str] = []
    try:
        playground.up(brokers=BROKERS, controllers=1)
        with tools_share_a_process(folder), empty_database():
            from tests.proof.restarts_run import RestartTurns

            turns = RestartTurns(playground)
            for _ in range(extent.rounds):
                problems += turns.take_all()
    finally:
        ToolServer(folder).stop()
        playground.down()
    for problem in problems[:20]:
        print(f"  WRONG: {problem}")  # noqa: T201
    print(f"restarts: {extent.rounds * BROKERS} stops, {time.monotonic() - began:.0f} s")  # noqa: T201
    return not problems
