"""What went wrong with one node, as one sentence for a person; and which of several such sentences to tell."""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Sequence

from kafkadash.domain.messages import join_messages
from kafkadash.kafka.client import MOST_ANSWER_BYTES, AnswerOversized, ConnectFailed, NodeId, TlsFailed
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import errors
from kafkadash.kafka.port import (
    AnswerTooLarge,
    AuthenticationFailed,
    DeadlineExceeded,
    KafkaFailure,
    NotAuthorized,
    NotSupported,
    Unreachable,
)
from kafkadash.kafka.tls import tls_reason

log = logging.getLogger(__name__)

SLACK = 0.03  # seconds: lets a connection's own time limit speak first, as it knows better what was waited for

# What is raised instead of other failures of the same call when several nodes were tried.
_MOST_TELLING = (AuthenticationFailed, NotAuthorized, NotSupported, AnswerTooLarge, DeadlineExceeded, Unreachable)


_CLASS_NAME = re.compile(r"^\w+Error: ")  # kafka-python puts its own class names in front of Kafka's words


def label(node: NodeId, address: str | None) -> str:
    return f"Broker {node} ({address})" if isinstance(node, int) else f"The bootstrap server {address}"


def explained(error: Exception, who: str, until: float) -> KafkaFailure:
    """A library's error as one sentence about ``who``, for a question that had time until ``until`` (monotonic)."""
    cause = error.args[0] if error.args else "no reason was given"
    detail = _CLASS_NAME.sub("", str(cause)).rstrip(".")
    if refused := _refused(error, cause, who, detail):
        return refused
    if isinstance(error, AnswerOversized):
        return AnswerTooLarge(KafkaErrorCode.ANSWER_TOO_LARGE, who=who, most=MOST_ANSWER_BYTES // 10**6)
    if isinstance(error, ConnectFailed):
        return Unreachable(KafkaErrorCode.NODE_NOT_CONNECTED, who=who, detail=detail)
    if isinstance(error, errors.UnsupportedVersionError):
        return NotSupported(KafkaErrorCode.NODE_TOO_OLD, who=who, detail=detail)
    if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
        if time.monotonic() < until - SLACK:
            return Unreachable(KafkaErrorCode.EARLIER_UNANSWERED, who=who)
        return DeadlineExceeded(KafkaErrorCode.NODE_TOO_SLOW, who=who)
    if isinstance(error, errors.KafkaProtocolError):
        return Unreachable(KafkaErrorCode.NOT_KAFKA, who=who)
    if isinstance(error, errors.KafkaConnectionError):
        return Unreachable(KafkaErrorCode.CLOSED_INSTEAD, who=who, detail=detail)
    if isinstance(error, errors.KafkaError):
        return Unreachable(KafkaErrorCode.NODE_NOT_ASKED, who=who, detail=detail)
    log.error("kafka.asking_crashed", exc_info=error)
    return Unreachable(KafkaErrorCode.ASKING_CRASHED, who=who)


def _refused(error: Exception, cause: object, who: str, detail: str) -> AuthenticationFailed | None:
    """Return the failure where TLS or SASL did not let us in, else None."""
    if isinstance(cause, ssl.SSLError):  # TLS 1.3: the broker's verdict on our certificate comes after the handshake
        return AuthenticationFailed(KafkaErrorCode.CLIENT_CERTIFICATE_REFUSED, who=who, detail=tls_reason(cause))
    if isinstance(error, TlsFailed):
        return AuthenticationFailed(KafkaErrorCode.HANDSHAKE_FAILED, who=who, detail=detail)
    if isinstance(error, errors.UnsupportedSaslMechanismError | errors.IllegalSaslStateError):
        return AuthenticationFailed(KafkaErrorCode.SASL_MECHANISM_REFUSED, who=who, detail=detail)
    if isinstance(error, errors.SaslAuthenticationFailedError | errors.AuthorizationError | ValueError | KeyError):
        return AuthenticationFailed(KafkaErrorCode.CREDENTIALS_REFUSED, who=who, detail=detail)
    return None


def most_telling(failures: Sequence[KafkaFailure]) -> KafkaFailure:
    """One failure for a question that several nodes failed to answer."""
    for kind in _MOST_TELLING:
        same = [failure for failure in failures if isinstance(failure, kind)]
        if same:
            special = type(same[0]) if len({type(failure) for failure in same}) == 1 else kind
            return special(join_messages(failure.message for failure in same)) if len(same) > 1 else same[0]
    return failures[-1]
