"""The consumer groups of a cluster in a few words: how many there are, how they do, and the worst of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import F

from kafkadash.clusters.models import Cluster
from kafkadash.domain.lag_group import STATES
from kafkadash.domain.status import State
from kafkadash.observe.models import Kind
from kafkadash.observe.queries.group_list import GroupLine, group_freshness, other_words, present, tally_of, title_of
from kafkadash.observe.standing import Standing, standing


def groups_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """``worst``: the group that is farthest from well, None where all are. Three queries."""
    seen = known or standing(cluster, now)
    freshness = seen.freshness_of(Kind.GROUPS)
    tally = tally_of(cluster)
    unwell = sum(tally.get(s.value, 0) for s, colour in STATES.items() if colour not in (State.OK, State.UNKNOWN))
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "freshness": freshness,
        "title": title_of(cluster.name, tally, freshness, other_words(cluster)),
        "total": sum(tally.values()),
        "unwell": unwell,
        "worst": _worst(cluster, seen, now) if unwell else None,
    }


def _worst(cluster: Cluster, seen: Standing, now: datetime) -> GroupLine | None:
    """The first one of the list of groups as it is sorted unless asked otherwise."""
    rows = present(cluster).defer("times", "counts")
    row = rows.order_by("rank", F("worst_lag").desc(nulls_last=True), "name").first()
    return None if row is None else GroupLine(row, group_freshness(row, seen.runs.get(Kind.GROUPS), now))
