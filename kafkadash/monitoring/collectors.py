"""Base of the collectors: their input (``CollectContext``), their answer before it is written (``CollectedFacts``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.leases import WriteStamp
from kafkadash.core.messages import CodedMessage, coded, join_messages
from kafkadash.export.outbox import OutboxFacts
from kafkadash.kafka.api import ItemError, KafkaAdmin, KafkaGroups, KafkaUnreachable, LogSpans, NotAuthorized
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorKind

AUTHORIZATION_FAILED = (29, 31)  # of a topic, of the cluster


@dataclass(frozen=True, slots=True)
class CollectContext:
    """Context of a collector. ``step`` renews the lease and is called before each request to Kafka."""

    cluster: Cluster
    admin: KafkaAdmin
    groups: KafkaGroups
    deadline: float
    step: Callable[[], None]
    succeeded_at: datetime | None
    interval_s: float


@dataclass(frozen=True, slots=True)
class CollectedFacts:
    """An answer ready to be stored. ``write`` runs inside the fenced transaction and does nothing slow.

    ``portions`` are written before it, each in a fenced transaction of its own: rows that are true by themselves, and
    too many for one short transaction (the first look at a large cluster, or a broker that hosts a bit of everything).
    ``facts`` are for the pipeline (``export``): they are stored with the rest, for files. ``doubts``: kinds
    of facts of which this answer says that what is stored may not hold any more; they are read at once.
    """

    taken_at: datetime
    rows: int
    write: Callable[[WriteStamp], None]
    not_answered: Sequence[int] = ()
    errors: Sequence[CodedMessage] = ()
    portions: Sequence[Callable[[], None]] = ()
    facts: Sequence[OutboxFacts] = ()
    doubts: Sequence[CollectorKind] = ()


def find_silent_brokers(errors: Mapping[int, ItemError]) -> set[int]:
    """Return the brokers without figures that did not answer.

    A broker that refused the request or the login did answer; without an access token nobody was asked.
    """
    return {broker for broker, error in errors.items() if error.code is None and error.name not in _OF_LOGIN}


_OF_LOGIN = frozenset({FailureKind.CREDENTIALS_REFUSED, FailureKind.TOKEN_UNAVAILABLE})


def broker_errors(errors: Mapping[int, ItemError]) -> list[CodedMessage]:
    """Return one message for each broker without figures."""
    return [broker_error(broker, error.message) for broker, error in sorted(errors.items())]


def broker_error(broker: int, why: CodedMessage) -> CodedMessage:
    """Return ``why`` for a broker without figures, with the broker's ID if it does not name it."""
    if why.code == KafkaErrorCode.BROKER_NOT_LIVE:
        return why
    return coded(CollectionErrorCode.BROKER_NOT_READ, broker=broker, why=why)


def refuse_nothing(answered: Collection[object], errors: Mapping[int, ItemError]) -> None:
    """A refresh that brought nothing from any broker is a failed one, not a fresh one without figures.

    Raises NotAuthorized where a permission is missing, and Unreachable where no answer came.
    """
    if answered or not errors:
        return
    told = join_messages(error.message for error in errors.values())
    refused = any(error.code in AUTHORIZATION_FAILED for error in errors.values())
    raise NotAuthorized(told) if refused else KafkaUnreachable(told)


def count_causes(errors: Iterable[ItemError]) -> Iterator[tuple[CodedMessage | str, int]]:
    """Yield each cause with how many errors it has, the most frequent first."""
    causes: dict[str, list[ItemError]] = {}
    for error in errors:
        causes.setdefault(error.text, []).append(error)
    for same in sorted(causes.values(), key=len, reverse=True):
        yield same[0].message, len(same)


def refuse_all_unread(spans: LogSpans) -> None:
    """A refresh without a single log end has failed, unless Kafka says why, such as partitions without a leader.

    Raises NotAuthorized or KafkaUnreachable.
    """
    if spans.spans or not spans.errors:
        return
    errors = [error for of_topic in spans.errors.values() for error in of_topic.values()]
    if refused := next((error for error in errors if error.code in AUTHORIZATION_FAILED), None):
        raise NotAuthorized(refused.message)
    if all(error.code is None for error in errors):
        raise KafkaUnreachable(errors[0].message)


def log_errors(spans: LogSpans) -> Iterator[CodedMessage]:
    """Yield a message for each cause, with how many partitions it has."""
    for why, number in count_causes(error for partitions in spans.errors.values() for error in partitions.values()):
        yield coded(CollectionErrorCode.LOG_ENDS_NOT_READ, partitions=number, why=why)


def to_utc(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC time."""
    return datetime.fromtimestamp(seconds, UTC)


def split_updates(rows: Mapping[int, Mapping[str, Any]], at_once: int = 2000) -> list[Mapping[int, Mapping[str, Any]]]:
    """The same updates, in parts that a short transaction can write each."""
    keys = list(rows)
    return [{key: rows[key] for key in keys[start : start + at_once]} for start in range(0, len(keys), at_once)]
