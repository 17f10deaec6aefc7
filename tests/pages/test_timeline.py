"""The timeline: entries of all sources on one axis, filtered, exported and linked; closed findings."""

from __future__ import annotations

import csv
import io
import json
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict
from kafkadash.clusters.models import Cluster
from kafkadash.configs.kind import plan_edits
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.findings.kinds import FindingCode, FindingKind, FindingNoteCode
from kafkadash.findings.models import Finding
from kafkadash.kafka.throttles import LEADER_LIST, LEADER_RATE
from kafkadash.monitoring.cluster_events import rules
from kafkadash.monitoring.cluster_events.rules import (
    BrokerSighting,
    ChangedConfig,
    EventCode,
    EventDraft,
    GroupSighting,
    LeaderChanges,
    TopicShape,
)
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.models import BrokerState, ClusterEvent, MoveOutcome, ThrottleState
from kafkadash.short_runs.models import ShortItem, ShortRun
from kafkadash.short_runs.state import PlannedItem
from kafkadash.throttle_removal.kind import plan_removals
from kafkadash.timeline.entries import BUCKETS, EntryKind, TimelineScope, TimeSpan
from kafkadash.timeline.errors import TimelineCode, TimelineErrorCode
from kafkadash.timeline.events import describe_event
from kafkadash.timeline.pages import MOST_BEFORE
from kafkadash.timeline.sources import CollectorEvents, PlaceRange, StoredReassignments, read_timeline, select_findings
from tests.factories import NOW, ReassignmentFactory, TopicFactory, judged, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
ADDRESS = "/clusters/demo/timeline/"


def minutes(number: float) -> Any:
    return NOW - timedelta(minutes=number)


def draft_all() -> list[EventDraft]:
    """Store an event of each code, as the rules make them."""
    leaders = LeaderChanges([2, 3])
    for number, (old, new, before, after) in enumerate(
        (
            (1, 2, [1, 2], [1, 2]),
            (3, None, [3, 2], [3, 2]),
            (None, 2, [2, 3], [2, 3]),
            (2, 3, [2], [3]),
            (3, 2, [2, 3], [2, 3]),
            (2, 3, [2, 3], [2, 3]),
            (2, 2, [2, 3], [2, 3]),
        )
    ):
        leaders.add_topic("orders", [[number, old, 4, before, [], []]], [[number, new, 5, after, [], []]])
    topics = rules.find_topic_events(
        [TopicShape("1", "old", 1, 1), TopicShape("2", "again", 1, 1)],
        [TopicShape("3", "new", 2, 3), TopicShape("4", "again", 2, 1)],
    )
    up, down = BrokerSighting(3, True, False, "k:9092", None), BrokerSighting(3, True, True, "k:9092", None)
    brokers = rules.find_broker_events(
        [
            (None, up),
            (up, BrokerSighting(3, False, False, "k:9092", None)),
            (up, down),
            (down, up),
            (up, BrokerSighting(3, True, False, "k:9093", "a")),
        ]
    )
    rate = LEADER_RATE
    configs = [
        event
        for code, name in (
            (EventCode.TOPIC_CONFIGS, "orders"),
            (EventCode.BROKER_CONFIGS, "3"),
            (EventCode.DEFAULT_CONFIGS, ""),
        )
        for before, after in (
            ({"a": ["1", "topic"]}, {"a": ["2", "topic"], rate: ["1000", "broker"]}),
            ({rate: ["1000", "broker"]}, {rate: ["9000", "broker"]}),
            ({rate: ["1000", "broker"]}, {}),
        )
        for event in rules.find_config_events(code, [ChangedConfig(name, before, after)])
    ]
    groups = rules.find_group_events(
        [
            GroupSighting("billing", "", "Stable", None, 2),
            GroupSighting("billing", "Stable", "Empty", 2, 0),
            GroupSighting("billing", "Empty", "", 0, None),
        ]
    )
    return [
        *leaders.events(),
        *topics,
        *rules.find_grown_topics([("orders", 7, 9)]),
        *brokers,
        *configs,
        EventDraft(EventCode.MORE_CONFIGS, 9, [["orders", []]], {"of": "topics"}),
        *groups,
        rules.describe_controller((101, 4), (102, 6)),
    ]


