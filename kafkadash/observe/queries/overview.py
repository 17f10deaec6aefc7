"""A cluster in figures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.observe.standing import Standing, standing


def overview_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """State and figures of a cluster. ``known`` saves judging it again."""
    seen = known or standing(cluster, now)
    return {"cluster": cluster, "now": now, "sampled_at": seen.freshness.taken_at, "standing": seen}
