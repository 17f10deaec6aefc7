"""What the pipeline hands back opens findings: a disk that fills, files that it could not read, and standing still."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import DiskForecast, PipelineLedger
from kafkadash.oncall.models import Finding
from kafkadash.oncall.services import judge
from tests.factories import NOW, judged, watched
from tests.history import beats, handed_back, looked, taken_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


def kinds(cluster: Cluster) -> set[str]:
    return set(Finding.objects.filter(cluster=cluster, closed_at=None).values_list("kind", flat=True))


def test_no_pipeline__says_nothing_about_it(demo: Cluster) -> None:
    judged(demo)
    assert not kinds(demo) & {"pipeline-stands-still", "disk-full-soon", "segment-set-aside"}


def test_a_disk_that_is_full_within_a_day__is_found_and_closed_with_the_next_forecast(demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    before = kinds(demo)
    DiskForecast.objects.update(used_bytes=99, grows_per_day=2.0)
    judge(demo.pk, NOW)
    found = kinds(demo) - before
    row = Finding.objects.get(cluster=demo, kind__in=found, scope="1:/data")
    assert "projected to be full in about" in row.sentence
    DiskForecast.objects.update(used_bytes=10)
    judge(demo.pk, NOW)
    row.refresh_from_db()
    assert row.closed_at is not None


def test_a_file_that_was_set_aside__is_found(demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    judge(demo.pk, NOW)
    row = Finding.objects.get(cluster=demo, sentence__startswith="The pipeline could not read 1 segment")
    assert "It is cut off." in row.detail
    PipelineLedger.objects.update(ingested_at=NOW - timedelta(hours=25))
    judge(demo.pk, NOW)
    row.refresh_from_db()
    assert row.closed_at is not None


def test_no_batch_for_long_while_segments_wait__is_found_and_an_idle_pipeline_is_not(demo: Cluster) -> None:
    long_ago = NOW - timedelta(minutes=10)
    taken_in(NOW, ingested_at=long_ago)
    looked(NOW, beats(NOW, last_batch_at=long_ago.isoformat()))
    judged(demo)
    assert "pipeline-stands-still" not in kinds(demo)
    looked(NOW, beats(NOW, last_batch_at=long_ago.isoformat()), segments_waiting=3)
    judged(demo)
    assert "pipeline-stands-still" in kinds(demo)
