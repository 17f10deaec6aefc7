"""What is said of clusters that do not answer, by the settings, by collectors and by the connection test."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from channels.sessions import CookieMiddleware
from django.conf import settings as configured
from django.core.management import CommandError, call_command

from kafkadash.accounts.models import User
from kafkadash.changes import kinds
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.refusals import pages
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.kinds import UnknownKind, kind_of
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.services import claim, enqueue, settle_expired_jobs
from kafkadash.kafka.port import ApiVersions, Broker, ClusterDescription, ItemError, Permissions, Unreachable
from kafkadash.kafka.probe import Stage
from kafkadash.live.consumer import LiveConsumer
from kafkadash.live.panels import MAX_KEYS
from kafkadash.observe import lease as leases
from kafkadash.observe.collection import refresh
from kafkadash.observe.collectors.metadata import other_cluster_sentence
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import CollectorRun
from tests.factories import NOW, CollectionFactory, silent
from tests.jobs.test_connection_test import SASL, ZOOKEEPER, Answers, answers, brokers, outcome_of
from tests.refusals.desk import Desk
from tests.refusals.driving import Case, case, each, refused

__all__ = ["answers"]
pytestmark = pytest.mark.django_db


def under_settings(desk: Desk, **fields: object) -> str:
    silent(desk.cluster, NOW - timedelta(minutes=12), error="Refused.", failure=FailureKind.CREDENTIALS_REFUSED)
    CollectorRun.objects.filter(kind="metadata").update(next_at=NOW + timedelta(minutes=3), **fields)
    return desk.get("adam", "/settings/")


def of_the_cluster(desk: Desk, **fields: object) -> str:
    Cluster.objects.filter(pk=desk.cluster.pk).update(**fields)
    return desk.get("adam", "/settings/")


def not_looked_at(desk: Desk) -> str:
    silent(desk.cluster, NOW - timedelta(minutes=12))
    return desk.get("adam", "/settings/")


def not_read(desk: Desk, failure: str, *, ever: bool) -> str:
    """What the brokers' page says of the configs."""
    fields = {"failures": 2, "last_failure": failure, "last_error": "Something is in the way."}
    CollectorRun.objects.filter(kind="configs").update(**fields, **({} if ever else {"succeeded_at": None}))
    return desk.get("vera", "/clusters/demo/brokers/")


def read_in_part(desk: Desk, *errors: str) -> str:
    CollectionFactory.create(cluster=desk.cluster, kind="configs", errors=list(errors), started_at=NOW)
    return desk.get("vera", "/clusters/demo/brokers/")


def watches(*keys: str) -> str:
    """Why a socket that asks for these keys is closed, as the browser's console shows it."""

    async def closed() -> str:
        scope = {"type": "websocket", "headers": [], "query_string": "&".join(keys).encode()}
        talk_to: Any = ApplicationCommunicator  # it has no types
        socket = talk_to(CookieMiddleware(LiveConsumer.as_asgi()), scope)
        await socket.send_input({"type": "websocket.connect"})
        assert (await socket.receive_output())["type"] == "websocket.accept"
        told = await socket.receive_output()
        assert told["type"] == "websocket.close"
        await socket.send_input({"type": "websocket.disconnect", "code": told["code"]})
        await socket.wait()
        return str(told["reason"])

    return async_to_sync(closed)()


def taken_over(desk: Desk) -> str:
    run = desk.cluster.collector_runs.get(kind="metadata")
    with mock.patch("kafkadash.observe.collection._collect", side_effect=leases.LeaseLost):
        told = refresh(run.pk, only_if_due=False)
    assert told is not None
    return told.error


def with_a_fault(desk: Desk) -> str:
    run = desk.cluster.collector_runs.get(kind="metadata")
    with mock.patch("kafkadash.observe.collection._ask", side_effect=ZeroDivisionError):
        told = refresh(run.pk, only_if_due=False)
    assert told is not None
    run.refresh_from_db()
    assert (run.failures, run.last_error) == (1, told.error)
    assert run.next_at > NOW
    return told.error


def hung(desk: Desk) -> str:
    CollectorRun.objects.filter(cluster=desk.cluster, kind="metadata").update(overruns=2)
    told = refresh(desk.cluster.collector_runs.get(kind="metadata").pk, only_if_due=False)
    assert told is not None
    return told.error


