"""The runs of items of a round, asked for as people do it, and carried out by the stack's own processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, Policy, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.configs.kind import KIND as CONFIGS
from kafkadash.group_changes.group_deletion import KIND as GROUP_DELETION
from kafkadash.group_changes.reset import KIND as RESET
from kafkadash.monitoring.models import GroupState, TopicState
from kafkadash.short_runs.fail_points import AFTER_CALL, AFTER_ROW, BEFORE_CALL
from kafkadash.short_runs.models import ShortRun
from kafkadash.short_runs.plans import plan_draft
from kafkadash.topics.creation import KIND as CREATION
from kafkadash.topics.deletion import KIND as DELETION
from kafkadash.topics.growth import KIND as GROWTH
from tests.agreement.test_consumer_groups import rows
from tests.agreement.tools import Tools
from tests.committed import commit_offsets
from tests.proof.points import Points
from tests.waiting import wait_until

ARMED = ((BEFORE_CALL, AFTER_ROW), (AFTER_CALL,))
RUN_S, READ_S = 180.0, 60.0
COMMITTED = 7


class ShortRounds:
    """``kinds``: runs that each call of ``run_all`` makes."""

    kinds = 6

    def __init__(self, points: Points) -> None:
        self._points = points
        self._playground = points.stack.playground
        self._tools = Tools(self._playground)
        self._cluster = Cluster.objects.get()
        Policy.objects.update_or_create(cluster=self._cluster, defaults={"approvals_high": 1})
        self._alice, self._bob = User.objects.get(username="alice"), User.objects.get(username="bob")

    def run_all(self, name: str, armed: tuple[str, ...]) -> None:
        topics = [f"{name}-{number}" for number in range(3)]
        creation = {"names": topics, "partitions": 2, "factor": 2, "start": 0, "shift": 0, "configs": {}}
        self._run(CREATION, creation, armed, lambda: self._counts(topics) == [2, 2, 2])
        stored = TopicState.objects.filter(cluster=self._cluster, name__in=topics, format=1)
        wait_until(lambda: stored.count() == len(topics), "the topics are stored", READ_S)
        self._run(GROWTH, {"topic": topics[0], "count": 5}, armed, lambda: self._counts(topics) == [5, 2, 2])
        ids = [str(topic.topic_id) for topic in stored]
        edit = {"of": "topic", "ids": ids, "key": "retention.ms", "value": "7200000"}
        self._run(CONFIGS, {"edits": [edit]}, armed, lambda: all(self._retention(topic) for topic in topics))
        self._commit(name, topics[0])
        reset = {"group": name, "to": "latest", "topic": "", "partitions": []}
        self._run(RESET, reset, armed, lambda: self._committed(name) == {0})
        self._run(GROUP_DELETION, {"groups": [name]}, armed, lambda: name not in self._groups())
        self._run(DELETION, {"topic_ids": ids}, armed, lambda: not set(topics) & set(self._tools.topics()))

    def _run(self, kind: str, wanted: Mapping[str, Any], armed: tuple[str, ...], is_so: Callable[[], bool]) -> None:
        points, began = self._points, time.monotonic()
        since = len(points.hits())
        points.arm(armed)
        change = services.start(self._approved(kind, wanted), self._alice, "Now.")
        problems = []
        try:
            wait_until(lambda: self._state(change) == RequestState.DONE, f"#{change.pk} is done", RUN_S)
            run = ShortRun.objects.get(request=change)
            if run.outcome != "clean":
                problems.append(f"#{change.pk} ended {run.outcome}: {run.counts}")
            wait_until(is_so, f"Kafka's tools tell what #{change.pk} did", READ_S)
        except AssertionError as late:
            problems.append(str(late))
        hits, took = len(points.hits()) - since, time.monotonic() - began
        words = f"{kind}, {wanted.get('group') or wanted.get('names', [''])[0]}"
        print(f"  {words:<40} #{change.pk} {change.state:<10} {hits:>2} deaths {took:>5.0f} s", flush=True)  # noqa: T201
        points.ended(kind, since, problems)
        if problems:
            raise AssertionError("; ".join(problems))

    def _approved(self, kind: str, wanted: Mapping[str, Any]) -> ChangeRequest:
        """Proposed by alice as soon as the facts are young enough, approved by bob."""
        draft = services.create_draft(self._cluster, kind, self._alice, title="Proof", input=wanted, options={})
        refused = ""

        def is_proposed() -> bool:
            nonlocal draft, refused
            draft.refresh_from_db()
            draft = plan_draft(draft)
            try:
                draft = services.submit(draft, self._alice, why="A proof.", version=draft.version)
            except ChangeRefused as why:
                refused = str(why)
                return False
            return True

        try:
            wait_until(is_proposed, f"#{draft.pk} is proposed", READ_S)
        except AssertionError as late:
            raise AssertionError(f"{late}; {refused}") from late
        return services.approve(draft, self._bob, draft.digest)

    def _state(self, change: ChangeRequest) -> str:
        change.refresh_from_db()
        return change.state

    def _counts(self, topics: list[str]) -> list[int]:
        told = self._tools.topics()
        return [len(told[topic].partitions) if topic in told else 0 for topic in topics]

    def _retention(self, topic: str) -> bool:
        told = self._tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
        return "retention.ms=7200000" in told

    def _commit(self, group: str, topic: str) -> None:
        """Make the group by a commit, and wait until it is stored."""
        consumer = Consumer({"bootstrap.servers": self._playground.bootstrap, "group.id": group})
        commit_offsets(consumer, [TopicPartition(topic, 0, COMMITTED)])
        consumer.close()
        stored = GroupState.objects.filter(cluster=self._cluster, name=group, gone_at=None)
        wait_until(stored.exists, f"group {group} is stored", READ_S)

    def _committed(self, group: str) -> set[int]:
        told = self._tools.run("consumer-groups", "--describe", "--group", group)
        return {int(row["CURRENT-OFFSET"]) for row in rows(told)}

    def _groups(self) -> list[str]:
        return self._tools.run("consumer-groups", "--list").split()
