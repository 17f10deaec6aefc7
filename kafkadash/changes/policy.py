"""What a cluster asks of its change requests: reading it, and changing it."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.changes.models import Policy
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.access import MANAGE, allowed, roles_text
from kafkadash.clusters.models import Cluster
from kafkadash.domain.refusals import drafts, rights
from kafkadash.domain.workflow import Rules

FIELDS = ("approvals_low", "approvals_medium", "approvals_high", "valid_hours", "self_approval", "break_glass")
MOST_APPROVALS = 5
MOST_HOURS = 720


class BadPolicy(Refused):
    """``sentences`` by field; '' for what concerns several."""

    def __init__(self, sentences: Mapping[str, str]) -> None:
        super().__init__(" ".join(sentences.values()))
        self.sentences = dict(sentences)


def policy_of(cluster: Cluster) -> Policy:
    """The cluster's, or the defaults, not stored, when it has none. One query."""
    return Policy.objects.filter(cluster=cluster).first() or Policy(cluster=cluster)


def rules_of(policy: Policy) -> Rules:
    """As ``domain.workflow`` takes it."""
    return Rules(**{name: getattr(policy, name) for name in FIELDS})


def change_policy(
    cluster: Cluster,
    user: User,
    values: Mapping[str, int | bool],
    *,
    reason: str = "",
    request: HttpRequest | None = None,
) -> Policy:
    """Stores what is given of FIELDS; the others stay. Nothing changed: no event. Raises BadPolicy, Refused.

    It holds for requests that are open already: an approval counts by the stricter of the policy at the submission and
    the one at the moment of the approval. What was approved before stays approved.
    """
    with transaction.atomic():
        # The cluster's row is the lock: a policy may have no row of its own yet.
        locked = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
        if locked is None:
            raise Refused(rights.CLUSTER_REMOVED(cluster=cluster.name))
        if not allowed(user, MANAGE, locked):
            raise Refused(rights.POLICY_NEEDS_ROLE(cluster=locked.name, roles=roles_text(MANAGE)))
        policy = policy_of(locked)
        before = {name: getattr(policy, name) for name in FIELDS}
        for name in FIELDS:
            if name in values:
                setattr(policy, name, values[name])
        _check(policy)
        after = {name: getattr(policy, name) for name in FIELDS}
        differ = [name for name in FIELDS if before[name] != after[name]]
        if differ:
            policy.save()
            record(
                user,
                "policy.changed",
                ("policy", str(locked.pk)),
                cluster=locked.slug,
                reason=reason.strip(),
                before={name: before[name] for name in differ},
                after={name: after[name] for name in differ},
                request=request,
            )
    return policy


def _check(policy: Policy) -> None:
    wrong: dict[str, str] = {}
    for name in FIELDS[:3]:
        if not 1 <= getattr(policy, name) <= MOST_APPROVALS:
            wrong[name] = drafts.POLICY_APPROVALS(most=MOST_APPROVALS)
    if not wrong and not policy.approvals_low <= policy.approvals_medium <= policy.approvals_high:
        wrong["approvals_high"] = drafts.POLICY_ORDER()
    if not 1 <= policy.valid_hours <= MOST_HOURS:
        wrong["valid_hours"] = drafts.POLICY_HOURS(most=MOST_HOURS, days=MOST_HOURS // 24)
    if wrong:
        raise BadPolicy(wrong)
