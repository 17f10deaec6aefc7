"""A reassignment of Kafka's own tool is cancelled on real Kafka."""

from __future__ import annotations

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.move_cancels.kind import KIND
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.runs import READ, SLOW
from tests.agreement.short_runs import queue, step_until
from tests.agreement.tools import Tools


def test_cancel__kafkas_tools_see_the_replicas_that_were_shown(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, mover: Mover, operator: User
) -> None:
    topic = make_topic([[1, 2]], mib=48)
    mover.start(topic, [1, 3], throttle=SLOW)
    for kind in READ:
        refresh(kind)
    change = queue(cluster, KIND, {}, operator)
    run = step_until(change, RequestState.DONE)
    assert run is not None
    assert (run.outcome, dict(run.rows.values_list("subject", "state"))) == ("clean", {f"{topic}-0": "done"})
    assert tools.moves() == []
    assert set(tools.topics("--topic", topic)[topic].partitions[0].replicas) == {1, 2}
