"""Replicas that catch up, on the page of their broker, in the list of brokers and at the partitions of their topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.catch_up.packing import pack_followers
from kafkadash.monitoring.catch_up.rules import FollowerSample, sum_followers
from kafkadash.monitoring.collectors import to_utc
from kafkadash.monitoring.models import BrokerCatchUp, TopicState
from kafkadash.monitoring.reassignments.progress import RateMeter
from tests.factories import NOW, BrokerFactory, TopicFactory
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
LIST = "/clusters/demo/brokers/"
BROKER = f"{LIST}3/"
AT = NOW.timestamp() - 3


def meter(rate: float, value: int) -> RateMeter:
    """After a quarter of a minute at this rate."""
    return RateMeter(AT, value, AT - 15, samples=3, weighted=rate * 0.5, weight=0.5)


def follower(topic: TopicState, lag: int, rate: float, written: float = 0.0) -> FollowerSample:
    figures = (lag, 100 * lag, 100 * rate, AT, AT, meter(rate, 0), meter(written, lag))
    return FollowerSample(topic.name, topic.topic_id, 0, 1, *figures)


def store(cluster: Cluster, *samples: FollowerSample, skipped: int = 0, age: timedelta = timedelta(0)) -> None:
    figures = sum_followers(samples, skipped)
    BrokerCatchUp.objects.update_or_create(
        cluster=cluster,
        broker_id=3,
        defaults={
            "replicas": len(samples) + skipped,
            "counts": dict(figures.counts),
            "records": figures.records,
            "bytes_behind": figures.bytes_behind,
            "unsized": figures.unsized,
            "rate": figures.rate,
            "rate_bytes": figures.rate_bytes,
            "seconds_left": figures.seconds_left,
            "sampled_at": to_utc(figures.taken_at) - age if figures.taken_at else None,
            "taken_at": to_utc(AT) - age,
            "data": pack_followers(samples),
        },
    )


@pytest.fixture
def topic(demo: Cluster) -> TopicState:
    """Broker 3 is outside the ISR of its partition 0."""
    return TopicFactory.create(cluster=demo, name="ledger", under_replicated=1, partitions=[[0, 1, 5, [1, 3], [1], []]])


def test_replica_gets_closer__has_records_bytes_rate_and_time_left(
    get_page: GetPage, demo: Cluster, topic: TopicState
) -> None:
    store(demo, follower(topic, 90_000, 1_100, 100))
    panel = get_page(BROKER).part("broker-catch-up-demo")
    for words in ("90,000", "9.0 MB", "0.1 MB/s", "1,100.0 records/s", "1 min 30 s", "slowest replica", "ledger-0"):
        assert words in panel
    assert "1 replica behind, 1 min 30 s left" in get_page(LIST).words("broker-3")
    assert "broker 3: 90,000 records behind, 1 min 30 s left" in get_page("/clusters/demo/topics/ledger/").words(
        "partition-0"
    )


def test_no_rate_that_gets_there__says_why_and_makes_up_no_time(
    get_page: GetPage, demo: Cluster, topic: TopicState
) -> None:
    unread = FollowerSample("clicks", "other", 1, 2, error="<b>Broker 3 did not answer</b>")
    store(demo, follower(topic, 90_000, 100, 200), unread, skipped=2)
    page = get_page(BROKER)
    panel = page.part("broker-catch-up-demo")
    assert 'data-left="unknown"' in panel
    assert "1 replica falls behind, 1 replica was not read and 2 replicas are beyond the limit" in panel
    assert "&lt;b&gt;Broker 3 did not answer" in panel
    assert "without replicas not read" in panel
    assert "2 more" in panel
    assert "4 replicas behind, time left unknown" in get_page(LIST).words("broker-3")
    assert "falls behind" in get_page("/clusters/demo/topics/ledger/").words("partition-0")


def test_old_samples__are_stale_and_have_no_time_left(get_page: GetPage, demo: Cluster, topic: TopicState) -> None:
    store(demo, follower(topic, 90_000, 1_100, 100), age=timedelta(minutes=12))
    panel = get_page(BROKER).part("broker-catch-up-demo")
    assert "data-stale" in panel
    assert "data is old" in panel
    assert "min 30 s" not in panel
    assert "1 replica behind when last read" in get_page(LIST).words("broker-3")
    assert "broker 3: lag unknown" in get_page("/clusters/demo/topics/ledger/").words("partition-0")


def test_before_the_first_sample__nothing_is_said_to_be_in_sync(
    get_page: GetPage, demo: Cluster, topic: TopicState
) -> None:
    assert "Not measured yet" in get_page(BROKER).part("broker-catch-up-demo")
    TopicState.objects.filter(pk=topic.pk).update(under_replicated=0, partitions=[[0, 1, 5, [1, 3], [1, 3], []]])
    page = get_page(BROKER)
    assert "broker-catch-up-demo" not in page.html
    assert "data-catch-up" not in get_page(LIST).html


def test_all_records_are_there__only_the_isr_is_waited_for(get_page: GetPage, demo: Cluster, topic: TopicState) -> None:
    BrokerFactory.create(cluster=demo, broker_id=9)
    store(demo, follower(topic, 0, 50))
    assert "1 replica not in ISR yet" in get_page(LIST).words("broker-3")
    assert "all records, not in ISR yet" in get_page("/clusters/demo/topics/ledger/").words("partition-0")


def test_command__prints_the_figures_and_null_where_they_are_unknown(
    demo: Cluster, topic: TopicState, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("brokers", "catch-up", cluster="demo")
    assert "No replicas are behind." in capsys.readouterr().out
    store(demo, follower(topic, 90_000, 1_100, 100), skipped=1)
    call_command("brokers", "catch-up", cluster="demo", broker=3)
    out = capsys.readouterr().out
    assert "3       2         1        90000    9000000  1100       -            1 replica is beyond the limit" in out
    call_command("brokers", "catch-up", cluster="demo", json=True)
    [broker] = json.loads(capsys.readouterr().out)["brokers"]
    assert (broker["records_behind"], broker["seconds_left"]) == (90_000, None)
    assert broker["states"] == {"closing": 1, "skipped": 1}
