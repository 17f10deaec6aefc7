"""What happens after a refresh was stored, in this order: publish it to the browsers that look at it.

A receiver compares state, never edges: an event that gets lost costs one interval.
"""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from kafkadash.events import collected
from kafkadash.live.publisher import publish_panels


@receiver(collected, dispatch_uid="ops.after_collect")
def after_collect(*, cluster_id: int, kinds: frozenset[str], seq: int, **_: Any) -> None:
    publish_panels(cluster_id, kinds, seq)
