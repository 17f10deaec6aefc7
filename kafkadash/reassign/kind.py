"""The kind of change "reassignment": what the pages and rules of ``changes`` ask of it."""

from __future__ import annotations

from kafkadash.accounts.models import User
from kafkadash.changes import kinds
from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.plan import digest as digest_of
from kafkadash.reassign import drafts
from kafkadash.reassign.asked import options_of
from kafkadash.reassign.checks import checks
from kafkadash.reassign.models import Upload
from kafkadash.reassign.review_sections import review_context, short_facts
from kafkadash.reassign.risk_facts import risk_facts
from kafkadash.reassign.run import queue, summaries


def make_known() -> None:
    kinds.register(
        kinds.ChangeKind(
            name=drafts.KIND,
            label="Reassignment",
            edit_url=drafts.edit_url,
            checks=checks,
            risk=risk_facts,
            digest=digest,
            review_template="reassign/_review.html",
            review_context=review_context,
            facts=short_facts,
            replan=replan,
            starts=True,
            moved=queue.moved,
            copied=copied,
            related=("report",),
            start_words=summaries.start_words,
            runs=summaries.runs,
        )
    )


def digest(change: ChangeRequest) -> str:
    """Of the plan and the limits it may be run under; '' without either."""
    try:
        options = options_of(change.options)
    except (TypeError, ValueError):
        return ""
    if change.artifact_id is None or options is None:
        return ""
    return digest_of(change.cluster.kafka_id, change.artifact_id, options)


def replan(change: ChangeRequest, user: User) -> None:
    """A new plan for a stale request, for the same input and the cluster as it is now."""
    drafts.start_planning(change, user, change.version, purpose="refresh")


def copied(original: ChangeRequest, copy: ChangeRequest) -> None:
    """The JSON that was brought goes along."""
    upload = Upload.objects.filter(request=original).first()
    if upload is not None:
        Upload.objects.create(
            request=copy, name=upload.name, size=upload.size, sha256=upload.sha256, data=bytes(upload.data)
        )
