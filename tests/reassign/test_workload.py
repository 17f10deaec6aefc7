"""What the pipeline knows of rates reaches the planner, and pages say which it used, how old, and what is missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.domain.planner.workload import FRESH, WorkloadUsed
from kafkadash.observe.models import Workload
from kafkadash.reassign.models import PlanReport
from kafkadash.reassign.topology import load_topology
from kafkadash.reassign.workload import Model, load_workloads, model_of
from kafkadash.reassign.workload_words import model_words, used_words
from tests.history import modelled
from tests.reassign.stored import Wizard, stored, text

pytestmark = pytest.mark.django_db

MB = 1e6


def rates(cluster: Cluster, *topics: str) -> dict[str, list[float | None]]:
    found = load_topology(cluster, topics or None).topology.topics
    return {name: [p.bytes_in_per_s for p in topic.partitions] for name, topic in found.items()}


def test_a_fresh_model_gives_rates_and_what_it_does_not_know_stays_unknown(demo: Cluster) -> None:
    modelled(demo, "orders", timezone.now() - timedelta(hours=3), rates=[3 * MB, 0.0, None])
    expected = {"orders": [3 * MB, 0.0, None, None, None], "clicks": [None, None]}
    assert rates(demo) == expected
    assert rates(demo, "orders", "clicks") == expected
    sizes = {p.size_bytes for p in load_topology(demo).topology.topics["orders"].partitions}
    assert sizes == {3 * 10**9}, "sizes are those of the log directories, not the model's"


def test_what_is_too_old_or_of_another_form_is_not_used(demo: Cluster) -> None:
    now = timezone.now()
    modelled(demo, "orders", now - FRESH - timedelta(minutes=1), rates=[3 * MB])
    modelled(demo, "clicks", now, rates=[3 * MB])
    Workload.objects.filter(topic="clicks").update(format=1)
    assert rates(demo) == rates(demo, "orders", "clicks") == {"orders": [None] * 5, "clicks": [None] * 2}


def test_of_another_cluster_nothing_is_taken(demo: Cluster) -> None:
    modelled(stored("other"), "orders", timezone.now(), rates=[3 * MB])
    assert rates(demo, "orders") == {"orders": [None] * 5}


def test_checks_read_it_once_until_there_is_another(demo: Cluster) -> None:
    now = timezone.now()
    row = modelled(demo, "orders", now, rates=[1.0], version=1)
    assert load_workloads(demo, ["orders"], now)["orders"].partitions[0].typical == 1.0
    with CaptureQueriesContext(connection) as again:
        load_workloads(demo, ["orders"], now)
    assert len(again) == 1
    row.delete()
    modelled(demo, "orders", now, rates=[2.0], version=2)
    assert load_workloads(demo, ["orders"], now)["orders"].partitions[0].typical == 2.0


def test_the_plan_says_which_rates_it_was_made_with(wizard: Wizard, demo: Cluster) -> None:
    to_at = timezone.now() - timedelta(hours=3)
    modelled(demo, "orders", to_at, rates=[3 * MB] * 4)
    wizard.begins(demo, "drain").drains(3)
    page = text(wizard.sees("limits"))
    assert "The pipeline has rates of 1 topic, seen from" in page
    assert "3 h ago" in page
    wizard.limits()
    wizard.plans()
    used = PlanReport.objects.get(request=wizard.number).impact["workload"]
    assert (used["known"], used["unknown"], used["to_at"]) == (3, 2, to_at.isoformat())
    assert (used["typical"], used["peak"], used["grows"]) == (9 * MB, 18 * MB, 3e9)
    page = text(wizard.client.get(f"/changes/{wizard.number}/").content.decode())
    assert "of 3 partitions, seen by the pipeline from" in page
    assert "3 h ago; of 2 partitions nothing is known. Estimate: together they take in 9.0 MB/s" in page
    assert "unknown: what some of the moving partitions take in is not known" in page


def test_a_throttle_below_what_the_pipeline_saw_is_asked_for_twice(wizard: Wizard, demo: Cluster) -> None:
    for topic, number in (("orders", 5), ("clicks", 2)):
        modelled(demo, topic, timezone.now(), rates=[30 * MB] * number)
    wizard.begins(demo, "drain").drains(3)
    wizard.limits()
    wizard.plans()
    page = text(wizard.limits(throttle="25").content.decode())
    assert "that producers write to what moves: at that rate it could never finish." in page
    assert "Yes, that slow" in page


def test_without_a_model_that_is_said(wizard: Wizard, demo: Cluster) -> None:
    wizard.begins(demo, "drain").drains(3)
    assert "The pipeline has no rates of this cluster yet" in text(wizard.sees("limits"))
    wizard.limits()
    wizard.plans()
    page = text(wizard.client.get(f"/changes/{wizard.number}/").content.decode())
    assert "none: of 5 partitions that are copied the pipeline has no rates" in page


NOW = datetime(2026, 3, 10, 13, tzinfo=UTC)
FROM, TO = datetime(2026, 3, 3, 10, tzinfo=UTC), datetime(2026, 3, 10, 10, tzinfo=UTC)


def test_words_of_what_there_is(demo: Cluster) -> None:
    assert model_words(Model(0, None, None, TO), NOW) == (
        "The pipeline's last rates are of 10 Mar 10:00 UTC, too old to plan with: what partitions take in counts as "
        "unknown."
    )
    modelled(demo, "orders", TO, rates=[1.0])
    modelled(demo, "clicks", TO, rates=[1.0], days=2)
    assert model_words(model_of(demo, NOW), NOW) == (
        "The pipeline has rates of 2 topics, seen from 3 Mar 10:00 UTC to 10 Mar 10:00 UTC, 3 h ago."
    )
    assert model_of(demo, NOW + FRESH) == Model(0, None, None, TO)


def test_words_of_what_was_used() -> None:
    used = WorkloadUsed(12, 0, FROM.isoformat(), TO.isoformat(), 4.1 * MB, 9 * MB, -2e9)
    assert used_words(used, NOW) == (
        "of 12 partitions, seen by the pipeline from 3 Mar 10:00 UTC to 10 Mar 10:00 UTC, 3 h ago. Estimate: together "
        "they take in 4.1 MB/s, at most 9.0 MB/s if all have their busiest hour at once, and shrink by 2.0 GB a day"
    )
    assert used_words(None, NOW) == used_words(WorkloadUsed(0, 0), NOW) == ""
