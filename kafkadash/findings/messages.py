"""Texts of the codes of this app (``findings.errors``), and of findings in the three places that show them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kafkadash.core.formatting import join_items
from kafkadash.core.messages import CodedMessage, MessageTemplate, Writer, message_part
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.kinds import FactSource, FindingCode
from kafkadash.findings.kinds import FindingNoteCode as Note

ONCALL_MESSAGES: Mapping[OnCallErrorCode, MessageTemplate] = {
    # Filters and addresses of pages that name what is not there
    OnCallErrorCode.FINDING_FORGOTTEN: MessageTemplate(
        "Finding {number} does not exist, or its retention time is over.",
        "Open findings are on the overview of the cluster.",
    ),
    OnCallErrorCode.FINDING_CLOSED: MessageTemplate("", "This finding is closed. No action is needed."),
    OnCallErrorCode.NO_SUCH_RUNBOOK: MessageTemplate("", "Runbook {kind!r} does not exist. See the list of runbooks."),
    OnCallErrorCode.DRILL_BROKERS_UNKNOWN: MessageTemplate("", "{cluster} has no {brokers}. {there}."),
    OnCallErrorCode.DRILL_RACK_UNKNOWN: MessageTemplate("", "{cluster} has no brokers in rack {rack}. {there}."),
    OnCallErrorCode.DRILL_FENCED: MessageTemplate(
        "{brokers} already fenced: this loss has already happened.", "See the overview of the cluster for its effects."
    ),
    OnCallErrorCode.DRILL_NO_BROKER: MessageTemplate(
        "", "“{typed}” is not a broker ID. Enter comma-separated numbers, such as 1,2."
    ),
    OnCallErrorCode.DRILL_TOO_MANY: MessageTemplate(
        "Only the first {most:,} of {many:,} brokers are simulated.", "Simulate the other brokers separately."
    ),
    # Acknowledgements
    OnCallErrorCode.NOTE_TOO_LONG: MessageTemplate(
        "The note has {typed:,} characters.", "Shorten it to {most:,} characters."
    ),
    OnCallErrorCode.END_UNREADABLE: MessageTemplate(
        "This is no date with a time.", "Enter one such as 2026-11-30 08:30."
    ),
    OnCallErrorCode.END_SKIPPED: MessageTemplate(
        "This time does not exist: clocks are set forward over it in that time zone.", "Enter a later time."
    ),
    OnCallErrorCode.END_PAST: MessageTemplate("This time is over.", "Enter a time in the future."),
    OnCallErrorCode.END_TOO_LATE: MessageTemplate(
        "An acknowledgement lasts at most 90 days.", "Enter an earlier time, or leave it empty."
    ),
    # Restarts of brokers
    OnCallErrorCode.RESTART_ALLOWED: MessageTemplate(
        "Broker {broker} may be restarted now.",
        "Wait until its replicas are in sync before you restart another broker.",
    ),
    OnCallErrorCode.RESTART_OF_DOWN: MessageTemplate(
        "Broker {broker} is down already. A restart stops nothing more.",
        "Start it, and wait until its replicas are in sync.",
    ),
    OnCallErrorCode.RESTART_REFUSED: MessageTemplate(
        "Broker {broker} must not be restarted now.", "Resolve the reasons first."
    ),
    OnCallErrorCode.RESTART_UNDECIDED: MessageTemplate(
        "kafkadash cannot tell whether broker {broker} may be restarted.",
        "Restart nothing before the reasons are resolved.",
    ),
    OnCallErrorCode.RESTART_GOES_OFFLINE: MessageTemplate(
        "{partitions:# partition goes|# partitions go} offline: {names:names}.",
        "Wait until their other replicas are in sync, or raise the replication factor.",
    ),
    OnCallErrorCode.RESTART_STOPS_WRITES: MessageTemplate(
        "{partitions:# partition gets|# partitions get} under min-ISR, so writes with acks=all fail: {names:names}.",
        "Wait until their other replicas are in sync, or raise the replication factor.",
    ),
    OnCallErrorCode.RESTART_LOSES_QUORUM: MessageTemplate(
        "{left} of {voters:# quorum voter|# quorum voters} {left:is|are} left; the majority is {majority}.",
        "Start the other voters first.",
    ),
    OnCallErrorCode.RESTART_OTHERS_BEHIND: MessageTemplate(
        "{replicas:# replica|# replicas} on {brokers:broker|brokers} {brokers:few} {replicas:is|are} not in sync.",
        "Wait until {brokers:this broker has|these brokers have} caught up.",
    ),
    OnCallErrorCode.RESTART_FACTS_STALE: MessageTemplate(
        "Some data is stale: {kinds:names}.", "The collection panel of the cluster shows the cause."
    ),
    OnCallErrorCode.RESTART_FACTS_EARLY: MessageTemplate(
        "Some data is from before this check: {kinds:names}.", "Collectors read it again within their intervals."
    ),
    OnCallErrorCode.RESTART_BROKERS_SILENT: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:few} {brokers:does|do} not respond to kafkadash.",
        "Check whether {brokers:it runs|they run}.",
    ),
    OnCallErrorCode.RESTART_TOPICS_HIDDEN: MessageTemplate(
        "At least {topics:# topic is|# topics are} hidden from kafkadash.",
        "Grant its principal Describe on all topics.",
    ),
    OnCallErrorCode.RESTART_TOPICS_UNCOUNTED: MessageTemplate(
        "It is unknown whether topics are hidden from kafkadash.", "A read of log directories shows it."
    ),
    OnCallErrorCode.RESTART_MIN_ISR_UNKNOWN: MessageTemplate(
        "The min.insync.replicas of {partitions:# partition is|# partitions are} unknown.",
        "Check whether configs are collected.",
    ),
    OnCallErrorCode.RESTART_QUORUM_UNKNOWN: MessageTemplate(
        "The state of the controller quorum is unknown.", "Check whether the quorum is collected."
    ),
    OnCallErrorCode.RESTART_VOTERS_UNHEARD: MessageTemplate(
        "{voters:# quorum voter has|# quorum voters have} sent nothing since the leader changed.",
        "Wait until the quorum page shows {voters:it|them} in sync.",
    ),
    OnCallErrorCode.RESTART_ALWAYS_OFFLINE: MessageTemplate(
        "Each restart takes {partitions:# partition|# partitions} with one replica offline: {topics:names}.",
        "Raise the replication factor, or move the partitions to another broker for the restart.",
    ),
    OnCallErrorCode.RESTART_ALWAYS_STOPS_WRITES: MessageTemplate(
        "Each restart stops writes to {partitions:# partition|# partitions} whose min.insync.replicas is the "
        "replication factor: {topics:names}.",
        "Lower min.insync.replicas or raise the replication factor.",
    ),
    OnCallErrorCode.RESTART_ALWAYS_LOSES_QUORUM: MessageTemplate(
        "Each restart costs the quorum its majority: it has {voters:# voter|# voters}.",
        "Add voters: three tolerate the loss of one.",
    ),
    OnCallErrorCode.RESTART_AFTER_MOVES: MessageTemplate(
        "{partitions:# partition|# partitions} can spare this broker only after a running reassignment.",
        "Wait until the reassignment has ended.",
    ),
}


@dataclass(frozen=True, slots=True)
class FindingTemplate(MessageTemplate):
    """``text`` stands alone. ``title`` is the object and its state in a heading, which adds the cluster: "{title} on
    Demo". ``detail`` stands below both.
    """

    title: str = ""
    detail: str = ""


def finding_title(message: CodedMessage) -> str:
    """Return the heading without the cluster; the code with its parameters where this version has no text of it."""
    return message_part(message, "title") or message.cause


def finding_detail(message: CodedMessage) -> str:
    return message_part(message, "detail")


@dataclass(frozen=True, slots=True)
class FindingTexts:
    """Texts of a finding on a page. ``code``: for people to search for, '' where only a text is known."""

    sentence: str
    title: str
    detail: str
    code: str


def write_texts(message: CodedMessage) -> FindingTexts:
    return FindingTexts(message.cause, finding_title(message), finding_detail(message), message.shown_code)


@lru_cache(maxsize=8192)
def read_texts(code: str, params: str) -> FindingTexts:
    """Return the texts of a stored message; ``params`` is its JSON. Cached, because a board shows hundreds again."""
    return write_texts(CodedMessage.from_json({"code": code, "params": json.loads(params)}))


def _template(text: str, title: str, detail: str = "") -> FindingTemplate:
    return FindingTemplate(text, title=title, detail=detail)


_PARTITIONS = "{partitions:# partition|# partitions}"
_ARE = f"{_PARTITIONS} {{partitions:is|are}}"
_AT_MIN_ISR = f"{_ARE} at min-ISR"
_DIRECTORY = "Log directory {path} of broker {broker}"
_DISK = "Broker {broker} disk"
_GROWS = (
    "Growth: {growth:bytes} per day, measured over {seen:age} · {free:bytes} of {total:bytes} were free · "
    "estimate · Kafka takes a full log directory offline"
)
_DOWN = "Broker {broker} is down and hosts {replicas:# replica|# replicas}."
_IS_DOWN = "Broker {broker} is down"
_GROUP = "Consumer group {group:group}"
_WAITING = "{waiting:# record|# records}"
_GROUPS = "{names:names} · The list of consumer groups shows all, worst first"
_ALL_STALE = "All data of this cluster is stale."
_OWN_NOTE = "Found by another process of kafkadash"
_NOT_JUDGED = "Data is collected, but not evaluated · Check the worker logs"

FINDING_MESSAGES: Mapping[FindingCode, FindingTemplate] = {
    # Partitions and their replicas
    FindingCode.PARTITIONS_LEADERLESS: _template(
        f"{_PARTITIONS} {{partitions:has|have}} no leader: reads and writes fail.",
        f"{_ARE} offline",
        "{notes:notes}",
    ),
    FindingCode.WRITES_REFUSED: _template(
        f"{_ARE} under min-ISR: writes with acks=all fail.", f"{_ARE} under min-ISR", "{notes:notes}"
    ),
    FindingCode.NEXT_STOPS_WRITES: _template(
        f"{_AT_MIN_ISR}. Losing one more replica stops writes.", _AT_MIN_ISR, "{notes:notes}"
    ),
    FindingCode.NEXT_GOES_OFFLINE: _template(
        f"{_AT_MIN_ISR}. Losing one more replica takes {{partitions:the partition|each partition}} offline.",
        _AT_MIN_ISR,
        "{notes:notes}",
    ),
    FindingCode.NEXT_DOES_BOTH: _template(
        f"{_AT_MIN_ISR}. Losing one more replica takes {{last:# partition|# partitions}} offline and stops writes to "
        "{others:the other|the other #}.",
        _AT_MIN_ISR,
        "{notes:notes}",
    ),
    FindingCode.UNDER_REPLICATED: _template(
        f"{_ARE} under-replicated, not explained by a reassignment.", f"{_ARE} under-replicated", "{notes:notes}"
    ),
    FindingCode.RACKS_UNEVEN: _template(
        f"{_ARE} not spread evenly across racks.",
        f"{_ARE} unbalanced across racks",
        "One rack holds more than its share of the replicas",
    ),
    FindingCode.TOPICS_NOT_SHOWN: _template(
        "At least {topics:# topic is|# topics are} hidden from kafkadash. {topics:Its|Their} state is unknown.",
        "At least {topics:# topic is|# topics are} hidden",
        "The principal lacks Describe on topics: all figures leave hidden topics out · See the collection panel",
    ),
    # Controllers
    FindingCode.QUORUM_SILENT: _template(
        "The controllers do not respond: no leader election and no change to the cluster is possible.",
        "Controller quorum lost",
        "{why:reason}",
    ),
    FindingCode.QUORUM_AT_MARGIN: _template(
        "The quorum tolerates 0 more failures. Losing one more controller loses the majority.",
        "Controller quorum tolerates 0 more failures",
        "{in_sync} of {voters} voters are known to be in sync; the majority is {majority}",
    ),
    FindingCode.KEEPS_ELECTING: _template(
        "The controllers elected a leader {elections} times in 10 min.",
        "{elections} controller elections in 10 min",
        "Each election briefly blocks changes to the cluster",
    ),
    # Brokers
    FindingCode.DOWN_FENCED: _template(
        _DOWN, _IS_DOWN, "Fenced by the controller: registered, but sends no heartbeats"
    ),
    FindingCode.DOWN_NOT_REGISTERED: _template(_DOWN, _IS_DOWN, "Not listed by the cluster: stopped, or unregistered"),
    FindingCode.DOWN_SILENT: _template(
        "Broker {broker} does not respond to kafkadash and hosts {replicas:# replica|# replicas}.",
        "Broker {broker} is unreachable",
        "The controller lists it as alive · {leaders:# partition that it leads is|# partitions that it leads are} not "
        "served",
    ),
    FindingCode.DOWN_UNSEEN: _template(
        "{brokers:# broker is|# brokers are} down and {brokers:hosts|host} replicas.",
        "{brokers:# broker is|# brokers are} down",
        "Never up since kafkadash monitors the cluster",
    ),
    FindingCode.AWAY_FENCED: _template(
        "Broker {broker} is fenced. It hosts no replicas.",
        "Empty broker {broker} is fenced",
        "Registered, but sends no heartbeats",
    ),
    FindingCode.AWAY_NOT_REGISTERED: _template(
        "The cluster does not list broker {broker}. It hosts no replicas.",
        "Empty broker {broker} is not listed",
        "Stopped, or no longer registered with the controller",
    ),
    FindingCode.AWAY_SILENT: _template(
        "Broker {broker} does not respond to kafkadash. It hosts no replicas.",
        "Empty broker {broker} is unreachable",
        "The controller lists it as alive",
    ),
    FindingCode.LEADS_MORE: _template(
        "Broker {broker} leads {percent} % more partitions than its share.",
        "Broker {broker} leads {percent} % too many",
        "{leaders:# leader|# leaders}; its share by replicas is {share:,.1f}",
    ),
    FindingCode.LEADS_FEWER: _template(
        "Broker {broker} leads {percent} % fewer partitions than its share.",
        "Broker {broker} leads {percent} % too few",
        "{leaders:# leader|# leaders}; its share by replicas is {share:,.1f}",
    ),
    FindingCode.VERSIONS_DIFFER: _template(
        "The brokers run {versions} different Kafka versions.",
        "Brokers run {versions} Kafka versions",
        "{releases:names} · Derived from API versions",
    ),
    FindingCode.APIS_DIFFER: _template(
        "The brokers offer {versions} different sets of API versions and feature levels.",
        "Brokers offer {versions} API sets",
        "Their Kafka versions look the same · Another build, or a config that enables APIs, makes the difference",
    ),
    FindingCode.CONFIGS_DIFFER: _template(
        "{keys:# config differs|# configs differ} between brokers.",
        "{keys:# broker config differs|# broker configs differ}",
        "{names:names}",
    ),
    FindingCode.RUN_FAILED: _template(
        "The run of change #{number} failed.",
        "Change #{number} failed",
        "A part of it may be done · Closes when a copy or a rollback is done, at the latest 24 hours after the end",
    ),
    FindingCode.RUN_STUCK: _template(
        "Change #{number}: {count:# move is|# moves are} stuck.", "{count:# move|# moves} of change #{number} stuck"
    ),
    FindingCode.RUN_ASKS: _template(
        "Change #{number}: {count:# move needs|# moves need} a decision.",
        "Change #{number} needs a decision",
        "The outcome of a move is unknown · No other move begins until an operator decides",
    ),
    FindingCode.RUN_BLOCKED: _template(
        "Change #{number} was started, but its run is blocked.", "Run of change #{number} blocked"
    ),
    FindingCode.RUN_UNREAD: _template(
        "The run of change #{number} cannot read the cluster.", "Run of change #{number} is blind"
    ),
    FindingCode.RUN_STALLED: _template(
        "The run of change #{number} makes no progress.", "Run of change #{number} stalled", "{why:reason}"
    ),
    FindingCode.RUN_OWES: _template(
        "Change #{number} ended, but {count:# throttle is|# throttles are} still set.",
        "{count:# throttle|# throttles} of change #{number} left",
    ),
    FindingCode.TRANSACTIONS_HANG: _template(
        "{transactions:# transaction hangs|# transactions hang} in {partitions:# partition|# partitions}: consumers "
        "with read_committed stop there.",
        "{transactions:# hanging transaction|# hanging transactions}",
        "{names:names}",
    ),
    FindingCode.TRANSACTIONS_HANG_AT_LEAST: _template(
        "At least {transactions:# transaction hangs|# transactions hang} in {partitions:# partition|# partitions}: "
        "consumers with read_committed stop there.",
        "At least {transactions:# hanging transaction|# hanging transactions}",
        "{names:names} · {unread:# more|# more} may hang: too many to be read at once",
    ),
    # Canary
    FindingCode.CANARY_FAILED: _template(
        "Broker {broker} failed {probes:# canary probe|# canary probes} in a row.",
        "Broker {broker} fails its canary",
        "{why:reason}",
    ),
    FindingCode.CANARY_LATE: _template(
        "Records through broker {broker} take {milliseconds:,} ms from producer to consumer; the limit is {most:,} ms.",
        "Broker {broker} is slow for clients",
        "{milliseconds:,} ms from producer to consumer, median of the newest probes",
    ),
    # Log directories
    FindingCode.DIRECTORY_FAILED: _template(
        f"{_DIRECTORY} failed.",
        "Broker {broker} log directory failed",
        "Its replicas are offline · {fault}",
    ),
    FindingCode.DIRECTORY_FILLS_UP: _template(
        f"{_DIRECTORY} is {{percent:.1f}} % full.",
        f"{_DISK} is {{percent:.1f}} % full",
        "{free:bytes} of {total:bytes} free · Kafka takes a full log directory offline",
    ),
    FindingCode.DIRECTORY_FULL_SOON: _template(
        f"{_DIRECTORY} is projected to be full in about {{left:age}}.", f"{_DISK} projected to fill", _GROWS
    ),
    FindingCode.DIRECTORY_FULL_NOW: _template(
        f"{_DIRECTORY} is projected to be full in less than 1 min.", f"{_DISK} about to fill", _GROWS
    ),
    # Consumer groups
    FindingCode.GROUP_STALLS: _template(
        f"{_GROUP} is stalled on {{place}}: no commits, lag {_WAITING}.", f"{_GROUP} is stalled", "{notes:notes}"
    ),
    FindingCode.GROUP_STOPPED: _template(
        f"{_GROUP} has no active members; lag {_WAITING}.", f"{_GROUP}: no active members", "{notes:notes}"
    ),
    FindingCode.GROUP_SET_BACK: _template(
        f"{_GROUP}: offsets moved backwards on {{place}}; lag {_WAITING}.",
        f"{_GROUP}: offsets moved backwards",
        "{notes:notes}",
    ),
    FindingCode.GROUP_STANDS_STILL: _template(
        f"{_GROUP} is stuck on {{place}}; lag {_WAITING}.", f"{_GROUP} is stuck", "{notes:notes}"
    ),
    FindingCode.MORE_GROUPS_BEHIND: _template(
        "{groups:# more consumer group is|# more consumer groups are} stuck: {states:names}.",
        "{total:# consumer group is|# consumer groups are} stuck",
        _GROUPS,
    ),
    FindingCode.RECORDS_LOST: _template(
        "{records:# record was|Up to # records were} deleted before consumer group {group:group} read "
        "{records:it|them}.",
        f"{_GROUP}: unread records deleted",
        "The log start offset is past the committed offset · The next fetch resets by auto.offset.reset",
    ),
    FindingCode.MORE_RECORDS_LOST: _template(
        "Unread records of {groups:# more consumer group|# more consumer groups} were deleted.",
        "{total:# consumer group|# consumer groups}: unread records deleted",
        _GROUPS,
    ),
    # What reassignments leave behind
    FindingCode.THROTTLES_ORPHANED: _template(
        "{throttles:# replication throttle is|# replication throttles are} set, but no reassignment needs "
        "{throttles:it|them}.",
        "{throttles:# orphan throttle|# orphan throttles}",
        "{names:names} · Normal replication is throttled too",
    ),
    FindingCode.MOVES_NEVER_END: _template(
        "{moves:# reassignment adds and removes|# reassignments add and remove} the same replica and cannot complete.",
        "{moves:# reassignment is|# reassignments are} stuck",
        "{names:names}",
    ),
    # The pipeline
    FindingCode.SEGMENTS_UNREAD: _template(
        "The pipeline quarantined {segments:# unreadable segment|# unreadable segments}: history has a gap.",
        "{segments:# segment|# segments} quarantined",
        "{why:reason} · {names:names}",
    ),
    FindingCode.PIPELINE_STILL: _template(
        "The pipeline is stalled: history, percentiles and forecasts are not updated.",
        "Pipeline is stalled",
        "Live data is not affected · No data is lost while segments are kept",
    ),
    # kafkadash itself
    FindingCode.BEAT_SILENT: _template(
        "Beat sends no ticks: nothing is collected, and no change continues.", "Beat is silent", _OWN_NOTE
    ),
    FindingCode.TICK_SILENT: _template(
        "No tick ended: nothing is collected, and no change continues.", "The tick does not end", _OWN_NOTE
    ),
    FindingCode.QUEUE_SILENT: _template(
        "No worker takes messages from the queue {queue}.", "Workers of queue {queue} are silent", _OWN_NOTE
    ),
    FindingCode.AUDIT_SILENT: _template(
        "No process of kafkadash audits its tasks: beat and all workers are silent.",
        "Beat and all workers are silent",
        "Findings are not stored and not sent",
    ),
    FindingCode.CLEANUP_LATE: _template(
        "Old rows were not deleted: the database grows.",
        "Old rows are not deleted",
        "The log of the tick has the cause",
    ),
    FindingCode.DEAD_MAN_LATE: _template(
        "The dead-man URL accepted no ping.", "Dead-man URL accepts no ping", "The service behind it may raise an alarm"
    ),
    FindingCode.RECEIVER_FAILS: _template(
        "Notifications to {receiver} fail, or do not reach all of its addresses.",
        "Receiver {receiver} fails",
        "{why:reason}",
    ),
    FindingCode.NEVER_COMPLETE: _template(
        "Never read completely since the cluster was registered: {sources:sources}.",
        "Never read completely: {sources:few_sources}",
        "The collection panel of the cluster shows the causes",
    ),
    # How kafkadash itself reads the cluster
    FindingCode.OTHER_CLUSTER_ANSWERS: _template(
        "The bootstrap address leads to another Kafka cluster, {other}. Its data is not stored.",
        "Cluster ID mismatch",
        "Registered cluster ID: {registered} · Correct the address, or register the other cluster separately",
    ),
    FindingCode.REGISTERED_TWICE: _template(
        "The same Kafka cluster is already registered as {first}. This entry is not collected and is read-only.",
        "Duplicate registration",
        "Use {first}, and remove this entry under Settings",
    ),
    FindingCode.NO_BROKER_ANSWERS: _template(
        f"No broker has responded for {{age:age}}. {_ALL_STALE}",
        "Brokers unreachable for {age:age}",
        "{why:reason}",
    ),
    FindingCode.NO_BROKER_ANSWERED_YET: _template(
        "No broker has responded yet.", "No broker has responded yet", "{why:reason}"
    ),
    FindingCode.NOTHING_READ: _template(
        f"Collection has failed for {{age:age}}. {_ALL_STALE}", "Collection failing for {age:age}", "{why:reason}"
    ),
    FindingCode.NOTHING_READ_YET: _template(
        "Collection has not succeeded yet.", "Collection has not succeeded yet", "{why:reason}"
    ),
    FindingCode.NOTHING_COLLECTED: _template(
        f"No data was collected for {{age:age}}. {_ALL_STALE}", "No data collected for {age:age}", "{why:reason}"
    ),
    FindingCode.NOTHING_COLLECTED_YET: _template("No data was collected yet.", "No data collected yet", "{why:reason}"),
    FindingCode.NOT_JUDGED: _template(
        "Collected data was not evaluated for {age:age}.", "Health not evaluated for {age:age}", _NOT_JUDGED
    ),
    FindingCode.NOT_JUDGED_YET: _template(
        "Collected data was not evaluated yet.", "Health not evaluated yet", _NOT_JUDGED
    ),
    FindingCode.FACTS_OLD: _template(
        "Stale data: {sources:sources} not updated for {age:age}.", "Stale data: {sources:few_sources}", "{why:reason}"
    ),
    FindingCode.FACTS_UNREAD_YET: _template(
        "No data yet: {sources:sources}.", "No data yet: {sources:few_sources}", "{why:reason}"
    ),
    FindingCode.ZOOKEEPER_ADDRESS: _template(
        "The brokers use ZooKeeper, whose address is not entered.",
        "ZooKeeper address missing",
        "Brokers and partitions are shown as reported by brokers · Controller and queued reassignments are not shown",
    ),
    FindingCode.ZOOKEEPER_OLD: _template(
        "ZooKeeper could not be read lately.", "ZooKeeper could not be read lately", "{why:reason}"
    ),
    FindingCode.COLLECTION_OFF: _template(
        "Collection is disabled: no data is read from this cluster.", "Collection disabled"
    ),
}

FINDING_NOTE_MESSAGES: Mapping[Note, MessageTemplate] = {
    Note.NAMED: MessageTemplate("{names:names}"),
    Note.OF_PARTITIONS: MessageTemplate("of {partitions:# partition|# partitions}"),
    Note.RETURN_OF_ANY: MessageTemplate(
        "{partitions:# recovers|# recover} without loss when the replica on {brokers:broker|any of brokers} "
        "{brokers:few} is online, unless the host crashed"
    ),
    Note.RETURN_OF_ALL: MessageTemplate(
        "{partitions:# recovers|# recover} without loss when the replicas on brokers {brokers:few} are online, unless "
        "a host crashed"
    ),
    Note.NO_ELIGIBLE: MessageTemplate(
        "{partitions:# has|# have} no eligible leader: an unclean election can lose records"
    ),
    Note.PRODUCERS_SEE: MessageTemplate("producers get NOT_ENOUGH_REPLICAS"),
    Note.WATERMARK_HELD: MessageTemplate(
        "{partitions:# high watermark does|# high watermarks do} not advance: consumers get no new records"
    ),
    Note.CAN_LEAD: MessageTemplate(
        "{partitions:# has|# have} an eligible replica on {brokers:broker|brokers} {brokers:few}, which can lead "
        "without loss"
    ),
    Note.MISS_REPLICA: MessageTemplate(
        "{partitions:The affected replica is|All affected replicas are} on {brokers:broker|brokers} {brokers:brokers}"
    ),
    Note.EXPLAINED_BY_MOVES: MessageTemplate("{partitions:# more is|# more are} explained by reassignments"),
    Note.FAILING_PARTITIONS: MessageTemplate("{failing:,} of {partitions:# partition|# partitions}"),
    Note.MOST_WAIT_IN: MessageTemplate("{waiting:,} in {place}"),
    Note.MEMBERS: MessageTemplate("{members:# member|# members}"),
    Note.MEMBERS_UNKNOWN: MessageTemplate("members unknown"),
    Note.OPEN_TRANSACTION: MessageTemplate("open transaction in {partitions:# partition|# partitions}"),
    Note.GROUPS_STALL: MessageTemplate("{groups:# stalled|# stalled}"),
    Note.GROUPS_STAND_STILL: MessageTemplate("{groups:# with an error|# with errors}"),
    Note.GROUPS_SET_BACK: MessageTemplate("{groups:# with offsets moved backwards|# with offsets moved backwards}"),
    Note.GROUPS_STOPPED: MessageTemplate("{groups:# without active members|# without active members}"),
    Note.RELEASE: MessageTemplate("{release} on {brokers:# broker|# brokers}"),
}

_SOURCES: Mapping[str, str] = {
    FactSource.ANSWERS: "broker responses",
    FactSource.METADATA: "metadata",
    FactSource.REASSIGNMENTS: "reassignments",
    FactSource.QUORUM: "controller quorum",
    FactSource.LOG_DIRS: "log directories",
    FactSource.CONFIGS: "configs and throttles",
    FactSource.VERSIONS: "versions",
    FactSource.GROUPS: "consumer groups",
    FactSource.CANARY: "canary",
    FactSource.TRANSACTIONS: "open transactions",
    FactSource.RUNS: "runs",
    FactSource.READING: "reads",
    FactSource.PIPELINE: "pipeline",
    "traffic": "traffic",
    "catch_up": "catch-up",
}


def _write_sources(sources: Iterable[str]) -> str:
    return join_items([_SOURCES.get(source, source) for source in sources])


def _write_few_sources(sources: Sequence[str]) -> str:
    """Return the name of one source; of several, how many they are."""
    return _write_sources(sources) if len(sources) == 1 else f"{len(sources)} sources"


def _write_group(name: str) -> str:
    """Kafka lets a group have an empty name."""
    return name or "(empty name)"


FINDING_WRITERS: Mapping[str, Writer] = {
    "sources": _write_sources,
    "few_sources": _write_few_sources,
    "group": _write_group,
}
