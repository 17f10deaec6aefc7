"""Codes of problems in files (Kafka's JSON, topologies), in plans (checker), and in the checks of a reassignment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kafkadash.core.messages import CodedMessage, message_text


class FileErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Kafka's JSON of an assignment
    MARK_IGNORED = "mark-ignored"
    UTF_16 = "utf-sixteen"
    NOT_UTF_8 = "not-utf-eight"
    NOTHING_IN_IT = "nothing-in-it"
    NOT_JSON = "not-json"
    GENERATED = "generated"
    NO_OBJECT = "no-object"
    TOPICS_TO_MOVE = "topics-to-move"
    NOTHING_ASKED_FOR = "nothing-asked-for"
    OTHER_VERSION = "other-version"
    VERSION_MISSING = "version-missing"
    FIELD_UNKNOWN = "field-unknown"
    FIELD_MISSING = "field-missing"
    FIELD_OF_OTHER_SHAPE = "field-of-other-shape"
    FIELD_TWICE = "field-twice"
    STANDS_TWICE = "stands-twice"
    TOO_MANY_PROBLEMS = "too-many-problems"
    NO_NAME_OF_A_TOPIC = "no-name-of-a-topic"
    NO_REPLICAS = "no-replicas"
    NO_ID_OF_A_BROKER = "no-id-of-a-broker"
    REPLICA_TWICE = "replica-twice"
    DIRECTORIES_NO_LIST = "directories-no-list"
    DIRECTORIES_NOT_AS_MANY = "directories-not-as-many"
    DIRECTORY_NOT_ABSOLUTE = "directory-not-absolute"
    DIRECTORY_IMPOSSIBLE = "directory-impossible"

    # An exported topology
    TOPOLOGY_NOT_UTF_8 = "topology-not-utf-eight"
    TOPOLOGY_NOT_JSON = "topology-not-json"
    TOPOLOGY_TWICE = "topology-twice"
    TOPOLOGY_PARTITION_TWICE = "topology-partition-twice"
    TOPOLOGY_TOO_LARGE = "topology-too-large"
    TOPOLOGY_SHAPE = "topology-shape"


class FilePart(StrEnum):
    """Codes of what stands in a file or should stand there; parameters of messages."""

    # Values
    OBJECT = "file-object"
    LIST = "file-list"
    TEXT = "file-text"
    NULL = "file-null"
    NUMBER = "file-number"
    TRUE_OR_FALSE = "file-true-or-false"
    LIST_OF_OBJECTS = "file-list-of-objects"
    LIST_OF_BROKERS = "file-list-of-brokers"
    LIST_OF_REPLICAS = "file-list-of-replicas"
    QUOTED_NAME = "file-quoted-name"
    WHOLE_NUMBER = "file-whole-number"
    AT_MOST = "file-at-most"
    POSITIVE_NUMBER = "file-positive-number"
    TEXT_OR_NULL = "file-text-or-null"

    # Places
    WHOLE_OBJECT = "file-whole-object"
    ANY_ENTRY = "file-any-entry"
    ENTRY_OF_PARTITIONS = "file-entry-of-partitions"
    ROW_FIELD = "file-row-field"
    TOPOLOGY = "file-topology"
    ENTRY_NUMBER = "file-entry-number"
    ENTRY_OF_LIST = "file-entry-of-list"
    BROKER = "file-broker"
    TOPIC = "file-topic"
    PARTITION = "file-partition"
    FIELD_OF = "file-field-of"
    NAMED_LIST = "file-named-list"


class JsonFault(StrEnum):
    """Codes of what keeps a text from being JSON."""

    COMMA_MISSING = "json-comma-missing"
    COLON_MISSING = "json-colon-missing"
    VALUE_MISSING = "json-value-missing"
    FIELD_NAME_MISSING = "json-field-name-missing"
    TEXT_NOT_ENDED = "json-text-not-ended"
    CONTROL_CHARACTER = "json-control-character"
    COMMA_BEFORE_END = "json-comma-before-end"
    SOMETHING_FOLLOWS = "json-something-follows"
    TOO_LONG = "json-too-long"
    ENDS_IN_THE_MIDDLE = "json-ends-in-the-middle"
    NESTED_TOO_DEEPLY = "json-nested-too-deeply"
    NO_CONSTANT = "json-no-constant"
    TOO_MANY_DIGITS = "json-too-many-digits"
    OTHER_FAULT = "json-other-fault"


class CheckErrorCode(StrEnum):
    """Codes; people search for the values."""

    # The checker of plans
    ROW_TWICE = "row-twice"
    ROW_OF_NOTHING = "row-of-nothing"
    ROW_OF_NAMESAKE = "row-of-namesake"
    ROW_ELSEWHERE = "row-elsewhere"
    ROW_CHANGES_DISK = "row-changes-disk"
    ROW_CHANGES_NOTHING = "row-changes-nothing"
    ROW_MOVES_ALREADY = "row-moves-already"
    ROW_WITH_OTHER_FACTOR = "row-with-other-factor"
    ROW_WITHOUT_REPLICAS = "row-without-replicas"
    ROW_TWICE_ON_ONE = "row-twice-on-one"
    ROW_ON_INELIGIBLE = "row-on-ineligible"
    ROW_LEAVES_OTHERS = "row-leaves-others"
    ROW_ON_DRAINED = "row-on-drained"
    ROW_ON_LEFT_OUT = "row-on-left-out"
    ROW_NOT_ASKED_FOR = "row-not-asked-for"
    ROW_REORDERED = "row-reordered"
    ROW_IN_FEWER_RACKS = "row-in-fewer-racks"
    ROW_UNEVEN = "row-uneven"
    BROKER_NOT_EMPTY = "broker-not-empty"
    ROW_OUTSIDE = "row-outside"
    ROW_TAKES_WHAT_STAYS = "row-takes-what-stays"
    ROW_KEEPS_WHAT_LEAVES = "row-keeps-what-leaves"
    ROW_WITH_WRONG_FACTOR = "row-with-wrong-factor"
    ROW_UNEVEN_IN_RACK = "row-uneven-in-rack"
    BROKER_OUT_OF_BOUNDS = "broker-out-of-bounds"
    NO_PLAN_MEETS_IT = "no-plan-meets-it"
    BOUND_DIFFERS = "bound-differs"
    BROKER_NOT_WITHIN_EPS = "broker-not-within-eps"
    MOVED_DIFFERS = "moved-differs"
    BROKER_OVER_LIMIT = "broker-over-limit"
    NO_DIRECTORY_HOLDS_IT = "no-directory-holds-it"
    TOTAL_COPIED_DIFFERS = "total-copied-differs"
    TOTAL_ROWS_DIFFERS = "total-rows-differs"
    TOTAL_OF_BROKER_DIFFERS = "total-of-broker-differs"
    MORE_FAULTS = "more-faults"
    BROKERS_WITHOUT_RACK = "brokers-without-rack"

    # The checks of a reassignment before it runs
    GONE = "gone"
    TOPIC_REPLACED = "topic-replaced"
    AS_PLANNED_ALREADY = "as-planned-already"
    OTHER_THAN_PLANNED = "other-than-planned"
    MOVING_BY_OTHERS = "moving-by-others"
    FACTOR_CHANGES = "factor-changes"
    FACTOR_UNDER_MIN_ISR = "factor-under-min-isr"
    TARGET_NOT_REGISTERED = "target-not-registered"
    TARGET_FENCED = "target-fenced"
    TARGET_SILENT = "target-silent"
    TARGET_CORDONED = "target-cordoned"
    DIRECTORIES_UNREAD = "directories-unread"
    QUORUM_LOST = "quorum-lost"
    DISK_TOO_SMALL = "disk-too-small"
    DIRECTORIES_TOO_SMALL = "directories-too-small"
    DISK_NOT_KNOWN = "disk-not-known"
    SIZE_NOT_KNOWN = "size-not-known"
    RACKS_NOT_NAMED = "racks-not-named"
    SPREAD_WORSE = "spread-worse"
    LEADERLESS = "leaderless"
    LAGGING = "lagging"
    MIN_ISR_UNREAD = "min-isr-unread"
    THROTTLE_TOO_LOW = "throttle-too-low"
    INBOUND_UNKNOWN = "inbound-unknown"
    WINDOW_HAS_ENDED = "window-has-ended"
    WINDOW_TOO_SHORT = "window-too-short"
    LENGTH_NOT_KNOWN = "length-not-known"
    FACTS_NEVER_READ = "facts-never-read"
    QUORUM_NEVER_READ = "quorum-never-read"
    QUORUM_READ_LONG_AGO = "quorum-read-long-ago"
    FACTS_READ_LONG_AGO = "facts-read-long-ago"


class CheckTitle(StrEnum):
    """Codes of what a check asks, in words that are true when it passed."""

    AS_PLANNED = "check-as-planned"
    NOT_MOVING = "check-not-moving"
    FACTOR_KEPT = "check-factor-kept"
    FACTOR_AS_ASKED = "check-factor-as-asked"
    TARGETS_ALIVE = "check-targets-alive"
    NOT_CORDONED = "check-not-cordoned"
    CONTROLLER_ANSWERS = "check-controller-answers"
    QUORUM_ANSWERS = "check-quorum-answers"
    DISK_BELOW_LIMIT = "check-disk-below-limit"
    SPREAD_KEPT = "check-spread-kept"
    SPREAD_AS_BEFORE = "check-spread-as-before"
    SPREAD_AS_ACCEPTED = "check-spread-as-accepted"
    IN_SYNC = "check-in-sync"
    THROTTLE_SUFFICES = "check-throttle-suffices"
    FITS_WINDOW = "check-fits-window"


class RuleCode(StrEnum):
    """Codes of the rules that the checker holds a plan against."""

    CURRENT_ASSIGNMENT = "rule-current-assignment"
    REPLICATION_FACTOR = "rule-replication-factor"
    DISTINCT_BROKERS = "rule-distinct-brokers"
    ELIGIBLE_BROKERS = "rule-eligible-brokers"
    ONLY_AS_ASKED = "rule-only-as-asked"
    SPREAD_OVER_RACKS = "rule-spread-over-racks"
    COUNTS = "rule-counts"
    DISK = "rule-disk"
    TOTALS = "rule-totals"
    LEAST_MOVEMENT = "rule-least-movement"
    DISKS_WITHIN_EPS = "rule-disks-within-eps"
    PLAN_OF_REPORT = "rule-plan-of-report"


class FactKind(StrEnum):
    """Kinds of facts about a cluster that checks rest on."""

    TOPICS_AND_BROKERS = "topics-and-brokers"
    REASSIGNMENTS = "reassignments"
    LOG_DIRECTORIES = "log-directories"
    QUORUM = "quorum"


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """``passed`` None: cannot be judged, ``problems`` say why. ``figure`` is what was counted: "230 of 230"."""

    code: str
    passed: bool | None
    figure: str
    problems: tuple[CodedMessage, ...] = ()

    @property
    def name(self) -> str:
        return message_text(self.code)
