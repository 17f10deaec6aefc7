"""Kafka's error codes: their names, and what they mean for a call."""

from __future__ import annotations

from kafkadash.core.messages import coded
from kafkadash.kafka.api import ItemError, KafkaFailure, NotAuthorized, NotSupported, QuorumUnavailable, RequestFailed
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import errors

UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
REPLICA_NOT_AVAILABLE = 9
NETWORK_EXCEPTION = 13
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_VERSION = 35
AUTHORIZATION_CODES = (TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)
NOT_CONTROLLER = 41
KAFKA_STORAGE_ERROR = 56
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
OFFSET_NOT_AVAILABLE = 78
ELECTION_NOT_NEEDED = 84

# Where kafka-python still has an older name than org.apache.kafka.common.protocol.Errors, or none.
_NEWER_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
    128: "INVALID_REGULAR_EXPRESSION",
    129: "REBOOTSTRAP_REQUIRED",
    130: "STREAMS_INVALID_TOPOLOGY",
    131: "STREAMS_INVALID_TOPOLOGY_EPOCH",
    132: "STREAMS_TOPOLOGY_FENCED",
    133: "SHARE_SESSION_LIMIT_REACHED",
}
# What the brokers say while leaders change or a replica is not there yet: the next look sees something else.
_PASSING = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        LEADER_NOT_AVAILABLE,
        NOT_LEADER_OR_FOLLOWER,
        REQUEST_TIMED_OUT,
        REPLICA_NOT_AVAILABLE,
        NETWORK_EXCEPTION,
        COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE,
        NOT_COORDINATOR,
        NOT_CONTROLLER,
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        OFFSET_NOT_AVAILABLE,
    }
)
# The group's coordinator is another broker, is not known yet, or still reads what it has to know.
COORDINATOR_MOVES = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
# The partition's leader is another broker, or does not know its high watermark yet.
LEADER_MOVES = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,  # of a broker: it does not host the partition (any more)
        LEADER_NOT_AVAILABLE,
        NOT_LEADER_OR_FOLLOWER,
        REPLICA_NOT_AVAILABLE,
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        OFFSET_NOT_AVAILABLE,
    }
)
_WITHOUT_CONTROLLER = (UNKNOWN_SERVER_ERROR, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT)


def code_name(code: int) -> str:
    """Kafka's name of a protocol error code, as in org.apache.kafka.common.protocol.Errors."""
    if code in _NEWER_NAMES:
        return _NEWER_NAMES[code]
    error = errors.for_code(code)
    return str(error.message) if error.__name__ != "UnrecognizedBrokerError" else f"UNKNOWN_CODE_{code}"


def item_error(code: int, subject: str, *, detail: str | None = None, permission: str = "") -> ItemError:
    """``subject`` is what is missing, such as "Broker 3 has no log end offset of t-0".

    ``permission`` names operation and resource that Kafka asks for: said where the code means that it is missing.
    """
    name = code_name(code)

    params: dict[str, str] = {"subject": subject, "code": name}
    if permission and code in AUTHORIZATION_CODES:
        told, params = KafkaErrorCode.ITEM_FORBIDDEN, {**params, "permission": permission}
    else:
        told = KafkaErrorCode.ITEM_NOT_NOW if code in _PASSING else KafkaErrorCode.ITEM_REFUSED
        params["detail"] = detail or _describe_code(code)
    return ItemError(coded(told, **params), code, name)


def call_failure(
    code: int, request: str, *, permission: str, through_controller: bool = False, detail: str | None = None
) -> KafkaFailure:
    """The exception for an error code that an answer carries for the call as a whole.

    ``permission`` names operation and resource that Kafka asks for, such as "Describe on the cluster".
    """
    name = code_name(code)
    words = f": {detail}" if detail else ""
    if code in AUTHORIZATION_CODES:
        return NotAuthorized(KafkaErrorCode.CALL_FORBIDDEN, request=request, permission=permission, code=name)
    if code == UNSUPPORTED_VERSION:
        return NotSupported(KafkaErrorCode.CALL_UNSUPPORTED, request=request, code=name, said=words)
    if through_controller and code in _WITHOUT_CONTROLLER:
        return QuorumUnavailable(KafkaErrorCode.CALL_WITHOUT_CONTROLLER, request=request, code=name, said=words)
    failed = coded(KafkaErrorCode.CALL_FAILED, request=request, name=name, code=code, said=words)
    return RequestFailed(failed, number=code, name=name)


def _describe_code(code: int) -> str:
    text = str(errors.for_code(code).description or "").strip().rstrip(".")
    return text[:1].lower() + text[1:] if text else "Kafka gave no reason"
