"""Settings of a cluster: its topic rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.access import MANAGE, cluster_for, is_allowed, needs, roles_text
from kafkadash.clusters.contact import judge_contact
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import UserError
from kafkadash.core.messages import choose_plural, coded
from kafkadash.monitoring.models import CollectorKind, ConfigCatalog, TopicState
from kafkadash.monitoring.schedule import read_soon
from kafkadash.topic_rules.checks import load_conflicts
from kafkadash.topic_rules.errors import RuleErrorCode
from kafkadash.topic_rules.forms import FIELDS, TopicRulesForm, show_rules
from kafkadash.topic_rules.models import TopicRules

MOST_NAMES = 20_000


class RulesRefused(UserError):
    """Topic rules stay as they are; ``str()`` says why."""


def change_rules(
    cluster: Cluster,
    user: User,
    values: Mapping[str, Any],
    *,
    version: int,
    reason: str,
    request: HttpRequest | None = None,
) -> bool:
    """Store the columns FIELDS, and return whether they changed; with the audit event in one transaction.

    ``version`` is the one that the user saw. Raises RulesRefused.
    """
    with transaction.atomic():
        locked = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if not is_allowed(user, MANAGE, locked):
            raise RulesRefused(coded(RuleErrorCode.NEEDS_ROLE, cluster=locked.name, roles=roles_text(MANAGE)))
        stored = TopicRules.objects.filter(cluster=locked).first() or TopicRules(cluster=locked)
        if stored.version != version:
            raise RulesRefused(coded(RuleErrorCode.CHANGED_MEANWHILE, cluster=locked.name))
        before = {name: getattr(stored, name) for name in FIELDS if getattr(stored, name) != values[name]}
        if not before:
            return False
        after = {name: values[name] for name in before}
        for name, value in after.items():
            setattr(stored, name, value)
        stored.version += 1
        stored.save()
        record(
            user,
            "topic_rules.changed",
            ("topic_rules", str(locked.pk)),
            cluster=locked.slug,
            reason=reason,
            before=before,
            after=after,
            request=request,
        )
        read_soon(locked.pk, [CollectorKind.METADATA])  # after which open changes are checked again
    return True


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def topic_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the topic rules as a form; POST stores them."""
    own = cluster_for(request, slug, MANAGE)
    stored = TopicRules.objects.filter(cluster=own).first() or TopicRules(cluster=own)
    catalog = ConfigCatalog.objects.filter(cluster=own).first() or ConfigCatalog()
    about: dict[str, Any] = {"topics": catalog.topics, "brokers": catalog.brokers, "names": ()}
    if request.method == "POST":
        about["names"] = list(TopicState.objects.filter(cluster=own).values_list("name", flat=True)[:MOST_NAMES])
        form = TopicRulesForm(request.POST, **about)
        if form.is_valid() and _save_form(request, own, form):
            return redirect("topic_rules:rules", slug)
    else:
        form = TopicRulesForm(initial=show_rules(stored), **about)
    context = {
        "section": "settings",
        "tab": "topic-rules",
        "cluster": own,
        "contact": judge_contact(own, own.collector_runs.all(), timezone.now()),
        "now": timezone.now(),
        "form": form,
        "notes": load_conflicts(own)[1],
        "title": _describe_rules(own, stored),
    }
    return render(request, "topic_rules/rules.html", context)


def _save_form(request: HttpRequest, cluster: Cluster, form: TopicRulesForm) -> bool:
    assert isinstance(request.user, User), "needs() lets nobody else in"
    values = form.cleaned_data
    try:
        saved = change_rules(
            cluster, request.user, values, version=values["version"], reason=values["reason"], request=request
        )
    except RulesRefused as refused:
        form.refuse_whole(refused.message)
        return False
    told = "Topic rules saved. Open changes are checked again within seconds." if saved else "No changes to save."
    messages.success(request, told)
    return True


def _describe_rules(cluster: Cluster, stored: TopicRules) -> str:
    rules, empty = stored.rule_set, TopicRules().rule_set
    parts = (bool(rules.name_pattern), rules.factor != empty.factor, rules.topic_keys != empty.topic_keys)
    number = sum(parts) + len(rules.ranges) + (rules.broker_keys != empty.broker_keys)
    return f"{cluster.name}: {choose_plural('# topic rule|# topic rules', number) if number else 'no topic rules'}"
