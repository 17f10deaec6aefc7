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
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.observe.group_names import key_of, slug_of
from kafkadash.observe.models import Collection, CollectorRun, GroupState, Kind, UnjudgedGroup
from kafkadash.oncall.models import Finding
from tests.effort import slowness_now
from tests.factories import NOW, ClusterFactory, TopicFactory, judged, silent, watched
from tests.groups import NEW, NONE, STALLED, STILL, WELL, group_seen, point, samples
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
URL = "/clusters/demo/groups/"
PAID = "orders.paid"


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


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


def row_words(page: Page, name: str) -> str:
    return page.words(f"group-{GroupState.objects.get(name=name).key}")


def test_the_title_is_the_answer_and_the_worst_comes_first(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL)
    assert page.title == "Of 5 groups, 1 has stopped and 1 stalls."
    assert shown(page) == ["stalls", "stopped", "new", "well", "empty"]
    assert "All 5 Stop 1 Stall 1 Unknown 1 OK 1 Nothing committed 1" in page.text


def test_a_row_says_how_the_group_does(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL)
    assert row_words(page, "stalls") == "stalls Stall 603 orders.paid-0 5 min 3.3 Stable 1 2 orders.paid"
    assert row_words(page, "empty") == "empty Nothing committed none none none none Empty 0 0 nothing"


