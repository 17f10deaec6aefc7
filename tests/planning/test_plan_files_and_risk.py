"""The plan as a file for Kafka's own tools, and the way back.

What the risk floor learns from a plan; what is not known is never harmless.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove, canonical_bytes
from kafkadash.changes.plans import keep_artifact
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.execution.kind import UNKNOWN, facts_of, risk_facts
from kafkadash.planning.impact import impact_of
from kafkadash.planning.topology import ClusterTopology
from tests.factories import ClusterFactory
from tests.planning.plans import drained, planned, world

WORLD = world({"orders": [[3, 1, 2], [1, 2, 4], [2, 3, 1]], "clicks": [[3, 5]]})


@pytest.fixture
def change(cluster: Cluster) -> ChangeRequest:
    return planned(cluster, WORLD, drained(WORLD, 3, instead=6))


@pytest.fixture
def client(viewer: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(viewer)


def test_it_holds_the_targets_in_order(change: ChangeRequest, client: Client) -> None:
    response = client.get(f"/changes/{change.pk}/kafka.json")
    assert json.loads(response.content) == {
        "version": 1,
        "partitions": [
            {"topic": "clicks", "partition": 0, "replicas": [6, 5]},
            {"topic": "orders", "partition": 0, "replicas": [6, 1, 2]},
            {"topic": "orders", "partition": 2, "replicas": [2, 6, 1]},
        ],
    }
    assert response["Content-Disposition"] == f'attachment; filename="change-{change.pk}.json"'
    assert response["X-Change-Digest"] == f"sha256:{change.digest}"


def test_the_way_back_holds_the_original_replicas_in_order(change: ChangeRequest, client: Client) -> None:
    back = json.loads(client.get(f"/changes/{change.pk}/rollback.json").content)
    assert [entry["replicas"] for entry in back["partitions"]] == [[3, 5], [3, 1, 2], [2, 3, 1]]


def test_the_same_plan_is_not_sent_twice_and_the_way_back_is_another_file(
    change: ChangeRequest, client: Client
) -> None:
    etag = client.get(f"/changes/{change.pk}/kafka.json")["ETag"]
    assert str(change.artifact_id) in etag
    assert client.get(f"/changes/{change.pk}/kafka.json", headers={"if-none-match": etag}).status_code == 304
    assert client.get(f"/changes/{change.pk}/rollback.json", headers={"if-none-match": etag}).status_code == 200


@pytest.mark.parametrize("file", ["kafka.json", "rollback.json"])
def test_who_may_not_view_the_cluster_learns_nothing(
    file: str, change: ChangeRequest, stranger: User, client_of: Callable[[User], Client]
) -> None:
    assert client_of(stranger).get(f"/changes/{change.pk}/{file}").status_code == 404


def test_a_draft_without_a_plan_has_no_file(cluster: Cluster, client: Client) -> None:
    draft = ChangeRequest.objects.create(cluster=cluster, kind="reassignment", author_name="alice")
    assert client.get(f"/changes/{draft.pk}/kafka.json").status_code == 404


TOPICS = {"orders": [[1, 2, 3], [2, 3, 4], [4, 5, 6], [1, 5, 6]], "__consumer_offsets": [[3, 1]]}


def facts(topology: ClusterTopology, *rows: PartitionMove) -> RiskFacts:
    return facts_of(impact_of(rows, topology))


def test_shares_are_of_all_bytes_and_of_all_partitions() -> None:
    found = facts(world(TOPICS), *drained(world(TOPICS), 3, instead=6))
    assert found.bytes_share == pytest.approx(3 / 14)  # three copies of fourteen replicas of one size
    assert found.partitions_share == pytest.approx(3 / 5)
    assert found.internal_topics == 1


def test_a_rack_is_left_with_one_broker_only_if_it_had_more() -> None:
    assert facts(world(TOPICS), *drained(world(TOPICS), 3, instead=6)).racks_on_one_broker == ("eu-1c",)
    alone = world({"orders": [[1, 2, 3]]}, brokers=4)
    assert facts(alone, PartitionMove("orders", "id", 0, (1, 2, 3), (4, 2, 3))).racks_on_one_broker == ()


def test_fewer_racks_and_fewer_replicas_count() -> None:
    found = facts(world(TOPICS), PartitionMove("orders", "id", 0, (1, 2, 3), (1, 2)))
    assert found.rf_decreases == 1
    assert facts(world(TOPICS), PartitionMove("orders", "id", 0, (1, 2, 3), (1, 2, 4))).spread_worse == 1


def test_what_gets_better_elsewhere_does_not_make_up_for_a_worse_spread() -> None:
    uneven = {"orders": [[1, 2, 3], [1, 4, 2]]}
    rows = (
        PartitionMove("orders", "id", 0, (1, 2, 3), (1, 2, 4)),
        PartitionMove("orders", "id", 1, (1, 4, 2), (1, 3, 2)),
    )
    impact = impact_of(rows, world(uneven))
    assert (impact.violations_before, impact.violations_after, impact.spread_worse) == (1, 1, 1)
    assert facts_of(impact).spread_worse == 1
    watch = {one.code: one for one in impact.watch}["spread"]
    assert (watch.state, watch.lead) == ("warning", "Rack spread gets worse:")


def test_unknown_sizes_and_half_named_racks_stay_unknown() -> None:
    assert facts(world(TOPICS, size=None), *drained(world(TOPICS), 3, instead=6)).bytes_share is None
    mixed = world(TOPICS, racks=("eu-1a", "eu-1b", None))
    assert facts(mixed, *drained(mixed, 3, instead=6)).spread_worse is None


def test_where_no_broker_names_a_rack_nothing_can_be_spread_worse() -> None:
    bare = world(TOPICS, racks=(None,))
    assert facts(bare, *drained(bare, 3, instead=6)).spread_worse == 0


def test_a_new_order_moves_no_bytes_even_of_unknown_size() -> None:
    assert facts(world(TOPICS, size=None), PartitionMove("orders", "id", 0, (1, 2, 3), (2, 1, 3))).bytes_share == 0


@pytest.mark.django_db
def test_they_are_read_from_the_stored_report_and_nothing_is_known_without_one() -> None:
    cluster: Cluster = ClusterFactory.create()
    topology = world(TOPICS)
    rows = drained(topology, 3, instead=6)
    change = planned(cluster, topology, rows, impact=impact_of(rows, topology))
    assert risk_facts(change) == facts(topology, *rows)
    change.report.delete()
    assert risk_facts(change) == UNKNOWN


@pytest.mark.django_db
def test_a_report_of_another_plan_says_nothing_about_this_one() -> None:
    topology = world(TOPICS)
    rows = drained(topology, 3, instead=6)
    change = planned(ClusterFactory.create(), topology, rows, impact=impact_of(rows, topology))
    change.artifact = keep_artifact(canonical_bytes(rows[:1]), 1)
    assert risk_facts(change) == UNKNOWN
