"""Coded reasons of brokers that cannot be cordoned, uncordoned or unregistered as planned."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason


class BrokerReasonCode(StrEnum):
    """Codes of ``ShortItem.reason`` of changes of brokers; the values are stored."""

    NOT_REGISTERED = "broker-change-not-registered"
    NOT_RUNNING = "broker-change-not-running"
    NO_CORDONS = "broker-change-no-cordons"
    LEVEL_TOO_LOW = "broker-change-level-too-low"
    UNREAD = "broker-change-unread"
    CORDON_CHANGED = "broker-change-cordon-changed"
    CORDON_INHERITED = "broker-change-cordon-inherited"
    ALIVE = "broker-change-alive"
    FENCED_UNKNOWN = "broker-change-fenced-unknown"
    HOSTS_REPLICAS = "broker-change-hosts-replicas"
    GETS_REPLICAS = "broker-change-gets-replicas"
    TOPICS_HIDDEN = "broker-change-topics-hidden"
    ANOTHER_ADDRESS = "broker-change-another-address"


class CordonChanged(CodedReason, code=BrokerReasonCode.CORDON_CHANGED):
    """``value`` of cordoned.log.dirs that the broker has, ``expected`` by the plan; None is not set on the broker."""

    value: str | None
    expected: str | None


class CordonInherited(CodedReason, code=BrokerReasonCode.CORDON_INHERITED):
    """``value`` that the broker has from its file or from the cluster default."""

    value: str


class CordonLevelTooLow(CodedReason, code=BrokerReasonCode.LEVEL_TOO_LOW):
    """``feature`` whose level in force is below that of ``release``, though the brokers run it; read ``at``."""

    feature: str
    release: str
    at: str


class BrokerHostsReplicas(CodedReason, code=BrokerReasonCode.HOSTS_REPLICAS):
    replicas: int


class BrokerGetsReplicas(CodedReason, code=BrokerReasonCode.GETS_REPLICAS):
    """``partitions`` whose reassignments add the broker."""

    partitions: int


class TopicsKeptBack(CodedReason, code=BrokerReasonCode.TOPICS_HIDDEN):
    """``topics`` of the broker's disks that kafkadash may not describe."""

    topics: int


class AnotherAddress(CodedReason, code=BrokerReasonCode.ANOTHER_ADDRESS):
    """``address`` that the broker has registered with, ``expected`` by the plan."""

    address: str
    expected: str
