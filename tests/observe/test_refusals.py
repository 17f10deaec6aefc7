"""Refused credentials are not tried for ever at full pace, and topics that Kafka hides are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from kafkadash.clusters.contact import contact
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import set_enabled, update_connection
from kafkadash.kafka.port import AuthenticationFailed, Unreachable
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import ClusterState, Collection, CollectorRun
from kafkadash.observe.queries.collection import collection_context
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]
REFUSED = AuthenticationFailed("Broker 1 refused the credentials: Authentication failed.")


def pause(kind: str) -> timedelta:
    run = CollectorRun.objects.get(kind=kind)
    assert run.attempted_at is not None
    return run.next_at - run.attempted_at


def test_refused_credentials_are_tried_after_longer_and_longer_pauses(
    kafka: MemoryCluster,
    refresh: Refresher,
) -> None:
    kafka.fail = REFUSED
    pauses = []
    for _ in range(8):
        refresh("reassignments")
        pauses.append(round(pause("reassignments").total_seconds()))
    assert pauses == [20, 40, 80, 160, 320, 600, 600, 600]
    assert CollectorRun.objects.get(kind="reassignments").interval_s == 10, "the pause makes nothing fresh that is old"


def test_credentials_that_are_always_refused_are_given_up_until_a_person_acts(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher, settings: Settings
) -> None:
    settings.REFUSED_TRIES = 3
    kafka.fail = REFUSED
    for _ in range(3):
        refresh("metadata")
    assert pause("metadata") > timedelta(days=365)
    [row] = [row for row in collection_context(cluster, datetime.now(UTC))["rows"] if row.kind == "metadata"]
    assert row.gave_up
    assert "After 3 refusals it is not tried any more" in contact(cluster, [row.run], datetime.now(UTC)).sentence

    set_enabled("test", cluster, False)
    set_enabled("test", cluster, True)
    assert pause("metadata") < timedelta(seconds=5)
    refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 60, "it counts from the beginning"


def test_refusals_are_counted_apart_from_other_failures(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.fail = Unreachable("No broker accepted a connection.")
    for _ in range(20):
        refresh("metadata")
    kafka.fail = REFUSED
    refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 60


def test_an_answer_brings_back_the_usual_pace(kafka: MemoryCluster, refresh: Refresher, settings: Settings) -> None:
    settings.COLLECT_INTERVALS_CHEAP = {}
    kafka.fail = REFUSED
    for _ in range(3):
        refresh("metadata")
    kafka.fail = None
    refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 30


def test_a_cluster_that_is_down_is_looked_at_as_often_as_ever(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.fail = Unreachable("No broker accepted a connection.")
    for _ in range(3):
        refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 30


def test_new_settings_do_not_wait_for_the_pause(kafka: MemoryCluster, cluster: Cluster, refresh: Refresher) -> None:
    kafka.fail = REFUSED
    for _ in range(5):
        refresh("metadata")
    update_connection("test", cluster, bootstrap_servers="127.0.0.1:2")
    assert CollectorRun.objects.filter(kind="metadata", next_at__lte=Now()).exists()


def test_settings_changed_while_the_old_ones_are_being_refused(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    kafka.fail = REFUSED
    refresh("metadata")

    def somebody_saves(_: str) -> None:
        update_connection("test", cluster, bootstrap_servers="127.0.0.1:2")

    kafka.before_answer = somebody_saves
    refresh("metadata")
    assert pause("metadata") < timedelta(seconds=5)
    assert CollectorRun.objects.get(kind="metadata").refusals == 0, "the new settings have all their tries"


def test_topics_that_are_on_the_disks_and_hidden_in_the_metadata_are_told(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.add("secret", 0, 1, 2)
    kafka.hidden = {"secret"}
    refresh("metadata")
    refresh("log_dirs")
    [error] = Collection.objects.get(kind="log_dirs").errors
    assert error.startswith("Describe on “secret” is missing: Kafka hides what may not be described")
    assert ClusterState.objects.get().hidden_topics == 1
    kafka.hidden = set()
    kafka.silent = {2}
    refresh("metadata")
    refresh("log_dirs")
    assert ClusterState.objects.get().hidden_topics == 1, "it may lie on the broker that did not answer"
    kafka.silent = set()
    refresh("log_dirs")
    assert ClusterState.objects.get().hidden_topics == 0


def test_a_topic_that_is_only_newer_than_the_metadata_is_not_called_hidden(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    kafka.add("new", 0, 1, 2)
    refresh("log_dirs")
    assert Collection.objects.get(kind="log_dirs").errors == []