@pytest.mark.parametrize(
    ("groups", "title"),
    [
        ([], "demo has no consumer groups."),
        ([("a", {(PAID, 0): WELL})], "The only group of demo keeps up."),
        ([("a", {(PAID, 0): WELL}), ("b", {(PAID, 0): WELL})], "All 2 groups of demo keep up."),
        ([("a", {(PAID, 0): WELL}), ("b", {})], "The only group of demo that has committed something keeps up."),
        ([("a", {(PAID, 0): WELL}), ("b", {(PAID, 0): NEW})], "Of 2 groups, 1 keeps up; 1 cannot be judged yet."),
        ([("a", {(PAID, 0): NEW}), ("b", {(PAID, 0): NEW})], "None of 2 groups of demo can be judged yet."),
        ([("a", {(PAID, 0): NEW})], "The only group of demo cannot be judged yet."),
        ([("a", {}), ("b", {})], "2 groups of demo have committed nothing."),
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
    assert "No group is like that. demo has 5 groups; the filter leaves none of them." in page.text
    assert "“happy”" in get_page(f"{URL}?verdict=happy").text


def test_a_mistyped_filter_with_a_nul_is_no_error(get_page: GetPage, some: Cluster) -> None:
    assert shown(get_page(f"{URL}?topic=%00{PAID}&q=%00well")) == ["well"]


def test_groups_that_were_not_read_yet(get_page: GetPage, db: None) -> None:
    ClusterFactory.create(name="demo")
    page = get_page(URL)
    assert page.title == "Cannot tell which groups demo has: they were not read yet."
    assert "The groups were not read yet." in page.text


def test_stale_groups_are_not_green(get_page: GetPage, some: Cluster) -> None:
    silent(some, NOW - timedelta(minutes=5), error="refused")
    GroupState.objects.update(taken_at=NOW - timedelta(minutes=5))
    page = get_page(URL)
    assert page.title == "Cannot tell how the groups of demo do: 5 groups were there 5 min ago."
    assert "data-stale" in page.start_tag("group-list-demo")
    assert 'data-state="ok"' not in page.part("group-list-demo").split("</header>", 1)[1]
    assert "Was OK data 5 min old" in row_words(page, "well")


def test_a_group_whose_coordinator_is_silent_has_an_age_of_its_own(get_page: GetPage, some: Cluster) -> None:
    GroupState.objects.filter(name="well").update(taken_at=NOW - timedelta(minutes=4))
    Collection.objects.filter(kind=Kind.GROUPS).update(not_answered=[2], errors=["broker 2: did not answer within 8 s"])
    page = get_page(URL)
    assert "Was OK data 4 min old" in row_words(page, "well")
    assert "broker 2: did not answer within 8 s" in page.text
    one = get_page(f"{URL}well/")
    assert "Cannot tell how the group does: it was last read 4 min ago." in one.text
    assert "data-stale" in one.start_tag("group-partitions-demo")


def test_groups_that_may_not_be_listed_are_said_to_be_so(get_page: GetPage, demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=Kind.GROUPS).update(
        succeeded_at=None,
        failures=3,
        last_failure=FailureKind.NOT_AUTHORIZED,
        last_error="The principal needs Describe.",
    )
    page = get_page(URL)
    assert "The principal needs Describe." in page.text


def test_one_that_stalls(get_page: GetPage, demo: Cluster) -> None:
    partitions = {(PAID, n): WELL for n in range(15)} | {(PAID, 14): STALLED, (PAID, 31): NEW, (PAID, 47): NONE}
    members = {"invoice-3": {PAID: [14]}, "invoice-5": {PAID: [31]}, "invoice-6": {PAID: [47]}}
    group_seen(demo, "invoice-writer", partitions, members=members)
    page = get_page(f"{URL}invoice-writer/")
    assert page.title == "Group invoice-writer"
    verdict = page.words("verdict-demo")
    assert verdict.startswith("Stall orders.paid-14 has committed nothing for at least 4 min while 600 records wait.")
    assert "14 partitions are OK; 2 cannot be judged yet." in verdict
    assert "Member invoice-3 still sends heartbeats" in verdict
    facts = page.words("group-facts-demo")
    assert "Lag 647 records orders.paid-14 holds 92 %; 1 not known" in facts
    assert "Worst time lag about 5 min orders.paid-14" in facts
    assert "Drains in never net −2.0 a second in orders.paid-14" in facts
    assert "Data loss none" in facts
    assert page.words("lag-orders.paid-14") == (
        "orders.paid-14 Stall 100 700 600 about 5 min 0 2.0 never invoice-3 10.14.2.31"
    )
    assert page.words("lag-orders.paid-31").startswith("orders.paid-31 Collecting 4/10 730 735 5")
    assert page.words("lag-orders.paid-47").startswith("orders.paid-47 No commit yet none 500 none unknown")
    assert "10 of 10 samples, equal" in page.part("lag-orders.paid-14")
    assert "4 of 10 samples, advancing" in page.part("lag-orders.paid-31")
    assert "no sample" in page.part("lag-orders.paid-47")
    assert page.words("group-partitions-demo").startswith("Partitions All 17 Stall 1 Unknown 2 OK 14")
    assert (
        "reads orders.paid , 17 partitions 3 members, unchanged since 23:02 Stable classic protocol, range" in page.text
    )


def test_the_rest_is_a_click_away(get_page: GetPage, demo: Cluster) -> None:
    group_seen(demo, "g", {(PAID, n): WELL for n in range(40)} | {(PAID, 40): STALLED}, members={"c": {}})
    page = get_page(f"{URL}g/")
    assert "Show the other 31, all OK" in page.text
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
    assert "Data loss ≤ 300 records deleted before committed, in orders.paid-0" in get_page(f"{URL}g/").text


def test_one_that_is_gone_is_history(get_page: GetPage, some: Cluster) -> None:
    page = get_page(f"{URL}gone/")
    assert "Gone Kafka no longer lists this group: it was first missed 9 min ago." in page.text


def test_one_that_has_committed_nothing(get_page: GetPage, some: Cluster) -> None:
    page = get_page(f"{URL}empty/")
    assert "The group has committed nothing yet." in page.text
    assert "There is no lag to show for this time." in page.text


def test_one_that_could_not_be_described(get_page: GetPage, demo: Cluster) -> None:
    group_seen(demo, "g", {(PAID, 0): STALLED}, described=False)
    page = get_page(f"{URL}g/")
    assert "members are not known" in page.text
    assert "Whether the group has members is not known." in page.text


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
    assert "has no consumer group" in answer.content.decode()


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
    assert get_page(f"{URL}~{row.key}/").title == "Group g"


def test_the_charts_say_when_it_was_not_well(get_page: GetPage, demo: Cluster) -> None:
    row = group_seen(demo, "g", {(PAID, 0): STALLED}, members={"c": {PAID: [0]}}, point_at=NOW - timedelta(minutes=1))
    point(row, 50, 10, until=30)
    for minutes in range(20, 0, -1):
        point(row, minutes, 100 * (21 - minutes), state="stall")
    page = get_page(f"{URL}g/")
    assert "2,000 records wait, the most of this time. Stall since 01:43." in page.text
    assert "In 9 of 50 intervals nothing is known." in page.text
    spec = _chart(page, "group-lag-canvas-demo")
    assert [line["label"] for line in spec["series"]] == ["worst partition"]
    # The last bucket begins at 02:02, the band at 01:43.
    assert spec["bands"] == [
        {"from": spec["x"][-1] - 19 * 60, "to": spec["x"][-1] + 60, "state": "warning", "label": "stall"}
    ]
    assert spec["series"][0]["y"].count(None) == 9 + 9
    assert _chart(page, "group-time-canvas-demo")["unit"] == "s"
    assert "hour" in re.search(r'aria-current="true">(\w+)<', page.part("group-lag-demo"))[1]  # type: ignore[index]
    day = get_page(f"{URL}g/?range=day")
    assert "There is no lag" not in day.text


def test_a_topic_says_who_reads_it(get_page: GetPage, some: Cluster) -> None:
    TopicFactory.create(cluster=some, name=PAID)
    words = get_page(f"/clusters/demo/topics/{PAID}/").words("topic-groups-demo")
    assert "stalls Stall 603 2" in words
    assert "well OK 3 1" in words
    assert "stopped" not in words
    TopicFactory.create(cluster=some, name="unread")
    assert "No consumer group reads it" in get_page("/clusters/demo/topics/unread/").words("topic-groups-demo")


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
    return UnjudgedGroup.objects.create(
        cluster=some, key=key_of("share-1"), name="share-1", kind="share", state="Stable", first_seen_at=NOW
    )


def test_groups_of_other_kinds_are_listed_by_name_and_type_and_not_judged(
    get_page: GetPage, share_group: UnjudgedGroup
) -> None:
    page = get_page(URL)
    assert page.title == "Of 5 groups, 1 has stopped and 1 stalls; 1 share group is not judged."
    assert page.words(f"other-group-{share_group.key}") == "share-1 share Stable"
    assert "1 share group is not judged" in get_page("/clusters/demo/").words("groups-demo")


def test_the_page_of_such_a_group_says_what_it_is(get_page: GetPage, share_group: UnjudgedGroup) -> None:
    page = get_page(f"{URL}share-1/")
    assert page.title == "share-1 is a share group: it is not judged."
    assert 'data-state="ok"' not in page.html[page.html.index("<main") :]


def test_a_cluster_with_no_other_groups_says_so(get_page: GetPage, demo: Cluster) -> None:
    for name in ("s-1", "s-2"):
        UnjudgedGroup.objects.create(cluster=demo, key=key_of(name), name=name, kind="share", first_seen_at=NOW)
    assert get_page(URL).title == "demo has no consumer groups; 2 share groups are not judged."
