"""No view without a declared permission; `test_every_right` says whom each lets in. New URLs need no line here."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plans import keep_artifact
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.access import ACTIONS, ALLOWS, ActionPermission, get_permission
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.messages import coded, message_columns
from kafkadash.elections.kind import KIND as ELECTION
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.runner import enqueue
from kafkadash.live.consumer import NOT_ALLOWED, NOT_SIGNED_IN, judge
from kafkadash.live.panels import PANELS
from kafkadash.monitoring.groups.names import slug_of
from kafkadash.monitoring.models import BrokerState, GroupState, ReassignmentSnapshot, TopicState
from kafkadash.notifications.models import NotificationTarget, TargetKind
from kafkadash.short_runs.kinds import encode_items
from kafkadash.short_runs.state import PlannedItem
from kafkadash.verify.job import KIND as VERIFY
from kafkadash.verify.models import Verification
from tests.conftest import new_user, signed_in
from tests.execution.stored_runs import requested, running
from tests.groups import group_seen
from tests.kept_rows import kept
from tests.planning.plans import drained, planned, world


@dataclass(frozen=True)
class Url:
    name: str
    view: Callable[..., HttpResponse]
    arguments: tuple[str, ...]

    @property
    def permission(self) -> ActionPermission:
        permission = get_permission(self.view)
        assert permission is not None, f"{self.name} declares no permission: use needs, signed_in or public"
        return permission

    @property
    def page(self) -> str:
        """Of the form that alone is sent to it, "" where it is opened as well."""
        page: str = getattr(self.view, "page", "")
        return page


def all_urls() -> list[Url]:
    return list(_walk(get_resolver(), "", ()))


def _walk(resolver: URLResolver, namespace: str, arguments: tuple[str, ...]) -> Iterator[Url]:
    for pattern in resolver.url_patterns:
        own = (*arguments, *pattern.pattern.regex.groupindex)
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _walk(pattern, inner, own)
        elif isinstance(pattern, URLPattern):
            assert pattern.name, f"The URL {pattern.pattern} has no name"
            yield Url(namespace + pattern.name, pattern.callback, own)


URLS = all_urls()
every_url = pytest.mark.parametrize("url", URLS, ids=lambda url: url.name)


def address(url: Url, cluster: Cluster) -> str:
    """With arguments that exist, so that an answer of "not found" can only come from the permission."""
    return reverse(url.name, kwargs=made_arguments(url, cluster))


def made_arguments(url: Url, cluster: Cluster) -> dict[str, Any]:
    made: dict[str, Any] = {name: ARGUMENTS[name](cluster) for name in url.arguments}
    if url.name in OF_RUNS:
        made["number"] = _run(cluster, OF_RUNS[url.name])
    if url.name == "findings:product_finding":
        made["finding_id"] = _finding(None)
    if url.name.startswith("short_runs:"):
        made["number"] = _election(cluster)
    return made


def _reassignment(cluster: Cluster) -> str:
    now = timezone.now()
    row = ReassignmentSnapshot.objects.create(
        cluster=cluster,
        public_id=f"r-{uuid.uuid4().hex[:8]}",
        topic_id=str(uuid.uuid4()),
        topic="orders",
        partition=0,
        replicas=[3, 1, 2],
        adding=[3],
        removing=[1],
        target=[3, 2],
        original=[1, 2],
        started_before=now,
        last_seen_at=now,
        epoch=1,
        seq=1,
    )
    return row.public_id


def _receiver() -> int:
    name = f"receiver {uuid.uuid4().hex[:8]}"
    row = NotificationTarget.objects.create(
        name=name, kind=TargetKind.WEBHOOK, address="https://hooks.test/", shown="https://hooks.test/…", secret="key"
    )
    return row.pk


def _finding(cluster: Cluster | None) -> str:
    now = timezone.now()
    row = Finding.objects.create(
        cluster=cluster,
        public_id=f"f-{uuid.uuid4().hex[:8]}",
        kind=FindingKind.BROKER_DOWN.value,
        scope=uuid.uuid4().hex,
        state="critical",
        rank=0,
        **message_columns(coded(FindingCode.DOWN_FENCED, broker=1, replicas=3), "message"),
        first_seen_at=now,
        opened_at=now,
        seen_at=now,
    )
    return row.public_id


def _broker(cluster: Cluster) -> str:
    now = timezone.now()
    row, _ = BrokerState.objects.get_or_create(
        cluster=cluster,
        broker_id=3,
        defaults={"host": "kafka-3", "port": 9092, "first_seen_at": now, "changed_at": now},
    )
    return str(row.broker_id)


def _group(cluster: Cluster) -> str:
    row = GroupState.objects.filter(cluster=cluster).first() or group_seen(cluster, "orders/reader")
    return slug_of(row.name)


def _topic(cluster: Cluster) -> str:
    row, _ = TopicState.objects.get_or_create(
        cluster=cluster,
        topic_id="id",
        defaults={
            "name": "orders.v1",
            "partitions": [[0, 1, 5, [1], [1], []]],
            "shape": "0" * 32,
            "partition_count": 1,
            "replication_factor": 1,
            "changed_at": timezone.now(),
        },
    )
    return row.name


def _verification(cluster: Cluster) -> str:
    job = enqueue(VERIFY, cluster=cluster)
    Verification.objects.create(job=job, size=2, data=zlib.compress(b"{}"))
    return str(job.pk)


def _change(cluster: Cluster) -> str:
    """With a plan that moves the topic of ``_topic``."""
    topology = world({_topic(cluster): [[1, 2, 3]]})
    return str(planned(cluster, topology, drained(topology, 3, instead=6)).pk)


def _run(cluster: Cluster, state: ChangeState) -> str:
    """A change that runs, or has run; one at a time per cluster."""
    there = Execution.objects.filter(cluster=cluster).first()
    if there is not None:
        return str(there.request_id)
    ended: dict[str, Any] = {"ended_at": timezone.now()} if state is ChangeState.DONE else {}
    rows = {RowState.DONE if ended else RowState.MOVING: 1}
    return str(running(requested(cluster, _author(cluster), state), rows, **ended).request_id)


def _election(cluster: Cluster) -> str:
    """A draft that elects the leader of one partition."""
    content = {"topic": _topic(cluster), "topic_id": "id", "partition": 0, "replicas": [1], "leader": 2}
    with transaction.atomic():
        artifact = keep_artifact(encode_items(ELECTION, [PlannedItem("orders.v1-0", content)]), 1)
    change = ChangeRequest.objects.create(
        cluster=cluster,
        kind=ELECTION,
        author=_author(cluster),
        artifact=artifact,
        title="Elect leaders",
    )
    return str(change.pk)


def _author(cluster: Cluster) -> User:
    return User.objects.create_user(f"author-of-{cluster.slug}-{uuid.uuid4().hex[:6]}")


# What is there only of a change that was started.
OF_RUNS = {
    "execution:run_cancel": ChangeState.EXECUTING,
    "execution:run_give_up": ChangeState.CANCELLING,
    "execution:report_markdown": ChangeState.DONE,
    "execution:report_json": ChangeState.DONE,
}
# How to make one of each thing that a URL names.
ARGUMENTS: dict[str, Callable[[Cluster], str]] = {
    "slug": lambda cluster: cluster.slug,
    "public_id": _reassignment,
    "broker_id": _broker,
    "topic": _topic,
    "group": _group,
    "job_id": lambda cluster: str(enqueue(CONNECTION_TEST, cluster=cluster).pk),
    "finding_id": _finding,
    "number": _change,
    "event_id": lambda cluster: str(record("jobs", "cluster.identified", cluster, cluster=cluster.slug).pk),
    "verify_id": _verification,
    "receiver": lambda _: str(_receiver()),
    "service": lambda _: TargetKind.WEBHOOK.value,
    "kind": lambda _: FindingKind.BROKER_DOWN.value,
}


@dataclass(frozen=True)
class OneCluster:
    """``cookies``: of a browser in which somebody with this role everywhere is signed in, and with none."""

    cluster: Cluster
    cookies: Mapping[Role | None, SimpleCookie]

    def browser(self, role: Role | None) -> Client:
        client = Client()
        client.cookies.update(self.cookies[role])
        return client


@pytest.fixture(scope="module")
def made_once(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[OneCluster]:
    """Each test takes back what it changes."""
    with kept(django_db_blocker, _one_cluster) as made:
        yield made


@pytest.fixture
def demo(made_once: OneCluster, db: None) -> OneCluster:
    return made_once


def _one_cluster() -> OneCluster:
    cluster = Cluster.objects.create(name="Demo", slug="demo", bootstrap_servers="127.0.0.1:1")
    people: dict[Role | None, User] = {role: new_user(role.value, role) for role in Role}
    people[None] = new_user("stan")
    return OneCluster(cluster, {role: signed_in(user).cookies for role, user in people.items()})


def test_there_are_urls() -> None:
    assert {"account_login", "findings:board", "findings:overview"} <= {url.name for url in URLS}


@every_url
def test_it_declares_a_permission(url: Url) -> None:
    permission = url.permission
    assert permission.level != "needs" or permission.action in ACTIONS
    assert set(url.arguments) <= set(ARGUMENTS), "tell this test how to make one: ARGUMENTS"


@every_url
def test_an_address_is_opened_in_a_browser_too(url: Url, demo: OneCluster) -> None:
    """No reload and no copied link ends in a blank page: what only forms are sent to leads to the page of the form."""
    root = signed_in(new_user("root", is_superuser=True))
    arguments = made_arguments(url, demo.cluster)
    where = reverse(url.name, kwargs=arguments)
    answer = root.get(where)
    assert answer.status_code in (200, 302, 503)
    if url.page:
        page = reverse(url.page, kwargs=None if url.name == "account_end_session" else arguments)
        assert (answer.status_code, answer["Location"]) == (302, page)
        for client in (root, demo.browser(None)):
            followed = client.get(where, follow=True).status_code
            assert followed == client.get(page, follow=True).status_code


def test_every_live_panel_asks_for_the_same_rights(demo: OneCluster) -> None:
    assert PANELS
    for panel in PANELS.values():
        assert panel.action in ACTIONS
        key = panel.key(demo.cluster.slug)
        assert judge(None, [key]).close_code == NOT_SIGNED_IN
        assert judge(demo.browser(None).session.session_key, [key]).close_code == NOT_ALLOWED
        may = panel.action in ALLOWS[Role.VIEWER]
        assert judge(demo.browser(Role.VIEWER).session.session_key, [key]).close_code == (None if may else NOT_ALLOWED)
