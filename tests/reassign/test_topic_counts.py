"""Topics by name and by regular expression: as many as the planner takes, and never for longer than allowed."""

from __future__ import annotations

import json
import time
from threading import BoundedSemaphore, Thread

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.domain.planner.request import BALANCE, PlanRequest
from kafkadash.domain.planner.topic_choice import chosen
from kafkadash.observe.models import TopicState
from kafkadash.reassign import topic_counts
from kafkadash.reassign.topic_counts import LONGEST_PATTERN, BadChoice, TooManyAtOnce, counted, names_in
from kafkadash.topic_match import CPU_S
from tests.factories import GB, ClusterFactory, TopicFactory
from tests.pages.conftest import text_of
from tests.reassign.stored import Wizard
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db

NAMES = ("orders", "orders-dlq", "orders.audit", "clicks", "__consumer_offsets")
LONG = "a" * 60
ENDLESS = json.dumps({"pattern": "(a+)+b", "excluded": "", "topics": [], "names": [LONG]}).encode()


@pytest.fixture
def named(cluster: Cluster) -> Cluster:
    for number, name in enumerate(NAMES, start=1):
        TopicFactory.create(cluster=cluster, name=name, partition_count=10 * number, size_bytes=number * GB)
    return cluster


@pytest.mark.parametrize(
    ("topics", "pattern", "excluded"),
    [
        ((), "orders.*", ""),
        ((), "orders.*", ".*-dlq"),
        ((), "orders", ""),
        ((), "rders", ".*"),
        (("clicks",), "orders", ""),
        (("clicks", "orders"), "", "cl.*"),
        ((), "", "__.*"),
        ((), r"orders\.audit|clicks", ""),
        ((), "(?i)ORDERS", ""),
    ],
)
def test_they_are_those_that_the_planner_takes(
    named: Cluster, topics: tuple[str, ...], pattern: str, excluded: str
) -> None:
    asked = PlanRequest(BALANCE, topics=topics, pattern=pattern, excluded=excluded)
    wanted = chosen(asked, NAMES)
    if not wanted:
        with pytest.raises(BadChoice):
            counted(named, topics, pattern, excluded)
        return
    found = counted(named, topics, pattern, excluded)
    partitions = sum(10 * (NAMES.index(name) + 1) for name in wanted)
    assert (found.topics, found.total, found.partitions) == (len(wanted), len(NAMES), partitions)


def test_it_is_told_with_partitions_and_size(named: Cluster) -> None:
    assert counted(named, (), "orders.*", "").words == "3 of 5 topics, 60 partitions, about 6.0 GB with all replicas"
    assert counted(named, (), "", "").words == "all 5 topics, 150 partitions, about 15.0 GB with all replicas"
    TopicState.objects.filter(name="orders").update(size_bytes=None)
    words = "3 of 5 topics, 60 partitions, about 5.0 GB with all replicas without 1 topic of unknown size"
    assert counted(named, (), "orders.*", "").words == words
    assert counted(named, ("orders",), "", "").words == "1 of 5 topics, 10 partitions, of unknown size"


def test_a_cluster_that_was_never_read_has_none(cluster: Cluster) -> None:
    assert counted(cluster, (), "", "").total == 0


def test_topics_of_another_cluster_are_not_counted(named: Cluster) -> None:
    TopicFactory.create(cluster=ClusterFactory.create(name="other"), name="orders-elsewhere")
    assert counted(named, (), "orders.*", "").topics == 3