@pytest.fixture
def events(demo: Cluster) -> Cluster:
    store_events(demo.pk, draft_all(), minutes(5), minutes(5.5))
    return demo


@pytest.fixture
def mixed(events: Cluster, change: ChangeRequest, operator: User, approver: User) -> Cluster:
    """Events, a finding that opened and closed, a change that was approved and started, and reassignments."""
    judged(watched("other"))
    Finding.objects.create(
        cluster=events,
        public_id="f-1",
        kind="broker-down",
        scope="3",
        state="critical",
        rank=1,
        message_code="broker-down-fenced",
        message_params={"broker": 3, "replicas": 12},
        first_seen_at=minutes(4),
        seen_at=minutes(2),
        opened_at=minutes(3.75),
        closed_at=minutes(2),
    )
    Review.objects.create(
        request=change,
        user=approver,
        user_name="paula",
        verdict=ReviewVerdict.APPROVED,
        round=1,
        digest="d",
    )
    Review.objects.update(at=minutes(29))
    for number, action in enumerate(("change.edited", "change.approved", "change.started")):
        AuditEvent.objects.create(
            at=minutes(30 - number),
            actor=f"user:{operator.pk}",
            actor_name="olga",
            action=action,
            object_type="changerequest",
            object_id=str(change.pk),
            cluster="demo",
        )
    for number in range(3):
        ReassignmentFactory.create(
            cluster=events, partition=number, started_before=minutes(9), started_after=minutes(9.5)
        )
    ReassignmentFactory.create(
        cluster=events,
        partition=9,
        claimed_by=f"#{change.pk}",
        started_before=minutes(8),
        outcome=MoveOutcome.COMPLETED,
        ended_at=minutes(7),
    )
    return events


def entries_of(page: Page, kind: str) -> list[str]:
    return [str(entry.get("data-code")) for entry in page.find(f".timeline-entry[data-kind={kind}]")]


@pytest.mark.usefixtures("events")
def test_each_event__of_a_collector__has_a_title_and_lines_without_gaps(get_page: GetPage) -> None:
    page = get_page(ADDRESS)
    assert {str(entry.get("data-code")) for entry in page.find(".timeline-entry")} == {code.value for code in EventCode}
    texts = page.texts(".timeline-entry")
    assert not [text for text in texts if "{" in text or any(code.value in text for code in EventCode)]


@pytest.mark.usefixtures("mixed")
def test_timeline__of_all_sources__is_counted_ordered_and_grouped_by_day(get_page: GetPage) -> None:
    page = get_page(ADDRESS)
    shown = page.context["days"]
    entries = [entry for day in shown for entry in day.entries]
    assert [entry.at for entry in entries] == sorted((entry.at for entry in entries), reverse=True)
    assert page.context["total"] == len(entries)
    assert entries_of(page, "findings") == ["broker-down-fenced", "broker-down-fenced"]
    assert entries_of(page, "changes") == ["change.started", "change.approved"]
    assert entries_of(page, "moves") == [
        TimelineCode.MOVES_COMPLETED,
        TimelineCode.MOVES_STARTED_BY_RUN,
        TimelineCode.MOVES_STARTED,
    ]
    foreign = next(entry for entry in entries if entry.code == TimelineCode.MOVES_STARTED)
    assert (foreign.count, foreign.not_before) == (3, minutes(9.5))
    started = next(entry for entry in entries if entry.code == "change.started")
    assert started.lines[0].after == "paula"
    assert {choice.kind: choice.count for choice in page.context["choices"]}[EntryKind.MOVES] == 3
    lines = page.context["panel"].spec.lines
    assert sum(sum(line.values) for line in lines) == len(entries)
    reading = read_timeline(page.context["asked"].scope, page.context["asked"].span)
    paged = [entry for begin in range(0, len(entries), 3) for entry in reading.list_entries(begin, begin + 3)]
    assert [entry.at for entry in paged] == [entry.at for entry in entries]
    assert {entry.key for entry in paged} == {entry.key for entry in entries}


