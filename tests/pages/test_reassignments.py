"""What moves: true figures, unknown where nobody could read, and how it ended.

One reassignment behind its opaque id (KIP-240's describe).

What is throttled, by whom as far as is known, and what needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.failures import FailureKind
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    StartedFrom,
    StartedThrough,
    ThrottleState,
    ZooKeeperState,
)
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    ClusterFactory,
    ReassignmentFactory,
    ThrottleFactory,
    directory,
    ended,
    failed_with,
    silent,
    watched,
)
from tests.pages.conftest import Page, figures_of, told_in

GetPage = Callable[[str], Page]
URL = "/clusters/demo/reassignments/"


def test_it_says_that_nothing_moves(get_page: GetPage, demo: Cluster) -> None:
    moves = get_page(URL)
    assert not figures_of(moves.title)
    assert moves.figures("[data-empty=none] p") == ["10 s"]
    assert not moves.links("[data-empty=none]")


def test_one_move_is_shown_with_all_that_is_known(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7)
    moves = get_page(URL)
    assert figures_of(moves.title) == ["1", "43.2 %"]
    cells = moves.cells(row.public_id)
    assert (cells[0], cells[2:6]) == ("cart.events-7", ["6", "43.2 %", "02:03:03", "4.2 GB"])
    assert figures_of(cells[1]) == ["3", "2"]
    assert [figures_of(cell) for cell in cells[6:8]] == [["19.3 MB/s"], ["02:05:06"]]
    assert moves.texts(f"[id={row.public_id}] .throttle-cell .muted") == ["leader", "6"]
    assert (cells[9], figures_of(cells[10]), cells[11:]) == ("no", ["01:58:54", "01:59:04"], [row.public_id, "copying"])
    assert 'data-percent="43.21" data-sampled-at="2026-11-21T02:03:03.000Z"' in moves.start_tag(row.public_id)
    assert 'data-outcome="running"' in moves.start_tag(row.public_id)
    assert f'href="/clusters/demo/reassignments/{row.public_id}/"' in moves.part(row.public_id)
    assert '<rect class="meter-fill" width="43.21%"' in moves.part(row.public_id)


@pytest.mark.parametrize(
    ("percent", "shown", "attribute"),
    [(99.96, "99.9 %", "99.96"), (99.999, "99.9 %", "99.99"), (100.0, "100.0 %", "100.00"), (0.0, "0.0 %", "0.00")],
)
def test_percent_is_rounded_down_so_that_nothing_looks_done_early(
    get_page: GetPage, demo: Cluster, percent: float, shown: str, attribute: str
) -> None:
    row = ReassignmentFactory.create(cluster=demo, percent=percent)
    moves = get_page(URL)
    assert shown in moves.words(row.public_id)
    assert f'data-percent="{attribute}"' in moves.start_tag(row.public_id)
    assert moves.title == f"demo: 1 partition moving, {shown} copied"


def test_copied_and_not_in_the_isr_is_catching_up(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, percent=100.0)
    words = get_page(URL).words(row.public_id)
    assert words.endswith("catching up")
    assert "not in ISR yet" in words


def test_no_progress_is_said_instead_of_a_time_that_never_comes(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, rate_bytes=0.0)
    assert "no progress" in get_page(URL).words(row.public_id)


def test_there_is_no_eta_before_there_is_a_rate(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, rate_bytes=None)
    words = get_page(URL).words(row.public_id)
    assert "≈" not in words
    assert "no progress" not in words


def test_progress_that_could_not_be_read_is_unknown(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, percent=None, size_bytes=None, sampled_at=None, rate_bytes=None)
    moves = get_page(URL)
    assert figures_of(moves.title) == ["1"]
    assert "data-percent" not in moves.start_tag(row.public_id)
    assert "unknown" in moves.words(row.public_id)
    assert "0.0 %" not in moves.words(row.public_id)


def test_dropping_a_replica_copies_nothing(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, adding=[], percent=None, sampled_at=None, rate_bytes=None)
    moves = get_page(URL)
    assert figures_of(moves.title) == ["1"]
    assert "nothing to copy" in moves.words(row.public_id)


def test_the_title_weighs_by_size_and_admits_what_it_does_not_know(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, percent=50.0, size_bytes=9 * GB)
    ReassignmentFactory.create(cluster=demo, percent=100.0, size_bytes=1 * GB)
    assert figures_of(get_page(URL).title) == ["2", "55.0 %"]
    ReassignmentFactory.create(cluster=demo, percent=None)
    assert figures_of(get_page(URL).title) == ["3", "55.0 %"]
    assert get_page(URL).figures(".page-head .inline-facts")[-1] == "1"


def test_the_started_interval_says_how_it_is_known(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, started_after=None)
    assert "before 01:59:04 first seen" in get_page(URL).words(row.public_id)


def test_rates_from_znodes_are_told_apart(get_page: GetPage, demo: Cluster) -> None:
    Cluster.objects.update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181")
    for broker, from_znode in ((901, True), (902, False)):
        ThrottleFactory.create(cluster=demo, name=str(broker), from_znode=from_znode)
    words = get_page("/clusters/demo/throttles/").html
    assert words.count("from its znode") == 1


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (MoveOutcome.COMPLETED, "completed"),
        (MoveOutcome.CANCELLED, "cancelled"),
        (MoveOutcome.SUPERSEDED, "superseded by another reassignment"),
        (MoveOutcome.TOPIC_DELETED, "topic deleted"),
        (MoveOutcome.UNKNOWN, "ended, outcome unknown"),
    ],
)
def test_what_ended_just_now_stays_with_its_outcome(
    get_page: GetPage, demo: Cluster, outcome: MoveOutcome, words: str
) -> None:
    row = ended(demo, outcome, NOW - timedelta(minutes=9))
    moves = get_page(URL)
    assert moves.title == "demo: no reassignments in flight"
    assert moves.words(row.public_id).endswith(words)
    assert f'data-outcome="{outcome}"' in moves.start_tag(row.public_id)


def test_what_ended_earlier_is_listed_on_request_in_pages(get_page: GetPage, demo: Cluster) -> None:
    rows = [ended(demo, MoveOutcome.COMPLETED, NOW - timedelta(minutes=20 + n), partition=n) for n in range(101)]
    now = get_page(URL)
    assert not now.has(rows[0].public_id)
    assert now.links("[data-empty=none]") == [f"{URL}?ended=all#list"]
    first, second = get_page(f"{URL}?ended=all"), get_page(f"{URL}?ended=all&page=2")
    assert first.has(f"list-{rows[0].public_id}")
    assert not first.has(f"list-{rows[100].public_id}")
    assert "1–100 of 101" in first.text
    assert second.has(f"list-{rows[100].public_id}")
    assert get_page(f"{URL}?ended=all&page=nonsense").html.count("list-r-") == 100


def test_of_many_in_flight_those_that_began_first_are_shown(get_page: GetPage, demo: Cluster) -> None:
    begun = NOW - timedelta(hours=2)
    rows = [
        ReassignmentFactory.create(cluster=demo, partition=n, started_before=begun + timedelta(seconds=n))
        for n in range(51)
    ]
    moves = get_page(URL)
    assert figures_of(moves.title)[0] == "51"
    assert moves.figures("#group-running-demo") == ["51", "50"]
    assert moves.has(rows[49].public_id)
    assert not moves.has(rows[50].public_id)
    assert get_page(f"{URL}?running=all").has(f"list-{rows[50].public_id}")


def test_rows_keep_their_order_while_they_move(get_page: GetPage, demo: Cluster) -> None:
    late = ReassignmentFactory.create(cluster=demo, percent=99.0, started_before=NOW - timedelta(minutes=1))
    early = ReassignmentFactory.create(cluster=demo, percent=1.0, started_before=NOW - timedelta(minutes=2))
    ids = [early.public_id, late.public_id]
    assert get_page(URL).order_of(*ids) == ids


def test_old_data_is_not_told_as_now(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo)
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    moves = get_page(URL)
    assert figures_of(moves.title) == ["1", "12 min"]
    assert "data-stale" in moves.start_tag("moves-demo")


def test_nothing_was_collected_yet(get_page: GetPage, demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.REASSIGNMENTS).update(succeeded_at=None)
    moves = get_page(URL)
    assert not figures_of(moves.title)
    assert moves.find("[data-empty=unread]")
    assert not moves.find("[data-empty=none]")


def test_it_watches_its_panel(get_page: GetPage, demo: Cluster) -> None:
    moves = get_page(URL)
    assert 'hx-ws:connect="/live/?key=reassignments:demo"' in moves.html
    assert moves.has("reassignments-demo")
    assert 'data-interval="10"' in moves.part("moves-demo")


def test_throttles_are_those_that_are_in_force_for_this_partition(get_page: GetPage, demo: Cluster) -> None:
    """KIP-240: the leader's throttle, and one per target broker. A rate counts where a list names the replica."""
    row = ReassignmentFactory.create(cluster=demo, topic="t", partition=7, leader=2, adding=[6, 5], target=[6, 5, 1])
    for broker, key, value in (
        ("2", "leader.replication.throttled.rate", "20000000"),
        ("6", "follower.replication.throttled.rate", "1000"),
    ):
        ThrottleFactory.create(cluster=demo, name=broker, key=key, value=value)
    ThrottleFactory.create(
        cluster=demo, resource="cluster", name="", key="follower.replication.throttled.rate", value="5000000"
    )
    lists = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "7:6,8:5"}
    for key, value in lists.items():
        ThrottleFactory.create(cluster=demo, resource="topic", name="t", key=key, value=value)
    lines = get_page(URL).texts(f"[id={row.public_id}] .throttle-cell .rate-line")
    assert [figures_of(line) for line in lines] == [["20.0 MB/s"], ["1.0 kB/s", "6"], ["5"]]
    facts = get_page(f"{URL}{row.public_id}/").facts(f"#facts-{row.public_id}")
    assert figures_of(facts["Leader throttle"]) == ["20.0 MB/s", "2"]
    assert figures_of(facts["Target throttles"]) == ["6", "1.0 kB/s", "5", "1"]


