"""Orphan throttles on real Kafka are removed, and Kafka's own tools see only what was not planned."""

from __future__ import annotations

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.kafka.throttles import FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafkadash.monitoring.models import CollectorKind, ThrottleState
from kafkadash.throttle_removal.kind import KIND
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import READ
from tests.agreement.short_runs import DEADLINE_S, queue, step_until
from tests.agreement.tools import Tools
from tests.waiting import wait_until


def test_removal__takes_what_was_planned_and_leaves_the_rest(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[1, 2], [2, 3]])
    tools.set_config(1, **{LEADER_RATE: "5000000"})
    tools.set_config(2, **{FOLLOWER_RATE: "6000000"})
    tools.set_config(topic, **{LEADER_LIST: "0:1", "retention.ms": "86400000"})
    for kind in (*READ, CollectorKind.CONFIGS, CollectorKind.CONFIGS):
        refresh(kind)
    orphans = ThrottleState.objects.filter(cluster=cluster, orphan=True, name__in=["1", "2", topic])
    assert set(orphans.values_list("name", "key")) == {("1", LEADER_RATE), ("2", FOLLOWER_RATE), (topic, LEADER_LIST)}

    run = step_until(queue(cluster, KIND, {}, operator), RequestState.DONE)
    assert run is not None
    assert (run.outcome, set(run.counts)) == ("clean", {"done"})
    wait_until(lambda: not any(tools.throttles(1, 2, topic).values()), "no throttle is left", DEADLINE_S)
    assert tools.dynamic_configs("topics")[topic].get("retention.ms", ("", ""))[0] == "86400000"
    tools.run("topics", "--delete", "--topic", topic)  # its emptied list stays set
