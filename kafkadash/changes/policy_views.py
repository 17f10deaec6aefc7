"""Settings of a cluster: what it asks of its change requests."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.audit import LONGEST_REASON
from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import Policy, PolicyLoosening
from kafkadash.changes.policy import (
    FIELDS,
    BadPolicy,
    change_policy,
    confirm_loosening,
    drop_loosening,
    policy_of,
    waiting_loosening,
)
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.access import MANAGE, cluster_for, needs
from kafkadash.clusters.contact import contact
from kafkadash.clusters.forms import SettingsForm
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count

NUMBERS = ("approvals_low", "approvals_medium", "approvals_high", "valid_hours")
_TOO_LONG = 6  # digits
CONFIRM, DROP = "confirm", "drop"
_ACTS = (CONFIRM, DROP)


class PolicyForm(SettingsForm):
    """What is wrong is said at its field."""

    hints = {
        "approvals_low": "Nothing that moves more than little, and nothing that cannot be undone.",
        "approvals_medium": "A good part of the cluster moves, or internal topics do.",
        "approvals_high": "Most of the cluster moves, replicas are given up, or racks are spread worse.",
        "valid_hours": "A proposal that nobody approved in that time expires, and so does an approval.",
        "self_approval": "Whoever wrote, edited or refreshed a change may approve it as well, with the role approver.",
        "break_glass": "In an emergency an administrator may let a change run without approvals; it is said loudly "
        "and audited.",
        "reason": "Kept in the audit.",
    }

    approvals_low = forms.CharField(label="Low risk", required=False)
    approvals_medium = forms.CharField(label="Medium risk", required=False)
    approvals_high = forms.CharField(label="High risk", required=False)
    valid_hours = forms.CharField(label="Hours that a proposal and an approval are valid", required=False)
    self_approval = forms.BooleanField(label="Allow self-approval", required=False)
    break_glass = forms.BooleanField(label="Allow break-glass", required=False)
    reason = forms.CharField(label="Reason", required=False, max_length=LONGEST_REASON)

    def clean(self) -> dict[str, Any]:
        for name in NUMBERS:
            text = self.cleaned_data.get(name, "").strip()
            if text.isascii() and text.isdigit() and len(text) < _TOO_LONG:
                self.cleaned_data[name] = int(text)
            else:
                self.add_error(name, message_text(ChangeErrorCode.POLICY_NO_NUMBER))
        if not self.cleaned_data.get("reason") and "reason" not in self.errors:
            self.add_error("reason", message_text(ChangeErrorCode.POLICY_REASON))
        return self.cleaned_data


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def policy(request: HttpRequest, slug: str) -> HttpResponse:
    own = cluster_for(request, slug, MANAGE)
    held, refusal = policy_of(own), ""
    form = PolicyForm(initial=_values(held))
    if request.method == "POST" and request.POST.get("do") in _ACTS:
        refusal = _act_on_loosening(request, own, request.POST["do"])
        if not refusal:
            return redirect("changes:policy", slug)
    elif request.method == "POST":
        form = PolicyForm(request.POST)
        if form.is_valid() and _saved(request, own, form):
            return redirect("changes:policy", slug)
    loosening = waiting_loosening(own)
    context = {
        "section": "settings",
        "tab": "policy",
        "cluster": own,
        "contact": contact(own, own.collector_runs.all(), timezone.now()),
        "form": form,
        "refusal": refusal,
        "loosening": loosening,
        "looser": _looser_words(loosening) if loosening else (),
        "now": timezone.now(),
        "title": _title(own, held),
    }
    return render(request, "changes/policy.html", context)


def _act_on_loosening(request: HttpRequest, cluster: Cluster, do: str) -> str:
    """Confirms or drops what waits; why it was not done, '' where it was."""
    assert isinstance(request.user, User), "needs() lets nobody else in"
    act = confirm_loosening if do == CONFIRM else drop_loosening
    try:
        act(cluster, request.user, request.POST.get("asked_at", ""), request=request)
    except Refused as refused:
        return str(refused)
    messages.success(request, "Confirmed." if do == CONFIRM else "Dropped: the policy stays as it is.")
    return ""


def _looser_words(loosening: PolicyLoosening) -> list[str]:
    """Name each field with its new value: "High risk: 1"."""
    words = []
    for name, value in loosening.values.items():
        label = PolicyForm.base_fields[name].label
        words.append(str(label) if value is True else f"{label}: {value}")
    return words


def _saved(request: HttpRequest, cluster: Cluster, form: PolicyForm) -> bool:
    assert isinstance(request.user, User), "needs() lets nobody else in"
    try:
        values = {name: form.cleaned_data[name] for name in FIELDS}
        before = policy_of(cluster)
        loosening = change_policy(cluster, request.user, values, reason=form.cleaned_data["reason"], request=request)
    except BadPolicy as bad:
        for name, sentence in bad.sentences.items():
            form.add_error(name or None, sentence)
        return False
    except Refused as refused:
        form.add_error(None, str(refused))
        return False
    said = []
    if _values(before) != _values(policy_of(cluster)):
        said.append("Saved. It also holds for requests that are open, where it asks for more than before.")
    if loosening is not None:
        said.append("What asks for less than before waits until another administrator confirms it.")
    messages.success(request, " ".join(said) or "Nothing was changed, so nothing was saved.")
    return True


def _values(policy: Policy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in FIELDS}


def _title(cluster: Cluster, held: Policy) -> str:
    """What holds now, in one sentence."""
    fewest, most = held.approvals_low, held.approvals_high
    if fewest == most:
        return f"A change of {cluster.name} needs {count(most, 'approval')}, whatever its risk."
    return f"A change of {cluster.name} needs {fewest} to {most} approvals, by its risk."