@pytest.mark.django_db
def test_reassignments__that_begin_or_end_in_the_span__are_folded_as_one_by_one() -> None:
    cluster, chance = watched("demo", NOW), random.Random(7)
    span = TimeSpan(minutes(60), minutes(20))
    rows = []
    for number in range(300):
        begun = minutes(chance.choice([20, 40, 60, chance.uniform(10, 80)]))
        ended = begun + timedelta(minutes=chance.choice([0, 0.3, 20, 40, chance.uniform(0, 50)]))
        outcome = chance.choice([MoveOutcome.RUNNING, MoveOutcome.COMPLETED, MoveOutcome.CANCELLED])
        rows.append(
            ReassignmentFactory.create(
                cluster=cluster,
                public_id=f"r-{number}",
                partition=number,
                claimed_by=chance.choice(["", "#1", "#2"]),
                started_after=chance.choice([None, begun - timedelta(seconds=5)]),
                started_before=begun,
                outcome=outcome,
                ended_at=None if outcome is MoveOutcome.RUNNING else ended,
            )
        )
    begins = span.list_begins(2 * BUCKETS)
    expected: dict[Any, list[Any]] = {}
    for row in rows:
        for at, since, how in (
            (row.started_before, row.started_after, ""),
            (row.ended_at, row.ended_at, row.outcome),
        ):
            if at is not None and span.begin <= at < span.end:
                slot = 0 if row.claimed_by else bisect_right(begins, at)
                expected.setdefault((row.claimed_by, slot, how), []).append((at, since, row.pk))
    folds = StoredReassignments()._fold(TimelineScope(cluster.pk, "demo", frozenset(EntryKind)), span)
    assert {(fold.owner, fold.slot, fold.how) for fold in folds} == expected.keys()
    for fold in folds:
        moments, sinces, numbers = zip(*expected[fold.owner, fold.slot, fold.how], strict=True)
        assert fold.at == (max(moments) if fold.how else min(moments))
        assert fold.not_before == min((since for since in sinces if since is not None), default=None)
        assert (fold.last, fold.number, fold.one) == (max(moments), len(moments), min(numbers))


@pytest.mark.django_db
def test_reassignments__that_ended_at_the_same_time__have_one_order_however_they_are_stored() -> None:
    outcomes = [MoveOutcome.COMPLETED, MoveOutcome.CANCELLED, MoveOutcome.SUPERSEDED]
    span = TimeSpan(minutes(60), minutes(0))
    orders = []
    for slug, stored in (("demo", outcomes), ("other", outcomes[::-1])):
        cluster = watched(slug, NOW)
        for outcome in stored:
            ReassignmentFactory.create(
                cluster=cluster, started_after=None, started_before=minutes(90), outcome=outcome, ended_at=minutes(30)
            )
        scope = TimelineScope(cluster.pk, slug, frozenset({EntryKind.MOVES}))
        (reading,) = StoredReassignments().read_span(scope, span)
        places = reading.read_places(PlaceRange(span, 0, 10))
        orders.append([place.ref.how for place in places])
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(outcomes)


@pytest.mark.django_db
@pytest.mark.parametrize("broker", [None, 3])
def test_events__at_the_edges_of_intervals__are_each_counted_once(broker: int | None) -> None:
    cluster = watched("demo", NOW)
    span = TimeSpan(minutes(96 * 7), minutes(0))
    edges = [*span.list_begins(), span.end]
    assert (edges[0], len(edges)) == (span.begin, BUCKETS + 1)
    moments = [edge + timedelta(microseconds=each) for edge in edges for each in (-1, 0, 1)]
    ClusterEvent.objects.bulk_create(
        ClusterEvent(cluster=cluster, kind="brokers", code=EventCode.BROKERS_LEFT, at=at, count=1, brokers=[3])
        for at in moments
    )
    scope = TimelineScope(cluster.pk, cluster.slug, frozenset(EntryKind), broker=broker)
    (reading,) = CollectorEvents().read_span(scope, span)
    counts = Counter({each.bucket: each.count for each in reading.counts})
    inside = [at for at in moments if span.begin <= at < span.end]
    assert counts == Counter(int((at - span.begin) / span.step) for at in inside)
    assert counts.total() == len(inside)
    whole = read_timeline(scope, span)
    newest_first = sorted(inside, reverse=True)
    for begin in range(0, len(inside) + 7, 7):
        assert [entry.at for entry in whole.list_entries(begin, begin + 7)] == newest_first[begin : begin + 7]


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("?kind=moves&kind=findings", {"moves", "findings"}),
        ("?broker=3", {"findings", "changes", "moves", "brokers", "leaders", "configs", "throttles"}),
        ("?topic=orders", {"leaders", "topics", "configs", "throttles"}),
        ("?topic=again", {"topics"}),
        ("?group=billing", {"groups"}),
        ("?broker=77", set()),
    ],
)
def test_filter__by_kind_broker_topic_or_group__lists_what_is_about_it(
    get_page: GetPage, query: str, kinds: set[str]
) -> None:
    page = get_page(f"{ADDRESS}{query}")
    assert {str(entry.get("data-kind")) for entry in page.find(".timeline-entry")} == kinds
    assert page.context["total"] == len(page.find(".timeline-entry"))
    assert bool(page.find("[data-empty]")) is not bool(kinds)


