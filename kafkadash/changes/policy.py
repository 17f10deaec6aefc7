"""Approval policy of a cluster: its rules, the confirmation of looser rules by a second administrator, and its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import form_error
from kafkadash.accounts.models import User
from kafkadash.accounts.services import LONGEST_REASON, record
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.kinds import least_approvals
from kafkadash.changes.models import ChangeRequest, Policy, PolicyLoosening
from kafkadash.changes.risk import HIGH_FROM, MEDIUM_FROM
from kafkadash.changes.state_machine import PolicyRules
from kafkadash.clusters.access import LOOSEN, MANAGE, cluster_for, is_allowed, needs, roles_text, users_allowed
from kafkadash.clusters.contact import judge_contact
from kafkadash.clusters.forms import SettingsForm
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, choose_plural, coded, join_messages

FIELDS = ("approvals_low", "approvals_medium", "approvals_high", "valid_hours", "self_approval", "break_glass")
MOST_APPROVALS = 5
MOST_HOURS = 720


class BadPolicy(ChangeRefused):
    """``messages`` by field."""

    def __init__(self, messages: Mapping[str, CodedMessage]) -> None:
        super().__init__(join_messages(messages.values()))
        self.messages = dict(messages)


def policy_of(cluster: Cluster) -> Policy:
    """The cluster's, or the defaults, not stored, when it has none. One query."""
    return Policy.objects.filter(cluster=cluster).first() or Policy(cluster=cluster)


def rules_of(policy: Policy, change: ChangeRequest | None = None) -> PolicyRules:
    """Return the policy as ``changes.state_machine`` takes it, and as strict as kind and plan of a request want it."""
    rules = PolicyRules(**{name: getattr(policy, name) for name in FIELDS})
    least = 1 if change is None else max(least_approvals(change.kind), change.least_approvals)
    return rules if least == 1 else replace(rules, least=least, self_approval=False, break_glass=False)


def rules_for(change: ChangeRequest) -> PolicyRules:
    """Return the rules of a request, by its cluster's policy, its kind and its plan. One query."""
    return rules_of(policy_of(change.cluster), change)


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
        _check_policy(Policy(cluster=locked, **wanted))
        differ = {name: value for name, value in wanted.items() if value != before[name]}
        waiting = waiting_loosening(locked)
        looser = {} if isinstance(actor, str) else {n: v for n, v in differ.items() if _is_looser(n, v, before[n])}
        if looser and waiting is not None:
            raise ChangeRefused(
                ChangeErrorCode.LOOSENING_WAITS, who=waiting.asked_by.get_username(), cluster=locked.name
            )
        now = {name: value for name, value in differ.items() if name not in looser}
        if now:
            _store_policy(policy, now, actor, "policy.changed", reason, request)
            if waiting is not None:
                _end_loosening(waiting, actor, request)
        if not looser or isinstance(actor, str):
            return None
        loosening = PolicyLoosening.objects.create(cluster=locked, values=looser, reason=reason.strip(), asked_by=actor)
        _record_policy(locked, actor, "policy.loosening_asked", reason, {n: before[n] for n in looser}, looser, request)
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
            raise ChangeRefused(ChangeErrorCode.LOOSENING_NEEDS_ANOTHER, cluster=locked.slug)
        if loosening.counts_from is None:
            loosening.confirmed_by_name = user.get_username()
            loosening.counts_from = timezone.now() + timedelta(hours=settings.RIGHTS_WAIT_HOURS)
            loosening.save(update_fields=["confirmed_by_name", "counts_from"])
            after = {**loosening.values, "counts_from": loosening.counts_from.isoformat(timespec="seconds")}
            _record_policy(locked, user, "policy.loosening_confirmed", loosening.reason, None, after, request)
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
                _store_policy(policy, loosening.values, "kafkadash", "policy.loosened", loosening.reason, None)
    return len(numbers)


def _lock_cluster(cluster: Cluster, actor: User | str, action: str) -> Cluster:
    """The cluster's row is the lock: a policy may have no row of its own yet. Raises Refused without the right."""
    locked = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
    if locked is None:
        raise ChangeRefused(ChangeErrorCode.CLUSTER_REMOVED, cluster=cluster.name)
    if isinstance(actor, User) and not is_allowed(actor, action, locked):
        raise ChangeRefused(ChangeErrorCode.POLICY_NEEDS_ROLE, cluster=locked.name, roles=roles_text(action))
    return locked


def _seen_loosening(cluster: Cluster, asked_at: str) -> PolicyLoosening:
    loosening = waiting_loosening(cluster)
    if loosening is None or loosening.asked_at.isoformat() != asked_at:
        raise ChangedMeanwhile(ChangeErrorCode.LOOSENING_CHANGED, cluster=cluster.name)
    return loosening


def _end_loosening(loosening: PolicyLoosening, actor: User | str, request: HttpRequest | None) -> None:
    loosening.delete()
    _record_policy(loosening.cluster, actor, "policy.loosening_dropped", "", loosening.values, None, request)


def _is_looser(name: str, value: int | bool, before: int | bool) -> bool:
    return value < before if name in FIELDS[:3] else value > before


def _values(policy: Policy) -> dict[str, int | bool]:
    return {name: getattr(policy, name) for name in FIELDS}


