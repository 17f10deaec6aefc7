"""What moves: true figures, unknown where nobody could read, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import CollectorRun, Kind, Outcome
from tests.factories import GB, NOW, BrokerFactory, ReassignmentFactory, ThrottleFactory, ended, silent, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
URL = "/clusters/demo/reassignments/"


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


def test_it_says_that_nothing_moves(get_page: GetPage, demo: Cluster) -> None:
    moves = get_page(URL)
    assert moves.title == "Nothing moves in demo."
    assert "appears here within 10 s" in moves.text
    assert "See those that ended" not in moves.text


def test_one_move_is_shown_with_all_that_is_known(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7)
    moves = get_page(URL)
    assert moves.title == "1 partition is moving, 43.2 % copied."
    assert moves.words(row.public_id) == (
        "cart.events-7 3 copies from 2 6 43.2 % 02:03:03 4.2 GB ≈ 19.3 MB/s ≈ 02:05:06"
        f" not throttled leader not throttled 6 no 01:58:54 – 01:59:04 first seen {row.public_id} copying"
    )
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
    assert moves.title == f"1 partition is moving, {shown} copied."


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
    assert moves.title == "1 partition is moving; how far cannot be told."
    assert "data-percent" not in moves.start_tag(row.public_id)
    assert "unknown" in moves.words(row.public_id)
    assert "0.0 %" not in moves.words(row.public_id)


def test_dropping_a_replica_copies_nothing(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, adding=[], percent=None, sampled_at=None, rate_bytes=None)
    moves = get_page(URL)
    assert moves.title == "1 partition drops replicas; nothing is copied."
    assert "nothing to copy" in moves.words(row.public_id)


def test_the_title_weighs_by_size_and_admits_what_it_does_not_know(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, percent=50.0, size_bytes=9 * GB)
    ReassignmentFactory.create(cluster=demo, percent=100.0, size_bytes=1 * GB)
    assert get_page(URL).title == "2 partitions are moving, 55.0 % copied."
    ReassignmentFactory.create(cluster=demo, percent=None)
    assert get_page(URL).title == "3 partitions are moving, 55.0 % copied as far as is known."


def test_the_started_interval_says_how_it_is_known(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, started_after=None)
    assert "before 01:59:04 first seen" in get_page(URL).words(row.public_id)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome.COMPLETED, "completed"),
        (Outcome.CANCELLED, "cancelled"),
        (Outcome.SUPERSEDED, "superseded by another target"),
        (Outcome.TOPIC_DELETED, "topic deleted"),
        (Outcome.UNKNOWN, "ended, outcome unknown"),
    ],
)
def test_what_ended_just_now_stays_with_its_outcome(
    get_page: GetPage, demo: Cluster, outcome: Outcome, words: str
) -> None:
    row = ended(demo, outcome, NOW - timedelta(minutes=9))
    moves = get_page(URL)
    assert moves.title == "Nothing moves in demo."
    assert moves.words(row.public_id).endswith(words)
    assert f'data-outcome="{outcome}"' in moves.start_tag(row.public_id)


def test_what_ended_earlier_is_listed_on_request_in_pages(get_page: GetPage, demo: Cluster) -> None:
    rows = [ended(demo, Outcome.COMPLETED, NOW - timedelta(minutes=20 + n), partition=n) for n in range(101)]
    now = get_page(URL)
    assert not now.has(rows[0].public_id)
    assert "See those that ended" in now.text
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
    assert moves.title.startswith("51 partitions are moving")
    assert "In flight, 51 the 50 that began first" in moves.text
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
    assert moves.title == "Cannot tell what moves in demo: 1 partition moved 12 min ago."
    assert "data-stale" in moves.start_tag("moves-demo")


def test_nothing_was_collected_yet(get_page: GetPage, demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=Kind.REASSIGNMENTS).update(succeeded_at=None)
    moves = get_page(URL)
    assert moves.title == "Cannot tell what moves in demo: nothing was collected yet."
    assert "Nothing is in flight" not in moves.text


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
    assert "20.0 MB/s leader 1.0 kB/s 6 not throttled 5" in get_page(URL).words(row.public_id)
    facts = get_page(f"{URL}{row.public_id}/").words(f"facts-{row.public_id}")
    assert "Leader throttle 20.0 MB/s for sending this partition from broker 2" in facts
    assert "Target throttles 6 : 1.0 kB/s 5 : not throttled 1 : not throttled holds it already" in facts


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
    facts = get_page(f"{URL}{row.public_id}/").text
    assert "6 : unknown, the broker was not read" in facts
    assert "2 : not throttled" in facts, "it was read, and has no rate"


def test_throttles_that_were_not_read_are_unknown(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo)
    CollectorRun.objects.filter(kind=Kind.CONFIGS).update(succeeded_at=None)
    assert "unknown, not read yet leader unknown, not read yet 6" in get_page(URL).words(row.public_id)
    assert "not throttled" not in get_page(f"{URL}{row.public_id}/").text


def test_a_zombie_is_named(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, adding=[3], removing=[3], percent=100.0)
    page = get_page(URL)
    assert "stuck: adding = removing 3, cancel it" in page.words(row.public_id)
    assert 'data-state="warning"' in page.part(row.public_id)
    assert "1 stuck: adding = removing, cancel it" in page.text


def test_a_gap_in_looking_is_said_in_the_list(get_page: GetPage, demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, continuity_gap=True)
    assert "first seen, continuity not observed" in get_page(URL).words(row.public_id)


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
    ended(demo, Outcome.COMPLETED, NOW, public_id="r-3")
    ended(demo, Outcome.CANCELLED, NOW, public_id="r-4")
    page = get_page(URL + query)
    assert [i for i in ("r-1", "r-2", "r-3", "r-4") if page.has(f"list-{i}")] == kept
    if not kept:
        assert "None is like that." in page.text


def test_what_a_list_cannot_be_filtered_by_is_said(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, public_id="r-1")
    page = get_page(URL + "?running=all&broker=six&outcome=great")
    assert "“six” is no broker id" in page.text
    assert "There is no outcome “great”" in page.text
    assert page.has("list-r-1")
