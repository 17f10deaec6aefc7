"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class CollectionErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Verifications, plans and reassignments that are not there
    NO_SUCH_REASSIGNMENT = "no-such-reassignment"
    UNFINISHED_TOPIC_GONE = "unfinished-topic-gone"
    UNFINISHED_OTHER_TOPIC = "unfinished-other-topic"
    NOT_COLLECTED = "not-collected"

    # Results of the pipeline that are not taken in, whole or in part

    # Clusters that do not answer, and what a connection test finds
    ANOTHER_COLLECTOR = "another-collector"
    COLLECTOR_FAULT = "collector-fault"
    COLLECTOR_SET_ASIDE = "collector-set-aside"
    COLLECTED_BY_ANOTHER = "collected-by-another"
    KIND_NOT_STARTED = "kind-not-started"
    CANARY_WITHOUT_TOPIC = "canary-without-topic"
    REFRESH_FAILED = "refresh-failed"
    NEVER_REFRESHED = "never-refreshed"
    READ_DENIED = "read-denied"
    NEVER_ALLOWED = "never-allowed"
    READ_IN_PART = "read-in-part"
    BROKER_NOT_READ = "broker-not-read"
    BROKER_FENCED = "fenced-not-asked"
    DIRECTORY_NOT_READ = "directory-not-read"
    TOPIC_NOT_READ = "topic-not-read"
    ELIGIBLE_NOT_READ = "eligible-not-read"
    TIERS_NOT_READ = "tiers-not-read"
    TIERS_LEFT_OUT = "tiers-left-out"
    GROUPS_NOT_DESCRIBED = "groups-not-described"
    COMMITS_NOT_READ = "commits-not-read"
    SHARE_OFFSETS_NOT_READ = "share-offsets-not-read"
    LOG_ENDS_NOT_READ = "log-ends-not-read"
    GROUPS_UNSTORABLE = "groups-unstorable"
    THROTTLES_IN_DOUBT = "throttles-in-doubt"
    ZOOKEEPER_NOT_READ = "zookeeper-not-read"
    SAME_FOR_OTHERS = "same-for-others"

    # Segments for the pipeline, and faults in them

    # Filters and addresses of pages that name what is not there
    PARTITIONS_NO_BROKER = "partitions-no-broker"
    RACKS_NOT_COUNTED = "racks-not-counted"
    REASSIGNMENTS_NO_BROKER = "reassignments-no-broker"
    BROKER_NOT_SEEN = "broker-not-seen"
    TOPIC_NOT_SEEN = "topic-not-seen"
    GROUP_NOT_SEEN = "group-not-seen"
