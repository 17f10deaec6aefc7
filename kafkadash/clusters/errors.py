"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class ClusterErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Rights, and facts that are too old
    READ_ONLY = "read-only"
    NEEDS_ROLE = "needs-role"
    NO_SUCH_CLUSTER = "no-such-cluster"
    NEEDS_ROLE_SOMEWHERE = "needs-role-somewhere"
    NEEDS_ROLE_EVERYWHERE = "needs-role-everywhere"

    # Clusters and roles under Settings, and which Kafka cluster answers
    NOBODY_NAMED = "nobody-named"
    OWN_ROLE = "own-role"
    NO_SUCH_ACCOUNT = "no-such-account"
    ACCOUNT_CLOSED = "account-closed"
    ROLE_UNKNOWN = "role-unknown"
    END_PASSED = "end-passed"
    NAME_TO_CONFIRM = "name-to-confirm"
    LAST_ADMINISTRATOR = "last-administrator"
    IDENTITY_CHANGED = "identity-changed"
    SAME_CLUSTER = "same-cluster"
    CLUSTER_UNKNOWN = "cluster-unknown"
    CLUSTER_NAME_EMPTY = "cluster-name-empty"
    CLUSTER_NAME_TOO_LONG = "cluster-name-too-long"
    CLUSTER_NAME_TAKEN = "cluster-name-taken"
    CLUSTER_NAME_JUST_TAKEN = "cluster-name-just-taken"
    CLUSTER_NAME_TOO_ALIKE = "cluster-name-too-alike"
    MECHANISM_NEEDED = "mechanism-needed"
    LOGIN_NEEDED = "login-needed"
    TOKEN_ENDPOINT_NEEDED = "token-endpoint-needed"  # noqa: S105
    SECRET_ENTERED_FOR_OTHER = "secret-entered-for-other"  # noqa: S105
    PAIR_NEEDED = "pair-needed"
    ROLE_NOT_LISTED = "role-not-listed"
    ROLE_TAKEN_MEANWHILE = "role-taken-meanwhile"
    LAG_PATTERN_EMPTY = "lag-pattern-empty"
    LAG_PATTERN_TOO_LONG = "lag-pattern-too-long"
    LAG_PATTERN_NOT_PRINTABLE = "lag-pattern-not-printable"
    LAG_UNREADABLE = "lag-unreadable"
    LAG_NEGATIVE = "lag-negative"
    LAG_TOO_LARGE = "lag-too-large"
    LAG_TOO_MANY_RULES = "lag-too-many-rules"
    LAG_RULE_GONE = "lag-rule-gone"

    # Connections: addresses, names and ports, certificates, stored secrets
    PROTOCOL_IN_FRONT = "protocol-in-front"
    BRACKETS_WRONG = "brackets-wrong"
    BRACKETS_MISSING = "brackets-missing"
    PORT_MISSING = "port-missing"
    PORT_WRONG = "port-wrong"
    IPV6_WRONG = "ipv-six-wrong"
    HOST_WRONG = "host-wrong"
    IPV4_WRONG = "ipv-four-wrong"
    ADDRESS_TWICE = "address-twice"
    NO_ADDRESS = "no-address"
    CHROOT_WRONG = "chroot-wrong"
    ZOOKEEPER_LOGIN_HALF = "zookeeper-login-half"
    ZOOKEEPER_USER_WRONG = "zookeeper-user-wrong"
    SECRET_UNREADABLE = "secret-unreadable"  # noqa: S105
    SECRET_MEANT_FOR_OTHER = "secret-meant-for-other"  # noqa: S105
    NO_KEYS = "no-keys"
    KEY_MALFORMED = "key-malformed"
    FIT_NO_KEY = "fit-no-key"

    # Clusters that do not answer, and what a connection test finds
    OTHER_CLUSTER = "other-cluster"
    NOT_LOOKED_AT = "not-looked-at"
    TRIED_LESS_OFTEN = "tried-less-often"
    NOT_TRIED_ANY_MORE = "not-tried-any-more"
    WITH_ZOOKEEPER = "with-zookeeper"
    ZOOKEEPER_UNUSED = "zookeeper-unused"

    # Signing in, accounts and passwords
    NO_SUCH_USER = "no-such-user"
    NO_ROLE_TO_TAKE = "no-role-to-take"
    DATE_UNREADABLE = "date-unreadable"
    DATE_GONE_BY = "date-gone-by"
    SECRET_NOT_READ = "secret-not-read"  # noqa: S105
    NO_SECRET_GIVEN = "no-secret-given"  # noqa: S105
