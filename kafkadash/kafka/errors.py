"""Codes of what fails on the way to Kafka, or is refused there; the texts are in ``clusters.messages``."""

from __future__ import annotations

from enum import StrEnum


class KafkaErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Connections: addresses, names and ports, certificates, stored secrets
    ADDRESS_MALFORMED = "address-malformed"
    PROTOCOL_UNKNOWN = "protocol-unknown"
    MECHANISM_UNKNOWN = "mechanism-unknown"
    KERBEROS_UNSUPPORTED = "kerberos-unsupported"
    CANARY_UNREACHABLE = "canary-unreachable"
    CANARY_OF_OTHER_CLUSTER = "canary-of-other-cluster"
    CANARY_TOPIC_UNREADABLE = "canary-topic-unreadable"
    CANARY_OF_LIMITED_NETWORKS = "canary-of-limited-networks"
    CANARY_OF_READ_ONLY = "canary-of-read-only"
    CA_UNUSABLE = "ca-unusable"
    CERTIFICATE_WITHOUT_KEY = "certificate-without-key"
    KEY_UNUSABLE = "key-unusable"
    PAIR_UNUSABLE = "pair-unusable"
    NAME_SERVER_SLOW = "name-server-slow"
    NAME_UNRESOLVED = "name-unresolved"
    NO_TIME_TO_CONNECT = "no-time-to-connect"
    NOTHING_ACCEPTED = "nothing-accepted"
    CONNECTING_FAILED = "connecting-failed"
    TLS_SILENT = "tls-silent"
    TLS_FAILED = "tls-failed"

    # Access tokens
    TOKEN_ENDPOINT_MALFORMED = "token-endpoint-malformed"  # noqa: S105
    TOKEN_ENDPOINT_UNENCRYPTED = "token-endpoint-unencrypted"  # noqa: S105
    EXTENSIONS_MALFORMED = "extensions-malformed"
    TOKEN_ENDPOINT_UNREACHABLE = "token-endpoint-unreachable"  # noqa: S105
    TOKEN_ENDPOINT_SLOW = "token-endpoint-slow"  # noqa: S105
    TOKEN_ENDPOINT_LATE = "token-endpoint-late"  # noqa: S105
    TOKEN_ENDPOINT_REDIRECTS = "token-endpoint-redirects"  # noqa: S105
    TOKEN_ENDPOINT_FAILED = "token-endpoint-failed"  # noqa: S105
    TOKEN_ANSWER_TOO_LARGE = "token-answer-too-large"  # noqa: S105
    TOKEN_ANSWER_UNUSABLE = "token-answer-unusable"  # noqa: S105
    CLIENT_REJECTED = "client-rejected"

    # Brokers that cannot be asked, and what Kafka answers
    NODE_NOT_CONNECTED = "node-not-connected"
    CLIENT_CERTIFICATE_REFUSED = "client-certificate-refused"
    HANDSHAKE_FAILED = "handshake-failed"
    CREDENTIALS_REFUSED = "credentials-refused"
    SASL_MECHANISM_REFUSED = "sasl-mechanism-refused"
    TOKEN_REFUSED = "token-refused"  # noqa: S105
    NODE_TOO_OLD = "node-too-old"
    EARLIER_UNANSWERED = "earlier-unanswered"
    NODE_TOO_SLOW = "node-too-slow"
    NOT_KAFKA = "not-kafka"
    ANSWER_MALFORMED = "answer-malformed"
    ANSWER_TOO_LARGE = "answer-too-large"
    CLOSED_INSTEAD = "closed-instead"
    NODE_NOT_ASKED = "node-not-asked"
    ASKING_CRASHED = "asking-crashed"
    CONTROLLERS_SILENT = "controllers-silent"
    BOOTSTRAP_SILENT = "bootstrap-silent"
    NO_LIVE_BROKER = "no-live-broker"
    BROKER_NOT_LIVE = "broker-not-live"
    QUORUM_WITHOUT_LEADER = "quorum-without-leader"
    NO_CONTROLLER = "no-controller"
    CONNECTION_RENEWED = "connection-renewed"
    CONNECTION_HUNG = "connection-hung"
    CLOSED_WHILE_WAITING = "closed-while-waiting"
    TURN_TOO_LATE = "turn-too-late"
    CALL_FORBIDDEN = "call-forbidden"
    CALL_UNSUPPORTED = "call-unsupported"
    CALL_WITHOUT_CONTROLLER = "call-without-controller"
    CALL_FAILED = "call-failed"
    ITEM_FORBIDDEN = "item-forbidden"
    ITEM_NOT_NOW = "item-not-now"
    ITEM_REFUSED = "item-refused"
    NOT_IN_ANSWER = "not-in-answer"
    ASSIGNMENT_UNREADABLE = "assignment-unreadable"
    NOT_KNOWN_THERE = "not-known-there"
    DIRECTORIES_HIDDEN = "directories-hidden"
    TOPICS_HIDDEN = "topics-hidden"
    NOT_OFFERED = "not-offered"
    NO_QUORUM_TO_DESCRIBE = "no-quorum-to-describe"
    ANOTHER_QUORUM = "another-quorum"
    NO_LEADER_THERE = "no-leader-there"
    NOTHING_SENT = "nothing-sent"
    LOST_LEADERSHIP = "lost-leadership"
    CHANGE_NOT_IN_ANSWER = "change-not-in-answer"

    # ZooKeeper
    OUTSIDE_NETWORKS = "outside-networks"
    ZOOKEEPER_WITHOUT_QUORUM = "zookeeper-without-quorum"
    ZOOKEEPER_LOST = "zookeeper-lost"
    ZOOKEEPER_SLOW = "zookeeper-slow"
    NOT_ZOOKEEPER = "not-zookeeper"
    ZOOKEEPER_FAILED = "zookeeper-failed"
    ZOOKEEPER_ANSWER_TOO_LARGE = "zookeeper-answer-too-large"
    ZOOKEEPER_WITHOUT_KAFKA = "zookeeper-without-kafka"
    ZOOKEEPER_OF_OTHER_CLUSTER = "zookeeper-of-other-cluster"
    ZNODE_PROTECTED = "znode-protected"
    ZNODE_MALFORMED = "znode-malformed"
    ZNODE_CHANGED = "znode-changed"
    ZOOKEEPER_NOT_IN_CHARGE = "zookeeper-not-in-charge"
    BROKER_STARTED = "broker-started"
