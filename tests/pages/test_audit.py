"""The audit page: who did what, from what to what and why; filters are addresses, and nobody reads others' clusters."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import COMMAND_LINE
from kafkadash.changes.models import ChangeRequest, RequestState, Review, ReviewVerdict
from kafkadash.changes.transitions import _DID
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.errors import RequestErrorCode
from kafkadash.ops import audit as audit_export
from kafkadash.ops import audit as audit_rows
from kafkadash.ops.audit import WORDS
from kafkadash.ops.errors import OperationErrorCode
from tests.factories import NOW, ClusterFactory
from tests.pages.conftest import Page, figures_of, told_in
from tests.pages.test_query_counts import PINNED
from tests.stored_messages import each_of_other_versions

URL = "/audit/"
Get = Callable[..., Page]


@pytest.fixture
def demo(db: None) -> Cluster:
    return ClusterFactory.create(name="demo", created_at=NOW - timedelta(days=40))


@pytest.fixture
def get(auditor: User, client_of: Callable[[User], Client]) -> Get:
    client = client_of(auditor)

    def page(**asked: str) -> Page:
        response = client.get(URL, asked)
        assert response.status_code == 200
        return Page.read(response)

    return page


def event(at: datetime = NOW - timedelta(hours=1), **fields: Any) -> AuditEvent:
    known = {
        "actor": "user:7",
        "actor_name": "alice",
        "action": "cluster.read_only_changed",
        "object_type": "cluster",
        "object_id": "99",
        "cluster": "demo",
    }
    return AuditEvent.objects.create(at=at, **{**known, **fields})


def test_nothing_done_is_said_with_what_will_be_written_here(get: Get) -> None:
    page = get()
    assert figures_of(page.title) == []
    assert page.find("[data-empty=none]")
    assert not page.find("form[action=/audit/export/]")


def test_a_thing_that_was_done_is_told_in_words(get: Get, demo: Cluster) -> None:
    done = event(
        object_id=str(demo.pk),
        before={"read_only": False, "name": "demo"},
        after={"read_only": True, "name": "demo"},
        reason="audit week",
        address="10.0.0.7",
    )
    page = get()
    assert figures_of(page.title) == ["1"]
    assert figures_of(page.texts(".page-head .inline-facts")[0]) == ["7"]
    cells = page.cells(f"event-{done.pk}")
    assert cells[:2] == ["01:03:04", "alice 10.0.0.7"]
    assert cells[2].startswith(WORDS[done.action])
    assert cells[2].endswith("demo")
    assert cells[3:] == ["demo", "read only no → yes", "audit week"]
    assert 'href="/clusters/demo/"' in page.part(f"event-{done.pk}")


def test_an_action_that_no_catalogue_knows_is_shown_as_it_was_recorded(get: Get, demo: Cluster) -> None:
    done = event(action="moon.phased", object_type="moon", object_id="1", after={"phase": {"now": "full"}})
    cells = get().cells(f"event-{done.pk}")
    assert cells[2:5] == ["moon.phased : moon 1", "demo", "phase now full"]


def test_nested_values__are_fields_with_units(get: Get, demo: Cluster) -> None:
    options = {"throttle": 20_000_000, "not_before": ""}
    plan_input = {"mode": "drain", "brokers": [2, 3], "disk_limit": 0.8}
    done = event(action="change.created", object_type="changerequest", after={"options": options, "input": plan_input})
    assert get().texts(f"#event-{done.pk} .audit-field") == [
        "input mode drain",
        "input brokers 2, 3",
        "input disk limit 80 %",
        "options throttle 20.0 MB/s",
    ]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [({"address": "10.0.0.7"}, "10.0.0.7"), ({"actor": COMMAND_LINE}, "CLI"), ({"actor": "jobs"}, "–")],
)
def test_address__none_recorded__says_only_what_is_known(
    auditor: User, client_of: Callable[[User], Client], demo: Cluster, fields: dict[str, Any], shown: str
) -> None:
    page = Page(client_of(auditor).get(f"{URL}{event(**fields).pk}/").content.decode())
    assert page.facts("main .facts")["Address"] == shown
    assert page.facts("main .facts")["Reason"] == "–"


def test_an_object_that_is_gone_has_no_link_and_a_name_used_again_does_not_lend_its_own(get: Get) -> None:
    again = ClusterFactory.create(name="demo", created_at=NOW - timedelta(minutes=5))
    old = event(object_id="12345", action="cluster.removed", reason="sold")
    part = get().part(f"event-{old.pk}")
    assert "removed a cluster: demo" in " ".join(part.split())
    assert f'href="/clusters/{again.slug}/"' not in part


def test_an_event_names_who_had_approved_by_then(get: Get, demo: Cluster, make_user: Callable[..., User]) -> None:
    change = ChangeRequest.objects.create(
        cluster=demo, kind="reassignment", title="Drain broker 3", author_name="alice", state=RequestState.APPROVED
    )
    for name, at, void_at in (
        ("bob", timedelta(hours=3), None),
        ("carol", timedelta(hours=3), NOW - timedelta(hours=2)),
        ("dave", timedelta(minutes=1), None),
    ):
        Review.objects.create(
            request=change,
            user=make_user(name),
            user_name=name,
            verdict=ReviewVerdict.APPROVED,
            round=1,
            digest="d",
            at=NOW - at,
            void_at=void_at,
        )
    done = event(action="change.broke_glass", object_type="changerequest", object_id=str(change.pk))
    said = get().words(f"event-{done.pk}")
    assert f"#{change.pk} {change.title}" in said
    assert WORDS[done.action] in said
    approvers = get().texts(f"#event-{done.pk} .soft")[0]
    assert [name for name in ("bob", "carol", "dave") if name in approvers] == ["bob"]
    assert f'href="/changes/{change.pk}/"' in get().part(f"event-{done.pk}")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"actor": "ALICE"}, {"taken", "role"}),
        ({"what": "role.given"}, {"role"}),
        ({"what": "role"}, {"role"}),
        ({"cluster": "demo"}, {"taken", "expired"}),
        ({"cluster": "-"}, {"role"}),
        ({"object": "finding:f-1"}, {"taken"}),
        ({"q": "100%"}, {"expired"}),
        ({"period": "24h"}, {"taken"}),
        ({"period": "all"}, {"taken", "role", "expired", "old"}),
        ({"from": "2026-11-20", "to": "2026-11-20"}, {"role"}),
        ({"to": "2026-11-01"}, {"old"}),
        ({"from": "2026-11-21T01:00"}, {"taken"}),
        ({"from": "yesterday"}, {"taken", "role", "expired"}),
    ],
)
def test_every_filter_is_an_address(get: Get, demo: Cluster, asked: dict[str, str], found: set[str]) -> None:
    events = {
        "taken": event(action="finding.acknowledged", object_type="finding", object_id="f-1"),
        "role": event(NOW - timedelta(hours=26), action="role.given", object_type="user", cluster=""),
        "expired": event(NOW - timedelta(days=3), actor_name="jobs", action="change.expired", reason="at 100% of 24 h"),
        "old": event(NOW - timedelta(days=35), actor_name="jobs"),
    }
    page = get(**asked)
    assert {name for name, row in events.items() if page.has(f"event-{row.pk}")} == found
    assert figures_of(page.title) == [str(len(found))]


def test_a_filter_that_means_nothing_is_said_and_left_out(get: Get, demo: Cluster) -> None:
    event()
    page = get(
        **{
            "from": "31.12.",
            "to": "0001-01-01T00:00+14:00",
            "object": "demo",
            "period": "ever",
            "older": "99999999999999999999",
        }
    )
    said = page.texts(".notice[role=status]")
    for code, odd in (
        (OperationErrorCode.MOMENT_UNREADABLE, "31.12."),
        (OperationErrorCode.MOMENT_UNREADABLE, "0001-01-01T00:00+14:00"),
        (OperationErrorCode.OBJECT_UNNAMED, "demo"),
        (RequestErrorCode.CHOICE_UNKNOWN, "ever"),
        (OperationErrorCode.EVENT_NOT_LISTED, "99999999999999999999"),
    ):
        assert any(told_in(each, code) and odd in each for each in said), odd
    assert figures_of(page.title) == ["1"]


def test_a_character_that_no_text_in_the_database_has_finds_what_is_left_of_the_text(get: Get, demo: Cluster) -> None:
    event(reason="why not")
    assert get(q="why\x00 not", what="\x00", object="cluster:\x0099").title.endswith("1 matching event")


def test_paging_by_place_shows_each_event_once_both_ways(get: Get, demo: Cluster, monkeypatch: Any) -> None:
    monkeypatch.setattr(audit_rows, "PAGE_SIZE", 3)
    same = NOW - timedelta(hours=2)  # those of one transaction have one time
    rows = [event(same if n < 5 else same + timedelta(seconds=n)) for n in range(8)]
    newest_first = [row.pk for row in sorted(rows, key=lambda row: (row.at, row.pk), reverse=True)]
    first = get()
    second = get(older=str(newest_first[2]))
    third = get(older=str(newest_first[5]))
    shown = [[pk for pk in newest_first if page.has(f"event-{pk}")] for page in (first, second, third)]
    assert shown == [newest_first[:3], newest_first[3:6], newest_first[6:]]
    back = get(newer=str(newest_first[6]))
    assert [pk for pk in newest_first if back.has(f"event-{pk}")] == newest_first[3:6]
    assert f"older={newest_first[5]}" in back.html
    assert f"newer={newest_first[3]}" in back.html
    assert ";older=" not in third.html
    assert "?older=" not in third.html


def test_one_event_has_an_address_with_everything_that_was_recorded(
    auditor: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    done = event(
        action="cluster.connection_changed",
        object_id=str(demo.pk),
        before={"bootstrap_servers": "a:1"},
        after={"bootstrap_servers": "b:1", "sasl_username": "x" * 400},
        reason="<b>moved</b>",
    )
    page = Page(client_of(auditor).get(f"{URL}{done.pk}/").content.decode())
    assert page.title.startswith("alice ")
    assert figures_of(page.facts("main .facts")["Time"])[-1] == "01:03:04"
    assert page.first("main .facts time").get("datetime").startswith("2026-11-21T01:03:04")
    changed = [(row.texts("th"), row.texts("td")) for row in page.find("main tbody tr")]
    assert (["bootstrap servers"], ["a:1", "b:1"]) in changed
    assert "x" * 400 in page.text
    assert "&lt;b&gt;moved&lt;/b&gt;" in page.html
    assert f"?object=cluster%3A{demo.pk}&amp;period=all" in page.html


@each_of_other_versions
def test_a_reason_of_another_version_is_shown_as_stored(
    auditor: User, client_of: Callable[[User], Client], demo: Cluster, get: Get, code: str, params: dict[str, Any]
) -> None:
    done = event(object_id=str(demo.pk), reason_code=code, reason_params=params)
    assert code in get(q=code).words(f"event-{done.pk}")
    client = client_of(auditor)
    assert code in Page(client.get(f"{URL}{done.pk}/").content.decode()).text
    [line] = exported_by(client, format="jsonl").splitlines()
    assert (json.loads(line)["reason_code"], json.loads(line)["reason_params"]) == (code, params)


def test_every_action_that_the_change_workflow_records_has_its_words() -> None:
    assert not {action for action in _DID if action not in WORDS}


@pytest.fixture
def auditor_of_demo(make_user: Callable[..., User], demo: Cluster) -> User:
    return make_user("ines", Role.AUDITOR, demo)


def test_who_may_audit_one_cluster_sees_that_cluster_since_it_was_registered(
    auditor_of_demo: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    ClusterFactory.create(name="other")
    own, other = event(), event(cluster="other")
    everywhere, before = event(cluster=""), event(demo.created_at - timedelta(days=1))
    client = client_of(auditor_of_demo)
    page = Page(client.get(URL, {"period": "all"}).content.decode())
    assert figures_of(page.title) == ["1"]
    assert page.has(f"event-{own.pk}")
    assert "other" not in page.part("filter-cluster")
    assert "Installation" not in page.texts("#filter-cluster option")
    for hidden in (other, everywhere, before):
        assert not page.has(f"event-{hidden.pk}")
        assert client.get(f"{URL}{hidden.pk}/").status_code == 404
    assert client.get(f"{URL}{own.pk}/").status_code == 200
    exported = exported_by(client, format="jsonl", period="all")
    assert [json.loads(line)["id"] for line in exported.splitlines()] == [own.pk]


def exported_by(client: Client, **asked: str) -> str:
    response = client.post("/audit/export/", asked)
    assert response.status_code == 200
    assert response["Content-Disposition"].startswith('attachment; filename="kafkadash-audit-20261121-')
    return b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]


def test_csv_of_what_is_filtered_neutralises_formulas(
    auditor: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    event(reason='=HYPERLINK("http://evil")', after={"read_only": True})
    event(reason="-1+2", actor_name="@sum")
    event(cluster="other")
    rows = list(csv.DictReader(io.StringIO(exported_by(client_of(auditor), format="csv", cluster="demo"))))
    assert [row["reason"] for row in rows] == ["'-1+2", '\'=HYPERLINK("http://evil")']
    assert [row["actor_name"] for row in rows] == ["'@sum", "alice"]
    assert rows[1]["after"] == '{"read_only": true}'
    assert rows[1]["at"] == "2026-11-21T01:03:04.000Z"
    assert rows[1]["words"] == WORDS["cluster.read_only_changed"]


def test_an_export_is_audited_with_its_filter_and_is_not_part_of_itself(
    auditor: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    event()
    lines = exported_by(client_of(auditor), format="jsonl", actor="alice", period="all").splitlines()
    assert [json.loads(line)["actor_name"] for line in lines] == ["alice"]
    own = AuditEvent.objects.get(action="audit.exported")
    assert (own.actor_name, own.address) == (auditor.username, "127.0.0.1")
    assert own.after == {"format": "jsonl", "events": 1, "filter": {"actor": "alice", "period": "all"}}


def test_an_unknown_format_is_refused_and_nothing_is_audited(
    auditor: User, client_of: Callable[[User], Client]
) -> None:
    response = client_of(auditor).post("/audit/export/", {"format": "xls"})
    assert response.status_code == 400
    assert told_in(response.content.decode(), OperationErrorCode.NO_SUCH_FORMAT)
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
async def test_the_server_streams_an_export_in_portions(auditor: User, demo: Cluster, monkeypatch: Any) -> None:
    monkeypatch.setattr(audit_export, "PORTION", 2)
    for _ in range(5):
        await AuditEvent.objects.acreate(
            at=NOW, actor="jobs", actor_name="jobs", action="a.b", object_type="t", object_id="1", cluster="demo"
        )
    client = AsyncClient()
    await client.aforce_login(auditor)
    response = await client.post("/audit/export/", {"format": "jsonl", "period": "all"})
    parts = [part async for part in response.streaming_content]  # type: ignore[attr-defined]
    await sync_to_async(connections.close_all)()
    assert [part.count(b"\n") for part in parts] == [2, 2, 1]
    ids = [json.loads(line)["id"] for line in b"".join(parts).splitlines()]
    assert len(set(ids)) == 5
    assert ids == sorted(ids, reverse=True)


def test_its_queries_are_as_pinned_and_do_not_grow_with_events(
    auditor: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    client = client_of(auditor)
    counts = []
    for round_ in range(2):
        for n in range(10):
            event(object_type="user", object_id=str(auditor.pk))
            event(object_type="finding", object_id=f"f-{round_}-{n}", action="finding.released")
            change = ChangeRequest.objects.create(cluster=demo, kind="reassignment", title="t", author_name="a")
            event(object_type="changerequest", object_id=str(change.pk), action="change.edited")
            event(object_id=str(ClusterFactory.create(name=f"c-{round_}-{n}").pk))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(URL).status_code == 200
        counts.append(len(queries))
    assert counts == [PINNED["audit"]] * 2


MANY = """
INSERT INTO accounts_auditevent (at, actor, actor_name, action, object_type, object_id, cluster, reason)
SELECT %s::timestamptz - n * interval '5 seconds', 'user:' || n %% 40, 'user' || n %% 40, 'change.edited',
  'changerequest', (n %% 9000)::text, CASE WHEN n %% 2000 = 0 THEN 'rare' ELSE 'c' || n %% 20 END, 'because of ' || n
FROM generate_series(1, 100000) AS n
"""


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({}, "audit_newest"),
        ({"older": "middle"}, "audit_newest"),
        ({"object": "changerequest:77"}, "audit_object"),
        ({"cluster": "rare"}, "audit_cluster"),
        ({"actor": "user3"}, "audit_newest"),
    ],
)
def test_a_page_of_100k_events_is_read_by_an_index(
    auditor: User, client_of: Callable[[User], Client], asked: dict[str, str], index: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(MANY, [NOW])
        cursor.execute("ANALYZE accounts_auditevent")
        cursor.execute("SELECT id FROM accounts_auditevent ORDER BY at LIMIT 1 OFFSET 40000")
        middle = str(cursor.fetchone()[0])
    address = urlencode({"period": "all", **{name: middle if v == "middle" else v for name, v in asked.items()}})
    with CaptureQueriesContext(connection) as queries:
        page = Page(client_of(auditor).get(f"{URL}?{address}").content.decode())
    assert "event-" in page.html
    paged = next(q["sql"] for q in queries if "accounts_auditevent" in q["sql"] and f"LIMIT {101}" in q["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {paged}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert index in plan, plan
    assert "Seq Scan" not in plan, plan
