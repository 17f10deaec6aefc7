"""What a cluster asks of its change requests: reading it, and changing it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import Policy, PolicyLoosening
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.clusters.access import LOOSEN, MANAGE, allowed, roles_text, users_allowed
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
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
    actor: User | str,
    values: Mapping[str, int | bool],
    *,
    reason: str = "",
    request: HttpRequest | None = None,
) -> PolicyLoosening | None:
    """Stores what is given of FIELDS; the others stay. Nothing changed: no event. Raises BadPolicy, Refused.

    What asks for more than before holds at once, and ends a loosening that waits. What asks for less only begins to
    wait, as the loosening that is returned: see ``confirm_loosening``. On the server, where ``actor`` is a text, all of
    it holds at once.

    It holds for requests that are open already: an approval counts by the stricter of the policy at the submission and
    the one at the moment of the approval. What was approved before stays approved.
    """
    with transaction.atomic():
        locked = _lock_cluster(cluster, actor, MANAGE)
        policy = policy_of(locked)
        before = _values(policy)
        wanted = {**before, **{name: values[name] for name in FIELDS if name in values}}
        _check(Policy(cluster=locked, **wanted))
        differ = {name: value for name, value in wanted.items() if value != before[name]}
        waiting = waiting_loosening(locked)
        looser = {} if isinstance(actor, str) else {n: v for n, v in differ.items() if _is_looser(n, v, before[n])}
        if looser and waiting is not None:
            raise Refused(ChangeErrorCode.LOOSENING_WAITS, who=waiting.asked_by.get_username(), cluster=locked.name)
        now = {name: value for name, value in differ.items() if name not in looser}
        if now:
            _store(policy, now, actor, "policy.changed", reason, request)
            if waiting is not None:
                _end_loosening(waiting, actor, request)
        if not looser or isinstance(actor, str):
            return None
        loosening = PolicyLoosening.objects.create(cluster=locked, values=looser, reason=reason.strip(), asked_by=actor)
        _record(locked, actor, "policy.loosening_asked", reason, {n: before[n] for n in looser}, looser, request)
        return loosening


def waiting_loosening(cluster: Cluster) -> PolicyLoosening | None:
    """Return the loosening of this cluster that is not in force yet. One query."""
    return PolicyLoosening.objects.select_related("asked_by").filter(cluster=cluster).first()


def confirm_loosening(
    cluster: Cluster, user: User, asked_at: str, *, request: HttpRequest | None = None
) -> PolicyLoosening:
    """By a second administrator; it is in force ``RIGHTS_WAIT_HOURS`` later. Confirmed already: nothing happens.

    ``asked_at`` is the one that the person saw, in ISO 8601. Raises Refused, and Changed where another one waits now.
    """
    with transaction.atomic():
        locked = _lock_cluster(cluster, user, LOOSEN)
        loosening = _seen_loosening(locked, asked_at)
        own = user.pk == loosening.asked_by_id
        if own or not users_allowed(LOOSEN, locked, not_given_by=[loosening.asked_by_id]).filter(pk=user.pk).exists():
            raise Refused(ChangeErrorCode.LOOSENING_NEEDS_ANOTHER, cluster=locked.slug)
        if loosening.counts_from is None:
            loosening.confirmed_by_name = user.get_username()
            loosening.counts_from = timezone.now() + timedelta(hours=settings.RIGHTS_WAIT_HOURS)
            loosening.save(update_fields=["confirmed_by_name", "counts_from"])
            after = {**loosening.values, "counts_from": loosening.counts_from.isoformat(timespec="seconds")}
            _record(locked, user, "policy.loosening_confirmed", loosening.reason, None, after, request)
    return loosening


def drop_loosening(cluster: Cluster, user: User, asked_at: str, *, request: HttpRequest | None = None) -> None:
    """The policy stays as it is. By any administrator, as ``confirm_loosening`` else."""
    with transaction.atomic():
        locked = _lock_cluster(cluster, user, MANAGE)
        _end_loosening(_seen_loosening(locked, asked_at), user, request)


def apply_due_loosenings() -> int:
    """Policies whose confirmed loosening counts from now on; returns how many. One query when none is due."""
    due = PolicyLoosening.objects.filter(counts_from__lte=Now())
    numbers = list(due.values_list("pk", flat=True))
    for number in numbers:
        with transaction.atomic():
            loosening = due.select_related("cluster").select_for_update(of=("self",)).filter(pk=number).first()
            if loosening is not None:
                loosening.delete()
                policy = policy_of(loosening.cluster)
                _store(policy, loosening.values, "kafkadash", "policy.loosened", loosening.reason, None)
    return len(numbers)


def _lock_cluster(cluster: Cluster, actor: User | str, action: str) -> Cluster:
    """The cluster's row is the lock: a policy may have no row of its own yet. Raises Refused without the right."""
    locked = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
    if locked is None:
        raise Refused(ChangeErrorCode.CLUSTER_REMOVED, cluster=cluster.name)
    if isinstance(actor, User) and not allowed(actor, action, locked):
        raise Refused(ChangeErrorCode.POLICY_NEEDS_ROLE, cluster=locked.name, roles=roles_text(action))
    return locked


def _seen_loosening(cluster: Cluster, asked_at: str) -> PolicyLoosening:
    loosening = waiting_loosening(cluster)
    if loosening is None or loosening.asked_at.isoformat() != asked_at:
        raise Changed(ChangeErrorCode.LOOSENING_CHANGED, cluster=cluster.name)
    return loosening


def _end_loosening(loosening: PolicyLoosening, actor: User | str, request: HttpRequest | None) -> None:
    loosening.delete()
    _record(loosening.cluster, actor, "policy.loosening_dropped", "", loosening.values, None, request)


def _is_looser(name: str, value: int | bool, before: int | bool) -> bool:
    return value < before if name in FIELDS[:3] else value > before


def _values(policy: Policy) -> dict[str, int | bool]:
    return {name: getattr(policy, name) for name in FIELDS}


def _store(
    policy: Policy,
    values: Mapping[str, int | bool],
    actor: User | str,
    verb: str,
    reason: str,
    request: HttpRequest | None,
) -> None:
    before = {name: getattr(policy, name) for name in values}
    for name, value in values.items():
        setattr(policy, name, value)
    policy.save()
    _record(policy.cluster, actor, verb, reason, before, values, request)


def _record(
    cluster: Cluster,
    actor: User | str,
    verb: str,
    reason: str,
    before: Mapping[str, object] | None,
    after: Mapping[str, object] | None,
    request: HttpRequest | None,
) -> None:
    record(
        actor,
        verb,
        ("policy", str(cluster.pk)),
        cluster=cluster.slug,
        reason=reason.strip(),
        before=before,
        after=after,
        request=request,
    )


def _check(policy: Policy) -> None:
    wrong: dict[str, str] = {}
    for name in FIELDS[:3]:
        if not 1 <= getattr(policy, name) <= MOST_APPROVALS:
            wrong[name] = message_text(ChangeErrorCode.POLICY_APPROVALS, most=MOST_APPROVALS)
    if not wrong and not policy.approvals_low <= policy.approvals_medium <= policy.approvals_high:
        wrong["approvals_high"] = message_text(ChangeErrorCode.POLICY_ORDER)
    if not 1 <= policy.valid_hours <= MOST_HOURS:
        wrong["valid_hours"] = message_text(ChangeErrorCode.POLICY_HOURS, most=MOST_HOURS, days=MOST_HOURS // 24)
    if wrong:
        raise BadPolicy(wrong)
