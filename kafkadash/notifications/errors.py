"""Codes of what notifications say, and of what receivers and people are refused; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class NotificationCode(StrEnum):
    """Codes of what happened with a change, of a test, and of a digest."""

    CHANGE_WAITING = "notify-change-waiting"
    CHANGE_APPROVED = "notify-change-approved"
    CHANGE_DECLINED = "notify-change-declined"
    CHANGE_STALE = "notify-change-stale"
    CHANGE_STARTED = "notify-change-started"
    CHANGE_ENDED = "notify-change-ended"
    CHANGE_WITH_EXCEPTIONS = "notify-change-with-exceptions"
    TEST = "notify-test"
    DIGEST = "notify-digest"


class DeliveryErrorCode(StrEnum):
    """Codes of why a receiver has not accepted a message, and of what people enter wrongly."""

    # A try that failed
    HOST_UNKNOWN = "receiver-host-unknown"
    ADDRESS_FORBIDDEN = "receiver-address-forbidden"
    UNREACHABLE = "receiver-unreachable"
    TLS_FAILED = "receiver-tls-failed"
    SLOW = "receiver-slow"
    ANSWER_UNUSABLE = "receiver-answer-unusable"
    REDIRECTS = "receiver-redirects"
    STATUS = "receiver-status"
    MAIL_FAILED = "receiver-mail-failed"
    ADDRESSES_REFUSED = "receiver-addresses-refused"
    FAULT = "receiver-fault"

    # Forms
    URL_WRONG = "receiver-url-wrong"
    URL_UNENCRYPTED = "receiver-url-unencrypted"
    URL_OF_SERVICE = "receiver-url-of-service"
    SERVICE_UNKNOWN = "receiver-service-unknown"
    SERVICE_URL_WRONG = "receiver-service-url-wrong"
    SERVICE_OPTION = "receiver-service-option"
    SERVICE_UNCHECKED = "receiver-service-unchecked"
    SERVICE_SEVERAL = "receiver-service-several"
    KEY_WRONG = "receiver-key-wrong"
    MAIL_WRONG = "receiver-mail-wrong"
    MAIL_NOT_SET = "receiver-mail-not-set"
    NAME_NEEDED = "receiver-name-needed"
    NAME_TAKEN = "receiver-name-taken"
    NOTHING_SENT = "route-sends-nothing"
    FINDINGS_ONLY = "route-findings-only"
    CLUSTER_UNKNOWN = "route-cluster-unknown"
    TARGET_GONE = "receiver-gone"
