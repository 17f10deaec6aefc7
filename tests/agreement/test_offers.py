"""Features that the release of the brokers lacks, and the release that has them, as the page of versions names them."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.monitoring.models import Capabilities, CollectorKind
from kafkadash.monitoring.offers import NEEDS, KafkaFeature, list_lacks
from tests.agreement.conftest import Refresher
from tests.contract import raw
from tests.kafka_releases import name_asked
from tests.pages.conftest import Page

API_VERSIONS = 18
DESCRIBE_QUORUM = 55
SINCE_4_1 = {KafkaFeature.FACTOR_GUARD, KafkaFeature.SHARE_GROUPS, KafkaFeature.SHARE_LAG, KafkaFeature.STREAMS_GROUPS}
SINCE_4_0 = {KafkaFeature.FENCED_BROKERS, KafkaFeature.UNREGISTER, KafkaFeature.CONSUMER_PROTOCOL}
LACKING = {
    "": set(),
    "kraft-4.4": set(),
    # Its brokers know eligible replicas, and new clusters of it do not keep them.
    "kraft-4.0": {KafkaFeature.CORDONS, KafkaFeature.ELIGIBLE_REPLICAS, *SINCE_4_1},
    "kraft-3.9": {KafkaFeature.CORDONS, KafkaFeature.ELIGIBLE_REPLICAS, *SINCE_4_1, *SINCE_4_0},
    "zookeeper": set(KafkaFeature) - {KafkaFeature.QUORUM_LAG},
}


def test_offers__are_those_of_the_release__and_the_page_names_what_is_missing(
    cluster: Cluster,
    refresh: Refresher,
    playground: KafkaPlayground,
    viewer: User,
    client_of: Callable[[User], Client],
) -> None:
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.VERSIONS)
    lacks = {lack.feature: lack for lack in list_lacks(Capabilities.objects.get(cluster=cluster))}
    assert lacks.keys() == LACKING[name_asked()]
    assert {feature: lack.release for feature, lack in lacks.items()} == {
        feature: NEEDS[feature].release for feature in lacks
    }
    told = raw.ask(
        playground.bootstrap.split(",")[0], API_VERSIONS, 3, client_software_name="test", client_software_version="1"
    )
    highest = {int(row.api_key): int(row.max_version) for row in told.api_keys}
    levels = {str(row.name): int(row.max_version_level) for row in told.finalized_features}
    for feature, need in NEEDS.items():
        has_apis = all(highest.get(key, -1) >= version for key, version in need.apis.items())
        has_level = need.level is None or levels.get(need.level[0], 0) >= need.level[1]
        concerned = feature is not KafkaFeature.QUORUM_LAG or DESCRIBE_QUORUM in highest
        assert (feature in lacks) is (concerned and not (has_apis and has_level))
    page = Page.read(client_of(viewer).get(f"/clusters/{cluster.slug}/drift/"))
    assert {row.get("data-lack") for row in page.find("[data-lack]")} == lacks.keys()
