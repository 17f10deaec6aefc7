"""The plan as a file for Kafka's own tools, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from tests.reassign.plans import drained, planned, world

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