@pytest.mark.parametrize("away", [{"fenced": True}, {"gone_at": NOW}, {"config_at": None}, None])
def test_throttle_of_a_listed_replica_is_unknown_while_its_broker_was_not_read(
    get_page: GetPage, demo: Cluster, away: dict[str, Any] | None
) -> None:
    """A rate may be set at a broker that nobody could ask; one without any row of its own was never even seen."""
    if away is not None:
        BrokerFactory.create(cluster=demo, broker_id=6, **away)
    row = ReassignmentFactory.create(cluster=demo, partition=7, adding=[6], target=[6, 2, 1])
    key = "follower.replication.throttled.replicas"
    ThrottleFactory.create(cluster=demo, resource="topic", name="cart.events", key=key, value="7:6,7:2")
    page = get_page(f"{URL}{row.public_id}/")
    unread, read, _ = [said.split(":")[1].split() for said in page.texts(f"#facts-{row.public_id} .rate-line")]
    assert unread[0].rstrip(",") == "unknown"
    assert read[:2] == ["not", "throttled"]  # it was read, and has no rate


def test_throttles_that_were_not_read_are_unknown(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo)
    CollectorRun.objects.filter(kind=CollectorKind.CONFIGS).update(succeeded_at=None)
    lines = get_page(URL).texts(f"[id={row.public_id}] .throttle-cell .rate-line")
    assert [line.split(",")[0] for line in lines] == ["unknown", "unknown"]
    assert "not throttled" not in get_page(f"{URL}{row.public_id}/").text


