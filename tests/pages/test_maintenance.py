"""The page of maintenance windows and silences: planning, ending, refusals, and what other pages say of both."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.status import HealthState
from kafkadash.findings.models import Finding
from kafkadash.maintenance import pages, services
from kafkadash.maintenance.errors import MaintenanceErrorCode
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose, QuietStage
from kafkadash.monitoring.models import BrokerState
from kafkadash.timeline.errors import TimelineCode
from tests.factories import NOW, judged
from tests.metrics.scraped import scrape_page
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
ADDRESS = "/clusters/demo/maintenance/"
WINDOW = {"scope": "broker:3", "reason": "new kernel", "ends": "2026-11-21T04:00", "time_zone": "UTC"}
SILENCE = {"kind": "consumer-lag", "subject": "billing", "reason": "batch", "ends": "2026-11-22T04:00"}


@pytest.fixture
def client(operator: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(operator)


def planned(cluster: Cluster, begins: datetime = NOW, **columns: object) -> QuietPeriod:
    return QuietPeriod.objects.create(
        **{"purpose": QuietPurpose.MAINTENANCE, "reason": "new kernel", "author_name": "alice", **columns},
        cluster=cluster,
        begins_at=begins,
        ends_at=begins + timedelta(hours=1),
    )


def codes(page: Page) -> list[str]:
    return page.texts("#wrong .error-code")


def test_window__planned_by_an_operator__is_listed_and_audited(
    demo: Cluster, client: Client, get_page: GetPage
) -> None:
    assert client.post(f"{ADDRESS}window/", WINDOW).status_code == 302
    period = QuietPeriod.objects.get()
    assert (period.broker, period.rack, period.begins_at, period.author_name) == (3, None, NOW, "olga")
    assert period.ends_at.isoformat() == "2026-11-21T04:00:00+00:00"
    event = AuditEvent.objects.get(action="maintenance.planned")
    assert event.after is not None
    assert (event.cluster, event.reason, event.after["broker"]) == ("demo", "new kernel", 3)
    page = get_page(ADDRESS)
    assert [row.get("data-stage") for row in page.find("tr[data-stage]")] == [QuietStage.BEGUN]
    assert not page.find("main form")
    assert get_page("/").find("#status-demo .line-window")
    assert get_page("/clusters/demo/").find("#windows-demo")


def test_rack__whose_name_has_capitals__is_named_as_it_is(demo: Cluster, get_page: GetPage, client: Client) -> None:
    BrokerState.objects.filter(cluster=demo, broker_id=3).update(rack="EU-West")
    assert client.post(f"{ADDRESS}window/", {**WINDOW, "scope": "rack:EU-West"}).status_code == 302
    assert "Rack EU-West" in get_page(ADDRESS).words("periods")
    assert 'value="rack:EU-West">Rack EU-West<' in Page.read(client.get(ADDRESS)).html


def test_list__of_many_that_are_over__has_those_in_force(
    demo: Cluster, get_page: GetPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_LISTED", 2)
    running = planned(demo, NOW - timedelta(minutes=59))
    for minutes in (50, 40, 30):
        over = planned(demo, NOW - timedelta(minutes=minutes))
        QuietPeriod.objects.filter(pk=over.pk).update(ends_at=NOW - timedelta(minutes=1))
    assert get_page(ADDRESS).find(f"#period-{running.pk}")


def test_silence__of_a_kind_and_a_subject__is_listed_and_audited(
    demo: Cluster, client: Client, get_page: GetPage
) -> None:
    assert client.post(f"{ADDRESS}silence/", SILENCE).status_code == 302
    period = QuietPeriod.objects.get()
    assert (period.purpose, period.kind, period.subject) == (QuietPurpose.SILENCE, "consumer-lag", "billing")
    assert AuditEvent.objects.filter(action="silence.planned").exists()
    assert len(get_page(ADDRESS).find("tr[data-stage]")) == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"reason": " "}, MaintenanceErrorCode.REASON_MISSING),
        ({"reason": "x" * 501}, MaintenanceErrorCode.REASON_TOO_LONG),
        ({"scope": "broker:99"}, MaintenanceErrorCode.SCOPE_UNKNOWN),
        ({"ends": ""}, MaintenanceErrorCode.END_MISSING),
        ({"ends": "soon"}, MaintenanceErrorCode.TIME_UNREADABLE),
        ({"ends": "2026-11-21T04:00+02:00"}, MaintenanceErrorCode.TIME_UNREADABLE),
        ({"ends": "2026-11-21T01:00"}, MaintenanceErrorCode.END_PAST),
        ({"begins": "2026-11-21T01:00"}, MaintenanceErrorCode.BEGIN_PAST),
        ({"begins": "2027-11-21T01:00", "ends": "2027-11-21T02:00"}, MaintenanceErrorCode.BEGIN_TOO_LATE),
        ({"begins": "2026-11-22T04:00", "ends": "2026-11-22T03:00"}, MaintenanceErrorCode.END_BEFORE_BEGIN),
        ({"ends": "2027-01-21T04:00"}, MaintenanceErrorCode.TOO_LONG),
        ({"time_zone": "Mars/Base"}, RequestErrorCode.TIME_ZONE_UNKNOWN),
        (
            {"begins": "2027-03-28T02:30", "ends": "2027-03-28T04:00", "time_zone": "Europe/Berlin"},
            MaintenanceErrorCode.TIME_SKIPPED,
        ),
    ],
)
def test_window__that_is_wrong__is_refused_and_kept_in_the_form(
    demo: Cluster, client: Client, given: dict[str, str], code: str
) -> None:
    answer = client.post(f"{ADDRESS}window/", {**WINDOW, **given})
    page = Page.read(answer)
    assert (answer.status_code, codes(page)) == (400, [code])
    assert page.first("#window [name=reason]").get("value") == {**WINDOW, **given}["reason"]
    assert not QuietPeriod.objects.exists()


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"kind": "nonsense"}, MaintenanceErrorCode.KIND_UNKNOWN),
        ({"kind": "", "subject": ""}, MaintenanceErrorCode.NOTHING_SILENCED),
        ({"subject": "x" * 256}, MaintenanceErrorCode.SUBJECT_TOO_LONG),
    ],
)
def test_silence__that_is_wrong__is_refused(demo: Cluster, client: Client, given: dict[str, str], code: str) -> None:
    answer = client.post(f"{ADDRESS}silence/", {**SILENCE, **given})
    assert (answer.status_code, codes(Page.read(answer))) == (400, [code])
    assert not QuietPeriod.objects.exists()


def test_window__that_overlaps_one_of_the_same__is_refused_and_of_another_is_not(demo: Cluster, client: Client) -> None:
    planned(demo, NOW + timedelta(minutes=30), broker=3)
    answer = client.post(f"{ADDRESS}window/", WINDOW)
    assert codes(Page.read(answer)) == [MaintenanceErrorCode.OVERLAPS]
    for scope in ("broker:1", "cluster", f"rack:{BrokerState.objects.get(broker_id=3).rack}"):
        assert client.post(f"{ADDRESS}window/", {**WINDOW, "scope": scope}).status_code == 302, scope


def test_periods__that_are_too_many__are_refused(
    demo: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MOST_OPEN", 1)
    planned(demo)
    answer = client.post(f"{ADDRESS}window/", WINDOW)
    assert codes(Page.read(answer)) == [MaintenanceErrorCode.TOO_MANY]


def test_end__of_a_window_in_force_a_planned_one_and_one_that_is_over(demo: Cluster, client: Client) -> None:
    running, later = planned(demo, NOW - timedelta(minutes=1)), planned(demo, NOW + timedelta(days=1))
    over = planned(demo, NOW - timedelta(days=1))
    for period in (running, later):
        assert client.post(f"{ADDRESS}end/", {"number": period.pk}).status_code == 302
    running.refresh_from_db()
    assert (running.ends_at, running.ended_by) == (NOW, "olga")
    assert not QuietPeriod.objects.filter(pk=later.pk).exists()
    assert set(AuditEvent.objects.filter(object_type="maintenance").values_list("action", flat=True)) == {
        "maintenance.ended",
        "maintenance.cancelled",
    }
    answer = client.post(f"{ADDRESS}end/", {"number": over.pk})
    assert (answer.status_code, Page.read(answer).refusal) == (409, MaintenanceErrorCode.OVER_ALREADY)
    for number in ("0", "x", "9" * 30):
        answer = client.post(f"{ADDRESS}end/", {"number": number})
        assert answer.status_code == 404
        assert Page.read(answer).tells(MaintenanceErrorCode.PERIOD_UNKNOWN)


def test_expected_finding__is_marked_on_all_pages_and_in_metrics(demo: Cluster, get_page: GetPage) -> None:
    planned(demo, NOW - timedelta(minutes=1), broker=3)
    BrokerState.objects.filter(cluster=demo, broker_id=3).update(fenced=True)
    judged(demo)
    finding = Finding.objects.get()
    for path, row in (("/", f"#finding-{finding.public_id}"), ("/wall", f"#wall-finding-{finding.public_id}")):
        page = get_page(path)
        assert page.first(row).get("data-state") == HealthState.MAINTENANCE
        assert page.states("#status-demo" if path == "/" else "#wall-demo") == [HealthState.MAINTENANCE]
    assert get_page(f"/clusters/demo/findings/{finding.public_id}/").find("#quiet .quiet-mark")
    scrape, labels = scrape_page(), {"cluster": "demo", "kind": "broker-down"}
    assert scrape.get("findings_open", **labels, severity="critical") == 0
    assert scrape.get("findings_open", **labels, severity="maintenance") == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {TimelineCode.MAINTENANCE_BEGAN, TimelineCode.MAINTENANCE_ENDED, TimelineCode.SILENCE_BEGAN}),
        ("?broker=3", {TimelineCode.MAINTENANCE_BEGAN, TimelineCode.MAINTENANCE_ENDED}),
        ("?broker=1", set()),
        ("?group=billing", {TimelineCode.SILENCE_BEGAN, TimelineCode.SILENCE_ENDED}),
        ("?topic=orders", set()),
    ],
)
def test_timeline__of_windows_and_silences__tells_what_has_begun_and_ended(
    demo: Cluster, get_page: GetPage, query: str, expected: set[str]
) -> None:
    planned(demo, NOW - timedelta(hours=2), broker=3)
    silence = {"purpose": QuietPurpose.SILENCE, "kind": "consumer-lag", "subject": "billing"}
    planned(demo, NOW - timedelta(minutes=10), **silence)
    if query == "?group=billing":
        planned(demo, NOW - timedelta(hours=3), **silence)
    page = get_page(f"/clusters/demo/timeline/{query}")
    assert page.context["total"] == sum(sum(line.values) for line in page.context["panel"].spec.lines)
    shown = {str(entry.get("data-code")) for entry in page.find(".timeline-entry[data-kind=maintenance]")}
    assert shown == expected