def collected_by_another(desk: Desk) -> str:
    told = io.StringIO()
    with (
        mock.patch("kafkadash.observe.management.commands.collect.refresh", return_value=None),
        pytest.raises(SystemExit),
    ):
        call_command("collect", "demo", "--kind", "metadata", stdout=io.StringIO(), stderr=told)
    return told.getvalue()


def unknown_cluster(command: str, *words: str) -> Callable[[Desk], str]:
    return lambda _: refused(CommandError, lambda: call_command(command, *words))


def lost_worker(desk: Desk) -> str:
    job = enqueue("connection_test", cluster=desk.cluster)
    held = claim(job.pk)
    assert held is not None
    Job.objects.update(epoch=99, lease_until=NOW - timedelta(days=900))
    settle_expired_jobs()
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    return job.error


@each(
    case(ClusterErrorCode.OTHER_CLUSTER, lambda d: of_the_cluster(d, other_kafka_id="another"), answered="another"),
    case(ClusterErrorCode.OTHER_CLUSTER, lambda d: other_cluster_sentence(d.cluster, "another"), answered="another"),
    case(ClusterErrorCode.NOT_LOOKED_AT, not_looked_at, silent="The last answer is 12 min old"),
    case(ClusterErrorCode.TRIED_LESS_OFTEN, lambda d: under_settings(d, refusals=3)),
    case(
        ClusterErrorCode.NOT_TRIED_ANY_MORE,
        lambda d: under_settings(d, refusals=configured.REFUSED_TRIES),
        times=configured.REFUSED_TRIES,
    ),
    case(ClusterErrorCode.WITH_ZOOKEEPER, lambda d: of_the_cluster(d, mode=Mode.ZOOKEEPER)),
    case(CollectionErrorCode.ANOTHER_COLLECTOR, taken_over),
    case(CollectionErrorCode.COLLECTOR_FAULT, with_a_fault, kind="topics and brokers", fault="ZeroDivisionError"),
    case(CollectionErrorCode.COLLECTOR_SET_ASIDE, hung, kind="topics and brokers", times=2, pause="5 min"),
    case(CollectionErrorCode.COLLECTED_BY_ANOTHER, collected_by_another, kind="metadata"),
    case(ClusterErrorCode.CLUSTER_UNKNOWN, unknown_cluster("collect", "nowhere"), slug="nowhere", known="demo"),
    case(
        ClusterErrorCode.CLUSTER_UNKNOWN, unknown_cluster("cluster", "roles", "nowhere"), slug="nowhere", known="demo"
    ),
    case(
        ClusterErrorCode.CLUSTER_UNKNOWN,
        unknown_cluster("user", "create", "ann", "--role", "viewer", "--cluster", "nowhere"),
        slug="nowhere",
        known="demo",
    ),
    case(
        CollectionErrorCode.REFRESH_FAILED,
        lambda d: not_read(d, FailureKind.UNREACHABLE, ever=True),
        kinds="configs and throttles",
    ),
    case(
        CollectionErrorCode.NEVER_REFRESHED,
        lambda d: not_read(d, FailureKind.UNREACHABLE, ever=False),
        kinds="configs and throttles",
    ),
    case(
        CollectionErrorCode.READ_DENIED,
        lambda d: not_read(d, FailureKind.NOT_AUTHORIZED, ever=True),
        kinds="configs and throttles",
    ),
    case(
        CollectionErrorCode.NEVER_ALLOWED,
        lambda d: not_read(d, FailureKind.NOT_AUTHORIZED, ever=False),
        kinds="configs and throttles",
    ),
    case(CollectionErrorCode.READ_IN_PART, lambda d: read_in_part(d, "topic t: no."), kind="Configs and throttles"),
    case(CollectionErrorCode.READ_IN_PART, lambda d: read_in_part(d, "topic t: no", "u"), kind="Configs and throttles"),
    case(pages.WATCHES_TOO_MUCH, lambda _: watches(), most=MAX_KEYS),
    case(
        pages.WATCHES_TOO_MUCH,
        lambda _: watches(*(f"key=status:{n}" for n in range(MAX_KEYS + 1))),
        most=MAX_KEYS,
    ),
    case(JobErrorCode.LOST_WORKER, lost_worker),
    case(
        ChangeErrorCode.CHANGE_KIND_UNKNOWN,
        lambda _: refused(kinds.UnknownKind, lambda: kinds.kind_of("nonsense")),
        name="nonsense",
    ),
    case(JobErrorCode.KIND_UNKNOWN, lambda _: refused(UnknownKind, lambda: kind_of("nonsense")), name="nonsense"),
)
def test_of_a_cluster(one: Case, desk: Desk) -> None:
    one.check(desk)