@pytest.mark.usefixtures("mixed")
def test_span__in_the_address__limits_entries_and_is_kept_by_the_permalink(get_page: GetPage) -> None:
    page = get_page(f"{ADDRESS}?from=2026-11-21T01:59:00Z&to=2026-11-21T02:01:30Z")
    assert entries_of(page, "findings") == ["broker-down-fenced", "broker-down-fenced"]
    assert entries_of(page, "topics") == []
    assert parse_qs(urlsplit(page.context["query"]).query) == {
        "from": ["2026-11-21T01:59:00Z"],
        "to": ["2026-11-21T02:01:30Z"],
    }
    wrong = get_page(f"{ADDRESS}?from=noon&to=2026-11-21&broker=x&kind=nonsense")
    assert wrong.tells(TimelineErrorCode.MOMENT_UNREADABLE)
    assert wrong.tells(TimelineErrorCode.BROKER_UNREADABLE)
    assert len(wrong.context["problems"]) == 3
    assert get_page(f"{ADDRESS}?from=2026-11-21&to=2026-11-19").tells(TimelineErrorCode.SPAN_EMPTY)


@pytest.mark.parametrize(
    "span", ["from=9999-12-31T23:59:59Z", "to=0001-01-01T00:00:00Z", "to=9999-12-31T23:59:59.5", "to=9999-12-31"]
)
@pytest.mark.usefixtures("demo")
def test_span__at_the_end_of_the_calendar__is_refused(get_page: GetPage, span: str) -> None:
    assert get_page(f"{ADDRESS}?{span}").tells(TimelineErrorCode.MOMENT_UNREADABLE)


