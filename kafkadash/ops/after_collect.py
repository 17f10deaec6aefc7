"""Steps after a stored refresh, in order: claim throttles and moves, judge findings, publish, check open changes.

Panels show claims and findings, and nothing of the checks: these announce their changes themselves.

A receiver compares state, never edges: a lost event costs one interval.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.dispatch import receiver

from kafkadash.changes.recheck import KINDS, recheck
from kafkadash.core import clock
from kafkadash.core.events import collected
from kafkadash.execution import claims
from kafkadash.findings.services import judge
from kafkadash.live.panels import BOARD
from kafkadash.live.publisher import publish_keys, publish_panels

log = structlog.get_logger(__name__)


@receiver(collected, dispatch_uid="ops.after_collect")
def after_collect(*, cluster_id: int, kinds: frozenset[str], seq: int, **_: Any) -> None:
    now = clock.now()
    try:
        if kinds & claims.KINDS:
            claims.reconcile_claims(cluster_id, now)
    except Exception:
        # Pages call ours somebody else's for one refresh more; nothing is done on that.
        log.exception("claims.reconcile_failed", cluster=cluster_id)
    news = False
    try:
        news = judge(cluster_id, now)
    except Exception:
        # What was read is shown all the same; pages say by themselves that it was not judged.
        log.exception("findings.judgement_failed", cluster=cluster_id)
    publish_panels(cluster_id, kinds, seq)
    if news:
        publish_keys([BOARD], seq)  # its title and what it counts by kind are of all clusters
    try:
        if kinds & KINDS:
            recheck(cluster_id, now)
    except Exception:
        # The age of the last checks grows on the pages, and before a change runs it is checked again.
        log.exception("changes.recheck_failed", cluster=cluster_id)