def _store_policy(
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
    _record_policy(policy.cluster, actor, verb, reason, before, values, request)


def _record_policy(
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


def _check_policy(policy: Policy) -> None:
    wrong: dict[str, CodedMessage] = {}
    for name in FIELDS[:3]:
        if not 1 <= getattr(policy, name) <= MOST_APPROVALS:
            wrong[name] = coded(ChangeErrorCode.POLICY_APPROVALS, most=MOST_APPROVALS)
    if not wrong and not policy.approvals_low <= policy.approvals_medium <= policy.approvals_high:
        wrong["approvals_high"] = coded(ChangeErrorCode.POLICY_ORDER)
    if not 1 <= policy.valid_hours <= MOST_HOURS:
        wrong["valid_hours"] = coded(ChangeErrorCode.POLICY_HOURS, most=MOST_HOURS, days=MOST_HOURS // 24)
    if wrong:
        raise BadPolicy(wrong)


NUMBERS = ("approvals_low", "approvals_medium", "approvals_high", "valid_hours")
_TOO_LONG = 6  # digits
CONFIRM, DROP = "confirm", "drop"
_ACTS = (CONFIRM, DROP)


class PolicyForm(SettingsForm):
    """Form for the policy of a cluster; each error is shown at its field."""

    hints = {
        "approvals_low": "Few bytes and partitions move; nothing irreversible.",
        "approvals_medium": "Large parts of the cluster or internal topics move.",
        "approvals_high": "Most of the cluster moves, replicas are removed, or rack spread gets worse.",
        "valid_hours": "Proposals and approvals expire after this time.",
        "self_approval": "Users who wrote, edited or refreshed a change may approve it if they have the role approver.",
        "break_glass": "In an emergency, administrators may start a change without approvals. Its pages and the audit "
        "log show it.",
        "reason": "Shown in the audit log.",
    }

    approvals_low = forms.CharField(label="Low risk", required=False)
    approvals_medium = forms.CharField(label="Medium risk", required=False)
    approvals_high = forms.CharField(label="High risk", required=False)
    valid_hours = forms.CharField(label="Validity of proposals and approvals, in hours", required=False)
    self_approval = forms.BooleanField(label="Allow self-approval", required=False)
    break_glass = forms.BooleanField(label="Allow break-glass", required=False)
    reason = forms.CharField(label="Reason", required=False, max_length=LONGEST_REASON)

    def clean(self) -> dict[str, Any]:
        for name in NUMBERS:
            text = self.cleaned_data.get(name, "").strip()
            if text.isascii() and text.isdigit() and len(text) < _TOO_LONG:
                self.cleaned_data[name] = int(text)
            else:
                self.add_error(name, form_error(ChangeErrorCode.POLICY_NO_NUMBER))
        if not self.cleaned_data.get("reason") and "reason" not in self.errors:
            self.add_error("reason", form_error(ChangeErrorCode.POLICY_REASON))
        return self.cleaned_data


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def policy(request: HttpRequest, slug: str) -> HttpResponse:
    own = cluster_for(request, slug, MANAGE)
    held, refusal = policy_of(own), ""
    form = PolicyForm(initial=_policy_fields(held))
    if request.method == "POST" and request.POST.get("do") in _ACTS:
        refusal = _act_on_loosening(request, own, request.POST["do"])
        if not refusal:
            return redirect("changes:policy", slug)
    elif request.method == "POST":
        form = PolicyForm(request.POST)
        if form.is_valid() and _save_form(request, own, form):
            return redirect("changes:policy", slug)
    loosening = waiting_loosening(own)
    context = {
        "section": "settings",
        "tab": "policy",
        "cluster": own,
        "contact": judge_contact(own, own.collector_runs.all(), timezone.now()),
        "form": form,
        "refusal": refusal,
        "loosening": loosening,
        "looser": _looser_words(loosening) if loosening else (),
        "now": timezone.now(),
        "medium_from": MEDIUM_FROM,
        "high_from": HIGH_FROM,
        "title": _describe_policy(own, held),
    }
    return render(request, "changes/policy.html", context)


def _act_on_loosening(request: HttpRequest, cluster: Cluster, do: str) -> str:
    """Confirms or drops what waits; why it was not done, '' where it was."""
    assert isinstance(request.user, User), "needs() lets nobody else in"
    act = confirm_loosening if do == CONFIRM else drop_loosening
    try:
        act(cluster, request.user, request.POST.get("asked_at", ""), request=request)
    except ChangeRefused as refused:
        return str(refused)
    messages.success(
        request, "Policy request confirmed." if do == CONFIRM else "Policy request discarded. The policy is unchanged."
    )
    return ""


def _looser_words(loosening: PolicyLoosening) -> list[str]:
    """Name each field with its new value: "High risk: 1"."""
    words = []
    for name, value in loosening.values.items():
        label = PolicyForm.base_fields[name].label
        words.append(str(label) if value is True else f"{label}: {value}")
    return words


def _save_form(request: HttpRequest, cluster: Cluster, form: PolicyForm) -> bool:
    assert isinstance(request.user, User), "needs() lets nobody else in"
    try:
        values = {name: form.cleaned_data[name] for name in FIELDS}
        before = policy_of(cluster)
        loosening = change_policy(cluster, request.user, values, reason=form.cleaned_data["reason"], request=request)
    except BadPolicy as bad:
        for name, message in bad.messages.items():
            form.add_error(name, form_error(message))
        return False
    except ChangeRefused as refused:
        form.add_error(None, form_error(refused.message))
        return False
    shown = []
    if _policy_fields(before) != _policy_fields(policy_of(cluster)):
        shown.append("Policy saved. Stricter rules also apply to open changes.")
    if loosening is not None:
        shown.append("Less strict rules wait until another administrator confirms them.")
    messages.success(request, " ".join(shown) or "No changes to save.")
    return True


def _policy_fields(policy: Policy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in FIELDS}


def _describe_policy(cluster: Cluster, held: Policy) -> str:
    """Return the title of the page: the approvals that the present policy needs."""
    fewest, most = held.approvals_low, held.approvals_high
    if fewest == most:
        return f"{cluster.name}: changes need {choose_plural('# approval|# approvals', most)}"
    return f"{cluster.name}: changes need {fewest} to {most} approvals"
