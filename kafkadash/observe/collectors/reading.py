"""What a collector brings back from Kafka, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import join_messages
from kafkadash.kafka.groups import KafkaGroups
from kafkadash.kafka.port import ItemError, KafkaAdmin, NotAuthorized, Unreachable
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import Kind
from kafkadash.observe.segments.outbox import Facts

AUTHORIZATION_FAILED = (29, 31)  # of a topic, of the cluster


@dataclass(frozen=True, slots=True)
class Asking:
    """What a collector works with. ``step`` renews the lease; it is called before each question to Kafka."""

    cluster: Cluster
    admin: KafkaAdmin
    groups: KafkaGroups
    deadline: float
    step: Callable[[], None]
    succeeded_at: datetime | None
    interval_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer ready to be stored. ``write`` runs inside the fenced transaction and does nothing slow.

    ``portions`` are written before it, each in a fenced transaction of its own: rows that are true by themselves, and
    too many for one short transaction (the first look at a large cluster, or a broker that hosts a bit of everything).
    ``facts`` are for the pipeline (``observe.segments``): they are stored with the rest, for files. ``doubts``: kinds
    of facts of which this answer says that what is stored may not hold any more; they are read at once.
    """

    taken_at: datetime
    rows: int
    write: Callable[[Stamp], None]
    not_answered: Sequence[int] = ()
    errors: Sequence[str] = ()
    portions: Sequence[Callable[[], None]] = ()
    facts: Sequence[Facts] = ()
    doubts: Sequence[Kind] = ()


def silent(errors: Mapping[int, ItemError]) -> set[int]:
    """Of the brokers without figures, those from which no answer came: a refusal is an answer."""
    return {broker for broker, error in errors.items() if error.code is None}


def refuse_nothing(answered: Collection[object], errors: Mapping[int, ItemError]) -> None:
    """A refresh that brought nothing from any broker is a failed one, not a fresh one without figures.

    Raises NotAuthorized where a permission is missing, and Unreachable where no answer came.
    """
    if answered or not errors:
        return
    told = join_messages(error.message for error in errors.values())
    refused = any(error.code in AUTHORIZATION_FAILED for error in errors.values())
    raise NotAuthorized(told) if refused else Unreachable(told)


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC time."""
    return datetime.fromtimestamp(seconds, UTC)
