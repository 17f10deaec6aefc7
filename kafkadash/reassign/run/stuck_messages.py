"""Texts of why a row does not get on: of each reason (``domain.stuck_reasons``), and in short of its cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkadash.domain.messages import MessageTemplate, Writer
from kafkadash.domain.run_progress import Cause, Direction
from kafkadash.domain.stuck_reasons import StuckReasonCode as Code
from kafkadash.domain.whole_numbers import read_whole_number
from kafkadash.domain.wording import listed

_PLAN_ANEW = "Bring it back, or plan the row anew without it."
_KEPT = "Kafka ends the move only when every replica is in sync."
_BRING_BACK = "Bring back what is away, or plan the row anew without it."
_RAISE = "Raise that limit, or cancel the row."
_MB = 1e6
_LEAST_MB = 100_000.0


def _write_rate(rate: float) -> str:
    """Megabytes with one decimal, or as many bytes as it is where that would be nothing."""
    return f"{rate / _MB:,.1f} MB/s" if rate >= _LEAST_MB else f"{rate:,.0f} B/s"


def _write_stored_rate(value: str) -> str:
    number = read_whole_number(value)
    return _write_rate(number) if number is not None else f"“{value}”"


def _list_numbers(brokers: Sequence[int]) -> str:
    return listed([str(broker) for broker in brokers])


STUCK_WRITERS: Mapping[str, Writer] = {
    "speed": _write_rate,
    "stored_speed": _write_stored_rate,
    "numbers": _list_numbers,
    "does": lambda way: "sends" if way == Direction.OUT else "takes",
}

STUCK_MESSAGES: Mapping[Code, MessageTemplate] = {
    Code.DESTINATION_UNREGISTERED: MessageTemplate(
        "Broker {broker}, which it is copied to, is not registered.", "Start it, or plan the row anew without it."
    ),
    Code.DESTINATION_AWAY: MessageTemplate("Broker {broker}, which it is copied to, is away.", _PLAN_ANEW),
    Code.DESTINATION_FENCED: MessageTemplate("Broker {broker}, which it is copied to, is fenced.", _PLAN_ANEW),
    Code.KEPT_REPLICA_AWAY: MessageTemplate(
        "It is copied and in sync, but broker {brokers:numbers}, which keeps a replica, is away. " + _KEPT,
        _BRING_BACK,
        many="It is copied and in sync, but brokers {brokers:numbers}, which keep a replica, are away. " + _KEPT,
        by="brokers",
    ),
    Code.KEPT_NOT_IN_SYNC: MessageTemplate(
        "It is copied and in sync, but broker {brokers:numbers}, which keeps a replica, is not in sync. " + _KEPT,
        _BRING_BACK,
        many="It is copied and in sync, but brokers {brokers:numbers}, which keep a replica, are not in sync. " + _KEPT,
        by="brokers",
    ),
    Code.NO_SOURCE: MessageTemplate(
        "The partition has no leader, so there is nothing to copy from.", "Bring back a broker that has it in sync."
    ),
    Code.ROW_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} {direction:does} replicas at no more than {limit:speed}; {row} receives {inbound:speed}, so "
        "it can never finish.",
        _RAISE,
    ),
    Code.BROKER_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} {direction:does} replicas at no more than {limit:speed}; producers write {inbound:speed} to "
        "what is copied there, so it can never finish.",
        _RAISE,
    ),
    Code.LIMIT_NOT_OURS: MessageTemplate("That limit is not ours."),
    Code.COPY_BELOW_INBOUND: MessageTemplate(
        "Producers write {inbound:speed} to {row}, which is no less than its copy gets: so it can never finish.",
        "Raise the throttle, or cancel the row.",
    ),
    Code.DESTINATION_DISK_FULL: MessageTemplate(
        "Broker {broker} may take {room:bytes} more on its disks, and {coming:bytes} are still to come.",
        "Make room on it, or plan the row anew without it.",
    ),
    Code.DESTINATION_DISK_NOT_READ: MessageTemplate(
        "The disks of broker {broker} were not read lately; nobody can tell whether they take what comes.",
        "See on the broker's page why they are not read.",
    ),
    Code.DESTINATION_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.", "Uncordon one, or plan the row anew without it."
    ),
    Code.SOURCE_AT_ITS_LIMIT: MessageTemplate(
        "Broker {broker}, which it is copied from, sends {sent:speed} of the {limit:speed} it may, while broker "
        "{idle:numbers}, in sync as well, could send.",
        "Raise the throttle, or let another broker lead it.",
        many="Broker {broker}, which it is copied from, sends {sent:speed} of the {limit:speed} it may, while brokers "
        "{idle:numbers}, in sync as well, could send.",
        by="idle",
    ),
    Code.RATE_OF_OTHERS: MessageTemplate(
        "Broker {broker} has a throttle that is not ours: {key} is {value:stored_speed}.",
        "Decide on the page of its throttles whether it stays.",
    ),
    Code.LIST_OF_OTHERS: MessageTemplate(
        "{key} of {topic} was changed by somebody else.", "Ask who did; it is seen on the page of the throttles."
    ),
    Code.CLUSTER_REFUSES: MessageTemplate("The cluster refuses: {words}", "Mend that, or cancel the row."),
    Code.NO_CAUSE_FOUND: MessageTemplate(
        "It has not come nearer to its leader for {quiet:duration}. Source, destination, leader, disk and throttles "
        "look well.",
        "The log of the destination may say why.",
    ),
}

SENTENCES: Mapping[Cause, str] = {
    Cause.DESTINATION_AWAY: "A broker that it goes to is away.",
    Cause.KEPT_REPLICA_AWAY: "A replica that stays is on a broker that is away.",
    Cause.NO_LEADER: "The partition has no leader to copy from.",
    Cause.BELOW_INBOUND: "The throttle is below what the partition receives.",
    Cause.DESTINATION_DISK: "The disk that it goes to cannot take it.",
    Cause.SOURCE_AT_THROTTLE: "The broker that it copies from sends all that its throttle allows.",
    Cause.FOREIGN_THROTTLE: "A throttle that is not ours holds it up.",
    Cause.REFUSED: "The cluster refused.",
    Cause.UNKNOWN: "Nobody can tell why.",
}

SHORTLY: Mapping[Cause, str] = {
    Cause.DESTINATION_AWAY: "destination away",
    Cause.KEPT_REPLICA_AWAY: "kept replica away",
    Cause.NO_LEADER: "no leader",
    Cause.BELOW_INBOUND: "throttle below inbound",
    Cause.DESTINATION_DISK: "destination disk",
    Cause.SOURCE_AT_THROTTLE: "source at its throttle",
    Cause.FOREIGN_THROTTLE: "throttle of others",
    Cause.REFUSED: "refused",
    Cause.UNKNOWN: "cause not known",
}
