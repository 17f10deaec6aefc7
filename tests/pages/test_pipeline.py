"""The pipeline's page: whether history is up to date, and what keeps it; nothing old is green."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.observe.models import VerdictCount, VerdictDifference
from tests.factories import NOW, ClusterFactory
from tests.history import beats, handed_back, looked, taken_in
from tests.pages.conftest import Page

URL = "/pipeline/"
Get = Callable[[], Page]


@pytest.fixture
def demo(db: None) -> Cluster:
    return ClusterFactory.create(name="demo", created_at=NOW - timedelta(days=40))


@pytest.fixture
def get(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> Get:
    client = client_of(viewer)

    def page() -> Page:
        with time_machine.travel(NOW, tick=False):
            response = client.get(URL)
        assert response.status_code == 200
        return Page(response.content.decode())

    return page


def ago(**length: float) -> str:
    return (NOW - timedelta(**length)).isoformat()


def test_first_run__says_what_is_missing_and_how_to_start_it(get: Get) -> None:
    assert "Nobody has looked for the pipeline yet." in get().text
    looked(NOW)
    page = get()
    assert "No pipeline has reported yet." in page.text
    assert "It needs Java and the extra “pipeline”." in page.text
    assert "python manage.py pipeline run" in page.text
    assert "No result was taken in yet." in page.text
    assert 'data-state="unknown"' in page.html


def test_all_is_well__it_says_up_to_when(get: Get) -> None:
    looked(NOW, beats(NOW))
    taken_in(NOW)
    page = get()
    assert "History is up to date." in page.text
    assert "waiting, on spark-1" in page.text
    assert "41 at" in page.text
    assert "5 s when that batch was done" in page.text
    assert "status-pill" not in page.html
    assert "4.0 s" in page.text, "from the segment to the row"


@pytest.mark.parametrize(
    ("beat", "row", "title", "state"),
    [
        ({"beat_at": ago(seconds=16)}, {}, "The pipeline stands still: its last sign is 16 s old.", "warning"),
        ({"beat_at": ago(hours=3)}, {}, "The pipeline stands still: its last sign is 3 h", "warning"),
        ({"beat_at": "soon"}, {}, "The pipeline stands still.", "warning"),
        ({"state": "failed", "fault": "No room is left."}, {}, "The pipeline has failed. No room is left.", "warning"),
        ({"state": "stopped", "beat_at": ago(minutes=2)}, {}, "The pipeline was stopped 2 min", "warning"),
        (
            {},
            {"segments_waiting": 7, "oldest_waiting_at": NOW - timedelta(minutes=1)},
            "The pipeline is behind: 7 segments wait, the oldest since 1 min",
            "warning",
        ),
        ({}, {"results_waiting": 2}, "The database is behind: 2 results of the pipeline are not taken in.", "warning"),
        (
            {},
            {"looked_at": NOW - timedelta(minutes=2)},
            "What the pipeline does is not known: no worker looks.",
            "unknown",
        ),
        (
            {},
            {"looked_at": NOW - timedelta(minutes=2), "last_error": "The disk is away."},
            "What the pipeline does is not known. The disk is away.",
            "unknown",
        ),
    ],
)
def test_something_is_wrong__the_title_says_what(
    get: Get, beat: dict[str, Any], row: dict[str, Any], title: str, state: str
) -> None:
    looked(NOW, beats(NOW, **beat), **row)
    taken_in(NOW)
    page = get()
    assert title in page.text
    assert f'<span class="status-pill" data-state="{state}">' in page.html
    assert "History is up to date" not in page.text


def test_two_missed_signs__are_none_yet(get: Get) -> None:
    looked(NOW, beats(NOW, beat_at=ago(seconds=15)))
    taken_in(NOW)
    assert "History is up to date." in get().text


def test_the_pipeline_runs_and_has_handed_nothing_back__is_not_green(get: Get) -> None:
    looked(NOW, beats(NOW, last_batch=None, last_batch_at=None, last_batch_seconds=None, event_lag_seconds=None))
    page = get()
    assert "The pipeline runs and has handed nothing back yet." in page.text
    assert "none since it was started" in page.text


def test_verdicts_differ__in_numbers_and_the_newest_of_them(get: Get, demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    VerdictCount.objects.update(judged=400, differed=1)
    page = get()
    assert "They differ in 1 judgement of 400, 0.25 %." in page.text
    assert "g t-1 demo stall ok" in page.text
    VerdictCount.objects.update(judged=400_000, differed=1)
    assert "They differ in 1 judgement of 400,000, less than 0.01 %." in get().text
    VerdictCount.objects.update(judged=400, differed=0)
    assert "They agree in all 400 judgements." in get().text


def test_a_query_that_began_anew__counts_in_an_hour_only_where_it_judged_more(get: Get, demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    first = VerdictCount.objects.get()
    VerdictCount.objects.update(query="q1", judged=400, differed=1)
    again = VerdictCount.objects.create(query="q2", cluster=demo, hour=first.hour, judged=300, differed=2)
    assert "They differ in 1 judgement of 400, 0.25 %." in get().text
    VerdictCount.objects.filter(pk=again.pk).update(judged=500)
    assert "They differ in 2 judgements of 500, 0.40 %." in get().text


def test_what_was_compared_a_day_ago__is_not_counted(get: Get, demo: Cluster) -> None:
    VerdictCount.objects.create(cluster=demo, hour=NOW - timedelta(hours=25), judged=5, differed=5)
    assert "Nothing was compared in 24 hours." in get().text


def test_what_was_set_aside__has_its_sentence(get: Get, demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    page = get()
    assert "lag_rollup/q1-1 It is cut off." in page.text


def test_of_clusters_that_one_may_not_view__nothing_is_shown(
    get: Get, demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other = ClusterFactory.create(name="secret")
    handed_back(other, 1, NOW)
    VerdictDifference.objects.update(group="hidden")
    reader = client_of(make_user("reader", Role.VIEWER, demo))
    with time_machine.travel(NOW, tick=False):
        text = Page(reader.get(URL).content.decode()).text
    assert "secret" not in text
    assert "hidden" not in text
    assert "Nothing was compared in 24 hours." in text
    assert "secret" in get().text


def test_without_any_role__it_is_refused_and_not_in_the_navigation(
    demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    client = client_of(make_user("nobody"))
    assert client.get(URL).status_code == 403
    assert URL not in client.get("/").content.decode()
