"""The panels as they are pushed: whole, of one root that can be morphed, and the same for everybody.

Who may watch a change request: whoever may view its cluster. The key of all lists carries nothing.

Pages that are not there are rendered in other threads than the rest; they must not keep what the pool lent them.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.messages import PlainReason, pack_reasons, reason_columns
from kafkadash.execution.engine.reasons import RunReasonCode, UnderMinIsrBrake
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution
from kafkadash.live.consumer import NOT_ALLOWED, judge
from kafkadash.live.frames import format_instant, panel_frame, run_frame
from kafkadash.live.panels import PANELS, RUN_PANELS, LivePanel, RunPanel, panels_of, parse_watch_key
from kafkadash.monitoring.models import CollectorKind, CollectorRun, QuorumSnapshot, ReassignmentSnapshot
from tests.execution.stored_runs import requested, running
from tests.live.conftest import Server, database_is_left_alone
from tests.waiting import wait_until

FOR_ONE_PERSON = ("csrf", "vera", "<button", "<form", "<input", "<script", "style=")


class Roots(HTMLParser):
    """The elements at the top of an HTML fragment."""

    VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.roots: list[dict[str, str | None]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._open:
            self.roots.append(dict(attrs))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._open:
            self.roots.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        assert self._open or not data.strip(), f"text outside of the root: {data!r}"


@pytest.fixture
def seen(cluster: Cluster) -> Cluster:
    """A cluster in which something was read of every kind, and something moves."""
    now = timezone.now()
    then = now - timedelta(seconds=3)
    for kind in CollectorKind:
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=10, attempted_at=then, succeeded_at=then)
    QuorumSnapshot.objects.create(
        cluster=cluster, taken_at=then, leader_id=1, leader_epoch=4, high_watermark=100,
        replicas=[
            {"id": 1, "directory_id": None, "voter": True, "log_end_offset": 100, "last_fetch_ms": None,
             "last_caught_up_ms": None}
        ],
        epoch=1, seq=1,
    )  # fmt: skip
    ReassignmentSnapshot.objects.create(
        cluster=cluster, public_id="r-abc", topic_id="id", topic="orders", partition=7, replicas=[1, 2, 3], adding=[3],
        removing=[1], target=[2, 3], original=[1, 2], started_before=now - timedelta(minutes=5), percent=43.21,
        sampled_at=then, last_seen_at=now, epoch=1, seq=1,
    )  # fmt: skip
    return cluster


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_pushed_panel__has_one_root_with_its_id_and_nothing_of_a_person(
    panel: LivePanel, seen: Cluster, viewer: User
) -> None:
    frame = json.loads(panel_frame(panel, seen, timezone.now(), seq=5).text)

    [root] = Roots(frame["content"]).roots
    assert f"#{root['id']}" == frame["target"] == f"#{panel.name}-demo"
    assert (frame["key"], frame["seq"], frame["swap"]) == (f"{panel.name}:demo", 5, "outerMorph")
    assert [word for word in FOR_ONE_PERSON if word in frame["content"].lower()] == []
    assert datetime.now(UTC) - datetime.fromisoformat(frame["sampled_at"]) < timedelta(minutes=1)


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_pushed_panel__of_a_cluster_that_was_never_reached__can_be_rendered(panel: LivePanel, cluster: Cluster) -> None:
    frame = json.loads(panel_frame(panel, cluster, timezone.now(), seq=1).text)

    assert frame["sampled_at"] is None
    assert len(Roots(frame["content"]).roots) == 1


def test_pushed_row__says_to_machines_what_it_says_to_people(seen: Cluster) -> None:
    content = json.loads(panel_frame(PANELS["reassignments"], seen, timezone.now(), seq=1).text)["content"]

    assert 'id="r-abc"' in content
    assert 'data-percent="43.21"' in content
    assert 'data-outcome="running"' in content
    assert "43.2 %" in content


@pytest.mark.parametrize(
    ("path", "panel"),
    [("/", "status"), ("/clusters/demo/", "overview"), ("/clusters/demo/", "quorum"), ("/clusters/demo/", "brokers"),
     ("/clusters/demo/", "collection"), ("/clusters/demo/reassignments/", "reassignments"),
     ("/clusters/demo/quorum/", "controllers"), ("/clusters/demo/quorum/", "leaders")],
)  # fmt: skip
def test_page__shows_each_panel_it_watches(
    path: str, panel: str, seen: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    page = client_of(viewer).get(path).content.decode()

    assert f'id="{panel}-demo"' in page
    assert f"key={panel}:demo" in page


@pytest.mark.parametrize("panel", RUN_PANELS.values(), ids=RUN_PANELS)
def test_pushed_parts_of_a_run__have_a_root_each_and_nothing_of_a_person(
    panel: RunPanel, cluster: Cluster, operator: User, client_of: Callable[[User], Client]
) -> None:
    now = timezone.now()
    change = requested(cluster, operator)
    run = running(
        change,
        now=now,
        stuck_rows=1,
        held=pack_reasons([PlainReason(RunReasonCode.WINDOW_CLOSED)]),
        **reason_columns(UnderMinIsrBrake("orders-1", 1), "brake"),
    )
    other = {"resource": "broker", "name": "4", "key": "leader.replication.throttled.rate", "value": "10", "ours": "60"}
    Execution.objects.filter(pk=run.pk).update(foreign=[other])
    frame = run_frame(panel, change.pk, now, seq=5)
    assert frame is not None
    message = json.loads(frame.text)
    roots = Roots(message["content"]).roots
    assert f"#{roots[0]['id']}" == message["target"] == panel.target(change.pk)
    assert len(roots) == message.get("parts", 1) == len(panel.templates)
    assert [word for word in FOR_ONE_PERSON if word in message["content"].lower()] == []
    page = client_of(operator).get(f"/changes/{change.pk}/run/").content.decode()
    assert all(f'id="{root["id"]}"' in page for root in roots)
    assert f"key={panel.key(change.pk)}" in page
    assert run_frame(panel, change.pk + 1, now, seq=5) is None


def test_what_is_pushed_of_2_000_moving_rows__is_at_most_20_kb_a_second(cluster: Cluster, operator: User) -> None:
    now = timezone.now()
    change = requested(cluster, operator)
    states = {RowState.MOVING: 2000, RowState.PENDING: 9000, RowState.DONE: 3000}
    running(change, states, now=now, stuck_rows=900, topic="payments.ledger-by-account.v2")
    frames = [run_frame(panel, change.pk, now, seq=1) for panel in RUN_PANELS.values()]
    pushed = sum(len(frame.text.encode()) for frame in frames if frame)
    assert pushed / settings.EXECUTE_INTERVAL <= 20_000


def test_every_kind__touches_a_panel() -> None:
    assert all(panels_of({kind}) for kind in CollectorKind.values)
    touched = [panel.name for panel in panels_of({CollectorKind.VERSIONS})]
    assert touched == ["status", "wall", "overview", "collection"]


def test_key__is_read_back_by_what_made_it() -> None:
    for panel in PANELS.values():
        what = parse_watch_key(panel.key("my-cluster"))
        assert what is not None
        assert (what.panel, what.slug) == (panel, "my-cluster")
    for parts in RUN_PANELS.values():
        what = parse_watch_key(parts.key(42))
        assert what is not None
        assert (what.run, what.change, what.panel, what.slug, what.pushed) == (parts, 42, None, "", True)


def test_instants__sort_as_their_texts() -> None:
    early = datetime(2026, 11, 21, 2, 3, 4, 5_000, tzinfo=UTC)

    assert format_instant(early) == "2026-11-21T02:03:04.005Z"
    assert (
        format_instant(early)
        < format_instant(early + timedelta(milliseconds=995))
        < format_instant(early + timedelta(days=400))
    )


@pytest.fixture
def change(cluster: Cluster) -> ChangeRequest:
    return ChangeRequest.objects.create(cluster=cluster, kind="none", author_name="alice")


def test_viewers_of_its_cluster_may(
    change: ChangeRequest, viewer: User, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other = Cluster.objects.create(name="Other", slug="other", bootstrap_servers="127.0.0.1:1")
    una = make_user("una", Role.VIEWER, other)
    ann = make_user("ann", Role.APPROVER, change.cluster)

    def refusal(user: User, *keys: str) -> int | None:
        return judge(client_of(user).session.session_key, keys).close_code

    key = f"change:{change.pk}"
    assert refusal(viewer, key, "changes", "metadata-read:demo") is None
    assert refusal(ann, key) is None
    assert refusal(una, key) == NOT_ALLOWED
    assert refusal(una, "metadata-read:other", key) == NOT_ALLOWED
    assert refusal(una, "changes") is None
    assert refusal(viewer, key, f"change:{change.pk + 1}") == NOT_ALLOWED, "one that does not exist"


@pytest.mark.parametrize(
    "key",
    [
        "change:",
        "change:x",
        "change:0",
        "change:-1",
        "change:1.5",
        "change:1 ",
        "changes:1",
        "run:x",
        "moves:",
        "run:0",
    ],
)
def test_what_is_no_number_is_no_key(key: str) -> None:
    assert parse_watch_key(key) is None


def test_a_key_names_the_change() -> None:
    what = parse_watch_key("change:42")
    assert what is not None
    assert (what.change, what.panel, what.slug) == (42, None, "")


def test_missing_pages__asked_for_by_many_at_once__leave_the_pool_full(
    server: Server, viewer: User, client_of: Callable[[User], Client]
) -> None:
    cookie = f"sessionid={client_of(viewer).cookies['sessionid'].value}"

    def ask(_: int) -> int:
        url = f"http://127.0.0.1:{server.port}/clusters/nowhere/"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Cookie": cookie})) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(24))) == {404}

    wait_until(database_is_left_alone, "all connections are back in the pool", deadline_s=5)
