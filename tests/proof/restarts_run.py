"""Turns of brokers that are stopped and started, with ``restart-check`` before, while and after each is away."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management import call_command

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.findings.errors import OnCallErrorCode as Code
from kafkadash.kafka.connect import close_all
from kafkadash.monitoring import collection
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from tests.agreement.tools import Tools
from tests.frozen_nodes import alive_by
from tests.tool_server import tools_of_their_own
from tests.waiting import wait_until

FACTS = (
    CollectorKind.METADATA,
    CollectorKind.LOG_DIRS,
    CollectorKind.CONFIGS,
    CollectorKind.METADATA,
    CollectorKind.REASSIGNMENTS,
    CollectorKind.QUORUM,
    CollectorKind.ANSWERS,
)
VOTER = 1
YES, NO = 0, 1
TROUBLES = ("unavailable", "under-min-isr")
# Topic → placement and min.insync.replicas.
TOPICS: dict[str, tuple[Sequence[Sequence[int]], int]] = {
    "whole": ([[1 + (first + step) % 5 for step in range(3)] for first in range(10)], 2),
    "pair": ([[2, 5], [5, 2]], 1),
    "strict": ([[2, 3], [3, 2]], 2),
    "lone": ([[4]], 1),
}
ANSWERS = {1: NO, 2: NO, 3: NO, 4: NO, 5: YES}
"""The exit code of each broker while all is well."""
FAILED_S = 8.0


class RestartTurns:
    """Takes the brokers of a playground out, one after the other."""

    def __init__(self, playground: KafkaPlayground) -> None:
        self._playground = playground
        self._tools = Tools(playground)
        self._cluster = Cluster.objects.create(name="Real", slug="real", bootstrap_servers=playground.bootstrap)
        collection.ensure_runs()
        load_topics(
            playground.bootstrap,
            [LoadTopic(name, placement=placement, fill_bytes=500_000) for name, (placement, _) in TOPICS.items()],
        )
        for name, (_, least) in TOPICS.items():
            self._tools.set_config(name, min_insync_replicas=str(least))

    def take_all(self) -> list[str]:
        """Return what was wrong."""
        try:
            return [problem for broker in ANSWERS for problem in self._take(broker)]
        finally:
            close_all()

    def _take(self, broker: int) -> Iterator[str]:
        wait_until(self._tools.in_sync, "every replica is in sync", 60)
        self._read()
        code, check = self._ask(broker)
        if code != ANSWERS[broker]:
            yield f"broker {broker}: exit code {code} instead of {ANSWERS[broker]}: {_codes(check)}"
        before = {kind: self._tools.partitions_that_are(kind) for kind in TROUBLES}
        self._playground.stop_broker(broker)
        if broker == VOTER:
            yield from self._compare_quorum(check)
        else:
            yield from self._compare_partitions(broker, code, check, before)
        self._playground.start_broker(broker)
        yield from self._wait_for_catch_up(broker)

    def _compare_quorum(self, check: dict[str, Any]) -> Iterator[str]:
        if Code.RESTART_LOSES_QUORUM not in _codes(check):
            yield f"the only voter: {_codes(check)}"
        try:
            with tools_of_their_own():
                done = self._playground.tool("quorum", ["describe", "--status"], timeout=FAILED_S)
        except ServerError:
            return
        if done.returncode == 0:
            yield "the quorum answers without its only voter"

    def _compare_partitions(
        self, broker: int, code: int, check: dict[str, Any], before: dict[str, set[tuple[str, int]]]
    ) -> Iterator[str]:
        others = [node for node in self._playground.cluster.brokers if node.node_id != broker]
        ids = sorted(node.node_id for node in others)
        addresses = [f"{LOOPBACK}:{node.broker_port}" for node in others]
        wait_until(lambda: all(alive_by(each) == ids for each in addresses), f"broker {broker} is fenced", 30)
        offline, under = (self._list_new(kind, before[kind]) for kind in TROUBLES)
        foretold = set(check["offline"]), {*check["offline"], *check["under_min_isr"]}
        if code == YES and (offline or under):
            yield f"broker {broker}: a false yes: {sorted(offline | under)}"
        if (offline, under) != foretold:
            yield f"broker {broker}: Kafka lists {sorted(offline)}, {sorted(under)}; foretold were {foretold}"
        self._read()
        for other in ids:
            found, answer = self._ask(other)
            if found != NO or Code.RESTART_OTHERS_BEHIND not in _codes(answer):
                yield f"broker {other} while broker {broker} is away: exit code {found}, {_codes(answer)}"
        if self._ask(broker)[0] != YES:
            yield f"broker {broker} may not be started again"

    def _wait_for_catch_up(self, broker: int) -> Iterator[str]:
        """Ask until no broker is behind; then Kafka must say so too."""
        other = next(each for each in ANSWERS if each not in (broker, VOTER))

        def all_caught_up() -> bool:
            return self._read() and Code.RESTART_OTHERS_BEHIND not in _codes(self._ask(other)[1])

        wait_until(all_caught_up, "no broker is behind", 90)
        behind = self._tools.partitions_that_are("under-replicated")
        if behind:
            yield f"broker {broker} has caught up, but Kafka lists {sorted(behind)}"

    def _list_new(self, trouble: str, before: set[tuple[str, int]]) -> set[str]:
        return {f"{topic}-{number}" for topic, number in self._tools.partitions_that_are(trouble) - before}

    def _read(self) -> bool:
        """Return whether all facts were read."""
        runs = {run.kind: run.pk for run in CollectorRun.objects.filter(cluster=self._cluster)}
        results = [collection.refresh(runs[kind], only_if_due=False) for kind in FACTS]
        return all(result is not None and not result.error for result in results)

    def _ask(self, broker: int) -> tuple[int, dict[str, Any]]:
        """Return the exit code of the command and its answer."""
        out = io.StringIO()
        try:
            call_command("restart-check", "real", "--broker", str(broker), "--json", stdout=out)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        answer: dict[str, Any] = json.loads(out.getvalue())["check"]
        return code, answer


def _codes(check: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in check["reasons"]]
