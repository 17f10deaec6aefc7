"""Cordons of log directories, from the plan to the rollback."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.broker_life.cordon import KEY, KIND, plan_cordon
from kafkadash.broker_life.errors import BrokerLifeErrorCode
from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.risk import RiskCode, RiskLevel, level_of
from kafkadash.core.messages import as_message
from kafkadash.kafka.api import ConfigResource, ItemError
from kafkadash.monitoring.models import BrokerState, BrokerWeights, Capabilities, CollectorKind, CollectorRun
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.rollback import propose_rollback
from tests.broker_life.conftest import EMPTY, BrokerWorld
from tests.factories import directory
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db
BROKER = ConfigResource.broker(EMPTY)


def left_out(world: BrokerWorld, value: str | None = "*") -> list[str]:
    planned = plan_cordon(world.cluster, {"values": {str(EMPTY): value}})
    assert not planned.items
    return [message.params["why"].code for message in planned.left_out]


def store_cordon(value: str, source: str = "broker") -> None:
    BrokerState.objects.filter(broker_id=EMPTY).update(config={KEY: [value, source]})


@pytest.mark.parametrize("known", [True, False], ids=["read since", "not read since"])
def test_run__cordons__and_its_rollback_uncordons(world: BrokerWorld, *, known: bool) -> None:
    change = world.until(world.cordon(), "done")
    assert (world.config(), world.run(change).outcome) == ("*", "clean")
    if known:
        store_cordon("*")
    draft = propose_rollback(change, world.operator)
    assert draft.input == {"values": {str(EMPTY): None}, "found": {str(EMPTY): "*"}}
    change = world.until(world.queue(draft.input), "done")
    assert (world.config(), world.states(change)) == (None, {f"broker {EMPTY}": "done"})


@pytest.mark.parametrize("inherited", ["", "/data-1"])
def test_run__unsets_the_value__the_one_of_the_file_holds(world: BrokerWorld, inherited: str) -> None:
    world.kafka.configs[BROKER] = {KEY: "*"}
    world.kafka.file_cordons[EMPTY] = inherited
    store_cordon("*")
    change = world.until(world.cordon(value=None), "done", 60)
    assert (world.states(change), world.run(change).outcome) == ({f"broker {EMPTY}": "done"}, "clean")


@pytest.mark.parametrize("value", ["*", "/data-1,/data-2"])
def test_run__a_log_directory_is_offline__the_others_are_cordoned(world: BrokerWorld, value: str) -> None:
    world.kafka.failed_dirs[EMPTY] = "/data-2"
    change = world.until(world.cordon(value=value), "done", 60)
    assert (world.states(change), world.run(change).outcome) == ({f"broker {EMPTY}": "done"}, "clean")


def test_submission__too_few_brokers_are_left__is_riskier(world: BrokerWorld) -> None:
    assert level_of(world.cordon().risk) is RiskLevel.LOW
    BrokerState.objects.filter(broker_id__in=[1, 2, 3]).update(fenced=True)
    change = world.cordon()
    assert [why["code"] for _, why in change.risk_reasons] == [RiskCode.FEW_BROKERS_LEFT]
    assert level_of(change.risk) is RiskLevel.MEDIUM


def test_rollback__another_value_was_set_since__leaves_the_broker_out(world: BrokerWorld) -> None:
    change = world.until(world.cordon(), "done")
    store_cordon("/data-1")
    with raises_code(BrokerLifeErrorCode.DOES_NOT_FIT, ChangeRefused):
        propose_rollback(change, world.operator)


def test_plan__value_is_there_already__has_nothing_to_do(world: BrokerWorld) -> None:
    store_cordon("*")
    assert left_out(world) == []


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        ({"fenced": True}, BrokerReasonCode.NOT_RUNNING),
        ({"config": None}, BrokerReasonCode.UNREAD),
        ({"broker_id": 77}, BrokerReasonCode.NOT_REGISTERED),
    ],
)
def test_plan__broker_cannot_be_changed__says_why(
    world: BrokerWorld, spoil: dict[str, object], code: BrokerReasonCode
) -> None:
    BrokerState.objects.filter(broker_id=EMPTY).update(**spoil)
    assert left_out(world) == [code]


def test_plan__kafka_is_older_than_cordons__says_so(world: BrokerWorld) -> None:
    BrokerWeights.objects.filter(broker_id=EMPTY).update(dirs=[directory("/data/a", cordoned=None)])
    assert left_out(world) == [BrokerReasonCode.NO_CORDONS]


@pytest.fixture
def capable(world: BrokerWorld) -> Capabilities:
    """Versions that were just read: the level is too low for cordons."""
    fresh = {"succeeded_at": world.clock, "interval_s": 600}
    CollectorRun.objects.update_or_create(cluster=world.cluster, kind=CollectorKind.VERSIONS, defaults=fresh)
    features = {"metadata.version": {"finalized": 29, "supported": [7, 30]}}
    apis = {"35": [1, 5], "55": [0, 2]}
    return Capabilities.objects.create(cluster=world.cluster, apis=apis, features=features, changed_at=world.clock)


def fits(world: BrokerWorld, value: str | None = "*") -> bool:
    return bool(plan_cordon(world.cluster, {"values": {str(EMPTY): value}}).items)


def test_plan__feature_level_is_older_than_cordons__names_it_until_it_is_raised(
    world: BrokerWorld, capable: Capabilities
) -> None:
    assert left_out(world) == [BrokerReasonCode.LEVEL_TOO_LOW]
    store_cordon("*")
    assert fits(world, None), "Kafka takes an uncordon on every level"
    store_cordon("")
    capable.features["metadata.version"]["finalized"] = 30
    capable.save()
    assert fits(world)
    capable.software = [{"apis": capable.apis, "brokers": [1]}, {"apis": {"35": [1, 4], "55": [0, 2]}, "brokers": [2]}]
    capable.save()
    assert left_out(world) == [BrokerReasonCode.NO_CORDONS], "also while broker 2 does not answer"


def test_plan__level_in_force_is_not_known__is_left_to_kafka(world: BrokerWorld, capable: Capabilities) -> None:
    CollectorRun.objects.update(succeeded_at=world.clock - timedelta(hours=2))
    assert fits(world), "read long ago"
    CollectorRun.objects.update(succeeded_at=world.clock)
    assert left_out(world) == [BrokerReasonCode.LEVEL_TOO_LOW]
    capable.features["metadata.version"]["finalized"] = None
    capable.save()
    assert fits(world), "no broker told a level"


def test_plan__cordon_comes_from_elsewhere__cannot_be_taken_away(world: BrokerWorld) -> None:
    store_cordon("/data/a", "static")
    assert left_out(world, None) == [BrokerReasonCode.CORDON_INHERITED]


def test_queued__somebody_cordoned_a_directory_meanwhile__turns_stale_and_keeps_it(world: BrokerWorld) -> None:
    change = world.cordon()
    world.kafka.configs[BROKER] = {KEY: "/data-1"}
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == BrokerReasonCode.CORDON_CHANGED
    assert world.config() == "/data-1"


def test_queued__kafka_would_refuse_the_value__turns_stale_and_sends_nothing(world: BrokerWorld) -> None:
    change = world.cordon()
    world.kafka.refuse_configs = {KEY: ItemError(as_message("metadata.version is too low"), 40, "INVALID_CONFIG")}
    world.until(change, "stale")
    assert not world.calls("alter_configs")


def stop_it(world: BrokerWorld) -> None:
    world.kafka.model.brokers[EMPTY] = False


def take_cordons_away(world: BrokerWorld) -> None:
    world.kafka.cordons = False


@pytest.mark.parametrize(
    ("spoil", "code"),
    [(stop_it, BrokerReasonCode.NOT_RUNNING), (take_cordons_away, BrokerReasonCode.NO_CORDONS)],
)
def test_queued__broker_does_not_fit_any_more__turns_stale(
    world: BrokerWorld, spoil: Callable[[BrokerWorld], None], code: BrokerReasonCode
) -> None:
    change = world.cordon()
    spoil(world)
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert not world.calls("alter_configs")


def test_draft__stored_value_is_another__does_not_fit(world: BrokerWorld) -> None:
    world.kind = KIND
    draft = world.draft({"values": {str(EMPTY): "*"}})
    store_cordon("/data/a")
    check = check_items(draft, world.clock).checks[0]
    assert [problem.params["why"].code for problem in check.problems] == [BrokerReasonCode.CORDON_CHANGED]


def test_verifying__somebody_cordoned_again__is_told(world: BrokerWorld) -> None:
    world.kafka.configs[BROKER] = {KEY: "*"}
    store_cordon("*")
    change = world.step(world.cordon(value=None))

    def cordon_again(call: str) -> None:
        if call == "alter_configs":
            world.kafka.configs[BROKER] = {KEY: "/data-1"}

    world.kafka.after = cordon_again
    change = world.until(change, "done", 60)
    assert world.reasons(change) == {f"broker {EMPTY}": BrokerReasonCode.CORDON_CHANGED}
    assert world.run(change).outcome == "exceptions"
