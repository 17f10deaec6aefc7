"""Settings of a cluster: how much lag its groups may have before they are a finding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, cluster_for, needs
from kafkadash.clusters.allowed_lag import allow_lag, allowed_lags, remove_allowed_lag
from kafkadash.clusters.contact import judge_contact
from kafkadash.clusters.forms import SettingsForm
from kafkadash.clusters.models import AllowedLag, Cluster
from kafkadash.clusters.services import ClusterRefused
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.models import GroupState


class AllowedLagForm(SettingsForm):
    """Both are checked by the service, which says what is wrong."""

    hints = {
        "pattern": "Group name or pattern: * matches any characters, ? matches one.",
        "records": "Maximum lag per partition at which the group is OK.",
    }

    pattern = forms.CharField(label="Group or pattern", required=False, strip=False)
    records = forms.CharField(label="Lag threshold, records", required=False)

    def typed(self, name: str) -> str:
        """Return the field's value as sent, without Django's validation and its messages."""
        return str(self.data.get(name, ""))


@dataclass(frozen=True, slots=True)
class RuleRow:
    """``decides``: for how many groups that are there now."""

    pattern: str
    records: int
    decides: int


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def allowed_lag(request: HttpRequest, slug: str) -> HttpResponse:
    own = cluster_for(request, slug, MANAGE)
    form, refusal = AllowedLagForm(), ""
    if request.method == "POST" and request.POST.get("do") == "take":
        refusal = _remove_rule(request, own)
        if not refusal:
            return redirect(request.path)
    elif request.method == "POST":
        form = AllowedLagForm(request.POST)
        if _save_rule(request, own, form):
            return redirect(request.path)
    now = timezone.now()
    groups = list(GroupState.objects.filter(cluster=own, gone_at=None).values_list("name", flat=True))
    rows = _list_rules(own, groups)
    context = {
        "section": "settings",
        "tab": "lag",
        "cluster": own,
        "contact": judge_contact(own, own.collector_runs.all(), now),
        "now": now,
        "form": form,
        "refusal": refusal,
        "rows": rows,
        "groups": choose_plural("# group|# groups", len(groups)),
        "others": len(groups) - sum(row.decides for row in rows),
        "title": _describe_rules(own, rows),
    }
    return render(request, "monitoring/allowed_lag.html", context)


def _save_rule(request: HttpRequest, cluster: Cluster, form: AllowedLagForm) -> bool:
    form.errors.clear()
    form.cleaned_data = {}
    try:
        rule = allow_lag(_require_user(request), cluster, form.typed("pattern"), form.typed("records"), request=request)
    except ClusterRefused as refused:
        form.refuse(refused)
        return False
    records = choose_plural("# record|# records", rule.records)
    messages.success(request, f"Lag threshold of {rule.pattern}: {records} per partition, from the next sample on.")
    return True


def _remove_rule(request: HttpRequest, cluster: Cluster) -> str:
    """Why the rule stays, '' when it is gone."""
    pattern = request.POST.get("pattern", "")
    try:
        remove_allowed_lag(_require_user(request), cluster, pattern, request=request)
    except ClusterRefused as refused:
        return str(refused)
    messages.success(request, f"Lag threshold of {pattern} removed, from the next sample on.")
    return ""


def _list_rules(cluster: Cluster, groups: list[str]) -> list[RuleRow]:
    held = dict(AllowedLag.objects.filter(cluster=cluster).order_by("pattern").values_list("pattern", "records"))
    rules = allowed_lags(held)
    decides = Counter(rule.pattern for rule in map(rules.rule_of, groups) if rule)
    return [RuleRow(pattern, records, decides[pattern]) for pattern, records in held.items()]


def _describe_rules(cluster: Cluster, rows: list[RuleRow]) -> str:
    if not rows:
        return f"{cluster.name}: no lag thresholds set"
    return f"{cluster.name}: {choose_plural('# lag threshold|# lag thresholds', len(rows))}"


def _require_user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    return request.user
