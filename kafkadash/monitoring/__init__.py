"""State of clusters: collectors, stored facts, and the pages of brokers, topics, groups and quorum."""

PUBLIC_MODULES = (
    "annotations",
    "brokers",
    "cluster_bar",
    "collection",
    "errors",
    "freshness",
    "groups.names",
    "groups.pages",
    "groups.rules",
    "models",
    "ownership",
    "partitions",
    "quorum.collector",
    "quorum.pages",
    "quorum.rules",
    "reassignments.pages",
    "reassignments.progress",
    "schedule",
    "stored_commands",
    "tasks",
    "templatetags.figures",
    "templatetags.marks",
    "throttles",
    "traffic.pages",
)
"""Modules that other rooms may import (``tests.doors``)."""