def test_a_zombie_is_named(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, adding=[3], removing=[3], percent=100.0)
    page = get_page(URL)
    assert page.states(f"[id={row.public_id}] .move-stuck") == ["warning"]
    assert page.figures(f"[id={row.public_id}] .move-stuck") == ["3"]
    assert page.figures(".page-head .status-mark") == ["1"]


def test_a_gap_in_looking_is_said_in_the_list(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, continuity_gap=True)
    page = get_page(URL)
    assert page.find(f"[id={row.public_id}] [data-gap]")


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?running=all&q=RDERS", ["r-1"]),
        ("?running=all&broker=9", ["r-2"]),
        ("?running=all&broker=6&q=clicks", []),
        ("?ended=all&outcome=cancelled", ["r-4"]),
        ("?ended=all", ["r-3", "r-4"]),
    ],
)
def test_the_lists_are_filtered_by_address(get_page: GetPage, demo: Cluster, query: str, kept: list[str]) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", public_id="r-1")
    ReassignmentFactory.create(cluster=demo, topic="clicks", public_id="r-2", replicas=[9, 2, 1], target=[9, 2])
    ended(demo, MoveOutcome.COMPLETED, NOW, public_id="r-3")
    ended(demo, MoveOutcome.CANCELLED, NOW, public_id="r-4")
    page = get_page(URL + query)
    assert [i for i in ("r-1", "r-2", "r-3", "r-4") if page.has(f"list-{i}")] == kept
    if not kept:
        assert page.find("[data-empty=filtered]")


