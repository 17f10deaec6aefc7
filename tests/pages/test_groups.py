"""All consumer groups, and one: verdicts in words, figures with their unknowns, filters by address."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import as_message
from kafkadash.findings.models import Finding
from kafkadash.monitoring.groups.names import slug_of
from kafkadash.monitoring.groups.shares import SharePartition
from kafkadash.monitoring.models import (
    Capabilities,
    Collection,
    CollectorKind,
    CollectorRun,
    GroupState,
    UnjudgedGroup,
)
from kafkadash.monitoring.offers import KafkaFeature
from tests.effort import slowness_now
from tests.factories import NOW, ClusterFactory, TopicFactory, failed_with, judged, silent
from tests.groups import NEW, NONE, STALLED, STILL, WELL, group_seen, point, samples, share_seen
from tests.pages.conftest import Page, figures_of

GetPage = Callable[[str], Page]
URL = "/clusters/demo/groups/"
PAID = "orders.paid"


@pytest.fixture
def some(demo: Cluster) -> Cluster:
    """A group of each kind; their names say which."""
    group_seen(demo, "well", {(PAID, 0): WELL}, members={"c": {PAID: [0]}})
    group_seen(demo, "stalls", {(PAID, 0): STALLED, (PAID, 1): WELL}, members={"c": {PAID: [0, 1]}})
    group_seen(demo, "stopped", {("clicks", 3): STALLED})
    group_seen(demo, "new", {(PAID, 0): NEW}, members={"c": {}})
    group_seen(demo, "empty", {})
    group_seen(demo, "gone", gone_at=NOW - timedelta(minutes=9))
    return demo


def shown(page: Page) -> list[str]:
    names = {f"group-{key}": name for key, name in GroupState.objects.values_list("key", "name")}
    return [names[id_] for id_ in page.order_of(*names)]


def row_cells(page: Page, name: str) -> list[str]:
    return page.cells(f"group-{GroupState.objects.get(name=name).key}")


def test_the_title_is_the_answer_and_the_worst_comes_first(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL)
    assert figures_of(page.title) == ["1", "5", "1"]
    assert shown(page) == ["stalls", "stopped", "new", "well", "empty"]
    assert figures_of(page.first("#group-list-demo .segments").text) == ["5", "1", "1", "1", "1", "1"]


def test_a_row_says_how_the_group_does(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL)
    stalls = ["stalls", "Stalled", "603", "orders.paid-0", "5 min", "3.3", "Classic", "Stable", "1", "2", "orders.paid"]
    assert row_cells(page, "stalls") == stalls
    assert row_cells(page, "empty")[2:10] == ["none", "none", "none", "none", "Classic", "Empty", "0", "0"]


@pytest.mark.parametrize(
    ("groups", "title"),
    [
        ([], "demo: no consumer groups"),
        ([("a", {(PAID, 0): WELL})], "demo: 1 of 1 group OK"),
        ([("a", {(PAID, 0): WELL}), ("b", {(PAID, 0): WELL})], "demo: 2 of 2 groups OK"),
        ([("a", {(PAID, 0): WELL}), ("b", {})], "demo: 1 of 2 groups OK, 1 without commits"),
        ([("a", {(PAID, 0): WELL}), ("b", {(PAID, 0): NEW})], "demo: 1 of 2 groups OK, 1 unknown"),
        ([("a", {(PAID, 0): NEW}), ("b", {(PAID, 0): NEW})], "demo: 2 groups not evaluated yet"),
        ([("a", {(PAID, 0): NEW})], "demo: 1 group not evaluated yet"),
        ([("a", {}), ("b", {})], "demo: 2 groups without commits"),
    ],
)
def test_the_title_of(groups: list[tuple[str, dict]], title: str, get_page: GetPage, demo: Cluster) -> None:  # type: ignore[type-arg]
    for name, partitions in groups:
        group_seen(demo, name, partitions)
    assert get_page(URL).title == title


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?verdict=stall", ["stalls"]),
        ("?verdict=nothing", ["empty"]),
        ("?q=ST", ["stalls", "stopped"]),
        ("?state=stable", ["stalls", "new", "well"]),
        ("?state=empty&sort=name", ["empty", "stopped"]),
        ("?topic=orders.paid&sort=-name", ["well", "stalls", "new"]),
        ("?topic=clicks", ["stopped"]),
        ("?sort=-lag", ["stalls", "stopped", "new", "well", "empty"]),
        ("?sort=partitions", ["empty", "new", "stopped", "well", "stalls"]),
        ("?verdict=stop&state=stable", []),
    ],
)
def test_filters_and_orders_are_addresses(query: str, names: list[str], get_page: GetPage, some: Cluster) -> None:
    assert shown(get_page(URL + query)) == names


def test_a_filter_that_leaves_nothing_says_so(get_page: GetPage, some: Cluster) -> None:
    page = get_page(f"{URL}?q=nowhere")
    assert page.figures("[data-empty=filtered] p") == ["5"]
    assert "“happy”" in get_page(f"{URL}?verdict=happy").text


def test_a_mistyped_filter_with_a_nul_is_no_error(get_page: GetPage, some: Cluster) -> None:
    assert shown(get_page(f"{URL}?topic=%00{PAID}&q=%00well")) == ["well"]


def test_groups_that_were_not_read_yet(get_page: GetPage, db: None) -> None:
    ClusterFactory.create(name="demo")
    page = get_page(URL)
    assert not figures_of(page.title)
    assert page.find("[data-empty=unread]")


def test_stale_groups_are_not_green(get_page: GetPage, some: Cluster) -> None:
    silent(some, NOW - timedelta(minutes=5), error="refused")
    GroupState.objects.update(taken_at=NOW - timedelta(minutes=5))
    page = get_page(URL)
    assert figures_of(page.title) == ["5", "5 min"]
    assert "data-stale" in page.start_tag("group-list-demo")
    assert 'data-state="ok"' not in page.part("group-list-demo").split("</header>", 1)[1]
    assert figures_of(row_cells(page, "well")[1]) == ["5 min"]


def test_a_group_whose_coordinator_is_silent_has_an_age_of_its_own(get_page: GetPage, some: Cluster) -> None:
    GroupState.objects.filter(name="well").update(taken_at=NOW - timedelta(minutes=4))
    Collection.objects.filter(kind=CollectorKind.GROUPS).update(
        not_answered=[2], errors=[as_message("Broker 2: no answer.").as_json()]
    )
    page = get_page(URL)
    assert figures_of(row_cells(page, "well")[1]) == ["4 min"]
    assert "Broker 2: no answer." in page.first("#not-read-groups").text
    one = get_page(f"{URL}well/")
    assert one.states("#verdict-demo") == ["unknown"]
    assert one.figures("#verdict-demo h2") == ["4 min"]
    assert "data-stale" in one.start_tag("group-partitions-demo")


def test_groups_that_may_not_be_listed_are_said_to_be_so(get_page: GetPage, demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.GROUPS).update(
        succeeded_at=None,
        failures=3,
        last_failure=FailureKind.NOT_AUTHORIZED,
        **failed_with("The principal needs Describe."),
    )
    page = get_page(URL)
    assert "The principal needs Describe." in page.text


def test_one_that_stalls(get_page: GetPage, demo: Cluster) -> None:
    partitions = {(PAID, n): WELL for n in range(15)} | {(PAID, 14): STALLED, (PAID, 31): NEW, (PAID, 47): NONE}
    members = {"invoice-3": {PAID: [14]}, "invoice-5": {PAID: [31]}, "invoice-6": {PAID: [47]}}
    group_seen(demo, "invoice-writer", partitions, members=members)
    page = get_page(f"{URL}invoice-writer/")
    assert page.title == "invoice-writer : Stalled"
    assert page.states("#verdict-demo") == ["warning"]
    assert "orders.paid-14" in page.first("#verdict-demo h2").text
    assert page.figures("#verdict-demo h2") == ["4 min", "600"]
    assert page.figures("#verdict-demo p") == ["10", "0", "14", "2"]
    assert "invoice-3" in page.first("#verdict-demo p").text
    facts = page.facts("#group-facts-demo")
    assert figures_of(facts["Lag"]) == ["647", "92 %", "1"]
    assert figures_of(facts["Worst time lag"]) == ["5 min"]
    assert figures_of(facts["Drains in"]) == ["−2.0"]
    assert all("orders.paid-14" in facts[name] for name in ("Lag", "Worst time lag", "Drains in"))
    assert not figures_of(facts["Data loss"])
    cells = page.cells("lag-orders.paid-14")
    assert cells[1:2] + cells[3:8] == ["Stalled", "100", "700", "600", "about 5 min", "0"]
    assert cells[8:] == ["2.0", "never", "invoice-3 10.14.2.31"]
    cells = page.cells("lag-orders.paid-31")
    assert cells[1:2] + cells[3:6] == ["Collecting 4/10", "730", "735", "5"]
    assert page.cells("lag-orders.paid-47")[3:7] == ["none", "500", "none", "unknown"]
    stall, new, none = (page.first(f"[id=lag-orders.paid-{n}] .samples") for n in (14, 31, 47))
    assert figures_of(stall.get("aria-label")) == ["10", "10"]
    assert figures_of(new.get("aria-label")) == ["4", "10"]
    assert len(none.find(".none")) == 10
    assert page.figures("#group-partitions-demo .segments") == ["17", "1", "2", "14"]
    assert page.texts("[data-fact=topics] a") == ["orders.paid"]
    assert page.figures("[data-fact=topics]") == ["17"]
    assert page.figures("[data-fact=members]") == ["3", "23:02"]


def test_the_rest_is_a_click_away(get_page: GetPage, demo: Cluster) -> None:
    group_seen(demo, "g", {(PAID, n): WELL for n in range(40)} | {(PAID, 40): STALLED}, members={"c": {}})
    page = get_page(f"{URL}g/")
    assert page.figures("#group-partitions-demo [data-rest]") == ["31"]
    assert page.html.count('<tr id="lag-') == 10
    assert page.order_of("lag-orders.paid-40", "lag-orders.paid-0")[0] == "lag-orders.paid-40"
    assert get_page(f"{URL}g/?show=all").html.count('<tr id="lag-') == 41
    assert get_page(f"{URL}g/?verdict=stall").html.count('<tr id="lag-') == 1
    assert get_page(f"{URL}g/?verdict=ok&sort=-partition").order_of(*(f"lag-orders.paid-{n}" for n in (0, 39)))[0] == (
        "lag-orders.paid-39"
    )


@pytest.mark.parametrize("sort", ["worst", "partition", "lag", "-time", "committed", "end", "-read", "written"])
def test_partitions_are_sorted_with_what_is_not_known_last(sort: str, get_page: GetPage, demo: Cluster) -> None:
    group_seen(demo, "g", {(PAID, 0): NONE, (PAID, 1): WELL, (PAID, 2): STALLED}, members={"c": {}})
    page = get_page(f"{URL}g/?sort={sort}")
    ids = [f"lag-orders.paid-{n}" for n in range(3)]
    last = page.order_of(*ids)[-1]
    assert last == {"worst": ids[1], "partition": ids[2], "end": ids[1], "written": ids[1]}.get(sort, ids[0])


def test_one_that_lost_records(get_page: GetPage, demo: Cluster) -> None:
    group_seen(demo, "g", {(PAID, 0): samples(STILL, 900)}, starts=400)
    page = get_page(f"{URL}g/")
    assert "orders.paid-0" in page.facts("#group-facts-demo")["Data loss"]
    assert figures_of(page.facts("#group-facts-demo")["Data loss"]) == ["300"]


def test_one_that_is_gone_is_history(get_page: GetPage, some: Cluster) -> None:
    page = get_page(f"{URL}gone/")
    assert page.states("#verdict-demo") == ["unknown"]
    assert page.figures("#verdict-demo h2") == ["9 min"]


def test_one_that_has_committed_nothing(get_page: GetPage, some: Cluster) -> None:
    page = get_page(f"{URL}empty/")
    assert page.find("#group-partitions-demo [data-empty=none]")
    assert page.find("#group-lag-demo [data-empty=none]")


def test_one_that_could_not_be_described(get_page: GetPage, demo: Cluster) -> None:
    group_seen(demo, "g", {(PAID, 0): STALLED}, described=False)
    page = get_page(f"{URL}g/")
    assert page.states("#verdict-demo") == ["warning"]
    assert not page.find("[data-fact=members] b"), "the members are unknown"


@pytest.mark.parametrize(
    "name", ["a b", "a/b", "..", "", "grüße", "ü" * 300, "n" * 5000, "100%", "a?b#c", "<b>&", "~x"]
)
def test_any_name_has_a_page_that_the_list_leads_to(
    name: str, demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    group_seen(demo, name)
    client = client_of(viewer)
    listed = client.get(URL).content.decode()
    found = re.search(r'<tr id="group-[^>]*>.*?href="([^"]*)"', listed, re.DOTALL)
    assert found
    address = unescape(found[1])
    assert unquote(address) == f"{URL}{slug_of(name)}/"
    response = client.get(address)
    assert response.status_code == 200
    assert GroupState.objects.get().name[:200] in unescape(response.content.decode())


def test_one_that_was_never_seen(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> None:
    answer = client_of(viewer).get(f"{URL}nothing/")
    assert answer.status_code == 404
    assert "has not seen consumer group" in answer.content.decode()


def test_its_finding_is_a_click_away_and_says_who_has_it(get_page: GetPage, demo: Cluster, operator: User) -> None:
    row = group_seen(demo, "g", {(PAID, 0): STALLED}, members={"c": {PAID: [0]}})
    assert "Finding" not in get_page(f"{URL}g/").text
    judged(demo)
    finding = Finding.objects.get(scope=row.key)
    page = get_page(f"{URL}g/")
    assert f'href="/clusters/demo/findings/{finding.public_id}/"' in page.part("verdict-demo")
    assert 'href="/runbooks/consumer-lag/"' in page.html
    Finding.objects.update(acknowledged_by=operator, acknowledged_at=NOW)
    assert f"acknowledged by {operator.get_username()} , 02:03" in get_page(f"{URL}g/").words("verdict-demo")
    other = get_page(f"/clusters/demo/findings/{finding.public_id}/")
    assert f"/clusters/demo/groups/~{row.key}/" in other.html
    assert get_page(f"{URL}~{row.key}/").title == "g : Stalled"


def test_the_charts_say_when_it_was_not_well(get_page: GetPage, demo: Cluster) -> None:
    row = group_seen(demo, "g", {(PAID, 0): STALLED}, members={"c": {PAID: [0]}}, point_at=NOW - timedelta(minutes=1))
    point(row, 50, 10, until=30)
    for minutes in range(20, 0, -1):
        point(row, minutes, 100 * (21 - minutes), state="stall")
    page = get_page(f"{URL}g/")
    assert page.figures("#group-lag-demo .chart-summary") == ["2,000", "01:43", "9", "50"]
    spec = _chart(page, "group-lag-canvas")
    assert [line["label"] for line in spec["series"]] == ["all partitions"]
    # The last bucket begins at 02:02, the band at 01:43.
    assert spec["bands"] == [
        {"from": spec["x"][-1] - 19 * 60, "to": spec["x"][-1] + 60, "state": "warning", "label": "Stalled"}
    ]
    assert spec["series"][0]["y"].count(None) == 9 + 9
    assert _chart(page, "group-time-canvas")["unit"] == "s"
    assert "hour" in re.search(r'aria-current="true">(\w+)<', page.part("group-lag-demo"))[1]  # type: ignore[index]
    day = get_page(f"{URL}g/?range=day")
    assert not day.find("#group-lag-demo [data-empty]")


def test_a_topic_says_who_reads_it(get_page: GetPage, some: Cluster) -> None:
    TopicFactory.create(cluster=some, name=PAID)
    page = get_page(f"/clusters/demo/topics/{PAID}/")
    cells = {row.text.split()[0]: row.texts("td") for row in page.find("#topic-groups-demo tbody tr")}
    assert next(iter(cells)) == "stalls"
    assert cells["stalls"][:3] == ["Stalled", "603", "2"]
    assert cells["well"][:3] == ["OK", "3", "1"]
    assert "stopped" not in cells
    TopicFactory.create(cluster=some, name="unread")
    assert get_page("/clusters/demo/topics/unread/").find("#topic-groups-demo [data-empty=none]")


def test_five_thousand_groups_are_listed_quickly(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    first = group_seen(demo, "g-0", {(PAID, n): WELL for n in range(10)})
    fields = {f.attname: getattr(first, f.attname) for f in GroupState._meta.concrete_fields if f.name != "id"}
    GroupState.objects.bulk_create(
        GroupState(**{**fields, "name": f"g-{n}", "key": f"{n:032x}", "lag": n}) for n in range(1, 5000)
    )
    client = client_of(viewer)
    client.get(URL)
    for query in ("", "?q=99", "?sort=-lag&page=7", f"?topic={PAID}"):
        took = []
        for _ in range(3):
            began = time.thread_time()
            assert client.get(URL + query).status_code == 200
            took.append(time.thread_time() - began)
        assert min(took) < 0.2 * slowness_now(), query


def test_a_group_of_ten_thousand_partitions(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> None:
    group_seen(demo, "g", {(PAID, n): WELL for n in range(10_000)})
    client = client_of(viewer)
    began = time.thread_time()
    assert "10,000 partitions" in client.get(f"{URL}g/").content.decode()
    assert time.thread_time() - began < 2.0 * slowness_now()


def _chart(page: Page, id_: str) -> Any:
    found = re.search(r'data-chart="([^"]*)"', page.start_tag(id_))
    assert found
    return json.loads(unescape(found[1]))


@pytest.fixture
def share_group(some: Cluster) -> UnjudgedGroup:
    group_seen(some, "app", {("clicks", 0): WELL}, type="Streams")
    partitions = [SharePartition(PAID, 0, 40, 100, 12), SharePartition(PAID, 1, None, 200, None)]
    return share_seen(some, "share-1", partitions)


def test_groups_of_other_kinds_are_listed_by_name_and_type_and_not_judged(
    get_page: GetPage, share_group: UnjudgedGroup
) -> None:
    page = get_page(URL)
    assert figures_of(page.title) == ["1", "6", "1", "1"]
    assert page.cells(f"other-group-{share_group.key}") == [
        "share-1",
        "share",
        "Stable",
        "12 1 partition unknown",
        "1",
        "2",
        PAID,
    ]
    assert get_page("/clusters/demo/").figures("#groups-demo .prose-strong") == figures_of(page.title)


def test_the_page_of_such_a_group_says_what_it_is(get_page: GetPage, share_group: UnjudgedGroup) -> None:
    page = get_page(f"{URL}share-1/")
    assert page.texts("h1 .mono") == ["share-1"]
    assert figures_of(page.first("#h-other-group").text) == ["12", "1"]
    assert page.cells("share-orders.paid-0") == ["orders.paid-0", "40", "≤ 48", "100", "12", "picker 10.14.2.31"]
    assert page.cells("share-orders.paid-1")[1:5] == ["unknown", "unknown", "200", "unknown"]
    assert 'data-state="ok"' not in page.html[page.html.index("<main") :]
    assert "reset-offsets" not in page.html
    lagging = get_page(f"{URL}share-1/?sort=-lag")
    assert lagging.order_of("share-orders.paid-1", "share-orders.paid-0") == [
        "share-orders.paid-0",
        "share-orders.paid-1",
    ]


def test_lag_of_a_share_group__brokers_do_not_report_it__names_the_release_that_does(
    get_page: GetPage, some: Cluster
) -> None:
    share_seen(some, "share-2", [SharePartition(PAID, 0, 40, 100, None)])
    assert not get_page(f"{URL}share-2/").find("[data-lack]")
    apis = {"55": [0, 2], "77": [1, 1], "90": [0, 0]}
    Capabilities.objects.create(cluster=some, apis=apis, changed_at=NOW)
    heading = get_page(f"{URL}share-2/").first("#h-other-group")
    assert (heading.get("data-lack"), "4.2" in heading.text) == (KafkaFeature.SHARE_LAG, True)


def test_share_groups_of_a_topic__are_named_on_its_page(get_page: GetPage, share_group: UnjudgedGroup) -> None:
    TopicFactory.create(cluster=share_group.cluster, name=PAID)
    assert get_page(f"/clusters/demo/topics/{PAID}/").texts("[data-fact=share-groups] a") == ["share-1"]


@pytest.mark.parametrize(
    ("query", "names", "shares"),
    [
        ("?type=streams", ["app"], False),
        ("?type=share", [], True),
        ("?type=other", [], False),
        (f"?topic={PAID}&state=stable&type=share", [], True),
        ("?type=share&state=empty", [], False),
        ("?verdict=stall", ["stalls"], False),
    ],
)
def test_types_are_filters(
    query: str, names: list[str], shares: bool, get_page: GetPage, share_group: UnjudgedGroup
) -> None:
    page = get_page(URL + query)
    assert shown(page) == names
    assert bool(page.order_of(f"other-group-{share_group.key}")) is shares
    assert ("data-empty=" in page.html) is not bool(names or shares)


def test_the_page_of_a_group_of_a_newer_type_names_it(get_page: GetPage, demo: Cluster) -> None:
    more: dict[str, Any] = {
        "is_share": False,
        "kind": "quantum",
        "coordinator": None,
        "members": None,
        "read_at": None,
        "lag": None,
    }
    row = share_seen(demo, "q-1", **more)
    assert get_page(URL).cells(f"other-group-{row.key}")[1:] == ["quantum", "Empty", *["unknown"] * 4]
    page = get_page(f"{URL}q-1/")
    assert "quantum" in page.title
    assert "share-partitions-demo" not in page.html


def test_a_cluster_with_no_other_groups_says_so(get_page: GetPage, demo: Cluster) -> None:
    for name in ("s-1", "s-2"):
        share_seen(demo, name)
    assert figures_of(get_page(URL).title) == ["2"]


@pytest.mark.parametrize(
    ("held", "figures"),
    [
        ([[PAID, 0, 1234, [4001, 4002], "orders-tx"]], ["4001", "1,234"]),
        ([[PAID, 0, 1234, None, None], [PAID, 1, 9, [], None]], ["1", "1,234"]),
    ],
)
def test_an_open_transaction_that_holds_the_group__is_told_beside_its_verdict(
    held: list[list[object]], figures: list[str], get_page: GetPage, demo: Cluster
) -> None:
    group_seen(demo, "held", {(PAID, 0): STALLED}, members={"c": {PAID: [0]}}, held=held)
    detail = get_page(f"{URL}held/").first("#verdict-demo p").text
    assert "read_committed" in detail
    assert figures_of(detail[detail.index("A transaction") :]) == figures
    assert ("orders-tx" in detail) is (held[0][-1] == "orders-tx")
    GroupState.objects.update(held=[[PAID, 0, 1234, [4001], ""]])
    assert "No coordinator lists it" in get_page(f"{URL}held/").text
