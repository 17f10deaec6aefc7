"""Codes of settings that cannot be used, with their texts: they are needed before any app is ready."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kafkadash.core.messages import MessageTemplate, register_messages


class SettingErrorCode(StrEnum):
    """Codes; people search for the values."""

    DATABASE_URL_WRONG = "database-url-wrong"
    EMAIL_URL_WRONG = "email-url-wrong"
    SECRET_KEY_TOO_SHORT = "secret-key-too-short"  # noqa: S105
    METRICS_TOKEN_TOO_SHORT = "metrics-token-too-short"  # noqa: S105
    DEAD_MAN_URL_WRONG = "dead-man-url-wrong"
    SETTING_NOT_USABLE = "setting-not-usable"
    LEVEL_UNKNOWN = "level-unknown"


class SettingKind(StrEnum):
    """Kinds of values that settings take."""

    WHOLE_NUMBER = "whole-number"
    NUMBER = "number"
    NETWORKS = "networks"


SETTING_MESSAGES: Mapping[SettingErrorCode, MessageTemplate] = {
    SettingErrorCode.DATABASE_URL_WRONG: MessageTemplate(
        "DATABASE_URL is not a valid URL.", "Use postgres://user:password@host:port/name."
    ),
    SettingErrorCode.EMAIL_URL_WRONG: MessageTemplate(
        "EMAIL_URL is not the URL of a mail server.", "Use smtp+tls://user:password@host:587."
    ),
    SettingErrorCode.SECRET_KEY_TOO_SHORT: MessageTemplate(
        "SECRET_KEY, or a key of SECRET_KEY_FALLBACKS, has fewer than {least} characters. Sessions could be forged.",
        "Set a long random value. docker-compose.yml shows how to create one.",
    ),
    SettingErrorCode.METRICS_TOKEN_TOO_SHORT: MessageTemplate(
        "METRICS_TOKEN has fewer than {least} characters. It could be guessed.", "Set a long random value."
    ),
    SettingErrorCode.DEAD_MAN_URL_WRONG: MessageTemplate(
        "DEAD_MAN_URL is not an http or https URL.", "Use the ping URL of your monitoring service."
    ),
    SettingErrorCode.SETTING_NOT_USABLE: MessageTemplate(
        "{name} is {value!r}, which is not {kind:setting_kind}.", "Correct the variable in kafkadash's environment."
    ),
    SettingErrorCode.LEVEL_UNKNOWN: MessageTemplate(
        "", "LOG_LEVEL is {level!r}. Use DEBUG, INFO, WARNING, ERROR or CRITICAL."
    ),
}
_KINDS = {
    SettingKind.WHOLE_NUMBER: "a whole number",
    SettingKind.NUMBER: "a number",
    SettingKind.NETWORKS: "a list of networks such as 10.20.0.0/16",
}

register_messages(SETTING_MESSAGES, {"setting_kind": lambda kind: _KINDS[SettingKind(kind)]})
