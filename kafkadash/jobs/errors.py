"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class JobErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Work that a worker does for a page or a command
    TOOK_TOO_LONG = "took-too-long"
    CRASHED = "crashed"
    WITHOUT_CLUSTER = "without-cluster"
    NO_SUCH_TEST = "no-such-test"
    TEST_FOR_ADMINISTRATORS = "test-for-administrators"
    ASKED_BY_ANOTHER = "asked-by-another"
    LOST_WORKER = "lost-worker"
    KIND_UNKNOWN = "kind-unknown"

    # Clusters that do not answer, and what a connection test finds
    NONE_GOT_THIS_FAR = "none-got-this-far"
    LISTENERS_UNREACHABLE = "listeners-unreachable"
    LISTENER_UNREACHABLE = "listener-unreachable"
    NO_VERSIONS = "no-versions"
    LOGIN_UNANSWERED = "login-unanswered"
    NOT_ASKED = "not-asked"
    TAKES_NO_PART = "takes-no-part"
    QUORUM_UNREAD = "quorum-unread"
    ZOOKEEPER_UNREAD = "zookeeper-unread"
    MIGRATES = "migrates"
    RIGHTS_UNKNOWN = "rights-unknown"
    MISSING_ON_CLUSTER = "missing-on-cluster"
    CHANGE_NOT_GRANTED = "change-not-granted"
    MISSING_ON_TOPICS = "missing-on-topics"
