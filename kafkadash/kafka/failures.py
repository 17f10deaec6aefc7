"""What went wrong with one node, as one sentence for a person; and which of several such sentences to tell."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Sequence

from kafkadash.kafka.client import ConnectFailed, NodeId, TlsFailed
from kafkadash.kafka.kafka_python import errors
from kafkadash.kafka.port import (
    AuthenticationFailed,
    DeadlineExceeded,
    KafkaFailure,
    NotAuthorized,
    NotSupported,
    Unreachable,
)
from kafkadash.kafka.tls import tls_reason

SLACK = 0.03  # seconds: lets a connection's own time limit speak first, as it knows better what was waited for

# What is raised instead of other failures of the same call when several nodes were tried.
_MOST_TELLING = (AuthenticationFailed, NotAuthorized, NotSupported, DeadlineExceeded, Unreachable)


_CLASS_NAME = re.compile(r"^\w+Error: ")  # kafka-python puts its own class names in front of Kafka's words


def label(node: NodeId, address: str | None) -> str:
    return f"Broker {node} ({address})" if isinstance(node, int) else f"The bootstrap server {address}"


def explained(error: Exception, who: str, until: float) -> KafkaFailure:
    """A library's error as one sentence about ``who``, for a question that had time until ``until`` (monotonic)."""
    cause = error.args[0] if error.args else type(error).__name__
    detail = _CLASS_NAME.sub("", str(cause)).rstrip(".")
    if isinstance(cause, ssl.SSLError):  # TLS 1.3: the broker's verdict on our certificate comes after the handshake
        return AuthenticationFailed(f"{who} refused our TLS certificate, or the lack of one: {tls_reason(cause)}.")
    if isinstance(error, TlsFailed):
        return AuthenticationFailed(f"{who}: the TLS handshake failed: {detail}.")
    if isinstance(error, ConnectFailed):
        return Unreachable(f"{who} could not be connected: {detail}.")
    if isinstance(error, errors.SaslAuthenticationFailedError | errors.AuthorizationError | ValueError | KeyError):
        return AuthenticationFailed(f"{who} refused the credentials: {detail}.")
    if isinstance(error, errors.UnsupportedSaslMechanismError | errors.IllegalSaslStateError):
        return AuthenticationFailed(f"{who} does not accept this SASL mechanism: {detail}.")
    if isinstance(error, errors.UnsupportedVersionError):
        return NotSupported(f"{who}: {detail}")
    if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
        if time.monotonic() < until - SLACK:
            return Unreachable(f"{who}: the connection was given up because an earlier request got no answer.")
        return DeadlineExceeded(f"{who} accepted the connection but did not answer in time.")
    if isinstance(error, errors.KafkaProtocolError):
        return Unreachable(f"{who} answered with something that is not Kafka's protocol (is it a TLS listener?).")
    if isinstance(error, errors.KafkaConnectionError):
        return Unreachable(
            f"{who} closed the connection instead of answering ({detail}): "
            "it stopped, or expects another way to connect (TLS, a login, a certificate)."
        )
    return Unreachable(f"{who} could not be asked: {type(error).__name__}: {detail}.")


def most_telling(failures: Sequence[KafkaFailure]) -> KafkaFailure:
    """One failure for a question that several nodes failed to answer."""
    for kind in _MOST_TELLING:
        same = [failure for failure in failures if isinstance(failure, kind)]
        if same:
            return kind(" ".join(dict.fromkeys(str(failure) for failure in same)))
    return failures[-1]
