"""The page that compares brokers: in what they differ, since when, and where it is changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.monitoring.models import BrokerState, Capabilities, ConfigCatalog, ConfigDrift
from kafkadash.monitoring.offers import KafkaFeature, list_lacks
from tests.factories import NOW, watched
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db

ADDRESS = "/clusters/demo/drift/"
HOSTILE = "<b>{{ x }}</b>"


def test_brokers_that_differ__are_shown_with_what_may_be_raised_and_where_to_edit(
    operator: User, client_of: Callable[[User], Client]
) -> None:
    demo = watched("demo")
    since = NOW - timedelta(hours=3)
    old = {"release": "4.2", "apis": {"35": [1, 4], "999": [0, 0]}, "features": {"metadata.version": [7, 29]}}
    new = {"release": "4.3", "apis": {"35": [1, 5]}, "features": {"metadata.version": [7, 30]}}
    Capabilities.objects.create(
        cluster=demo,
        features={
            "metadata.version": {"finalized": 27, "supported": [7, 29]},
            "group.version": {"finalized": None, "supported": [0, 1]},
            "share.version": {"finalized": None, "supported": None},
        },
        software=[{**new, "brokers": [1, 2]}, {**old, "brokers": [3]}],
        releases={"1": "4.3", "2": "4.3", "3": "4.2"},
        mixed_since=since,
        changed_at=NOW,
    )
    drift = [["8", "static", [1, 2]], [HOSTILE, "broker", [3]]]
    keys = {"num.io.threads": [since.timestamp(), drift], "zookeeper.connect": [since.timestamp(), drift]}
    ConfigDrift.objects.create(cluster=demo, keys=keys, changed_at=NOW)
    catalog = {"num.io.threads": [3, False, False, None], "zookeeper.connect": [2, True, False, None]}
    ConfigCatalog.objects.create(cluster=demo, brokers=catalog)
    page = Page.read(client_of(operator).get(ADDRESS))
    assert page.title == "demo: 2 Kafka versions and 2 configs differ"
    assert "/clusters/demo/brokers/3/configs/#config-num.io.threads" in page.links("#configs")
    assert not [link for link in page.links("#configs") if "zookeeper" in link], "a read-only config"
    assert HOSTILE not in page.html
    assert "8 on brokers 1 and 2, static" in page.words("drift-num.io.threads")
    versions = page.words("versions")
    assert "DescribeLogDirs 1 to 5 on brokers 1 and 2 1 to 4 on broker 3" in versions
    assert "API 999 not supported on brokers 1 and 2 0 on broker 3" in versions
    assert "metadata.version 3.3-IV3 to 4.3-IV0 on brokers 1 and 2 3.3-IV3 to 4.2-IV1 on broker 3" in versions
    features = page.words("features")
    assert "group.version 0 0 to 1 1" in features
    assert "metadata.version 4.1-IV1 3.3-IV3 to 4.2-IV1 4.2-IV1" in features
    assert "share.version 0 not by all –" in features
    assert not page.find("[data-fact=untold]")
    BrokerState.objects.filter(cluster=demo, broker_id=3).update(broker_id=4, gone_at=NOW, replicas=1)
    page = Page.read(client_of(operator).get(ADDRESS))
    assert page.words("features").count("unknown") == 4, "broker 4 never told its levels"
    assert page.figures("[data-fact=untold]") == ["4"]


def test_features_that_are_not_available__are_listed_with_the_release_that_has_them(
    get_page: Callable[[str], Page],
) -> None:
    demo = watched("demo")
    apis = {"35": [1, 5], "45": [0, 1], "55": [0, 2], "60": [0, 2], "64": [0, 0], "69": [0, 1], "75": [0, 0]}
    levels = {"metadata.version": 29, "group.version": 1, "eligible.leader.replicas.version": 1}
    features = {name: {"finalized": level, "supported": [0, 30]} for name, level in levels.items()}
    alike = {"release": "4.3", "apis": apis, "features": {}, "brokers": [1, 2, 3]}
    Capabilities.objects.create(cluster=demo, apis=apis, features=features, software=[alike], changed_at=NOW)
    rows = get_page(ADDRESS).find("[data-lack]")
    assert [row.get("data-lack") for row in rows] == ["share-groups", "streams-groups", "share-lag", "cordons"]
    lacks = {lack.feature: (lack.level, lack.needed, lack.current) for lack in list_lacks(demo.capabilities)}
    assert lacks[KafkaFeature.CORDONS] == ("metadata.version", 30, 29)
    assert lacks[KafkaFeature.SHARE_GROUPS] == ("", 0, 0)
    zookeeper = {key: levels for key, levels in apis.items() if key != "55"}
    Capabilities.objects.update(apis=zookeeper, software=[{**alike, "apis": zookeeper}])
    assert KafkaFeature.QUORUM_LAG not in {lack.feature for lack in list_lacks(Capabilities.objects.get())}
    unknown = {name: {**levels, "finalized": None} for name, levels in features.items()}
    Capabilities.objects.update(apis=apis, software=[alike], features=unknown)
    assert not [lack for lack in list_lacks(Capabilities.objects.get()) if lack.level]
    assert "metadata.version unknown" in get_page(ADDRESS).words("features")


def test_brokers_alike_or_not_read__say_so(get_page: Callable[[str], Page]) -> None:
    demo = watched("demo")
    unread = get_page(ADDRESS)
    assert unread.title == "demo: brokers not compared yet"
    assert unread.find("[data-empty=unread]")
    alike = {"release": "", "apis": {}, "features": {}, "brokers": [1, 2, 3]}
    Capabilities.objects.create(cluster=demo, software=[alike], changed_at=NOW)
    ConfigDrift.objects.create(cluster=demo, changed_at=NOW)
    assert get_page(ADDRESS).title == "demo: all 3 brokers are alike"
    BrokerState.objects.filter(cluster=demo, broker_id=3).update(config=None)
    assert get_page(ADDRESS).title == "demo: 2 of 3 brokers are alike", "the third may differ"
    BrokerState.objects.filter(cluster=demo).exclude(broker_id=1).delete()
    assert get_page(ADDRESS).title == "demo: a single broker"
