"""Unclean elections: what is planned and shown, the two approvals, and the run to its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.risk import RiskLevel, level_of
from kafkadash.changes.state_machine import WorkflowErrorCode
from kafkadash.clusters.models import ClusterRole, Role
from kafkadash.core.messages import as_message
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.elections.reasons import ElectionReasonCode
from kafkadash.elections.unclean import LeaderlessPartition, count_lost, plan_unclean
from kafkadash.kafka.api import EligibleReplicas, ItemError, TopicPartition
from kafkadash.monitoring.models import BrokerState, Capabilities, EligibleReplicaState, TopicState
from kafkadash.monitoring.offers import KafkaFeature
from kafkadash.short_runs import fail_points
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import items_of
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.reasons import ItemReasonCode
from tests.elections.conftest import UncleanWorld
from tests.elections.test_election_runs import killed_at
from tests.pages.conftest import Page, figures_of
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db
NEW = "/clusters/demo/elections/unclean/?topic=orders"


@pytest.mark.parametrize(
    ("isr", "live", "eligible", "last_known", "clean", "choice"),
    [
        ((3,), (1, 2), (), (), None, 1),
        ((3,), (1, 2), None, None, None, 1),
        ((), (1, 2), None, None, None, None),
        ((), (1, 2), (3,), (3,), None, 1),
        ((), (1, 2), (), (2,), None, 2),
        ((), (1, 2), (), (3,), None, None),
        ((), (1, 2), (), (2, 3), None, 1),
        ((3,), (1, 3), (), (), 3, 1),
        ((), (1, 2), (2,), (), 2, 1),
        ((3,), (), (), (), None, None),
    ],
)
def test_choice__is_that_of_kafkas_rules_where_it_is_certain(
    isr: tuple[int, ...],
    live: tuple[int, ...],
    eligible: tuple[int, ...] | None,
    last_known: tuple[int, ...] | None,
    clean: int | None,
    choice: int | None,
) -> None:
    found = LeaderlessPartition(None, 6, isr, live, eligible, last_known)
    assert (found.clean, found.choice) == (clean, choice)


@pytest.mark.parametrize(
    ("leader_end", "end", "lost"),
    [([1000, 0.0], 900, 100), ([1000, 0.0], 1200, 0), (None, 900, None), ([1000, 0.0], None, None)],
)
def test_lost__is_unknown_without_both_ends(leader_end: list[float] | None, end: int | None, lost: int | None) -> None:
    assert count_lost(leader_end, end) == lost


# ---- plan


def test_plan__holds_what_approvers_see(orphaned: UncleanWorld) -> None:
    [item] = plan_unclean(orphaned.cluster, {}).items
    assert item.subject == "orders-0"
    content = item.content
    assert (content["isr"], content["elr"], content["last_known"], content["choice"]) == ([3], [], [], 1)
    assert content["leader_end"][0] == 1000
    assert [row[:2] for row in content["ends"]] == [[1, 900], [2, 1000]], "broker 3 is down"


def test_plan__elr_is_older_than_the_metadata__is_unknown(orphaned: UncleanWorld) -> None:
    orphaned.orphan("orders", 0, isr=[], down=[3])
    orphaned.know([], [2], {1: 900})
    [item] = plan_unclean(orphaned.cluster, {}).items
    assert item.content["elr_at"] == round(orphaned.clock.timestamp(), 3)
    assert (item.content["elr"], item.content["choice"]) == ([], 2)
    EligibleReplicaState.objects.update(taken_at=orphaned.clock - timedelta(minutes=2))
    content = plan_unclean(orphaned.cluster, {}).items[0].content
    assert [content[key] for key in ("elr", "last_known", "elr_at", "choice")] == [None] * 4
    assert content["ends"][0][:2] == [1, 900], "each end has its own age"


def test_plan__log_ends_are_of_a_topic_that_was_deleted__are_unknown(orphaned: UncleanWorld) -> None:
    TopicState.objects.filter(name="orders").update(topic_id="another-id")
    [item] = plan_unclean(orphaned.cluster, {}).items
    assert item.content["leader_end"] is None
    assert [row[1] for row in item.content["ends"]] == [None, None]


@pytest.mark.parametrize(
    ("isr", "down", "code"),
    [([2, 3], [3], ElectionErrorCode.CLEAN_LEFT_OUT), ([3], [1, 2, 3], ElectionErrorCode.NO_REPLICA_LEFT_OUT)],
)
def test_plan__leaves_out_what_an_unclean_election_is_not_for(
    orphaned: UncleanWorld, isr: list[int], down: list[int], code: ElectionErrorCode
) -> None:
    orphaned.orphan("orders", 0, isr=isr, down=down)
    planned = plan_unclean(orphaned.cluster, {})
    assert (planned.items, [message.code for message in planned.left_out]) == ([], [code])


# ---- approvals


def test_approvals__two_people_beside_the_author__whatever_the_policy_says(orphaned: UncleanWorld) -> None:
    Policy.objects.create(cluster=orphaned.cluster, approvals_high=1, self_approval=True, break_glass=True)
    change = orphaned.submit()
    assert (change.approvals_needed, level_of(change.risk)) == (2, RiskLevel.HIGH)
    ann, ben = orphaned.approvers
    for role in (Role.APPROVER, Role.ADMIN):
        ClusterRole.objects.create(user=orphaned.operator, role=role)
    with raises_code(WorkflowErrorCode.OWN_HANDS, ChangeRefused):
        services.approve(change, orphaned.operator, change.digest)
    with raises_code(WorkflowErrorCode.GLASS_NEVER, ChangeRefused):
        services.break_glass(change, orphaned.operator, change.digest, "It burns.")
    change = services.approve(change, ann, change.digest)
    assert change.state == "proposed"
    with raises_code(WorkflowErrorCode.APPROVED_ALREADY, ChangeRefused):
        services.approve(change, ann, change.digest)
    with pytest.raises(ChangeRefused):
        services.start(change, orphaned.operator, "Now.")
    change = services.approve(change, ben, change.digest)
    assert change.state == "approved"


@pytest.mark.parametrize("columns", [{"approvals_needed": 1}, {"broke_glass_name": "root"}])
def test_approvals__database_refuses_fewer(orphaned: UncleanWorld, columns: dict[str, object]) -> None:
    change = orphaned.submit()
    with pytest.raises(IntegrityError), transaction.atomic():
        ChangeRequest.objects.filter(pk=change.pk).update(**columns)


# ---- run


def test_run__elects_and_verifies(orphaned: UncleanWorld) -> None:
    change = orphaned.until(orphaned.queue(), "done")
    assert orphaned.states(change) == {"orders-0": "done"}
    assert (orphaned.run(change).outcome, orphaned.uncleanly, orphaned.elections) == ("clean", 1, [])
    assert orphaned.kafka.model.partitions["orders", 0].leader == 1


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost__a_reading_tells(orphaned: UncleanWorld, arrives: bool) -> None:
    change = orphaned.step(orphaned.queue())
    orphaned.kafka.lose = arrives
    orphaned.step(change)
    assert orphaned.states(change) == {"orders-0": "lost"}
    orphaned.kafka.lose = None
    change = orphaned.until(change, "done")
    assert orphaned.states(change) == {"orders-0": "done"}
    assert orphaned.uncleanly == (1 if arrives else 2)


@pytest.mark.parametrize("point", [fail_points.BEFORE_CALL, fail_points.AFTER_CALL, fail_points.AFTER_ROW])
def test_run__worker_killed_at_a_point__next_one_settles_what_was_sent(
    orphaned: UncleanWorld, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    change = orphaned.step(orphaned.queue())
    with killed_at(monkeypatch, point):
        orphaned.step(change)
    change = orphaned.until(change, "done")
    assert (orphaned.states(change), orphaned.uncleanly) == ({"orders-0": "done"}, 1)


def test_run__partition_is_led_again_by_its_isr__is_not_needed(orphaned: UncleanWorld) -> None:
    change = orphaned.queue()
    orphaned.kafka.model.partitions["orders", 0].leader = 3
    orphaned.kafka.model.brokers[3] = True
    change = orphaned.until(change, "done")
    assert orphaned.states(change) == {"orders-0": "unchanged"}
    assert orphaned.reasons(change) == {"orders-0": ElectionReasonCode.LED_AGAIN}
    assert orphaned.uncleanly == 0


def test_run__answer_is_lost_and_the_leader_once_more__is_not_sent_again(orphaned: UncleanWorld) -> None:
    change = orphaned.step(orphaned.queue())
    orphaned.kafka.lose = True
    orphaned.step(change)
    orphaned.kafka.lose = None
    own = orphaned.kafka.model.partitions["orders", 0]
    own.leader, own.leader_epoch, own.isr = None, own.leader_epoch + 1, {3}
    change = orphaned.until(change, "done")
    assert orphaned.states(change) == {"orders-0": "skipped"}
    assert (orphaned.reasons(change), orphaned.uncleanly) == ({"orders-0": ElectionReasonCode.LED_SINCE}, 1)


def test_run__isr_leads_again_as_the_request_arrives__is_not_called_done(orphaned: UncleanWorld) -> None:
    def return_before(call: str) -> None:
        if call == "elect_leaders":
            orphaned.kafka.model.brokers[3] = True
            orphaned.kafka.model.partitions["orders", 0].leader = 3

    change = orphaned.step(orphaned.queue())
    orphaned.kafka.before = return_before
    change = orphaned.until(change, "done")
    assert (orphaned.states(change), orphaned.uncleanly) == ({"orders-0": "unchanged"}, 1)
    assert orphaned.reasons(change) == {"orders-0": ElectionReasonCode.LED_AGAIN}


def test_run__choice_was_not_certain__any_live_replica_leads(orphaned: UncleanWorld) -> None:
    orphaned.orphan("orders", 0, isr=[], down=[3])
    orphaned.know(None, None, {})
    change = orphaned.queue()
    assert items_of(change)[0].content["choice"] is None
    orphaned.know([], [2], {})
    change = orphaned.until(change, "done")
    assert (orphaned.states(change), orphaned.run(change).outcome) == ({"orders-0": "done"}, "clean")


def test_run__one_partition_fails__ends_with_exceptions(orphaned: UncleanWorld) -> None:
    orphaned.orphan("orders", 4, isr=[3], down=[3])
    orphaned.kafka.refuse[TopicPartition("orders", 4)] = ItemError(as_message("none live"), 83, "NONE")
    change = orphaned.until(orphaned.queue(), "done")
    assert orphaned.states(change) == {"orders-0": "done", "orders-4": "refused"}
    assert orphaned.reasons(change)["orders-4"] == ItemReasonCode.REFUSED_BY_KAFKA
    assert orphaned.run(change).outcome == "exceptions"


def recreate(world: UncleanWorld) -> None:
    world.kafka.model.topics["orders"] = "another-id"


def return_of_the_leader(world: UncleanWorld) -> None:
    world.kafka.model.brokers[3] = True


def eligible_is_live(world: UncleanWorld) -> None:
    world.kafka.eligible = {TopicPartition("orders", 0): EligibleReplicas((2,), ())}


def loss_of_the_choice(world: UncleanWorld) -> None:
    world.kafka.model.brokers[1] = False


def loss_of_all(world: UncleanWorld) -> None:
    world.kafka.model.brokers.update({1: False, 2: False})


def second_loss(world: UncleanWorld) -> None:
    world.kafka.model.partitions["orders", 0].leader_epoch += 2


def led_by_another(world: UncleanWorld) -> None:
    world.kafka.model.partitions["orders", 0].leader = 2


def deletion(world: UncleanWorld) -> None:
    world.kafka.model.delete("orders")


SPOILS = [
    (recreate, ElectionReasonCode.TOPIC_RECREATED),
    (deletion, ElectionReasonCode.PARTITION_GONE),
    (return_of_the_leader, ElectionReasonCode.CLEAN_POSSIBLE),
    (eligible_is_live, ElectionReasonCode.CLEAN_POSSIBLE),
    (loss_of_the_choice, ElectionReasonCode.CHOICE_CHANGED),
    (loss_of_all, ElectionReasonCode.NO_REPLICA_LIVE),
    (second_loss, ElectionReasonCode.LED_SINCE),
    (led_by_another, ElectionReasonCode.LED_BY_ANOTHER),
]


@pytest.mark.parametrize(("spoil", "code"), SPOILS)
def test_queued__partition_is_another_than_approved__turns_stale(
    orphaned: UncleanWorld, spoil: Callable[[UncleanWorld], None], code: ElectionReasonCode
) -> None:
    change = orphaned.queue()
    spoil(orphaned)
    change = orphaned.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert orphaned.uncleanly == 0


@pytest.mark.parametrize(("spoil", "code"), SPOILS)
def test_running__partition_is_another_than_approved__is_skipped(
    orphaned: UncleanWorld, spoil: Callable[[UncleanWorld], None], code: ElectionReasonCode
) -> None:
    change = orphaned.step(orphaned.queue())
    spoil(orphaned)
    change = orphaned.until(change, "done")
    assert (orphaned.states(change), orphaned.reasons(change)) == ({"orders-0": "skipped"}, {"orders-0": code})
    assert orphaned.uncleanly == 0


def test_draft__broker_of_the_isr_is_back__does_not_fit(orphaned: UncleanWorld) -> None:
    draft = orphaned.draft()
    BrokerState.objects.filter(broker_id=3).update(fenced=False)
    row = TopicState.objects.get(name="orders")
    row.partitions[0][5] = []
    row.save()
    check = check_items(draft, orphaned.clock).checks[0]
    assert [problem.params["why"].code for problem in check.problems] == [ElectionReasonCode.CLEAN_POSSIBLE]


# ---- page


@pytest.fixture
def client(orphaned: UncleanWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(orphaned.operator)


def test_page__shows_the_loss_of_each_candidate_and_asks_for_the_name(client: Client, orphaned: UncleanWorld) -> None:
    orphaned.know([3], [3], {1: 900})
    page = Page.read(client.get(NEW))
    chosen, other = page.texts("#items .item-notes li")
    assert figures_of(chosen)[:3] == ["1", "100", "900"]
    assert figures_of(other) == ["2"]
    assert "orders-0" in page.first("[for=confirm]").text
    sent = {"title": "", "why": "The disks are lost."}
    response = client.post(NEW, {**sent, "confirm": "orders"})
    assert Page.read(response).first("#confirm-error .error-code").text == ShortRunErrorCode.NOT_CONFIRMED
    response = client.post(NEW, {**sent, "confirm": "orders-0"})
    change = ChangeRequest.objects.get()
    assert (response["Location"], change.state, change.kind) == (f"/changes/{change.pk}/", "proposed", orphaned.kind)
    [item] = items_of(change)
    assert (change.approvals_needed, item.content["last_known"]) == (2, [3])


def test_page__of_a_topic_whose_partitions_are_led__has_no_form(client: Client) -> None:
    page = Page.read(client.get("/clusters/demo/elections/unclean/?topic=clicks"))
    assert not page.has("proposal")
    assert client.get("/clusters/demo/elections/unclean/?topic=none").status_code == 404


def test_topic_page__of_an_offline_partition__shows_the_elr_and_leads_here(
    client: Client, orphaned: UncleanWorld
) -> None:
    orphaned.know([3], [2, 3], {})
    page = Page.read(client.get("/clusters/demo/topics/orders/"))
    assert page.texts("#partition-0 small .mono") == ["3", "2, 3"]
    assert not page.find("#partition-1 small .mono")
    assert page.has("eligible-age")
    assert not page.find("[data-lack]"), "versions are not known"
    features = {"metadata.version": {"finalized": 25, "supported": [7, 25]}}
    apis = {"55": [0, 2], "75": [0, 0]}
    Capabilities.objects.create(cluster=orphaned.cluster, apis=apis, features=features, changed_at=orphaned.clock)
    page = Page.read(client.get("/clusters/demo/topics/orders/"))
    assert [each.get("data-lack") for each in page.find("#eligible-age [data-lack]")] == [
        KafkaFeature.ELIGIBLE_REPLICAS
    ]
    assert NEW in page.links(".page-actions")
