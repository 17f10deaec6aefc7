"""The controller quorum as stored, against ``kafka-metadata-quorum``."""

from __future__ import annotations

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Kind, QuorumSnapshot
from tests.agreement.conftest import Refresher
from tests.agreement.tools import Tools


def test_quorum__leader_epoch_members_and_log_ends__equal_describe(
    cluster: Cluster, refresh: Refresher, tools: Tools
) -> None:
    status = tools.quorum_status()
    before = tools.quorum_log_ends()
    refresh(Kind.QUORUM)
    after = tools.quorum_log_ends()
    stored = QuorumSnapshot.objects.get(cluster=cluster)
    assert before.keys() == after.keys(), "the controllers elected meanwhile"
    assert (stored.leader_id, stored.leader_epoch) == (status.leader_id, status.leader_epoch)
    assert members(stored, voters=True) == status.voters
    assert members(stored, voters=False) == status.observers
    assert len(status.voters) == len(status.observers) == 3
    assert stored.high_watermark is not None
    assert status.high_watermark <= stored.high_watermark <= after[status.leader_id, "Leader"]

    ends = {(row["id"], row["voter"]): row["log_end_offset"] for row in stored.replicas}
    assert len(ends) == len(before)
    for (node, role), least in before.items():
        assert least <= ends[node, role != "Observer"] <= after[node, role], f"node {node}"


def members(stored: QuorumSnapshot, *, voters: bool) -> frozenset[tuple[int, str]]:
    return frozenset((row["id"], row["directory_id"]) for row in stored.replicas if row["voter"] is voters)
