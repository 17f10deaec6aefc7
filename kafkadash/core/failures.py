"""Kinds of failures of a refresh, and what each of them means."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.status import RefreshStatus


class FailureKind(StrEnum):
    """Codes of a refresh that failed; the values are stored. The first ten are failures of ``kafka.api``."""

    UNREACHABLE = "unreachable"
    DEADLINE_EXCEEDED = "deadline-exceeded"
    CREDENTIALS_REFUSED = "credentials-refused"
    TOKEN_UNAVAILABLE = "token-unavailable"  # noqa: S105 (a kind of failure)
    NOT_AUTHORIZED = "not-authorized"
    NOT_SUPPORTED = "not-supported"
    ANSWER_TOO_LARGE = "answer-too-large"
    QUORUM_UNAVAILABLE = "quorum-unavailable"
    REQUEST_FAILED = "request-failed"
    OTHER = "other"
    SECRET_UNREADABLE = "secret-unreadable"  # noqa: S105 (a kind of failure)
    ANOTHER_CLUSTER = "another-cluster"
    REGISTERED_TWICE = "registered-twice"
    COLLECTOR_FAULT = "collector-fault"
    COLLECTOR_SET_ASIDE = "collector-set-aside"


NO_ANSWER_FAILURES = frozenset({FailureKind.UNREACHABLE, FailureKind.DEADLINE_EXCEEDED})
"""Failures without an answer; the others are answers that do not help."""

NO_CONTROLLER_FAILURES = frozenset({FailureKind.QUORUM_UNAVAILABLE, FailureKind.DEADLINE_EXCEEDED})
"""Silence of the controllers, not a refusal by them."""

REFUSALS = frozenset(
    {
        FailureKind.CREDENTIALS_REFUSED,
        FailureKind.NOT_AUTHORIZED,
        FailureKind.NOT_SUPPORTED,
        FailureKind.REQUEST_FAILED,
    }
)
"""Answers of the cluster about our rights or about what it can do."""


QUORUM_FAILURES = 2
"""Refreshes in a row without an answer of the controllers: one alone may be a change of the leader."""


def controllers_are_silent(quorum_status: RefreshStatus) -> bool:
    """True where several questions in a row got no answer; ``quorum_status``: how reading the quorum went."""
    return quorum_status.failures >= QUORUM_FAILURES and quorum_status.failure in NO_CONTROLLER_FAILURES


def controllers_are_unheard(quorum_status: RefreshStatus) -> bool:
    """True where several questions in a row brought nothing of the controllers: no answer, and no refusal either.

    They may be silent, or the question did not come through: what brokers repeat of them cannot be told to be new.
    """
    return quorum_status.failures >= QUORUM_FAILURES and quorum_status.failure not in REFUSALS