def test_what_a_list_cannot_be_filtered_by_is_said(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, public_id="r-1")
    page = get_page(URL + "?running=all&broker=six&outcome=great")
    said = page.texts(".notice")
    assert any(told_in(each, CollectionErrorCode.REASSIGNMENTS_NO_BROKER) and "six" in each for each in said)
    assert any(told_in(each, RequestErrorCode.CHOICE_UNKNOWN) and "great" in each for each in said)
    assert page.has("list-r-1")


def url(public_id: str, cluster: str = "demo") -> str:
    return f"/clusters/{cluster}/reassignments/{public_id}/"


def test_a_running_one_is_described(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7, continuity_gap=True)
    described = get_page(url(row.public_id))
    assert "cart.events-7" in described.title
    assert figures_of(described.title) == ["43.2 %"]
    facts = described.facts(f"#facts-{row.public_id}")
    shown = {"Leader": ["2", "12"], "Target": ["6", "2", "1"], "Adding": ["6"], "Removing": ["3"]}
    shown |= {"Replicas before": ["3", "2", "1"], "Rate": ["19.3 MB/s"], "Started": ["01:58:54", "01:59:04"]}
    assert {name: figures_of(facts[name]) for name in shown} == shown
    assert described.find(f"#facts-{row.public_id} [data-gap]")
    cells = ["6", "43.2 %", "432,190", "567,810", "no", "02:03:03"]
    assert described.cells(f"replica-{row.public_id}-6") == cells
    assert "key=reassignments:demo" in described.html


def test_a_batch_of_zookeeper_is_told_with_what_is_queued(get_page: GetPage, demo: Cluster) -> None:
    Cluster.objects.update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181")
    began = NOW - timedelta(minutes=4)
    znode: dict[str, Any] = {"started_after": began, "started_from": StartedFrom.ZK_CTIME, "batch_id": "0x1f"}
    row = ReassignmentFactory.create(cluster=demo, started_through=StartedThrough.ZNODE, **znode)
    queued = [["cart.events", 9, [6, 2]]]
    pending: dict[str, Any] = {"batch_id": "0x1f", "batch_at": began, "batch_count": 2}
    ZooKeeperState.objects.create(cluster=demo, taken_at=NOW, queued=queued, queued_count=1, **pending)
    listed = get_page(URL)
    assert listed.facts("#legacy-demo")["Partitions"] == "2"
    assert "cart.events-9" in listed.part("legacy-demo")
    facts = get_page(url(row.public_id)).facts(f"#facts-{row.public_id}")
    assert facts["Started through"] == "the legacy znode, batch 0x1f"
    assert figures_of(facts["Started"]) == ["01:59:04"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (MoveOutcome.COMPLETED, "completed"),
        (MoveOutcome.CANCELLED, "cancelled"),
        (MoveOutcome.UNKNOWN, "ended, outcome unknown"),
    ],
)
def test_one_that_is_over_is_not_running_and_says_how_it_ended(
    get_page: GetPage, demo: Cluster, outcome: MoveOutcome, words: str
) -> None:
    row = ended(demo, outcome, NOW - timedelta(days=2), partition=7)
    ReassignmentFactory.create(cluster=demo, partition=7, adding=[9])
    described = get_page(url(row.public_id))
    assert described.title == f"cart.events-7: {words}"
    assert "Adding 6" in described.text  # its own data, not that of the later one on the same partition
    assert "19 Nov 02:03:04" in described.text
    assert "hx-ws:connect" not in described.html


