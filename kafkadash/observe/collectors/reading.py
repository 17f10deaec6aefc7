"""What a collector brings back from Kafka, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.port import KafkaAdmin
from kafkadash.observe.lease import Stamp


@dataclass(frozen=True, slots=True)
class Asking:
    """What a collector works with. ``step`` renews the lease; it is called before each question to Kafka."""

    cluster: Cluster
    admin: KafkaAdmin
    deadline: float
    step: Callable[[], None]
    succeeded_at: datetime | None
    interval_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer ready to be stored. ``write`` runs inside the fenced transaction and does nothing slow."""

    taken_at: datetime
    rows: int
    write: Callable[[Stamp], None]
    not_answered: Sequence[int] = ()
    errors: Sequence[str] = ()


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC time."""
    return datetime.fromtimestamp(seconds, UTC)
