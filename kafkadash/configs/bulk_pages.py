"""The page that sets or removes one config of many topics, which are listed or matched by a regular expression."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import form_error
from kafkadash.accounts.models import User
from kafkadash.accounts.templatetags.refusals import FieldMessage, field_messages
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.configs.edits import find_edit_fault, read_typed
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import KIND
from kafkadash.configs.stored import ConfigKey, OwnerKind, load_keys
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.middleware import post_only
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.freshness import freshness_of_kind, read_statuses
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.planning.topic_choice import (
    BadChoice,
    TooManyAtOnce,
    TopicSize,
    choose_topics,
    names_in,
    read_topics,
)
from kafkadash.short_runs.pages import ItemProposal, create_item_draft

NAMES_SHOWN = 20


class BulkForm(forms.Form):
    """One config of many topics. ``ids``: the chosen topics by their IDs, once the form is valid."""

    use_required_attribute = False
    key = forms.CharField(label="Config", required=False)
    value = forms.CharField(
        label="Value", required=False, help_text='Leave empty to remove it; type "" for an empty value.'
    )
    topics = forms.CharField(label="Topics", required=False, help_text="One per line or comma-separated.")
    pattern = forms.CharField(label="Pattern", required=False, help_text="Must match the whole name: payments-.*")
    excluded = forms.CharField(
        label="Excluded", required=False, help_text="Regular expression; must match the whole name."
    )

    def __init__(self, *args: Any, cluster: Cluster, keys: dict[str, ConfigKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cluster, self._keys = cluster, keys

    def wrong(self) -> Iterator[tuple[BoundField | None, FieldMessage]]:
        """Yield every message with its field, for the summary at the top."""
        for field in self:
            for message in field_messages(field.errors):
                yield field, message

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        key, value = values.get("key", "").strip(), read_typed(values.get("value", ""))
        described = self._keys.get(key)
        if not key:
            self.add_error("key", form_error(coded(ConfigErrorCode.KEY_MISSING)))
        elif fault := find_edit_fault(None, key, described, value):
            locked = described is None or described.find_lock() is not None
            self.add_error("key" if locked else "value", form_error(fault))
        try:
            chosen = _read_choice(self._cluster, values)
        except BadChoice as bad:
            self.add_error(bad.field, form_error(bad.message))
            return {}
        ids = TopicState.objects.filter(cluster=self._cluster, name__in=[topic.name for topic in chosen])
        return {
            "key": key,
            "value": value,
            "ids": list(ids.order_by("name", "changed_at").values_list("topic_id", flat=True)),
        }


def _read_choice(cluster: Cluster, values: Any, typed_by: int | None = None) -> list[TopicSize]:
    """Return the chosen topics; internal ones only where they are listed. Raises BadChoice."""
    topics, pattern, excluded = names_in(values.get("topics", "")), *_patterns(values)
    if not topics and not pattern:
        raise BadChoice("topics", coded(ConfigErrorCode.TOPICS_MISSING))
    return choose_topics(read_topics(cluster), topics, pattern, excluded, internal=False, typed_by=typed_by)


def _patterns(values: Any) -> tuple[str, str]:
    pattern, excluded = (str(values.get(name, "")).replace("\0", "").strip() for name in ("pattern", "excluded"))
    return pattern, excluded


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def topics(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form; POST plans the config of all chosen topics as a draft."""
    cluster = cluster_for(request, slug, PROPOSE)
    keys = load_keys(cluster, OwnerKind.TOPIC)
    if request.method != "POST":
        initial = {name: request.GET.get(name, "")[:500] for name in ("key", "topics", "pattern")}
        return _show_form(request, cluster, keys, BulkForm(initial=initial, cluster=cluster, keys=keys))
    form = BulkForm(request.POST, cluster=cluster, keys=keys)
    if not form.is_valid():
        return _show_form(request, cluster, keys, form, status=HTTPStatus.BAD_REQUEST)
    wanted = form.cleaned_data
    edit = {"of": str(OwnerKind.TOPIC), "ids": wanted["ids"], "key": wanted["key"], "value": wanted["value"]}
    title = f"{wanted['key']} of {choose_plural('# topic|# topics', len(wanted['ids']))}"
    try:
        draft = create_item_draft(request, cluster, ItemProposal(KIND, {"edits": [edit]}, title), title, "")
    except ChangeRefused as refused:
        return _show_form(request, cluster, keys, form, refused.message, HTTPStatus.CONFLICT)
    return redirect("short_runs:draft", draft.pk)


@post_only("configs:topics")
@needs(PROPOSE)
def chosen(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how many topics are chosen in the form now, and which: a part of the page. It changes nothing."""
    cluster, user = cluster_for(request, slug, PROPOSE), request.user
    assert isinstance(user, User), "a view of PROPOSE lets nobody else in"
    context, status = {}, HTTPStatus.OK
    try:
        context = _present_choice(_read_choice(cluster, request.POST, typed_by=user.pk))
    except BadChoice as bad:
        context = {"wrong": bad.message}
        if isinstance(bad, TooManyAtOnce):
            status = HTTPStatus.TOO_MANY_REQUESTS
    return render(request, "configs/_chosen.html", context, status=status)


def _present_choice(chosen: list[TopicSize]) -> dict[str, Any]:
    return {"topics": chosen[:NAMES_SHOWN], "total": len(chosen), "more": max(0, len(chosen) - NAMES_SHOWN)}


def _show_form(
    request: HttpRequest,
    cluster: Cluster,
    keys: dict[str, ConfigKey],
    form: BulkForm,
    refused: CodedMessage | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    bar = cluster_bar(cluster, CollectorKind.CONFIGS)
    context = {
        **bar,
        "section": "status",
        "tab": "topics",
        "form": form,
        "keys": [key for key in keys.values() if key.find_lock() is None],
        "refused": refused,
        "freshness": freshness_of_kind(CollectorKind.CONFIGS, read_statuses([cluster.pk])[cluster.pk], bar["now"]),
    }
    return render(request, "configs/topics.html", context, status=status)
