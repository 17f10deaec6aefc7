"""The steps to decommission a broker as stored rows have them, and the proposals that they lead to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.broker_life import cordon, unregister
from kafkadash.broker_life.errors import BrokerLifeErrorCode
from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    CollectorKind,
    CollectorRun,
)
from kafkadash.monitoring.offers import NEEDS, KafkaFeature
from kafkadash.short_runs.errors import ShortRunErrorCode
from tests.broker_life.conftest import EMPTY, BrokerWorld
from tests.factories import ReassignmentFactory, directory
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db
FULL = 3
WHY = {"title": "", "why": "It is replaced."}


@pytest.fixture
def client(world: BrokerWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


def address(broker: int, verb: str = "decommission") -> str:
    return f"/clusters/demo/brokers/{broker}/{verb}/"


def read_steps(client: Client, broker: int = EMPTY) -> tuple[str | None, list[str | None]]:
    """Return the current step, and the states of all in order."""
    page = Page.read(client.get(address(broker)))
    current = page.first("[data-current-step]").get("data-current-step")
    return current, [step.get("data-step-state") for step in page.find("[data-step-state]")]


def read_words(client: Client, step: str) -> str:
    return Page.read(client.get(address(EMPTY))).first(f"#step-{step} .soft").text


def read_proofs(client: Client) -> list[str | None]:
    """Return what metadata, log directories and reassignments tell of the broker being empty."""
    return [proof.get("data-empty-proof") for proof in Page.read(client.get(address(EMPTY))).find("[data-empty-proof]")]


def set_cordon(broker: int, *, cordoned: bool | None, failed: bool = False) -> None:
    dirs = [directory("/data/a", cordoned=cordoned)]
    if failed:
        dirs.append({**directory("/data/b", cordoned=False), "error": "cannot be read"})
    BrokerWeights.objects.filter(broker_id=broker).update(dirs=dirs, taken_at=datetime.now(UTC))


def set_broker(broker: int = EMPTY, **values: object) -> None:
    BrokerState.objects.filter(broker_id=broker).update(**values)


def test_steps__from_the_cordon_to_the_end__are_done_one_after_the_other(client: Client) -> None:
    waits = ["next", "waits", "waits", "waits", "waits"]
    assert read_steps(client, FULL) == ("cordon", waits)
    set_cordon(FULL, cordoned=True)
    assert read_steps(client, FULL) == ("drain", ["done", "next", *waits[2:]])
    set_cordon(EMPTY, cordoned=True)
    assert read_steps(client) == ("stop", ["done", "done", "done", "next", "waits"])
    set_broker(silent_since=datetime.now(UTC))
    assert read_steps(client)[1] == ["done", "done", "done", "waits", "waits"]
    set_broker(fenced=True)
    assert read_steps(client) == ("unregister", ["done", "done", "done", "done", "next"])
    set_broker(gone_at=datetime.now(UTC))
    assert read_steps(client) == ("", ["done"] * 5)


def test_steps__kafka_cannot_cordon_or_tell_fenced_brokers__are_not_offered(client: Client) -> None:
    set_cordon(EMPTY, cordoned=None)
    set_broker(fenced=None)
    assert read_steps(client) == ("stop", ["not offered", "done", "done", "next", "not offered"])
    set_broker(gone_at=datetime.now(UTC))
    assert read_steps(client) == ("stop", ["not offered", "done", "done", "unknown", "not offered"])
    apis = {"55": [0, 2], "60": [0, 1], "64": [0, 0]}
    Capabilities.objects.create(cluster=Cluster.objects.get(), apis=apis, changed_at=datetime.now(UTC))
    release = NEEDS[KafkaFeature.UNREGISTER].release
    assert [release in read_words(client, step) for step in ("stop", "unregister")] == [True, True]
    Cluster.objects.update(mode=ClusterMode.ZOOKEEPER)
    assert release not in read_words(client, "unregister"), "nothing is left to unregister"


def test_steps__a_source_does_not_tell__are_unknown(client: Client, world: BrokerWorld) -> None:
    set_cordon(EMPTY, cordoned=True)
    BrokerWeights.objects.filter(broker_id=EMPTY).update(taken_at=datetime.now(UTC) - timedelta(hours=1))
    assert read_steps(client) == ("cordon", ["unknown", "done", "unknown", "waits", "waits"])
    set_cordon(EMPTY, cordoned=True)
    runs = CollectorRun.objects.filter(cluster=world.cluster)
    runs.filter(kind=CollectorKind.REASSIGNMENTS).update(succeeded_at=datetime.now(UTC) - timedelta(hours=1))
    assert read_steps(client) == ("drain", ["done", "unknown", "unknown", "waits", "waits"])
    set_broker(fenced=True)
    assert read_steps(client) == ("drain", ["done", "unknown", "unknown", "done", "unknown"])
    runs.update(succeeded_at=datetime.now(UTC) - timedelta(hours=1))
    assert read_steps(client)[1] == ["unknown"] * 5


def test_steps__feature_level_is_too_low__is_not_offered_while_it_was_read_lately(
    client: Client, world: BrokerWorld
) -> None:
    features = {"metadata.version": {"finalized": 29, "supported": [7, 30]}}
    apis = {"35": [1, 5], "55": [0, 2]}
    Capabilities.objects.create(cluster=world.cluster, apis=apis, features=features, changed_at=datetime.now(UTC))
    read = {"succeeded_at": datetime.now(UTC), "interval_s": 600}
    CollectorRun.objects.update_or_create(cluster=world.cluster, kind=CollectorKind.VERSIONS, defaults=read)
    set_cordon(EMPTY, cordoned=False)
    assert read_steps(client)[1][0] == "not offered"
    page = Page.read(client.get(f"/clusters/demo/brokers/{EMPTY}/"))
    assert [each.get("data-lack") for each in page.find("[data-lack]")] == [KafkaFeature.CORDONS]
    assert not [link for link in page.links("body") if "/cordon/" in link]
    CollectorRun.objects.filter(kind=CollectorKind.VERSIONS).update(succeeded_at=datetime.now(UTC) - timedelta(hours=1))
    assert read_steps(client)[1][0] == "unknown"


@pytest.mark.parametrize("hidden", [1, None])
def test_steps__topics_may_be_hidden__are_unknown_but_do_not_end_there(client: Client, hidden: int | None) -> None:
    set_cordon(EMPTY, cordoned=True)
    ClusterState.objects.update(hidden_topics=hidden)
    assert read_steps(client) == ("drain", ["done", "unknown", "unknown", "waits", "waits"])
    set_broker(fenced=True)
    assert read_steps(client) == ("drain", ["done", "unknown", "unknown", "done", "next"])
    assert read_proofs(client) == ["unknown", "yes", "yes"]


def test_steps__a_log_directory_is_offline__counts_as_cordoned_and_its_replicas_are_unknown(client: Client) -> None:
    set_cordon(EMPTY, cordoned=True, failed=True)
    assert read_steps(client) == ("empty", ["done", "done", "unknown", "waits", "waits"])
    assert read_proofs(client) == ["yes", "unknown", "yes"]


def test_steps__a_reassignment_adds_the_broker__it_is_not_empty(client: Client) -> None:
    set_cordon(EMPTY, cordoned=True)
    ReassignmentFactory.create(cluster=Cluster.objects.get(), adding=[EMPTY])
    assert read_steps(client)[1] == ["done", "next", "waits", "waits", "waits"]


def test_step__has_an_open_change__is_linked_instead_of_a_new_proposal(client: Client, world: BrokerWorld) -> None:
    assert address(EMPTY, "cordon") in client.get(address(EMPTY)).text
    change = world.cordon()
    page = Page.read(client.get(address(EMPTY)))
    assert page.first("#step-cordon a").get("href") == f"/changes/{change.pk}/"
    world.until(change, "done")
    assert address(EMPTY, "cordon") in client.get(address(EMPTY)).text


def test_cordon_page__submits_one_directory_and_all__and_warns_of_too_few_brokers(client: Client) -> None:
    two = [directory("/data/a", cordoned=False), directory("/data/b", cordoned=False)]
    BrokerWeights.objects.filter(broker_id=EMPTY).update(dirs=two)
    url = f"{address(EMPTY, 'cordon')}?dir=/data/b"
    sent = client.post(url, WHY)
    change = ChangeRequest.objects.get()
    assert (sent["Location"], change.kind) == (f"/changes/{change.pk}/", cordon.KIND)
    assert change.input == {"values": {"6": "/data/b"}}
    assert BrokerLifeErrorCode.FEW_LEFT not in client.get(address(EMPTY, "cordon")).text
    BrokerState.objects.filter(broker_id__in=[1, 2, 3]).update(fenced=True)
    assert BrokerLifeErrorCode.FEW_LEFT in client.get(address(EMPTY, "cordon")).text


def test_uncordon_page__leaves_the_other_directories_cordoned(client: Client) -> None:
    two = [directory("/data/a", cordoned=True), directory("/data/b", cordoned=True)]
    BrokerWeights.objects.filter(broker_id=EMPTY).update(dirs=two)
    set_broker(config={cordon.KEY: ["*", "broker"]})
    client.post(f"{address(EMPTY, 'uncordon')}?dir=/data/a", WHY)
    client.post(address(EMPTY, "uncordon"), WHY)
    inputs = ChangeRequest.objects.order_by("pk").values_list("input", flat=True)
    assert list(inputs) == [{"values": {"6": "/data/b"}}, {"values": {"6": None}}]


@pytest.mark.parametrize(
    ("broker", "verb", "query"),
    [
        (EMPTY, "cordon", "?dir=/data/z"),
        (EMPTY, "uncordon", "?dir=%00/data/z"),
        (77, "cordon", ""),
        (77, "unregister", ""),
    ],
)
def test_page__broker_or_directory_is_unknown__is_not_found(client: Client, broker: int, verb: str, query: str) -> None:
    assert client.get(address(broker, verb) + query).status_code == 404


def test_unregister_page__asks_for_the_id(client: Client, world: BrokerWorld) -> None:
    page = Page.read(client.get(address(EMPTY, "unregister")))
    assert page.tells(BrokerReasonCode.ALIVE, "#left-out")
    world.stop()
    page = Page.read(client.get(address(EMPTY, "unregister")))
    assert page.figures("[for=confirm]") == ["6"]
    refused = client.post(address(EMPTY, "unregister"), {**WHY, "confirm": "5"})
    assert (refused.status_code, ChangeRequest.objects.count()) == (400, 0)
    assert ShortRunErrorCode.NOT_CONFIRMED in refused.text
    client.post(address(EMPTY, "unregister"), {**WHY, "confirm": "6"})
    change = ChangeRequest.objects.get()
    assert (change.kind, change.state) == (unregister.KIND, "proposed")


def test_broker_page__links_the_steps_and_the_directories(client: Client) -> None:
    html = client.get(f"/clusters/demo/brokers/{EMPTY}/").text
    assert f'href="{address(EMPTY)}"' in html
    assert f'href="{address(EMPTY, "cordon")}?dir=%2Fdata%2Fa"' in html
