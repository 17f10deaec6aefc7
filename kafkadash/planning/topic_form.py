"""The part of a form in which topics are chosen by names or by a regular expression, with a live preview."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from kafkadash.accounts.models import User
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.forms import CodedForm
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.core.middleware import post_only
from kafkadash.monitoring.models import TopicState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.topic_choice import (
    BadChoice,
    TooManyAtOnce,
    TopicSize,
    choose_topics,
    names_in,
    read_topics,
)

NAMES_SHOWN = 20


class TopicChoiceForm(CodedForm):
    """Topics of a cluster: listed, or matched by ``pattern`` and not by ``excluded``."""

    topics = forms.CharField(label="Topics", required=False, help_text="One per line or comma-separated.")
    pattern = forms.CharField(label="Pattern", required=False, help_text="Must match the whole name: payments-.*")
    excluded = forms.CharField(
        label="Excluded", required=False, help_text="Regular expression; must match the whole name."
    )

    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cluster = cluster

    def choose_ids(self, *, internal: bool) -> list[str]:
        """Return the IDs of the chosen topics, by name; [] where the choice is refused, which the form then shows.

        ``internal``: whether internal topics count that are listed by name.
        """
        try:
            chosen = _read_choice(self._cluster, self.cleaned_data)
        except BadChoice as bad:
            self._refuse(bad.field, bad.message)
            return []
        names = [topic.name for topic in chosen if internal or not topic.internal]
        if not names:
            self._refuse("topics", ReassignmentErrorCode.ONLY_INTERNAL_CHOSEN)
        rows = TopicState.objects.filter(cluster=self._cluster, name__in=names).order_by("name", "changed_at")
        return list(rows.values_list("topic_id", flat=True))


def _read_choice(cluster: Cluster, values: Mapping[str, str], typed_by: int | None = None) -> list[TopicSize]:
    """Return the chosen topics; internal ones only where they are listed. Raises BadChoice."""
    pattern, excluded = (values.get(name, "").replace("\0", "").strip() for name in ("pattern", "excluded"))
    topics = names_in(values.get("topics", ""))
    if not topics and not pattern:
        raise BadChoice("topics", coded(ReassignmentErrorCode.NO_TOPICS_CHOSEN))
    return choose_topics(read_topics(cluster), topics, pattern, excluded, internal=False, typed_by=typed_by)


@post_only("monitoring:topics")
@needs(PROPOSE)
def show_chosen_topics(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how many topics are chosen in the form now, and which: a part of the page. It changes nothing."""
    cluster, user = cluster_for(request, slug, PROPOSE), request.user
    assert isinstance(user, User), "a view of PROPOSE lets nobody else in"
    context: dict[str, Any] = {}
    status = HTTPStatus.OK
    try:
        chosen = _read_choice(cluster, request.POST, typed_by=user.pk)
        context = {
            "topics": chosen[:NAMES_SHOWN],
            "total": len(chosen),
            "more": max(0, len(chosen) - NAMES_SHOWN),
        }
    except BadChoice as bad:
        context = {"wrong": bad.message}
        if isinstance(bad, TooManyAtOnce):
            status = HTTPStatus.TOO_MANY_REQUESTS
    return render(request, "planning/_topics_chosen.html", context, status=status)