def test_a_replica_that_did_not_answer_says_why(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, percent=None)
    described = get_page(url(row.public_id))
    assert not figures_of(described.title)
    assert described.texts(f"#replicas-{row.public_id} td")[0] == f"unknown {row.replicas_progress[0]['error']}"


def test_an_id_of_another_cluster_or_of_nobody_is_not_found(
    viewer: User, client_of: Callable[[User], Client], demo: Cluster
) -> None:
    row = ReassignmentFactory.create(cluster=watched("other"))
    client = client_of(viewer)
    assert client.get(url(row.public_id)).status_code == 404
    assert client.get(url("r-nobody")).status_code == 404
    assert client.get(url(row.public_id, "other")).status_code == 200


THROTTLES_URL = "/clusters/demo/throttles/"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def a_list(demo: Cluster, name: str, value: str, **fields: object) -> ThrottleState:
    return ThrottleFactory.create(cluster=demo, resource="topic", name=name, key=LEADER_LIST, value=value, **fields)


def words(page: Page, row: ThrottleState) -> str:
    return page.words(f"throttle-{row.pk}")


def cells(page: Page, row: ThrottleState) -> list[str]:
    return page.cells(f"throttle-{row.pk}")


def test_nothing_is_throttled(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(THROTTLES_URL)
    assert not figures_of(page.title)
    assert page.figures("#throttled-demo [data-empty=none] p") == ["30 s"]
    assert not page.has("throttle-list-demo")


def test_the_same_rate_is_one_line_and_every_throttle_a_row(get_page: GetPage, demo: Cluster) -> None:
    rows = [ThrottleFactory.create(cluster=demo, name=str(n)) for n in (10, 9, 1)]
    a_list(demo, "orders", "0:1,0:2,1:3")
    page = get_page(THROTTLES_URL)
    assert figures_of(page.title) == ["3", "10.0 MB/s"]
    assert page.cells("throttled-demo-1")[2:4] == ["10.0 MB/s", "10,000,000"]
    assert figures_of(page.cells("throttled-demo-1")[0]) == ["1", "9", "10"]
    assert figures_of(page.cells("throttled-demo-2")[0]) == ["1"]
    shown = cells(page, rows[1])
    assert (shown[0], shown[3:5]) == ("broker 9", ["broker", "01:43:04"])
    assert page.texts(f"#throttle-{rows[1].pk} .config-key") == [rows[1].key]
    assert figures_of(shown[2]) == ["10.0 MB/s", "10,000,000"]
    assert (figures_of(shown[5]), shown[6:]) == (["6 s"], ["others", "nothing"])
    ids = [f"throttle-{row.pk}" for row in (rows[2], rows[1], rows[0])]
    assert page.order_of(*ids) == ids  # 1, 9, 10


def test_a_rate_without_a_list_slows_nothing_and_a_list_without_a_rate_neither(
    get_page: GetPage, demo: Cluster
) -> None:
    row = ThrottleFactory.create(cluster=demo)
    page = get_page(THROTTLES_URL)
    assert page.title.startswith("demo: throttle rates without replica lists")
    with_rate_alone = page.title
    row.delete()
    a_list(demo, "orders", "*")
    page = get_page(THROTTLES_URL)
    assert not figures_of(page.title)
    assert page.title != with_rate_alone
    assert len(page.find("#throttled-demo tbody tr")) == 1


def test_a_cluster_default_is_for_all(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(cluster=demo, resource="cluster", name="", value="50000000")
    a_list(demo, "orders", "*")
    page = get_page(THROTTLES_URL)
    assert figures_of(page.title) == ["50.0 MB/s"]
    assert [row.get("id") for row in page.find("#throttled-demo tbody tr")] == ["throttled-demo-1", "throttled-demo-2"]
    assert cells(page, row)[0] == "cluster default"


def test_very_many_brokers_are_summed_up(get_page: GetPage, demo: Cluster) -> None:
    for n in range(120):
        ThrottleFactory.create(cluster=demo, name=str(n))
    page = get_page(THROTTLES_URL + "?page=2")
    assert page.figures("#throttled-demo-1 th") == ["0", "1", "2", "3", "4", "5", "6", "7", "112"]
    assert page.figures(".pager") == ["101", "120", "120"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("*", "all replicas"),
        ("0:1,0:2,1:3", "3 replicas of 2 partitions"),
        ("", "empty list"),
        ("0:x", "invalid entry “0:x”"),
    ],
)
def test_lists_are_summarised(get_page: GetPage, demo: Cluster, value: str, shown: str) -> None:
    row = a_list(demo, "orders", value)
    assert shown in words(get_page(THROTTLES_URL), row)


def test_what_needs_it(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", partition=0, replicas=[6, 2, 1, 3])
    ReassignmentFactory.create(cluster=demo, topic="orders", partition=1, replicas=[4, 2, 1])
    broker = ThrottleFactory.create(cluster=demo, name="6")
    everywhere = ThrottleFactory.create(cluster=demo, resource="cluster", name="", key=FOLLOWER_RATE)
    whole, part, other = a_list(demo, "orders", "*"), a_list(demo, "a", "0:1"), a_list(demo, "orders.2", "*")
    listed = ThrottleFactory.create(
        cluster=demo, resource="topic", name="orders", key="follower.replication.throttled.replicas", value="1:4,7:4"
    )
    page = get_page(THROTTLES_URL)
    assert words(page, broker).endswith("1 move")
    assert 'href="/clusters/demo/reassignments/?running=all&amp;broker=6#list"' in page.part(f"throttle-{broker.pk}")
    assert words(page, everywhere).endswith("2 moves")
    assert words(page, whole).endswith("2 moves")
    assert words(page, listed).endswith("1 move")
    assert words(page, part).endswith("nothing")
    assert words(page, other).endswith("nothing")


def test_copies_between_disks_need_the_disk_rate(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.filter(broker_id=1).update(dirs=[directory(copies=2), directory(copies=1)])
    BrokerWeights.objects.filter(broker_id=2).update(dirs=[directory(copies=None)])
    one = ThrottleFactory.create(cluster=demo, name="1", key=DISK_RATE)
    two = ThrottleFactory.create(cluster=demo, name="2", key=DISK_RATE)
    page = get_page(THROTTLES_URL)
    assert words(page, one).endswith("3 copies")
    assert words(page, two).endswith("unknown")


def test_an_orphan_says_what_to_look_at(get_page: GetPage, demo: Cluster) -> None:
    orphan = a_list(demo, "orders", "*", orphan=True, unneeded_since=NOW - timedelta(minutes=9))
    ThrottleFactory.create(cluster=demo)
    page = get_page(THROTTLES_URL)
    assert figures_of(page.title) == ["1"]
    assert page.figures("#throttled-demo-2 .status-mark") == ["1"]
    assert figures_of(cells(page, orphan)[7]) == ["01:54:04"]
    command = page.first(f"#throttle-look-{orphan.pk} .command").text.split()
    assert command[:3] == ["kafka-configs", "--bootstrap-server", "kafka-1.internal:9092"]
    assert command[3:] == ["--describe", "--entity-type", "topics", "--entity-name", "orders"]


def test_ours_and_foreign(get_page: GetPage, demo: Cluster) -> None:
    ours = ThrottleFactory.create(cluster=demo, name="1", claimed_by="change 42", claim_url="/changes/42/")
    foreign = ThrottleFactory.create(cluster=demo, name="2")
    page = get_page(THROTTLES_URL)
    assert "kafkadash, change 42" in words(page, ours)
    assert 'href="/changes/42/"' in page.part(f"throttle-{ours.pk}")
    assert " others " in words(page, foreign)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?on=cluster", ["cluster"]),
        ("?on=topic", ["topic"]),
        ("?need=ours", ["ours"]),
        ("?need=orphan", ["topic"]),
        ("?need=foreign", ["cluster", "topic"]),
        ("?q=order", ["topic"]),
        ("?q=follower", ["cluster"]),
        ("?q=nowhere", []),
        ("?sort=-since", ["ours", "cluster", "topic"]),
    ],
)
def test_filters_are_addresses(get_page: GetPage, demo: Cluster, query: str, kept: list[str]) -> None:
    rows = {
        "topic": a_list(demo, "orders", "*", orphan=True, first_seen_at=NOW - timedelta(days=3)),
        "cluster": ThrottleFactory.create(cluster=demo, resource="cluster", name="", key=FOLLOWER_RATE),
        "ours": ThrottleFactory.create(cluster=demo, claimed_by="change 42", first_seen_at=NOW),
    }
    page = get_page(THROTTLES_URL + query)
    order = page.order_of(*(f"throttle-{row.pk}" for row in rows.values()))
    expected = [f"throttle-{rows[name].pk}" for name in kept]
    assert (order if "sort" in query else sorted(order)) == (expected if "sort" in query else sorted(expected))
    assert bool(page.find("[data-empty=filtered]")) == (not kept)


def test_one_that_could_not_be_read_again_keeps_its_age(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(cluster=demo, read_at=NOW - timedelta(minutes=12))
    page = get_page(THROTTLES_URL)
    assert "12 min" in words(page, row)
    assert 'data-fresh="stale"' in page.part(f"throttle-{row.pk}")


def test_not_read_stale_and_not_permitted(get_page: GetPage, demo: Cluster) -> None:
    ThrottleFactory.create(cluster=demo)
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(THROTTLES_URL)
    assert figures_of(page.title) == ["1", "12 min"]
    assert "data-stale" in page.start_tag("throttled-demo")
    ClusterFactory.create(name="never")
    never = get_page("/clusters/never/throttles/")
    assert not figures_of(never.title)
    assert never.find("#throttled-never [data-empty=unread]")
    denied, error = watched("denied"), "It lacks DescribeConfigs on CLUSTER."
    denied.collector_runs.filter(kind=CollectorKind.CONFIGS).update(
        failures=1,
        succeeded_at=None,
        last_failure=FailureKind.NOT_AUTHORIZED,
        **failed_with(error),
    )
    page = get_page("/clusters/denied/throttles/")
    assert error in page.words("not-read-configs")
    assert not page.find("#throttled-denied [data-empty=none]")


def test_unknown_moves_are_not_no_moves(get_page: GetPage, demo: Cluster) -> None:
    demo.collector_runs.filter(kind=CollectorKind.REASSIGNMENTS).update(succeeded_at=None)
    row = ThrottleFactory.create(cluster=demo)
    assert words(get_page(THROTTLES_URL), row).endswith("others unknown")


def test_what_a_run_removed_is_said_to_be_removed_and_is_not_in_force(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(
        cluster=demo, name="1", claimed_by="#7", claim_url="/changes/7/", removed_at=NOW - timedelta(seconds=2)
    )
    page = get_page(THROTTLES_URL)
    assert not figures_of(page.title)
    assert "/changes/7/" in page.links(f"#throttle-{row.pk}")
    assert figures_of(cells(page, row)[7]) == ["02:03:02"]
    assert not get_page(f"{THROTTLES_URL}?need=foreign").has(f"throttle-{row.pk}")


def test_whose_it_is_is_not_called_unknown_before_it_was_looked_up(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(cluster=demo, name="1", first_seen_at=NOW - timedelta(seconds=2))
    assert "just found" in words(get_page(THROTTLES_URL), row)


def test_how_many_of_a_rates_brokers_a_move_needs_is_said(get_page: GetPage, demo: Cluster) -> None:
    for name in ("1", "9"):
        ThrottleFactory.create(cluster=demo, name=name)
    ReassignmentFactory.create(cluster=demo, replicas=[1, 2], adding=[2], removing=[])
    assert get_page(THROTTLES_URL).words("throttled-demo-1").endswith("10,000,000 1 of 2")
