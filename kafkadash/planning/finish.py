"""Drafts that finish reassignments of which a part was not done: an assignment that was brought, or one that ended.

Nothing is chosen: the draft holds Kafka's JSON of the assignment, and its plan (``planner.FINISH``) has those of its
partitions that have other replicas now.
"""

from __future__ import annotations

import json
from dataclasses import replace
from http import HTTPStatus

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from kafkadash.accounts.models import User
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.middleware import post_only
from kafkadash.monitoring.reassignments.pages import find_snapshot, reassignment_page
from kafkadash.monitoring.reassignments.unfinished import find_unfinished
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.forms import CHECKED_BYTES, find_problems
from kafkadash.planning.proposal import (
    FINISH,
    KIND,
    BroughtFile,
    PlanInput,
    edit_url,
    from_text,
    shown_name,
    store_upload,
)


def propose_rest(
    cluster: Cluster, user: User, brought: BroughtFile, request: HttpRequest | None = None
) -> ChangeRequest:
    """Create a draft that does what is not done yet of an assignment; its limits are still to be given.

    A draft of the same assignment that this user has not submitted is that draft and no error. Raises ChangeRefused,
    also for the first problem that planning would find, unless the file is too large to be checked at once.
    """
    plan_input = PlanInput(FINISH, upload=brought.sha256, name=brought.name)
    packed = pack_dataclass(plan_input)
    begun = ChangeRequest.objects.filter(cluster=cluster, kind=KIND, author=user, state=RequestState.DRAFT)
    if draft := begun.filter(input=packed).first():
        return draft
    problems = find_problems(cluster, plan_input, brought.content) if brought.size <= CHECKED_BYTES else ()
    if problems:
        raise ChangeRefused(problems[0].message)
    with transaction.atomic():
        draft = drafting.create_draft(
            cluster, KIND, user, title=plan_input.title, input=packed, options={}, request=request
        )
        store_upload(draft, brought)
    return draft


@post_only("monitoring:reassignment")
@needs(PROPOSE)
def finish_reassignment(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Propose the target of a reassignment that ended before it was reached; a refusal is shown on its page."""
    cluster = cluster_for(request, slug, PROPOSE)
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    snapshot = find_snapshot(cluster, public_id)
    row = f"{snapshot.topic}-{snapshot.partition}"
    try:
        unfinished = find_unfinished(snapshot)
        if unfinished is None:
            raise ChangeRefused(ReassignmentErrorCode.NOTHING_TO_FINISH, row=row)
        if unfinished.obstacle is not None:
            raise ChangeRefused(unfinished.obstacle)
        entry = {"topic": snapshot.topic, "partition": snapshot.partition, "replicas": snapshot.target}
        given = from_text(json.dumps({"version": 1, "partitions": [entry]}))
        named = replace(given, name=shown_name(f"the reassignment of {row}"))
        draft = propose_rest(cluster, request.user, named, request)
    except ChangeRefused as refused:
        return reassignment_page(request, cluster, snapshot, status=HTTPStatus.CONFLICT, refused=refused.message)
    return redirect(edit_url(draft))
