"""What a cluster asks of its changes: defaults without a row, sentences for what makes no sense, an audit event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import Policy, PolicyLoosening
from kafkadash.changes.policy import (
    BadPolicy,
    apply_due_loosenings,
    change_policy,
    confirm_loosening,
    drop_loosening,
    policy_of,
    rules_of,
    waiting_loosening,
)
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import give_role
from kafkadash.domain.messages import message_text
from kafkadash.domain.workflow import Rules

MakeUser = Callable[..., User]

STRICT = Rules(1, 1, 2, 24, self_approval=False, break_glass=False)
LOOSER: dict[str, int | bool] = {"approvals_high": 1, "break_glass": True}


@pytest.fixture
def other_admin(make_user: MakeUser) -> User:
    return make_user("ada", Role.ADMIN)


def rules(cluster: Cluster) -> Rules:
    return rules_of(policy_of(cluster))


def seen(cluster: Cluster) -> str:
    waiting = waiting_loosening(cluster)
    assert waiting is not None
    return waiting.asked_at.isoformat()


def let_it_count(cluster: Cluster) -> None:
    PolicyLoosening.objects.filter(cluster=cluster).update(counts_from=Now())


def test_a_cluster_without_a_row_has_the_defaults(
    cluster: Cluster, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert rules(cluster) == STRICT


def test_a_stricter_policy_holds_at_once_and_the_audit_says_before_and_after(cluster: Cluster, admin: User) -> None:
    change_policy(cluster, admin, {"approvals_high": 3, "valid_hours": 12}, reason="four eyes twice")
    assert rules(cluster) == replace(STRICT, approvals_high=3, valid_hours=12)
    event = AuditEvent.objects.get(action="policy.changed")
    assert (event.actor_name, event.cluster, event.reason) == ("adam", "orders-eu", "four eyes twice")
    assert event.before == {"approvals_high": 2, "valid_hours": 24}
    assert event.after == {"approvals_high": 3, "valid_hours": 12}


class TestLoosening:
    def test_needs_a_second_administrator_and_a_day(self, cluster: Cluster, admin: User, other_admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        assert rules(cluster) == STRICT
        with pytest.raises(Refused) as caught:
            confirm_loosening(cluster, admin, seen(cluster))
        assert str(caught.value) == message_text(ChangeErrorCode.LOOSENING_NEEDS_ANOTHER, cluster=cluster.slug)
        apply_due_loosenings()
        assert rules(cluster) == STRICT
        confirmed = confirm_loosening(cluster, other_admin, seen(cluster))
        assert confirmed.counts_from is not None
        assert confirmed.counts_from - timezone.now() > timedelta(hours=23)
        assert apply_due_loosenings() == 0
        assert rules(cluster) == STRICT
        let_it_count(cluster)
        assert apply_due_loosenings() == 1
        assert rules(cluster) == replace(STRICT, approvals_high=1, break_glass=True)
        actions = AuditEvent.objects.order_by("id").values_list("action", "actor_name")
        assert list(actions) == [
            ("policy.loosening_asked", "adam"),
            ("policy.loosening_confirmed", "ada"),
            ("policy.loosened", "kafkadash"),
        ]

    @pytest.mark.parametrize("who", ["asker gave the role", "role is new"])
    def test_is_not_confirmed_by_a_role_that_does_not_count(
        self, cluster: Cluster, admin: User, make_user: MakeUser, who: str
    ) -> None:
        puppet = make_user("puppet")
        give_role(admin, puppet, Role.ADMIN)
        if who == "asker gave the role":
            ClusterRole.objects.filter(user=puppet).update(counts_from=Now())
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        with pytest.raises(Refused):
            confirm_loosening(cluster, puppet, seen(cluster))
        assert waiting_loosening(cluster).counts_from is None  # type: ignore[union-attr]

    def test_two_administrators_against_each_other(self, cluster: Cluster, admin: User, other_admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        with pytest.raises(Refused) as caught:
            change_policy(cluster, other_admin, {"self_approval": True}, reason="Me too.")
        assert str(caught.value) == message_text(ChangeErrorCode.LOOSENING_WAITS, who="adam", cluster="orders-eu")
        before = seen(cluster)
        drop_loosening(cluster, other_admin, before)
        change_policy(cluster, other_admin, {"self_approval": True}, reason="Me too.")
        with pytest.raises(Changed):
            confirm_loosening(cluster, admin, before)
        assert rules(cluster) == STRICT

    def test_ends_where_the_policy_becomes_stricter(self, cluster: Cluster, admin: User, other_admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        confirm_loosening(cluster, other_admin, seen(cluster))
        change_policy(cluster, other_admin, {"approvals_high": 3}, reason="No.")
        assert waiting_loosening(cluster) is None
        assert apply_due_loosenings() == 0
        assert rules(cluster) == replace(STRICT, approvals_high=3)

    def test_holds_at_once_where_it_is_set_on_the_server(self, cluster: Cluster, admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        command = ["policy", cluster.slug, "--approvals-high", "1", "--self-approval", "yes"]
        with pytest.raises(CommandError):
            call_command(*command)
        out = StringIO()
        call_command(*command, "--reason", "First day.", stdout=out)
        assert rules(cluster) == replace(STRICT, approvals_high=1, self_approval=True)
        assert "self-approval: True" in out.getvalue()
        assert waiting_loosening(cluster) is None
        assert AuditEvent.objects.get(action="policy.changed").actor_name == "command line"


def test_what_stays_is_no_event(cluster: Cluster, admin: User) -> None:
    change_policy(cluster, admin, {"approvals_high": 2})
    assert not AuditEvent.objects.exists()
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"approvals_low": 0}, "approvals_low", "Between 1 and 5 approvals"),
        ({"approvals_high": 6}, "approvals_high", "Between 1 and 5 approvals"),
        ({"approvals_low": 3}, "approvals_high", "A higher risk cannot need fewer approvals"),
        ({"approvals_medium": 3}, "approvals_high", "A higher risk cannot need fewer approvals"),
        ({"valid_hours": 0}, "valid_hours", "Between 1 and 720 hours"),
        ({"valid_hours": 721}, "valid_hours", r"Between 1 and 720 hours \(30 days\)"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cluster: Cluster, admin: User, values: dict[str, int], field: str, sentence: str
) -> None:
    with pytest.raises(BadPolicy, match=sentence) as refused:
        change_policy(cluster, admin, values)
    assert set(refused.value.sentences) == {field}
    assert not Policy.objects.exists()


def test_it_is_for_administrators(cluster: Cluster, alice: User) -> None:
    with pytest.raises(Refused, match="To change the policy of orders-eu you need the role admin"):
        change_policy(cluster, alice, {"self_approval": True})


def test_a_read_only_cluster_has_a_policy_too(cluster: Cluster, admin: User) -> None:
    Cluster.objects.update(read_only=True)
    change_policy(cluster, admin, {"valid_hours": 12})
    assert policy_of(cluster).valid_hours == 12
