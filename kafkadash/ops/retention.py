"""Delete rows that are older than their retention, in short transactions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, models
from django.db.models import Exists, F, Min, OuterRef, Q

from kafkadash.history import partitions
from kafkadash.history.partitions import old_rows
from kafkadash.monitoring.cluster_events.store import prune_events
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CanaryPoint,
    ClusterPoint,
    Collection,
    GroupLagPoint,
    GroupState,
    MoveOutcome,
    QuorumReplicaState,
    QuorumSnapshot,
    ReassignmentSnapshot,
    ThrottleState,
    TopicTraffic,
)
from kafkadash.monitoring.quorum.collector import GONE

_BATCH = 2000
_THIN_S, _SLICE_S = 300, 900
# The newest point of a group says what holds until now, however old it is.
_THIN = """
    DELETE FROM monitoring_grouplagpoint p USING (
        SELECT o.id, row_number() OVER (
            PARTITION BY o.group_id, floor(extract(epoch FROM o.at) / %(step)s)
            ORDER BY o.lag DESC NULLS LAST, o.at DESC
        ) AS place
        FROM monitoring_grouplagpoint o JOIN monitoring_groupstate g ON g.id = o.group_id
        WHERE o.at >= %(begin)s AND o.at < %(end)s AND o.at - o.since < interval '5 minutes'
          AND g.point_at IS DISTINCT FROM o.at
    ) q WHERE p.id = q.id AND q.place > 1
"""


def prune(now: datetime) -> Mapping[str, int]:
    """Deletes what is past its keep and returns how many rows of each model went."""
    forgotten = _before(now, settings.KEEP_GONE_HOURS)
    return {
        "rollup_tables": partitions.drop_old(now),
        **{name: _delete(rows) for name, rows in old_rows(now).items()},
        "collections": _delete(Collection.objects.filter(started_at__lt=_before(now, settings.KEEP_COLLECTIONS_HOURS))),
        "canary": _delete(CanaryPoint.objects.filter(taken_at__lt=_before(now, settings.KEEP_CANARY_HOURS))),
        "quorum_snapshots": _delete(_old_quorum_snapshots(now)),
        "quorum_replicas": _delete(QuorumReplicaState.objects.filter(status=GONE, changed_at__lt=forgotten)),
        "brokers": _delete(BrokerState.objects.filter(gone_at__lt=forgotten, replicas=0)),
        "broker_weights": _delete(BrokerWeights.objects.filter(taken_at__lt=forgotten)),
        "groups": _delete(GroupState.objects.filter(gone_at__lt=forgotten)),
        "group_points": _delete(_old_lag(now)),
        "group_points_thinned": _thin_lag(now),
        "cluster_points": _delete(ClusterPoint.objects.filter(taken_at__lt=_before(now, settings.KEEP_TRAFFIC_HOURS))),
        "topic_traffic": _delete(TopicTraffic.objects.filter(taken_at__lt=_before(now, settings.KEEP_TRAFFIC_HOURS))),
        "events": prune_events(now),
        "throttles": _delete(ThrottleState.objects.filter(read_at__lt=forgotten)),
        "reassignments": _delete(
            ReassignmentSnapshot.objects.exclude(outcome=MoveOutcome.RUNNING).filter(
                ended_at__lt=_before(now, settings.KEEP_ENDED_REASSIGNMENTS_HOURS)
            )
        ),
    }


def _old_quorum_snapshots(now: datetime) -> models.QuerySet[QuorumSnapshot]:
    """The first answer of each leader stays longer: these are the history of leader changes."""
    old = QuorumSnapshot.objects.filter(taken_at__lt=_before(now, settings.KEEP_QUORUM_HOURS))
    earlier = QuorumSnapshot.objects.filter(
        cluster=OuterRef("cluster"), leader_epoch=OuterRef("leader_epoch"), taken_at__lt=OuterRef("taken_at")
    )
    later_leader = QuorumSnapshot.objects.filter(cluster=OuterRef("cluster"), leader_epoch__gt=OuterRef("leader_epoch"))
    long_over = Q(taken_at__lt=_before(now, settings.KEEP_LEADERS_HOURS)) & Exists(later_leader)
    return old.filter(Exists(earlier) | long_over)


def _old_lag(now: datetime) -> models.QuerySet[GroupLagPoint]:
    old = GroupLagPoint.objects.filter(at__lt=_before(now, settings.KEEP_LAG_HOURS))
    return old.exclude(group__point_at=F("at"))


def _thin_lag(now: datetime) -> int:
    """Keep, of lag points older than ``KEEP_LAG_WHOLE_HOURS``, only the worst of each five minutes.

    A slice of time after the other, each a short statement; what was thinned before has nothing left to lose.
    """
    end = datetime.fromtimestamp(_before(now, settings.KEEP_LAG_WHOLE_HOURS).timestamp() // _SLICE_S * _SLICE_S, UTC)
    oldest = GroupLagPoint.objects.filter(at__lt=end).aggregate(oldest=Min("at"))["oldest"]
    if oldest is None:
        return 0
    begin = datetime.fromtimestamp(oldest.timestamp() // _SLICE_S * _SLICE_S, UTC)
    thinned = 0
    with connection.cursor() as cursor:
        while begin < end:
            cursor.execute(_THIN, {"begin": begin, "end": begin + timedelta(seconds=_SLICE_S), "step": _THIN_S})
            thinned += cursor.rowcount
            begin += timedelta(seconds=_SLICE_S)
    return thinned


def _before(now: datetime, hours: float) -> datetime:
    return now - timedelta(hours=hours)


def _delete(rows: models.QuerySet[Any]) -> int:
    """Deletes in batches, each its own statement, so that no transaction is long."""
    total = 0
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        deleted, _ = rows.model._default_manager.filter(pk__in=ids).delete()
        total += deleted
    return total
