"""Texts of entries and of problems with the address of a timeline."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.monitoring.cluster_events.rules import EventCode
from kafkadash.timeline.errors import TimelineCode, TimelineErrorCode

_LEADERS = "{count:# leader|# leaders}"
_TOPICS = "{count:topic|topics} {names:names}"
_GROUPS = "{count:group|groups} {names:names}"

EVENT_MESSAGES: Mapping[EventCode, MessageTemplate] = {
    EventCode.LEADERS_FAILED_OVER: MessageTemplate(f"Broker {{broker}} was down: {_LEADERS} moved to other brokers."),
    EventCode.LEADERS_LOST: MessageTemplate(
        "{count:# partition|# partitions} led by broker {broker} went offline: no other replica could lead."
    ),
    EventCode.LEADERS_REGAINED: MessageTemplate(
        "{count:# partition has|# partitions have} a leader again: broker {broker}."
    ),
    EventCode.LEADERS_REASSIGNED: MessageTemplate(f"{_LEADERS} left broker {{broker}} with a reassignment."),
    EventCode.LEADERS_PREFERRED: MessageTemplate(f"Broker {{broker}} took back {_LEADERS} as preferred replica."),
    EventCode.LEADERS_MOVED: MessageTemplate(f"{_LEADERS} left broker {{broker}}, which was up afterwards."),
    EventCode.LEADERS_KEPT: MessageTemplate(
        "Broker {broker} kept {count:# partition|# partitions} with a new leader epoch."
    ),
    EventCode.CONTROLLER_ELECTED: MessageTemplate("Controller {after} was elected in epoch {epoch}."),
    EventCode.BROKERS_JOINED: MessageTemplate("{count:Broker|Brokers} {names:names} joined the cluster."),
    EventCode.BROKERS_LEFT: MessageTemplate("{count:Broker|Brokers} {names:names} left: no longer listed."),
    EventCode.BROKERS_FENCED: MessageTemplate("{count:Broker|Brokers} {names:names} went down (fenced)."),
    EventCode.BROKERS_UNFENCED: MessageTemplate("{count:Broker|Brokers} {names:names} came back (unfenced)."),
    EventCode.BROKERS_REPLACED: MessageTemplate(
        "{count:Broker|Brokers} {names:names} {count:has|have} another address or rack."
    ),
    EventCode.TOPICS_CREATED: MessageTemplate("{count:Topic|Topics} {names:names} created."),
    EventCode.TOPICS_DELETED: MessageTemplate("{count:Topic|Topics} {names:names} deleted, or hidden from kafkadash."),
    EventCode.TOPICS_RECREATED: MessageTemplate("{count:Topic|Topics} {names:names} deleted and created again."),
    EventCode.PARTITIONS_ADDED: MessageTemplate("Partitions added to {count:topic|topics} {names:names}."),
    EventCode.TOPIC_CONFIGS: MessageTemplate(f"{{keys:names}} changed on {_TOPICS}."),
    EventCode.BROKER_CONFIGS: MessageTemplate("{keys:names} changed on {count:broker|brokers} {names:names}."),
    EventCode.DEFAULT_CONFIGS: MessageTemplate("{keys:names} changed in the default of all brokers."),
    EventCode.MORE_CONFIGS: MessageTemplate("Configs changed on {count:# more resource|# more resources}."),
    EventCode.THROTTLES_SET: MessageTemplate("Throttle set on {subjects}."),
    EventCode.THROTTLES_CHANGED: MessageTemplate("Throttle changed on {subjects}."),
    EventCode.THROTTLES_REMOVED: MessageTemplate("Throttle removed from {subjects}."),
    EventCode.GROUPS_FOUND: MessageTemplate(f"Consumer {_GROUPS} appeared."),
    EventCode.GROUPS_GONE: MessageTemplate(f"Consumer {_GROUPS} {{count:is|are}} gone."),
    EventCode.GROUPS_CHANGED: MessageTemplate(f"Consumer {_GROUPS}: {{before}} → {{after}}."),
}

_MOVES = "{count:# reassignment|# reassignments}{about}"

TIMELINE_MESSAGES: Mapping[TimelineCode, MessageTemplate] = {
    TimelineCode.FINDING_OPENED: MessageTemplate("Opened: {title}"),
    TimelineCode.FINDING_CLOSED: MessageTemplate("Closed: {title}"),
    TimelineCode.CHANGE_STEP: MessageTemplate("Change #{number}, {title}: {person} {words}."),
    TimelineCode.MAINTENANCE_BEGAN: MessageTemplate("Maintenance of {what} began, planned by {person}."),
    TimelineCode.MAINTENANCE_ENDED: MessageTemplate("Maintenance of {what} ended."),
    TimelineCode.SILENCE_BEGAN: MessageTemplate("{person} silenced findings: {what}."),
    TimelineCode.SILENCE_ENDED: MessageTemplate("Silence ended: {what}."),
    TimelineCode.MOVES_STARTED: MessageTemplate(f"{_MOVES} started by others."),
    TimelineCode.MOVES_STARTED_BY_RUN: MessageTemplate(f"Change {{owner}} started {_MOVES}."),
    TimelineCode.MOVES_COMPLETED: MessageTemplate(f"{_MOVES} completed, started by {{owner}}."),
    TimelineCode.MOVES_CANCELLED: MessageTemplate(f"{_MOVES} cancelled, started by {{owner}}."),
    TimelineCode.MOVES_SUPERSEDED: MessageTemplate(f"{_MOVES} replaced by another one, started by {{owner}}."),
    TimelineCode.MOVES_OF_DELETED_TOPICS: MessageTemplate(f"{_MOVES} ended with the topic, started by {{owner}}."),
    TimelineCode.MOVES_ENDED_UNSEEN: MessageTemplate(f"{_MOVES} ended unseen, started by {{owner}}."),
}

TIMELINE_ERROR_MESSAGES: Mapping[TimelineErrorCode, MessageTemplate] = {
    TimelineErrorCode.MOMENT_UNREADABLE: MessageTemplate(
        "“{typed}” is not a time.", "Enter a day, or a day and a time in UTC, such as 2026-11-27T02:10."
    ),
    TimelineErrorCode.SPAN_EMPTY: MessageTemplate(
        "The time range ends before it begins.", "The last 24 hours are shown instead."
    ),
    TimelineErrorCode.BROKER_UNREADABLE: MessageTemplate("“{typed}” is not a broker ID.", "Enter a number, such as 3."),
    TimelineErrorCode.EXPORT_TOO_LARGE: MessageTemplate(
        "{count:# entry is|# entries are} too many for one file.",
        "Choose a shorter time or fewer kinds: at most {most:,} are exported.",
    ),
}
