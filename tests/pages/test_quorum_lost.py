"""Without a majority of the controllers brokers repeat what they last heard: no page may be green of that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.oncall.services import judge
from tests.factories import NOW, watched
from tests.pages.conftest import Page
from tests.pages.test_drill import topic

pytestmark = pytest.mark.django_db
PAGES = (
    "reassignments/",
    "brokers/",
    "brokers/1/",
    "topics/",
    "topics/orders/",
    "racks/",
    "drill/",
    "drill/?broker=1",
    "",
)


@pytest.fixture
def quorumless(db: None) -> Cluster:
    """Metadata was read a moment ago, the controllers last answered 25 s ago and then failed twice."""
    cluster = watched("demo")
    topic(cluster, "orders", [1, 2, 3])
    runs = CollectorRun.objects.filter(cluster=cluster, kind=Kind.QUORUM)
    runs.update(
        succeeded_at=NOW - timedelta(seconds=25),
        failures=2,
        last_failure=FailureKind.QUORUM_UNAVAILABLE,
        last_error="No.",
    )
    for seconds in (10, 0):
        judge(cluster.pk, NOW - timedelta(seconds=seconds))
    return cluster


def test_a_read_of_metadata_that_fails_as_well_makes_nothing_green(
    quorumless: Cluster, get_page: Callable[[str], Page]
) -> None:
    """As when a broker dies after the controllers: what was read before is not stale yet."""
    CollectorRun.objects.filter(cluster=quorumless, kind=Kind.METADATA).update(
        failures=1, last_failure=FailureKind.UNREACHABLE
    )
    shown = get_page("/clusters/demo/brokers/")
    assert shown.start_tag("broker-list-demo").count("data-stale") == 1
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("failure", [FailureKind.QUORUM_UNAVAILABLE, FailureKind.UNREACHABLE])
def test_no_page_is_green(quorumless: Cluster, get_page: Callable[[str], Page], path: str, failure: str) -> None:
    """However the questions to the controllers fail: a connection may break while it waits for their answer."""
    CollectorRun.objects.filter(cluster=quorumless, kind=Kind.QUORUM).update(last_failure=failure)
    shown = get_page(f"/clusters/demo/{path}")
    main = shown.html[shown.html.index("<main") :]
    listed_at = "02:03:01" if path == "reassignments/" else "02:02:39"  # controllers answered this later than that
    assert f"as the controllers said at {listed_at} UTC" in shown.text
    assert 'data-state="ok"' not in main
