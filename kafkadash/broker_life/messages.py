"""Texts of the codes of changes of brokers."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.broker_life.errors import BrokerLifeCheckTitle, BrokerLifeErrorCode
from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.core.messages import MessageTemplate, Writer

BROKER_LIFE_WRITERS: Mapping[str, Writer] = {
    "cordon": lambda value: "not set" if value is None else f"“{value}”",
}

BROKER_LIFE_ERROR_MESSAGES: Mapping[BrokerLifeErrorCode, MessageTemplate] = {
    BrokerLifeErrorCode.DOES_NOT_FIT: MessageTemplate("{item}: {why:cause}", "{why:advice}"),
    BrokerLifeErrorCode.DIRECTORY_UNKNOWN: MessageTemplate(
        "Broker {broker} has no log directory {path}.", "Open the broker's page, and choose one of those listed."
    ),
    BrokerLifeErrorCode.FEW_LEFT: MessageTemplate(
        "Only {brokers:# broker is|# brokers are} left that can take new replicas; topics have up to {factor:,} each.",
        "New topics with more replicas than brokers left are refused.",
    ),
}

BROKER_LIFE_TITLES: Mapping[BrokerLifeCheckTitle, MessageTemplate] = {
    BrokerLifeCheckTitle.CORDON_FITS: MessageTemplate("Brokers run, cordons are as planned with"),
    BrokerLifeCheckTitle.UNREGISTER_FITS: MessageTemplate("The broker is fenced and hosts no replica"),
}

_REFRESH = "Refresh the plan."

BROKER_LIFE_MESSAGES: Mapping[BrokerReasonCode, MessageTemplate] = {
    BrokerReasonCode.NOT_REGISTERED: MessageTemplate("The broker is not registered.", "Check its ID."),
    BrokerReasonCode.NOT_RUNNING: MessageTemplate(
        "The broker does not run, or does not answer.", "Start it: only a running broker is cordoned or uncordoned."
    ),
    BrokerReasonCode.NO_CORDONS: MessageTemplate(
        "The broker does not report cordoned directories.", "Upgrade it to Kafka 4.3 or newer."
    ),
    BrokerReasonCode.LEVEL_TOO_LOW: MessageTemplate(
        "At {at}, {feature} was below that of Kafka {release}, which cordons need.",
        "Raise it with kafka-features.sh upgrade --release-version {release}.",
    ),
    BrokerReasonCode.UNREAD: MessageTemplate(
        "The log directories or configs of the broker were not read.", "Wait for the next refresh."
    ),
    BrokerReasonCode.CORDON_CHANGED: MessageTemplate(
        "cordoned.log.dirs is {value:cordon}, planned with {expected:cordon}.", _REFRESH
    ),
    BrokerReasonCode.CORDON_INHERITED: MessageTemplate(
        "cordoned.log.dirs is “{value}” in server.properties or in the cluster default.", "Remove it there."
    ),
    BrokerReasonCode.ALIVE: MessageTemplate(
        "The broker runs: it is not fenced.", "Stop it, then wait until it is fenced."
    ),
    BrokerReasonCode.FENCED_UNKNOWN: MessageTemplate(
        "The cluster does not tell which brokers are fenced.", "Upgrade it to Kafka 4.0 or newer."
    ),
    BrokerReasonCode.HOSTS_REPLICAS: MessageTemplate(
        "The broker hosts {replicas:# replica|# replicas}.", "Drain it first."
    ),
    BrokerReasonCode.GETS_REPLICAS: MessageTemplate(
        "Reassignments add the broker to {partitions:# partition|# partitions}.", "Cancel them, or wait and drain it."
    ),
    BrokerReasonCode.TOPICS_HIDDEN: MessageTemplate(
        "{topics:# topic|# topics} cannot be described, and may have replicas on the broker.",
        "Grant Describe on all topics.",
    ),
    BrokerReasonCode.ANOTHER_ADDRESS: MessageTemplate(
        "The broker has registered as {address}, planned with {expected}.", _REFRESH
    ),
}
