"""Rules about allowed lag: made, changed and taken away on their page, audited, and asked for by the collector."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.allowed_lag import allow_lag, allowed_for
from kafkadash.clusters.models import AllowedLag, Cluster
from kafkadash.observe.group_names import key_of
from kafkadash.observe.models import GroupState
from tests.factories import NOW, watched
from tests.pages.conftest import text_of

pytestmark = pytest.mark.django_db
PAGE = "/settings/clusters/demo/lag/"


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


@pytest.fixture
def client(admin: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(admin)


def read(client: Client) -> str:
    return text_of(client.get(PAGE).content.decode())


def test_one_query_answers_for_all_groups(demo: Cluster) -> None:
    allow_lag("somebody", demo, "nightly-*", "10,000")
    allow_lag("somebody", demo, "nightly-audit", "0")
    allow_lag("somebody", watched("other"), "*", "7")
    with CaptureQueriesContext(connection) as queries:
        found = allowed_for(demo.pk, ["nightly-a", "nightly-audit", "daily"])
    assert found == {"nightly-a": 10_000, "nightly-audit": 0, "daily": 0}
    assert len(queries) == 1


@pytest.mark.parametrize(
    ("typed", "records"),
    [
        ("0", 0),
        ("-0", 0),
        (" 12 ", 12),
        ("10,000", 10_000),
        ("10 000", 10_000),
        ("1_000_000", 10**6),
        ("1" + "0" * 12, 10**12),
    ],
)
def test_numbers_are_taken_as_people_write_them(demo: Cluster, typed: str, records: int) -> None:
    assert allow_lag("somebody", demo, "a", typed).records == records


def test_a_rule_is_made_changed_and_taken_away(demo: Cluster, client: Client) -> None:
    assert "No group of demo is allowed a lag." in read(client)
    for name in ("nightly-a", "nightly-b", "daily"):
        GroupState.objects.create(
            cluster=demo,
            key=key_of(name),
            name=name,
            state="Empty",
            rank=6,
            verdict_since=NOW,
            partitions=1,
            taken_at=NOW,
            first_seen_at=NOW,
        )
    assert client.post(PAGE, {"pattern": " nightly-* ", "records": "10,000"}).status_code == 302
    page = read(client)
    assert "1 rule allows groups of demo a lag." in page
    assert "10,000 records may wait in each partition of nightly-*." in page
    assert "nightly-* 10,000 2 groups" in page
    assert "Every other group 0 1 group" in page

    client.post(PAGE, {"pattern": "nightly-*", "records": "500"})
    client.post(PAGE, {"pattern": "nightly-*", "records": "500"})
    assert AllowedLag.objects.get().records == 500
    client.post(PAGE, {"do": "take", "pattern": "nightly-*"})
    assert not AllowedLag.objects.exists()
    events = AuditEvent.objects.filter(cluster="demo", action__startswith="allowed_lag.").order_by("pk")
    assert [(e.action, e.before, e.after) for e in events] == [
        ("allowed_lag.set", None, {"pattern": "nightly-*", "records": 10_000}),
        (
            "allowed_lag.set",
            {"pattern": "nightly-*", "records": 10_000},
            {"pattern": "nightly-*", "records": 500},
        ),
        ("allowed_lag.removed", {"pattern": "nightly-*", "records": 500}, None),
    ]


def test_what_was_typed_stays_where_it_was_refused(demo: Cluster, client: Client) -> None:
    answer = client.post(PAGE, {"pattern": "nightly-<b>", "records": "many"}).content.decode()
    assert "nightly-&lt;b&gt;" in answer
    assert 'value="many"' in answer
    assert text_of(answer).count("Give a whole number of records") == 2  # at the top and at the field
    assert not AllowedLag.objects.exists()
    assert not AuditEvent.objects.filter(action__startswith="allowed_lag.").exists()


def test_only_who_administers_may(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"pattern": "a", "records": "1"}).status_code == 403
    assert not AllowedLag.objects.exists()


def test_the_database_keeps_what_the_service_promises(demo: Cluster) -> None:
    AllowedLag.objects.create(cluster=demo, pattern="a", records=1)
    for pattern, records in (("a", 2), ("b", -1)):
        with pytest.raises(IntegrityError), transaction.atomic():
            AllowedLag.objects.create(cluster=demo, pattern=pattern, records=records)
