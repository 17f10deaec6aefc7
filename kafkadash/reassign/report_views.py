"""All rows of one topic of a plan."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.clusters.access import VIEW
from kafkadash.domain.impact import Impact
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import PlanTopic
from kafkadash.reassign.report_rows import plan_listing, topic_rows_context
from kafkadash.reassign.review_sections import row_words
from kafkadash.reassign.window_facts import run_options


@require_safe
@needs_on_change(VIEW)
def topic_rows(request: HttpRequest, number: int, topic: str) -> HttpResponse:
    """Filtered and paged by the address. Static: what is approved does not move."""
    change = request_for(request, number)
    # A draft that was edited has no plan until it is planned anew; the report of the old one is no answer.
    of_its_plan = PlanTopic.objects.filter(report__request=change, report__artifact=change.artifact_id)
    found = None
    if "\x00" not in topic:  # which PostgreSQL takes in no text
        found = of_its_plan.filter(topic=topic).select_related("report").first()
    if found is None:
        raise MissingObject(ReassignmentErrorCode.NO_ROWS_OF_TOPIC, number=number, topic=topic)
    options = run_options(change)
    words = row_words(Impact.from_json(found.report.impact), options)
    context = {
        **cluster_bar(request, change.cluster, Kind.METADATA),
        "section": "changes",
        "tab": "reassignments",
        "change": change,
        "plan": {"options": options},
        **topic_rows_context(found, words, plan_listing(request.GET)),
    }
    return render(request, "reassign/topic_rows.html", context)