@pytest.mark.usefixtures("mixed")
def test_export__as_csv_and_json_lines__has_the_same_entries(viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    lines = client.get(f"{ADDRESS}export/?format=jsonl").content.decode().splitlines()
    rows = list(csv.DictReader(io.StringIO(client.get(f"{ADDRESS}export/?format=csv").content.decode())))
    told = [json.loads(line) for line in lines]
    assert [(row["at"], row["code"], row["text"]) for row in rows] == [(t["at"], t["code"], t["text"]) for t in told]
    assert len(told) > len(EventCode)
    elected = next(each for each in told if each["code"] == EventCode.LEADERS_LOST)
    assert elected["details"][0] | {"note": ""} == {
        "subject": "orders-1",
        "what": "leader",
        "before": "3",
        "after": "none",
        "note": "",
    }


@pytest.mark.usefixtures("mixed")
def test_export__of_too_many_entries__leads_back_with_the_reason(
    viewer: User, client_of: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkadash.timeline.pages.MOST_EXPORTED", 3)
    page = Page.read(client_of(viewer).get(f"{ADDRESS}export/?format=csv", follow=True))
    assert page.tells(TimelineErrorCode.EXPORT_TOO_LARGE)


@pytest.mark.usefixtures("mixed")
def test_finding__on_its_page_and_in_the_list_of_closed_ones__leads_to_the_time_before(
    get_page: GetPage, viewer: User, client_of: Callable[[User], Client]
) -> None:
    (link,) = [each for each in get_page("/clusters/demo/findings/f-1/").links("main") if "/timeline/before/" in each]
    listed = Page.read(client_of(viewer).get(link, headers={"HX-Request": "true"}))
    shown = listed.find(".timeline-entry")
    assert 0 < len(shown) <= MOST_BEFORE
    assert not [entry for entry in shown if str(entry.get("id")).endswith("f-1")]
    response = client_of(viewer).get(link, follow=True)
    assert (response.context["span"].begin, response.context["span"].end) == (
        minutes(19),
        minutes(4) + timedelta(seconds=1),
    )
    assert {entry.kind for day in response.context["days"] for entry in day.entries} >= {EntryKind.LEADERS}
    assert [row.finding.public_id for row in get_page(f"{ADDRESS}closed/").context["rows"]] == ["f-1"]
    for query, found in (("?q=down", 1), ("?q=f-1", 1), ("?q=nothing", 0), ("?kind=broker-down", 1)):
        assert len(get_page(f"{ADDRESS}closed/{query}").context["rows"]) == found, query
    assert client_of(viewer).get(f"{ADDRESS}before/f-none/").status_code == 404


def test_changes_of_a_subject__are_those_with_an_item_of_exactly_it(demo: Cluster) -> None:
    for name in ("orders", "orders-eu"):
        TopicFactory.create(cluster=demo, name=name, topic_id=name, config={})
    BrokerState.objects.filter(cluster=demo).update(config={})
    for resource, name in (("topic", "orders"), ("broker", "3"), ("cluster", "")):
        ThrottleState.objects.create(
            cluster=demo,
            resource=resource,
            name=name,
            key=LEADER_RATE,
            source="broker",
            orphan=True,
            first_seen_at=NOW,
            changed_at=NOW,
            read_at=NOW,
        )
    owners = (("topic", "orders"), ("topic", "orders-eu"), ("broker", "3"))
    edits = [{"of": of, "ids": [name], "key": "retention.ms", "value": "1"} for of, name in owners]
    partition = {"topic": "orders", "partition": 3}
    items = [
        *plan_edits(demo, {"edits": edits}).items,
        *plan_removals(demo, {}).items,
        PlannedItem("orders", {"topic": "orders"}),
        PlannedItem("orders-3", {"topic": "orders-3"}),
        PlannedItem("orders-3", {**partition, "group": "billing"}),
        PlannedItem("billing", {"group": "billing", "topics": {"orders": 2}}),
        PlannedItem("billing", {"topic": "billing"}),
        PlannedItem("broker 3", {"broker": 3, "from": None, "to": "*"}),
        PlannedItem("broker 33", {"broker": 33, "host": "k", "port": 9092, "rack": None}),
    ]
    assert [item.subject for item in items[:6]] == [
        "orders: retention.ms",
        "orders-eu: retention.ms",
        "broker 3: retention.ms",
        f"broker 3: {LEADER_RATE}",
        f"the cluster default: {LEADER_RATE}",
        f"topic orders: {LEADER_RATE}",
    ]
    places: dict[int, int] = {}
    for place, item in enumerate(items):
        change = ChangeRequest.objects.create(cluster=demo, kind="any", title=item.subject, author_name="olga")
        run = ShortRun.objects.create(request=change, cluster=demo)
        ShortItem.objects.create(run=run, place=0, subject=item.subject, content=item.content)
        AuditEvent.objects.create(
            at=minutes(30 + place),
            actor="user:1",
            actor_name="olga",
            action="change.started",
            object_type="changerequest",
            object_id=str(change.pk),
            cluster="demo",
        )
        places[change.pk] = place

    def changed(**subject: Any) -> list[int]:
        scope = TimelineScope(demo.pk, demo.slug, frozenset({EntryKind.CHANGES}), **subject)
        found = read_timeline(scope, TimeSpan(minutes(60), NOW)).list_entries(0, 100)
        return [places[entry.message.params["number"]] for entry in found]

    group = {"group": "billing", "group_key": key_of("billing")}
    assert changed(topic="orders") == [0, 5, 6, 8]
    assert changed(topic="orders-eu") == [1]
    assert changed(topic="orders-3") == [7]
    assert changed(topic="order") == changed(topic="orders.eu") == []
    assert changed(**group) == [8, 9]
    assert changed(**group, topic="orders") == [8]
    assert changed(broker=3) == [2, 3, 11]


def test_lines_of_an_event__with_a_topic__are_those_of_exactly_it() -> None:
    details = [["orders", "id-1", 1, 1], ["orders-eu", "id-2", 1, 1], ["orders-3", "id-3", 1, 1]]
    row = ClusterEvent(
        pk=1,
        kind=EntryKind.TOPICS,
        code=EventCode.TOPICS_CREATED,
        at=NOW,
        count=3,
        data={"values": {}, "details": details},
    )
    entry = describe_event(row, TimelineScope(1, "demo", frozenset(EntryKind), topic="orders"))
    assert ([line.subject for line in entry.lines], entry.more) == (["orders"], 2)


def test_findings_of_a_topic__name_a_partition_or_throttle_of_exactly_it(demo: Cluster) -> None:
    throttle = ThrottleState(resource="topic", name="orders", key=LEADER_LIST)
    named = [
        (FindingKind.OFFLINE, coded(FindingCode.PARTITIONS_LEADERLESS, notes=_named("orders-3", "pay.ments-0"))),
        (FindingKind.OFFLINE, coded(FindingCode.PARTITIONS_LEADERLESS, notes=_named("orders-eu-3", "orders.eu-0", 5))),
        (FindingKind.ZOMBIE_REASSIGNMENT, coded(FindingCode.MOVES_NEVER_END, names=("a-1", "orders-12"))),
        (FindingKind.CONSUMER_LAG, coded(FindingCode.GROUP_STALLS, group="orders", place="orders-eu-0")),
        (FindingKind.CONSUMER_LAG, coded(FindingCode.MORE_GROUPS_BEHIND, names=("orders-1",))),
        (FindingKind.ORPHAN_THROTTLE, coded(FindingCode.THROTTLES_ORPHANED, names=(str(throttle),))),
        (FindingKind.CONFIG_DRIFT, coded(FindingCode.CONFIGS_DIFFER, names=("orders",))),
    ]
    for number, (kind, message) in enumerate(named):
        stored = message.as_json()
        Finding.objects.create(
            cluster=demo,
            public_id=f"f-{number}",
            kind=kind,
            scope=str(number),
            state="warning",
            rank=9,
            message_code=stored["code"],
            message_params=stored["params"],
            first_seen_at=minutes(4),
            seen_at=minutes(2),
            opened_at=minutes(4),
        )

    def found(topic: str) -> list[str]:
        scope = TimelineScope(demo.pk, demo.slug, frozenset(EntryKind), topic=topic)
        return sorted(Finding.objects.filter(select_findings(scope)).values_list("public_id", flat=True))

    assert found("orders") == ["f-0", "f-2", "f-5"]
    assert found("orders-eu") == ["f-1", "f-3"]
    assert found("orders.eu") == ["f-1"]
    assert found("pay.ments") == ["f-0"]
    assert found("5") == found("pay_ments") == found("order") == []


def _named(*names: str | int) -> tuple[CodedMessage, ...]:
    return (coded(FindingNoteCode.NAMED, names=names),)


def test_starts_of_a_run__are_one_entry_at_the_first_until_the_last(demo: Cluster) -> None:
    for number in range(3):
        ReassignmentFactory.create(
            cluster=demo,
            partition=number,
            claimed_by="#7",
            started_after=minutes(60 - 9 * number + 0.5),
            started_before=minutes(60 - 9 * number),
        )
    scope = TimelineScope(demo.pk, demo.slug, frozenset(EntryKind))
    (entry,) = read_timeline(scope, TimeSpan(minutes(90), NOW)).list_entries(0, 9)
    assert (entry.code, entry.count) == (TimelineCode.MOVES_STARTED_BY_RUN, 3)
    assert (entry.at, entry.not_before) == (minutes(60), minutes(60.5))
    assert [(line.what, line.after) for line in entry.lines] == [("until", f"{minutes(42):%Y-%m-%d %H:%M:%S} UTC")]


def test_finding_of_a_group__is_found_by_the_name_of_the_group(demo: Cluster, get_page: GetPage) -> None:
    Finding.objects.create(
        cluster=demo,
        public_id="f-2",
        kind="consumer-lag",
        scope=key_of("billing"),
        state="warning",
        rank=9,
        first_seen_at=minutes(4),
        seen_at=minutes(2),
        opened_at=minutes(4),
        closed_at=minutes(2),
    )
    assert [row.finding.public_id for row in get_page(f"{ADDRESS}closed/?q=billing").context["rows"]] == []
    assert entries_of(get_page(f"{ADDRESS}?group=billing"), "findings") == ["", ""]
