"""What a cluster asks of its changes: defaults without a row, sentences for what makes no sense, an audit event."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import Policy
from kafkadash.changes.policy import BadPolicy, change_policy, policy_of, rules_of
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster
from kafkadash.domain.workflow import Rules


def test_a_cluster_without_a_row_has_the_defaults(
    cluster: Cluster, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert rules_of(policy_of(cluster)) == Rules(1, 1, 2, 24, self_approval=False, break_glass=True)


def test_changing_it_says_before_and_after(cluster: Cluster, admin: User) -> None:
    change_policy(cluster, admin, {"approvals_high": 3, "self_approval": True}, reason="four eyes twice")
    assert rules_of(policy_of(cluster)) == Rules(1, 1, 3, 24, self_approval=True, break_glass=True)
    event = AuditEvent.objects.get(action="policy.changed")
    assert (event.actor_name, event.cluster, event.reason) == ("adam", "orders-eu", "four eyes twice")
    assert event.before == {"approvals_high": 2, "self_approval": False}
    assert event.after == {"approvals_high": 3, "self_approval": True}


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
    assert change_policy(cluster, admin, {"valid_hours": 48}).valid_hours == 48
