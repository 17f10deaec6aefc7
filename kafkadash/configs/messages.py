"""Texts of the codes of changes of configs."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.configs.errors import ConfigCheckTitle, ConfigErrorCode
from kafkadash.configs.reasons import ConfigReasonCode
from kafkadash.core.messages import MessageTemplate

CONFIG_ERROR_MESSAGES: Mapping[ConfigErrorCode, MessageTemplate] = {
    ConfigErrorCode.NOT_READ: MessageTemplate(
        "The configs of {owner} are not read yet.", "Check the worker, and the permissions in the connection test."
    ),
    ConfigErrorCode.OWNER_UNKNOWN: MessageTemplate(
        "{cluster} has no such broker.", "Open the page of a broker, and edit its configs from there."
    ),
    ConfigErrorCode.KEY_MISSING: MessageTemplate("A config is required.", "Choose one from the list."),
    ConfigErrorCode.KEY_REPEATED: MessageTemplate("{key} is given twice.", "Give each config once."),
    ConfigErrorCode.TYPED_NO_VALUE: MessageTemplate(
        "“{typed}” sets no config.", "Type key and value, such as retention.ms=86400000."
    ),
    ConfigErrorCode.TYPED_NO_KEY: MessageTemplate(
        "“{typed}” names no config.", "Type the key alone, such as retention.ms."
    ),
    ConfigErrorCode.KEY_UNKNOWN: MessageTemplate("Kafka describes no config {key}.", "Choose one from the list."),
    ConfigErrorCode.KEY_READ_ONLY: MessageTemplate(
        "{key} is read-only.", "Set it in the broker's properties file, then restart the broker."
    ),
    ConfigErrorCode.KEY_SENSITIVE: MessageTemplate(
        "{key} is sensitive; kafkadash neither shows nor stores such values.", "Set it with kafka-configs."
    ),
    ConfigErrorCode.KEY_OF_THROTTLES: MessageTemplate(
        "{key} is a throttle; runs set and remove throttles.", "Remove orphans on the page Throttles."
    ),
    ConfigErrorCode.KEY_TOO_LONG: MessageTemplate("The name of this config is too long.", "Set it with kafka-configs."),
    ConfigErrorCode.VALUE_OF_TYPE: MessageTemplate("{value} is not of type {type}.", "Correct the value of {key}."),
    ConfigErrorCode.VALUE_TOO_LONG: MessageTemplate(
        "The value of {key} has {length:,} characters; the limit is {most:,}.", "Shorten it."
    ),
    ConfigErrorCode.NOTHING_CHANGED: MessageTemplate("No value was changed.", "Change at least one value."),
    ConfigErrorCode.LEFT_OUT_GONE: MessageTemplate(
        "{configs:# config is|# configs are} left out: its topic or broker no longer exists, or was not read.",
        "Open the page of the topic or broker.",
    ),
    ConfigErrorCode.LEFT_OUT_CHANGED: MessageTemplate(
        "{configs:# config is|# configs are} left out: the value is another one than the run set.",
        "Edit them one by one.",
    ),
    ConfigErrorCode.LEFT_OUT_SAME: MessageTemplate(
        "{configs:# config is|# configs are} left out: the value is already set so.", "No action needed."
    ),
}

CONFIG_TITLES: Mapping[ConfigCheckTitle, MessageTemplate] = {
    ConfigCheckTitle.FITS: MessageTemplate("Values are still those that the change replaces"),
}

_REFRESH = "Refresh the plan."

CONFIG_MESSAGES: Mapping[ConfigReasonCode, MessageTemplate] = {
    ConfigReasonCode.TOPIC_GONE: MessageTemplate("The topic no longer exists.", _REFRESH),
    ConfigReasonCode.TOPIC_RECREATED: MessageTemplate("The topic was deleted and created again.", _REFRESH),
    ConfigReasonCode.BROKER_GONE: MessageTemplate("The broker is no longer registered.", _REFRESH),
    ConfigReasonCode.UNREAD: MessageTemplate("The configs are not read.", "Check the permissions of kafkadash."),
    ConfigReasonCode.VALUE_CHANGED: MessageTemplate("The value is {value}, planned with {expected}.", _REFRESH),
    ConfigReasonCode.MIN_ISR_TOO_HIGH: MessageTemplate(
        "Producers with acks=all could not write: min.insync.replicas is {min_isr}, the replication factor {factor}.",
        "Choose a lower value.",
    ),
}