class Tried:
    """A cluster whose connection is tested, with what answers there."""

    def __init__(self, cluster: Cluster, answers: Answers) -> None:
        self.cluster, self.answers = cluster, answers

    def told(self, **fields: object) -> str:
        for name, value in fields.items():
            setattr(self.answers, name, value)
        job = outcome_of(self.cluster)
        assert job.result is not None
        told = [text for step in job.result["steps"] for text in (step["sentence"], *step["items"])]
        return " ".join([*told, *job.result.get("problems", ())])

    def described(self, *of: Broker) -> str:
        return self.told(
            described=ClusterDescription("kafka-id-1", 2, list(of), taken_at=0),
            versions=ApiVersions({}, {1: ItemError("No answer.")}, taken_at=0),
        )

    def with_login(self) -> str:
        Cluster.objects.filter(pk=self.cluster.pk).update(**{k: v for k, v in SASL.items() if k != "sasl_password"})
        self.cluster.refresh_from_db()
        return self.told(described=Unreachable("It is down."))

    def two_addresses(self) -> str:
        Cluster.objects.filter(pk=self.cluster.pk).update(bootstrap_servers="a:1,b:1")
        return self.told(unreachable=dict.fromkeys(("a:1", "b:1"), (Stage.CONNECT, "It is down.")))

    def granted(self, cluster: frozenset[str], **topics: frozenset[str]) -> str:
        return self.told(granted=Permissions(cluster, dict(topics), 0))


DOWN = {"k2:9092": (Stage.CONNECT, "Nothing listens there.")}


@each(
    case(JobErrorCode.NONE_GOT_THIS_FAR, Tried.two_addresses),
    case(
        JobErrorCode.LISTENERS_UNREACHABLE,
        lambda t: t.told(unreachable=DOWN),
        reached=2,
        brokers="3 brokers",
    ),
    case(JobErrorCode.LISTENER_UNREACHABLE, lambda t: t.told(unreachable=DOWN), broker=2, why="Nothing listens there."),
    case(JobErrorCode.NO_VERSIONS, lambda t: t.described(*brokers())),
    case(JobErrorCode.LOGIN_UNANSWERED, Tried.with_login, user="dash", mechanism="PLAIN"),
    case(JobErrorCode.NOT_ASKED, lambda t: t.described(*brokers()), broker=3, address="k3:9092"),
    case(
        JobErrorCode.TAKES_NO_PART,
        lambda t: t.described(Broker(3, "k3", 9092, None, fenced=True)),
        broker=3,
    ),
    case(JobErrorCode.QUORUM_UNREAD, lambda t: t.told(leader=Unreachable("It is down.")), why="It is down."),
    case(JobErrorCode.RIGHTS_UNKNOWN, lambda t: t.told(granted=Unreachable("It is down.")), why="It is down."),
    case(JobErrorCode.MISSING_ON_CLUSTER, lambda t: t.granted(frozenset({"Describe"})), permission="DescribeConfigs"),
    case(JobErrorCode.MISSING_ON_CLUSTER, lambda t: t.granted(frozenset()), permission="Describe"),
    case(
        JobErrorCode.MISSING_ON_TOPICS,
        lambda t: t.granted(frozenset({"Describe", "DescribeConfigs"}), a=frozenset({"Describe"})),
        which="all topics",
    ),
    case(
        ClusterErrorCode.WITH_ZOOKEEPER,
        lambda t: t.told(versions=ApiVersions(dict.fromkeys((1, 2, 3), ZOOKEEPER), {}, taken_at=0)),
    ),
)
def test_by_a_connection_test(one: Case, cluster: Cluster, answers: Answers, admin: User) -> None:
    one.check(Tried(cluster, answers))