@pytest.mark.parametrize(
    ("topics", "pattern", "excluded", "field", "sentence"),
    [
        (("orderz",), "", "", "topics", "There is no topic orderz in this cluster."),
        ((), "order[", "", "pattern", "“order[” is no regular expression: unterminated character set at character 6."),
        ((), "orders", "(", "excluded", "“(” is no regular expression"),
        ((), "rders", "", "pattern", "Of 5 topics not one is chosen: no name matches “rders”."),
        ((), "orders", "o.*", "excluded", "Of 5 topics not one is chosen: “o.*” excludes them."),
        ((), "x" * (LONGEST_PATTERN + 1), "", "pattern", "The regular expression has 501 characters; 500 fit."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    named: Cluster, topics: tuple[str, ...], pattern: str, excluded: str, field: str, sentence: str
) -> None:
    with pytest.raises(BadChoice) as bad:
        counted(named, topics, pattern, excluded)
    assert (bad.value.field, str(bad.value)[: len(sentence)]) == (field, sentence)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){30}b", "(a|aa)+$b"])
def test_one_that_would_never_end_is_ended(named: Cluster, pattern: str) -> None:
    TopicFactory.create(cluster=named, name=LONG)
    before = time.process_time()
    with pytest.raises(BadChoice, match=f"takes more than {CPU_S} s") as bad:
        counted(named, (), pattern, "")
    assert bad.value.field == "pattern"
    assert time.process_time() - before < 1, "this process itself does not match"


def test_one_that_would_take_all_memory_is_ended(named: Cluster) -> None:
    with pytest.raises(BadChoice):
        counted(named, (), "((((((a{0,999}){0,999}){0,999}){0,999}){0,999}){0,999})b", "")


def test_a_newer_pattern_ends_the_one_that_is_being_tried(named: Cluster) -> None:
    """As somebody types: his first choice would go on for seconds, and nobody waits for it any more."""
    TopicFactory.create(cluster=named, name=LONG)
    given_up: list[BaseException] = []

    def try_one_without_end() -> None:
        try:
            topic_counts._matched(ENDLESS, "pattern", 7)
        except TooManyAtOnce as error:
            given_up.append(error)

    first = Thread(target=try_one_without_end)
    first.start()
    wait_until(lambda: 7 in topic_counts._children, "the first is being tried")
    assert counted(named, (), "orders.*", "", typed_by=7).topics == 3
    first.join(topic_counts._WAIT_S)
    assert len(given_up) == 1
    assert not topic_counts._children


def test_no_more_processes_than_places_match_at_once(named: Cluster) -> None:
    others = [Thread(target=topic_counts._matched, args=(ENDLESS, "pattern", person)) for person in range(2)]
    for other in others:
        other.start()
    wait_until(lambda: len(topic_counts._children) == len(others), "all places are taken")
    with pytest.raises(TooManyAtOnce, match="are being tried at this moment"):
        counted(named, (), "orders.*", "", typed_by=9)
    for person in range(len(others)):
        topic_counts._children[person].kill()
    for other in others:
        other.join(topic_counts._WAIT_S)
    assert counted(named, (), "orders.*", "", typed_by=9).topics == 3


def test_the_page_says_that_others_type_too(wizard: Wizard, demo: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    wizard.begins(demo, "balance")
    monkeypatch.setattr(topic_counts, "_places", BoundedSemaphore(1))
    monkeypatch.setattr(topic_counts, "_PLACE_S", 0.0)
    assert topic_counts._places.acquire()
    answer = wizard.sends("what/topics", {"pattern": "ord.*"})
    assert answer.status_code == 429
    assert "are being tried at this moment" in answer.content.decode()


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("", ()),
        ("orders", ("orders",)),
        ("orders,clicks", ("clicks", "orders")),
        (" orders\r\nclicks \n orders", ("clicks", "orders")),
    ],
)
def test_names_are_read_one_a_line_or_with_commas(typed: str, names: tuple[str, ...]) -> None:
    assert names_in(typed) == names


def test_the_page_asks_for_the_count_and_changes_nothing(wizard: Wizard, demo: Cluster) -> None:
    before = wizard.begins(demo, "balance").change.version
    answer = wizard.sends("what/topics", {"pattern": "ord.*", "topics": "clicks", "excluded": ""})
    assert "Chosen now: all 2 topics, 7 partitions" in text_of(answer.content.decode())
    wrong = wizard.sends("what/topics", {"pattern": "<b>["})
    assert "“&lt;b&gt;[” is no regular expression" in wrong.content.decode()
    opened = wizard.client.get(wizard.url("what/topics"))
    assert (opened.status_code, opened["Location"]) == (302, wizard.url("what"))
    assert wizard.change.version == before
