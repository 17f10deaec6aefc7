"""The kind of change "reassignment" for ``changes``, and its risk facts, read from the stored report of a plan."""

from __future__ import annotations

from collections import Counter

from kafkadash.accounts.models import User
from kafkadash.changes import kinds
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import compute_digest as digest_of
from kafkadash.changes.risk import RiskFacts
from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.execution import queue
from kafkadash.execution.pages import summaries
from kafkadash.planning import proposal as drafts
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.models import PlanReport, Upload
from kafkadash.planning.proposal import options_of
from kafkadash.planning.review import review_context, short_facts
from kafkadash.planning.stored_checks import run_stored_checks

UNKNOWN = RiskFacts(bytes_share=None, partitions_share=None, spread_worse=None)
"""Risk facts of a request without a plan: nothing is known, so nothing is harmless."""


def risk_facts(change: ChangeRequest) -> RiskFacts:
    stored = (
        PlanReport.objects.filter(request=change, artifact=change.artifact_id).values_list("impact", flat=True).first()
    )
    return UNKNOWN if stored is None else facts_of(unpack_dataclass(PlanImpact, stored))


def facts_of(impact: PlanImpact) -> RiskFacts:
    """A plan that copies nothing moves no bytes, whatever the cluster holds."""
    return RiskFacts(
        bytes_share=0.0 if impact.copied_bytes == 0 else _share(impact.copied_bytes, impact.total_bytes),
        partitions_share=_share(impact.partitions_moved, impact.partitions_total),
        rf_decreases=impact.rf_down,
        internal_topics=len(impact.internal_topics),
        spread_worse=_spread_worse(impact),
        racks_on_one_broker=_left_with_one_broker(impact),
    )


def _spread_worse(impact: PlanImpact) -> int | None:
    """Partitions in fewer racks, or less even. None where only some brokers name a rack; where none does, or all the
    same, there is no spread that could get worse.
    """
    if len({broker.rack for broker in impact.brokers}) == 1:
        return 0
    return impact.spread_worse


def _left_with_one_broker(impact: PlanImpact) -> tuple[str, ...]:
    before = Counter(b.rack for b in impact.brokers if b.rack is not None and b.alive and b.replicas_before)
    after = Counter(b.rack for b in impact.brokers if b.rack is not None and b.alive and b.replicas_after)
    return tuple(sorted(rack for rack, number in before.items() if number > 1 and after[rack] == 1))


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def make_known() -> None:
    kinds.register_kind(
        kinds.ChangeKind(
            name=drafts.KIND,
            label="Reassignment",
            noun="# partition|# partitions",
            edit_url=drafts.edit_url,
            checks=run_stored_checks,
            risk=risk_facts,
            digest=digest_change,
            review_template="planning/_review.html",
            review_context=review_context,
            facts=short_facts,
            replan=replan,
            starts=True,
            moved=queue.follow_change_state,
            copied=copy_upload,
            related=("report",),
            start_words=summaries.start_words,
            run_words=kinds.RunWords(
                paused="Paused. Moves in flight will finish; the others are waiting.",
                cancelling="Cancelling. Moves in flight return to their original replicas.",
                verifying="Verifying. All moves have ended; throttles are being removed.",
                pause="No further moves are submitted. Moves in flight finish under their throttle.",
                resume="Waiting moves are submitted as slots become free.",
            ),
            runs=summaries.summarize_runs,
        )
    )


def digest_change(change: ChangeRequest) -> str:
    """Return the digest of the plan and the limits it may be run under; '' without either."""
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


def copy_upload(original: ChangeRequest, copy: ChangeRequest) -> None:
    """The JSON that was brought goes along."""
    upload = Upload.objects.filter(request=original).first()
    if upload is not None:
        Upload.objects.create(
            request=copy, name=upload.name, size=upload.size, sha256=upload.sha256, data=bytes(upload.data)
        )
