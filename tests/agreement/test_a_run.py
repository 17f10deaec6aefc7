"""A change that kafkadash runs by itself on real Kafka; Kafka's own tools see what it did, and find nothing left."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Options
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import DRAIN, PlanRequest
from kafkadash.domain.throttles import FOLLOWER_LIST, LEADER_LIST
from kafkadash.observe.models import Kind
from kafkadash.reassign.models import Execution, Move, Outcome, ThrottleEntry
from kafkadash.reassign.run.measure import stored_progress
from kafkadash.reassign.run.step import step_once
from kafkadash.reassign.topology import load_topology
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.reassign.plans import planned

READ = (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS, Kind.CONFIGS)
RATE = 2_000_000
MOST_S = 300
READ_AGAIN_S = 10  # as often as collectors do; between, the steps are as many as a busy machine allows


def test_a_drain__runs_throttled_to_its_end(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[3, 1], [1, 3], [2, 3], [1, 2]], mib=48)
    for kind in READ:
        refresh(kind)
    change = _queued(cluster, topic, operator)
    before = _configs(tools)
    percents: list[float] = []
    meanwhile: dict[str, tuple[str, str]] = {}
    until, read_at = time.monotonic() + MOST_S, time.monotonic()
    while _state(change) not in (RequestState.DONE, RequestState.FAILED):
        assert time.monotonic() < until, (_state(change), Execution.objects.get().error, _rows())
        if time.monotonic() > read_at + READ_AGAIN_S:
            read_at = time.monotonic()
            for kind in (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS):
                refresh(kind)
        execution = Execution.objects.get(request=change)
        Execution.objects.filter(pk=execution.pk).update(next_at=Now())
        step_once(execution.pk)
        shown = stored_progress(Execution.objects.get(pk=execution.pk))
        if shown is not None and shown.percent is not None:
            percents.append(shown.percent)
        if not meanwhile and Move.objects.filter(state="moving").exists():
            meanwhile = tools.dynamic_configs("topics").get(topic, {})

    run = Execution.objects.get(request=change)
    assert _rows() == dict.fromkeys((0, 1, 2), ("done", ""))
    assert (run.outcome, run.active, run.error) == (Outcome.CLEAN, False, None)
    placed = tools.topics()[topic]
    assert [p.replicas for _, p in sorted(placed.partitions.items())] == [(2, 1), (1, 2), (2, 1), (1, 2)]
    assert {LEADER_LIST, FOLLOWER_LIST} <= meanwhile.keys()
    assert _configs(tools) == before
    assert tools.moves() == []
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert percents == sorted(percents)
    assert sum(5 < percent < 95 for percent in percents) >= 3
    took = (run.ended_at - run.started_at).total_seconds()  # type: ignore[operator]
    assert took > 5, "it was throttled"


def _queued(cluster: Cluster, topic: str, operator: User) -> ChangeRequest:
    topology = load_topology(Cluster.objects.get(pk=cluster.pk), [topic]).topology
    found = plan(topology, PlanRequest(DRAIN, (3,), disk_limit=0.99))
    assert found.problems == ()
    change = planned(
        cluster, topology, found.rows, options=Options(RATE, RATE, 10 * RATE, per_broker=2), approvals_needed=0
    )
    ChangeRequest.objects.filter(pk=change.pk).update(
        state=RequestState.APPROVED,
        expires_at=datetime.now(UTC) + timedelta(hours=1),
        input={**change.input, "disk_limit": 0.99},
    )
    return running.start(change, operator, "Its disk fails.")


def _state(change: ChangeRequest) -> str:
    return ChangeRequest.objects.values_list("state", flat=True).get(pk=change.pk)


def _configs(tools: Tools) -> object:
    return {kind: tools.dynamic_configs(kind) for kind in ("topics", "brokers")}


def _rows() -> dict[int, tuple[str, str]]:
    return {move.partition: (move.state, move.reason_code) for move in Move.objects.all()}
