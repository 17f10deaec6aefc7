"""The page that sets or removes one config of many topics, which are listed or matched by a regular expression."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.configs.edits import find_edit_fault, find_lock, read_typed
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import KIND
from kafkadash.configs.stored import ConfigKey, OwnerKind, load_keys
from kafkadash.core.messages import CodedMessage, choose_plural
from kafkadash.monitoring.cluster_bar import render_with_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.topic_form import TopicChoiceForm
from kafkadash.short_runs.pages import ItemProposal, create_item_draft
from kafkadash.topic_rules.models import load_rules


class BulkForm(TopicChoiceForm):
    """Form for one config of many topics. ``ids``: the chosen topics by their IDs, once the form is valid."""

    key = forms.CharField(label="Config", required=False)
    value = forms.CharField(
        label="Value", required=False, help_text='Leave empty to remove it; type "" for an empty value.'
    )

    def __init__(self, *args: Any, cluster: Cluster, keys: dict[str, ConfigKey], **kwargs: Any) -> None:
        super().__init__(*args, cluster=cluster, **kwargs)
        self._keys, self.rules = keys, load_rules(cluster)

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        key, value = values.get("key", "").strip(), read_typed(values.get("value", ""))
        described = self._keys.get(key)
        if not key:
            self._refuse("key", ConfigErrorCode.KEY_MISSING)
        elif fault := find_edit_fault(None, key, described, value, self.rules):
            locked = described is None or find_lock(described, self.rules) is not None
            self._refuse("key" if locked else "value", fault)
        return {"key": key, "value": value, "ids": self.choose_ids(internal=True)}


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
        draft = create_item_draft(request, cluster, ItemProposal(KIND, {"edits": [edit]}, title))
    except ChangeRefused as refused:
        return _show_form(request, cluster, keys, form, refused.message, HTTPStatus.CONFLICT)
    return redirect("short_runs:draft", draft.pk)


def _show_form(
    request: HttpRequest,
    cluster: Cluster,
    keys: dict[str, ConfigKey],
    form: BulkForm,
    refused: CodedMessage | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    free = [key for key in keys.values() if find_lock(key, form.rules) is None]
    told = {"tab": "topics", "form": form, "keys": free, "refused": refused}
    return render_with_bar(request, cluster, CollectorKind.CONFIGS, "configs/topics.html", told, status)
