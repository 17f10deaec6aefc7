"""Names that look like markup, links, mentions, headers, templates and formulas stay text, wherever they are sent."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.messages import coded
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose
from kafkadash.monitoring.cluster_events import rules
from kafkadash.monitoring.cluster_events.rules import ChangedConfig, EventCode, GroupSighting, TopicShape
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.models import BrokerState
from kafkadash.notifications.delivery import deliver
from kafkadash.notifications.errors import NotificationCode
from kafkadash.notifications.models import EventStep, EventSubject, NotificationRoute, NotificationTarget, TargetKind
from kafkadash.notifications.outbox import build_event, record_events
from kafkadash.notifications.routing import route_events
from kafkadash.timeline.errors import TimelineCode
from tests.conftest import new_user, signed_in
from tests.factories import NOW, watched
from tests.notifications.receivers import LocalReceiver
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db

HOSTILE = (
    "=cmd|' /C calc'!A0 {} {0} %s {{ 7*7 }} <script>alert(1)</script> \" onclick=\"alert(1)"
    " [x](http://evil.test) <http://evil.test|x> <!channel> @channel *b*"
    "\r\nBcc: evil@evil.test\r\nhttp://evil.test/\u202egpj\u2066"
)
TOPIC = HOSTILE.replace("/", "\\")
"""Kafka has no slash in the name of a topic."""
PARTS = ("=cmd|", "{} {0} %s {{ 7*7 }} <script>alert(1)</script>", "[x](http://evil.test)", "<!channel> @channel *b*")
UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\r]")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@pytest.fixture(autouse=True)
def frozen_time() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = watched("demo")
    Cluster.objects.filter(pk=cluster.pk).update(name="=cmd|\r\nBcc: evil@evil.test \u202e{{ 7*7 }} <!channel>")
    cluster.refresh_from_db()
    return cluster


@pytest.fixture
def admin(db: None) -> Client:
    return signed_in(new_user("ada", Role.ADMIN))


def tell_all(cluster: Cluster, *targets: NotificationTarget) -> None:
    """Record a finding and a change with such a name, route them in one message, and send it."""
    lag = coded(FindingCode.GROUP_STALLS, group=HOSTILE, place=HOSTILE, waiting=9, notes=())
    consequence = {"id": "f-2", "kind": "consumer-loss", "state": "critical"}
    lost = coded(FindingCode.RECORDS_LOST, group=HOSTILE, records=3)
    finding = build_event(
        cluster,
        EventSubject.FINDING,
        "f-1",
        EventStep.OPENED,
        lag,
        NOW,
        kind=FindingKind.CONSUMER_LAG.value,
        state="critical",
        path="/clusters/demo/findings/f-1/",
        runbook="/runbooks/consumer-lag/",
        consequences={"count": 1, "first": [{**consequence, **lost.as_json()}]},
    )
    words = coded(NotificationCode.CHANGE_WAITING, number=4, title=HOSTILE)
    change = build_event(cluster, EventSubject.CHANGE, "4", EventStep.WAITING, words, NOW, path="/changes/4/")
    record_events([finding, change])
    route_events(NOW)
    NotificationTarget.objects.update(next_at=NOW - timedelta(days=9999))
    assert [deliver(target.pk) for target in targets] == [1] * len(targets)


def add_target(kind: TargetKind, address: str) -> NotificationTarget:
    target = NotificationTarget.objects.create(name=kind.value, kind=kind, address=address, shown="shown", secret="key")
    NotificationRoute.objects.create(target=target, changes="none" if kind is TargetKind.PAGERDUTY else "all")
    return target


def assert_people_read(*texts: str) -> None:
    """Check that each text has the name as it is, in one line, without what turns or breaks lines."""
    for text in texts:
        assert [part for part in PARTS if part not in text] == []
        assert not UNSEEN.search(text), text
    lines = [line for text in texts for line in text.splitlines()]
    assert [line for line in lines if line.startswith(("Bcc:", "http://evil"))] == []


def is_own(address: str) -> bool:
    return urlsplit(address)[:2] == ("https", "kafkadash.test")


def test_message__with_a_hostile_name__has_it_as_text(
    cluster: Cluster, receiver: LocalReceiver, settings: Settings
) -> None:
    settings.PAGERDUTY_URL, settings.EMAIL_FROM = receiver.url, "kafkadash@example.com"
    http = [add_target(kind, receiver.url) for kind in (TargetKind.WEBHOOK, TargetKind.SLACK, TargetKind.TEAMS)]
    http.append(add_target(TargetKind.PAGERDUTY, "k" * 32))
    tell_all(cluster, *http, add_target(TargetKind.EMAIL, "on-call@example.com"))
    webhook, slack, teams, pagerduty = (document for _, document in receiver.requests)

    finding, change = webhook["events"]
    assert all(HOSTILE in event["text"] for event in (finding, change)), "programs get names as they are"
    assert (is_own(finding["url"]), is_own(finding["runbook_url"]), is_own(change["url"])) == (True, True, True)

    assert not set("<>") & set(slack["text"])
    links = [each["text"] for block in slack["blocks"] for each in block.get("elements", ())]
    link = r"<https://kafkadash\.test/[\w/-]+\|[\w ]+>"
    assert [text for text in links if not re.fullmatch(rf"{link}( · {link})*", text)] == []
    plain = [block["text"] for block in slack["blocks"] if block["type"] != "context"]
    assert [(each["type"], each["emoji"]) for each in plain] == [("plain_text", False)] * len(plain)
    assert_people_read(*(each["text"] for each in plain[1:]))

    card = teams["attachments"][0]["content"]
    runs = [run for block in card["body"] for run in block["inlines"]]
    assert {(block["type"], *map(str, block)) for block in card["body"]} == {("RichTextBlock", "type", "inlines")}
    assert {run["type"] for run in runs} == {"TextRun"}
    assert set().union(*runs) <= {"type", "text", "weight", "size"}
    assert_people_read("\n".join(run["text"] for run in runs))
    assert [action for action in card["actions"] if not is_own(action["url"])] == []

    addresses = [pagerduty["client_url"], *(own["href"] for own in pagerduty["links"])]
    assert [each for each in addresses if not is_own(each)] == []
    payload = pagerduty["payload"]
    assert_people_read(payload["summary"], *payload["custom_details"]["text"])
    assert not UNSEEN.search(payload["source"] + payload["component"])

    [sent] = mail.outbox
    parsed = sent.message()
    assert {name.lower() for name in parsed} == {
        "content-type",
        "content-transfer-encoding",
        "mime-version",
        "subject",
        "from",
        "to",
        "date",
        "message-id",
        "auto-submitted",
    }
    assert (sent.recipients(), parsed.get_content_type()) == (["on-call@example.com"], "text/plain")
    assert_people_read(str(sent.body))
    assert len(sent.subject.splitlines()) == 1
    assert [line for line in str(sent.body).splitlines() if "http" in line and is_own(line)] == [
        "https://kafkadash.test/clusters/demo/findings/f-1/",
        "https://kafkadash.test/runbooks/consumer-lag/",
        "https://kafkadash.test/changes/4/",
    ]


def assert_shown_as_text(answer: Any, *parts: str) -> None:
    """Check that the page has these parts in its text, and neither elements nor addresses of theirs."""
    assert answer.status_code == 200
    page = Page.read(answer)
    assert [part for part in parts if part not in page.text] == []
    elements = page.find("*")
    assert len(elements) > 50
    assert [each.attributes for each in elements if any(name.startswith("on") for name in each.attributes)] == []
    addresses = [
        each.get(name) for each in elements for name in ("href", "src", "action", "formaction", "data-address")
    ]
    assert [each for each in addresses if "evil.test" in urlsplit(each).netloc or each.startswith("javascript:")] == []
    assert [each.text for each in page.find("script") if "alert" in each.text] == []


def test_page__with_hostile_names__shows_them_as_text(cluster: Cluster, receiver: LocalReceiver, admin: Client) -> None:
    receiver.answers.append((200, HOSTILE.encode(), {}))
    tell_all(cluster, add_target(TargetKind.WEBHOOK, receiver.url))
    for address in ("/settings/notifications/", f"/settings/notifications/{NotificationTarget.objects.get().pk}/"):
        assert_shown_as_text(admin.get(address), *PARTS)

    BrokerState.objects.filter(cluster=cluster, broker_id=3).update(rack=HOSTILE)
    ends = {"ends": "2026-11-22T04:00", "time_zone": "UTC", "reason": HOSTILE}
    address = "/clusters/demo/maintenance/"
    assert admin.post(f"{address}silence/", {"kind": "consumer-lag", "subject": HOSTILE, **ends}).status_code == 302
    assert admin.post(f"{address}window/", {"scope": f"rack:{HOSTILE}", **ends}).status_code == 302
    assert QuietPeriod.objects.count() == 2
    for shown in (address, "/", "/clusters/demo/"):
        assert_shown_as_text(admin.get(shown), *PARTS[:2])


def test_timeline__with_hostile_names__shows_and_exports_them_as_text(cluster: Cluster, admin: Client) -> None:
    events = [
        *rules.find_topic_events([], [TopicShape("1", TOPIC, 1, 1)]),
        *rules.find_group_events([GroupSighting(HOSTILE, "", "Stable", None, 2)]),
        *rules.find_config_events(
            EventCode.TOPIC_CONFIGS, [ChangedConfig(TOPIC, {HOSTILE: ["1", "topic"]}, {HOSTILE: [HOSTILE, "topic"]})]
        ),
    ]
    store_events(cluster.pk, events, NOW - timedelta(minutes=5), NOW - timedelta(minutes=6))
    lag = coded(FindingCode.GROUP_STALLS, group=HOSTILE, place=HOSTILE, waiting=9, notes=()).as_json()
    Finding.objects.create(
        cluster=cluster,
        public_id="f-1",
        kind=FindingKind.CONSUMER_LAG,
        scope="g",
        state="critical",
        rank=1,
        message_code=lag["code"],
        message_params=lag["params"],
        first_seen_at=NOW - timedelta(minutes=4),
        seen_at=NOW - timedelta(minutes=4),
        opened_at=NOW - timedelta(minutes=4),
    )
    QuietPeriod.objects.create(
        cluster=cluster,
        purpose=QuietPurpose.SILENCE,
        subject=HOSTILE,
        reason=HOSTILE,
        author_name=HOSTILE[:150],
        begins_at=NOW - timedelta(minutes=3),
        ends_at=NOW + timedelta(hours=1),
    )
    address = "/clusters/demo/timeline/"
    assert_shown_as_text(admin.get(address), *PARTS)
    assert_shown_as_text(admin.get(f"{address}?group={HOSTILE}&topic={TOPIC}"))

    table = list(csv.reader(io.StringIO(admin.get(f"{address}export/?format=csv").content.decode(), newline="")))
    lines = admin.get(f"{address}export/?format=jsonl").content.decode().split("\n")[:-1]
    told = [json.loads(line) for line in lines]
    assert {each["code"] for each in told} >= {
        EventCode.TOPICS_CREATED,
        EventCode.GROUPS_FOUND,
        EventCode.TOPIC_CONFIGS,
        FindingCode.GROUP_STALLS,
        TimelineCode.SILENCE_BEGAN,
    }
    assert [len(row) for row in table] == [len(table[0])] * (len(told) + 1)
    assert [cell for row in table for cell in row if cell.startswith(FORMULA)] == []
    assert sum(cell.startswith("'=cmd|") for row in table for cell in row) == 2, "the author and the key of a config"
