"""What ends while a panel or a page is being read is on it once: as it was, or as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.live.frames import panel_frame
from kafkadash.live.panels import PANELS
from kafkadash.monitoring.models import CollectorKind, CollectorRun, MoveOutcome, ReassignmentSnapshot
from kafkadash.monitoring.reassignments import pages as reassignments

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def moving(cluster: Cluster) -> ReassignmentSnapshot:
    now = timezone.now()
    for kind in CollectorKind:
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=10, attempted_at=now, succeeded_at=now)
    return ReassignmentSnapshot.objects.create(
        cluster=cluster, public_id="r-abc", topic_id="id", topic="orders", partition=7, replicas=[1, 2, 3], adding=[3],
        removing=[1], target=[2, 3], original=[1, 2], started_before=now - timedelta(minutes=5), percent=43.21,
        sampled_at=now, last_seen_at=now, epoch=1, seq=1,
    )  # fmt: skip


@pytest.fixture
def ends_while_read(moving: ReassignmentSnapshot, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody else's transaction ends the move between the read of what runs and the read of what ended."""
    read_next = reassignments._throttles_of

    def end() -> None:
        ReassignmentSnapshot.objects.filter(pk=moving.pk).update(outcome=MoveOutcome.COMPLETED, ended_at=timezone.now())

    with ThreadPoolExecutor(1) as other:

        def ended_first(*given: Any) -> Any:
            other.submit(end).result()
            return read_next(*given)

        monkeypatch.setattr(reassignments, "_throttles_of", ended_first)
        yield
        other.submit(connections.close_all).result()  # that thread's own


@pytest.mark.usefixtures("ends_while_read")
def test_move_that_ends_while_its_panel_is_read__is_on_it_once(cluster: Cluster, moving: ReassignmentSnapshot) -> None:
    text = panel_frame(PANELS["reassignments"], cluster, timezone.now(), seq=1).text

    assert text.count('id=\\"r-abc\\"') == 1
    moving.refresh_from_db()
    assert moving.outcome == MoveOutcome.COMPLETED


@pytest.mark.usefixtures("ends_while_read")
def test_move_that_ends_while_its_page_is_read__is_on_it_once(
    cluster: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    response = client_of(viewer).get("/clusters/demo/reassignments/")

    assert response.status_code == 200
    assert response.content.decode().count('id="r-abc"') == 1
