"""What the risk floor is reckoned from, read from the stored report of a plan."""

from __future__ import annotations

from collections import Counter

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.impact import Impact
from kafkadash.domain.risk import RiskFacts
from kafkadash.reassign.models import PlanReport

UNKNOWN = RiskFacts(bytes_share=None, partitions_share=None, spread_worse=None)
"""Of a request without a plan: nothing is known, so nothing is harmless."""


def risk_facts(change: ChangeRequest) -> RiskFacts:
    stored = (
        PlanReport.objects.filter(request=change, artifact=change.artifact_id).values_list("impact", flat=True).first()
    )
    return UNKNOWN if stored is None else facts_of(Impact.from_json(stored))


def facts_of(impact: Impact) -> RiskFacts:
    """A plan that copies nothing moves no bytes, whatever the cluster holds."""
    return RiskFacts(
        bytes_share=0.0 if impact.copied_bytes == 0 else _share(impact.copied_bytes, impact.total_bytes),
        partitions_share=_share(impact.partitions_moved, impact.partitions_total),
        rf_decreases=impact.rf_down,
        internal_topics=len(impact.internal_topics),
        spread_worse=_spread_worse(impact),
        racks_on_one_broker=_left_with_one_broker(impact),
    )


def _spread_worse(impact: Impact) -> int | None:
    """Partitions in fewer racks, or less even. None where only some brokers name a rack; where none does, or all the
    same, there is no spread that could get worse.
    """
    if len({broker.rack for broker in impact.brokers}) == 1:
        return 0
    return impact.spread_worse


def _left_with_one_broker(impact: Impact) -> tuple[str, ...]:
    before = Counter(b.rack for b in impact.brokers if b.rack is not None and b.alive and b.replicas_before)
    after = Counter(b.rack for b in impact.brokers if b.rack is not None and b.alive and b.replicas_after)
    return tuple(sorted(rack for rack, number in before.items() if number > 1 and after[rack] == 1))


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole
