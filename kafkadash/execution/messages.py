"""Texts of the codes of ``execution.engine.reasons``, and of the notes in the report of a run.

The text of a read-only cluster is in ``clusters.messages``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from kafkadash.core.formatting import join_items, read_whole_number, run_time
from kafkadash.core.messages import MessageTemplate, Writer
from kafkadash.execution.engine.reasons import LedgerReasonCode, RowReasonCode, RunReasonCode, StuckReasonCode
from kafkadash.execution.progress.figures import FlowDirection, StuckCause
from kafkadash.planning.options import format_megabytes

_NEW_CHANGE = "Propose a new change if the move is still needed."
_NEXT_STEP = "kafkadash retries in the next step."
_RESULT_READ = "The next step reads the result from the cluster."
_FIX_FIRST = "Fix the cause, then propose a new change."
_CHECK_BROKER = "Check the broker's page for the cause."
_FREE_DISK = "Free disk space on it, or cancel the move and plan it again."

ROW_MESSAGES: Mapping[RowReasonCode, MessageTemplate] = {
    RowReasonCode.REASSIGNED_BY_OTHERS: MessageTemplate(
        "Another reassignment, to {target:brokers}, is in progress.", _NEW_CHANGE
    ),
    RowReasonCode.NOT_AS_PLANNED: MessageTemplate(
        "Replicas are {replicas:brokers}; the plan starts from {expected:brokers}.", _NEW_CHANGE
    ),
    RowReasonCode.THERE_ALREADY: MessageTemplate(
        "Replicas are already {replicas:brokers}, as planned; the plan starts from {expected:brokers}.",
        "No action needed.",
    ),
    RowReasonCode.FACTOR_NOT_APPROVED: MessageTemplate(
        "A replication factor change from {has:,} to {target:,} is not approved.",
        "Propose a new change that allows another replication factor.",
    ),
    RowReasonCode.TOPIC_DELETED: MessageTemplate(
        "Topic {topic} was deleted.", "Nothing is left to move. Restore the topic if the deletion was a mistake."
    ),
    RowReasonCode.TOPIC_CREATED_AGAIN: MessageTemplate(
        "Topic {topic} was deleted and recreated.", "Propose a new change if the new topic must move."
    ),
    RowReasonCode.TOPIC_DELETED_SINCE: MessageTemplate(
        "Completed; topic {topic} was deleted later.", "Restore the topic if the deletion was a mistake."
    ),
    RowReasonCode.MOVED_BY_OTHERS: MessageTemplate(
        "Replaced by another reassignment, to {target:brokers}.", _NEW_CHANGE
    ),
    RowReasonCode.OLD_REPLICAS_SUBMITTED: MessageTemplate(
        "The original replicas were submitted again during the move, so the reassignment cannot complete.",
        "Cancel the reassignment.",
    ),
    RowReasonCode.CHANGED_BY_OTHERS: MessageTemplate(
        "Changed outside this run: replicas are {replicas:brokers}, not {target:brokers}.", _NEW_CHANGE
    ),
    RowReasonCode.CHANGED_SINCE: MessageTemplate(
        "Completed; changed later outside this run: replicas are {replicas:brokers}.", _NEW_CHANGE
    ),
    RowReasonCode.CANCELLED_BY_OTHERS: MessageTemplate("Cancelled outside this run.", _NEW_CHANGE),
    RowReasonCode.ORDERED_BY_OTHERS: MessageTemplate("Replica order changed outside this run.", _NEW_CHANGE),
    RowReasonCode.ORDER_NOT_RESTORED: MessageTemplate(
        "The replica order could not be restored: replicas are {replicas:brokers}.",
        "Propose a new change to restore the order.",
    ),
    RowReasonCode.NO_TRACE: MessageTemplate(
        "Submitted {times:# time|# times}, but Kafka shows no such reassignment.",
        "Submit the move again, or give it up.",
    ),
    RowReasonCode.ANSWER_LOST: MessageTemplate("Kafka's response to the submission was lost.", _RESULT_READ),
    RowReasonCode.ANSWER_UNCLEAR: MessageTemplate("{answer}", _RESULT_READ),
    RowReasonCode.ARRIVED_LATE: MessageTemplate(
        "A delayed request reached Kafka late.", "The move continues. No action needed."
    ),
    RowReasonCode.ARRIVED_LATE_CANCELLED: MessageTemplate(
        "A delayed request reached Kafka late.", "kafkadash cancels the move again."
    ),
    RowReasonCode.REFUSED_BY_KAFKA: MessageTemplate("{answer}", _FIX_FIRST),
    RowReasonCode.NOT_SENT: MessageTemplate("{why:reason}", _NEXT_STEP),
    RowReasonCode.REFUSED_TO_CANCEL: MessageTemplate(
        "Kafka rejected the cancel: {answer}", "kafkadash retries until Kafka accepts it."
    ),
    RowReasonCode.REFUSED_TO_ORDER: MessageTemplate(
        "Kafka rejected the original replica order: {answer}",
        "kafkadash retries a few times. Propose a new change if that fails.",
    ),
    RowReasonCode.NOT_ELECTED: MessageTemplate(
        "The preferred leader is not elected: {why:reason}",
        "Elect it on the move's page, or with kafka-leader-election after the run.",
    ),
    RowReasonCode.UNTOLD: MessageTemplate(
        "Result unknown: Kafka lists no reassignment, and topic {topic} is no longer visible to kafkadash.",
        "Verify the partition when the topic is visible again.",
    ),
    RowReasonCode.NOT_REREAD: MessageTemplate(
        "Completed, but not verified: topic {topic} is no longer visible to kafkadash.",
        "Verify the partition when the principal may Describe the topic again.",
    ),
    RowReasonCode.NO_TIME_LEFT: MessageTemplate("This step ran out of time before the request.", _NEXT_STEP),
    RowReasonCode.NO_TIME_FOR_THROTTLE: MessageTemplate(
        "This step ran out of time before the throttle was set.", _NEXT_STEP
    ),
    RowReasonCode.THROTTLE_CHANGED_MEANWHILE: MessageTemplate(
        "The throttle was not set: others changed the rate just before.", "kafkadash checks again in the next step."
    ),
    RowReasonCode.CANCELLED_BEFORE: MessageTemplate("The run was cancelled before this move began.", _NEW_CHANGE),
    RowReasonCode.RUN_ENDED_BEFORE: MessageTemplate("The run ended before this move began.", _NEW_CHANGE),
    RowReasonCode.RUN_ENDED_UNSEEN: MessageTemplate(
        "The run ended while the state of this move was unknown.",
        "Check the partition. Cancel a reassignment that is still in progress with kafka-reassign-partitions.",
    ),
    RowReasonCode.GIVEN_UP: MessageTemplate("Given up by the operator.", _NEW_CHANGE),
    RowReasonCode.ENDED_BY_OPERATOR: MessageTemplate("Ended by {name}."),
    RowReasonCode.ENDED_BY_OPERATOR_WITH_NOTE: MessageTemplate("Ended by {name}: {note}"),
    RowReasonCode.BROKER_AWAY: MessageTemplate(
        "Broker {broker} is offline, so the move would not complete.", "Start the broker. The move then proceeds."
    ),
    RowReasonCode.BROKER_FENCED: MessageTemplate(
        "Broker {broker} is fenced, so the move would not complete.",
        "Check why the controller fences it. The move proceeds when the broker is unfenced.",
    ),
    RowReasonCode.BROKER_NOT_REGISTERED: MessageTemplate(
        "The cluster does not list broker {broker}, so the move would not complete.",
        "Start the broker, or cancel the move and plan it again.",
    ),
    RowReasonCode.RATE_NOT_APPLIED: MessageTemplate(
        "Broker {broker} does not apply the throttle of this run yet.", _NEXT_STEP
    ),
    RowReasonCode.RATE_IN_USE: MessageTemplate(
        "Others throttle broker {broker} to {rate:rate} and may be using that rate, so this run waits with its own.",
        "kafkadash proceeds when the rate is removed, or set for one minute without moves by others.",
    ),
    RowReasonCode.BROKER_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.",
        "Uncordon one, or cancel the move and plan it again.",
    ),
    RowReasonCode.DISKS_NOT_READ: MessageTemplate(
        "Disks of broker {broker} were not read, so free space is unknown.", _CHECK_BROKER
    ),
    RowReasonCode.DISKS_READ_LONG_AGO: MessageTemplate(
        "Disks of broker {broker} were read {age:duration} ago, so free space is unknown.", _CHECK_BROKER
    ),
    RowReasonCode.DISKS_FULL: MessageTemplate(
        "Broker {broker} has {room:bytes} of disk space left; {coming:bytes} are still to come.", _FREE_DISK
    ),
    RowReasonCode.DISKS_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} has {room:bytes} left below its disk limit of {limit:.0f} %; {coming:bytes} are still to "
        "come.",
        _FREE_DISK,
    ),
    RowReasonCode.NO_LEADER: MessageTemplate(
        "The partition has no leader to copy from.", "Start a broker that has an in-sync replica."
    ),
    RowReasonCode.UNDER_MIN_ISR: MessageTemplate(
        "The partition is under min-ISR; {brokers:broker|brokers} {brokers:brokers} must catch up first.",
        "The move then proceeds. Check why {brokers:that broker lags|those brokers lag}.",
    ),
    RowReasonCode.LIES_ELSEWHERE: MessageTemplate(
        "The replica on broker {broker} is in {there}; the plan puts it into {path}.",
        "Move it between the broker's directories with kafka-reassign-partitions.",
    ),
    RowReasonCode.LIES_NOBODY_KNOWS: MessageTemplate(
        "The directory of the replica on broker {broker} is unknown; the plan puts it into {path}. {why}",
        "Check the directories on the broker's page when the broker responds again.",
    ),
}


_CHECK_OVERVIEW = "Check the cluster's overview for the cause."
_FACT_NAMES = {
    "metadata": "cluster metadata",
    "reassignments": "reassignments",
    "log_dirs": "log directories",
    "quorum": "controller quorum",
}


def _list_facts(kinds: Sequence[str]) -> str:
    return join_items([_FACT_NAMES.get(kind, kind) for kind in kinds])


def _list_permissions(permissions: Sequence[Sequence[str]]) -> str:
    return join_items(
        [f"{needed} on {f'the topic {topic}' if topic else 'the cluster'}" for needed, topic in permissions]
    )


RUN_WRITERS: Mapping[str, Writer] = {
    "facts": _list_facts,
    "permissions": _list_permissions,
}

RUN_MESSAGES: Mapping[RunReasonCode, MessageTemplate] = {
    RunReasonCode.NOT_WATCHED: MessageTemplate(
        "{cluster} is not monitored, so its health is unknown.", "Enable the cluster under Settings."
    ),
    RunReasonCode.WINDOW_NOT_OPEN: MessageTemplate("The window is not open.", "The run starts when the window opens."),
    RunReasonCode.NOT_READ_LATELY: MessageTemplate(
        "Cluster health is unknown: {facts:facts} not read recently.", _CHECK_OVERVIEW
    ),
    RunReasonCode.CHECK_FAILED: MessageTemplate("{problem:cause}", "{problem:advice}"),
    RunReasonCode.QUORUM_SILENT: MessageTemplate(
        "The controller quorum does not respond.", "Check the controllers on the quorum page."
    ),
    RunReasonCode.LISTING_UNREAD: MessageTemplate(
        "Reassignments in progress could not be read.",
        "Check that the controllers respond and that the principal may Describe the cluster.",
    ),
    RunReasonCode.TOPICS_UNREAD: MessageTemplate(
        "Kafka did not describe {number:# topic|# topics}: {topics:names}.",
        "Check that the principal may Describe {number:it|them}.",
    ),
    RunReasonCode.LOOKED_ONCE_MORE: MessageTemplate(
        "Checking again: {row}: {why:cause}",
        "If the second check agrees, the change becomes stale and needs a new plan.",
    ),
    RunReasonCode.ROW_HELD_UP: MessageTemplate("{row}: {why:reason}"),
    RunReasonCode.LACKS_PERMISSION: MessageTemplate(
        "The principal needs {permissions:permissions}.", "Grant it in Kafka. The run then starts."
    ),
    RunReasonCode.START_REFUSED: MessageTemplate("{words}"),
    RunReasonCode.MORE_LIKE_IT: MessageTemplate("And {number:# more problem|# more problems} of this kind."),
    RunReasonCode.PAUSED: MessageTemplate(
        "Paused. Moves in flight will finish.", "Resume the run to submit the remaining moves."
    ),
    RunReasonCode.WINDOW_CLOSED: MessageTemplate(
        "The window is closed.", "Moves in flight will finish. Cancel the run to end it."
    ),
    RunReasonCode.LOOK_TOO_OLD: MessageTemplate(
        "Cluster data is {age:duration} old, too old to submit moves.", "kafkadash is reading the cluster again."
    ),
    RunReasonCode.OTHER_TOPICS_NEVER_READ: MessageTemplate(
        "Other topics of the cluster were never read, so the impact of another move on them is unknown.",
        _CHECK_OVERVIEW,
    ),
    RunReasonCode.OTHER_TOPICS_READ_LONG_AGO: MessageTemplate(
        "Other topics were read {age:duration} ago, so the impact of another move on them is unknown.",
        _CHECK_OVERVIEW,
    ),
    RunReasonCode.THROTTLE_REMOVED: MessageTemplate(
        "Others keep removing the throttle set by kafkadash: {places}.",
        "kafkadash sets it again {again:,} min after the last time. Until then, nothing is submitted.",
    ),
    RunReasonCode.THROTTLE_MISSING: MessageTemplate(
        "Others removed the throttle set by kafkadash: {places}.",
        "kafkadash sets it again if the next step confirms this. Until then, nothing is submitted.",
    ),
    RunReasonCode.UNDER_MIN_ISR: MessageTemplate(
        "{partition} is under min-ISR, and no offline broker explains it.",
        "Only repairing moves are submitted. If the moves in flight cause it, cancel the run.",
        many="{number:,} partitions are under min-ISR (first: {partition}), and no offline broker explains it.",
        by="number",
    ),
    RunReasonCode.CLUSTER_UNREADABLE: MessageTemplate("{words}"),
    RunReasonCode.STEP_FAILED: MessageTemplate(
        "This step failed inside kafkadash.",
        "kafkadash retries. If the failure persists, report the error in the worker's log.",
    ),
    RunReasonCode.ANOTHER_CLUSTER: MessageTemplate(
        "The address of {cluster} leads to Kafka cluster {answered} instead of {expected}. The run changes nothing "
        "there.",
        "Correct the cluster's addresses under Settings.",
    ),
    RunReasonCode.NEWER_VERSION: MessageTemplate(
        "A newer kafkadash (run format {format}) worked on this run; this version (format {own}) cannot continue it.",
        "Start the workers of the newer version.",
    ),
    RunReasonCode.STILL_GOING: MessageTemplate(
        "{number:# move of the run is|# moves of the run are} still in flight.",
        "kafkadash removes the remaining throttles after that.",
    ),
    RunReasonCode.ALL_REFUSED: MessageTemplate(
        "Kafka rejected {rows:the only move|all # moves}: {why:cause}", _FIX_FIRST
    ),
    RunReasonCode.GIVEN_UP_BY: MessageTemplate("Given up by {name}: {note}"),
}


_BRING_BACK = "Bring the broker back, or re-plan the move without it."
_WHEN_IN_SYNC = "Kafka completes a move only when all replicas are in sync."
_RAISE_LIMIT = "Raise that limit, or cancel the move."
_MB = 1e6
_LEAST_MB = 100_000.0


def _write_rate(rate: float) -> str:
    """Megabytes with one decimal, or as many bytes as it is where that would be nothing."""
    return f"{rate / _MB:,.1f} MB/s" if rate >= _LEAST_MB else f"{rate:,.0f} B/s"


def _write_stored_rate(value: str) -> str:
    number = read_whole_number(value)
    return _write_rate(number) if number is not None else f"“{value}”"


def _list_numbers(brokers: Sequence[int]) -> str:
    return join_items([str(broker) for broker in brokers])


STUCK_WRITERS: Mapping[str, Writer] = {
    "speed": _write_rate,
    "stored_speed": _write_stored_rate,
    "numbers": _list_numbers,
    "does": lambda way: "sends" if way == FlowDirection.OUT else "receives",
}

STUCK_MESSAGES: Mapping[StuckReasonCode, MessageTemplate] = {
    StuckReasonCode.DESTINATION_UNREGISTERED: MessageTemplate(
        "The cluster does not list destination broker {broker}.", "Start the broker, or re-plan the move without it."
    ),
    StuckReasonCode.DESTINATION_AWAY: MessageTemplate("Destination broker {broker} is offline.", _BRING_BACK),
    StuckReasonCode.DESTINATION_FENCED: MessageTemplate("Destination broker {broker} is fenced.", _BRING_BACK),
    StuckReasonCode.KEPT_REPLICA_AWAY: MessageTemplate(
        "The copies are in sync, but {brokers:broker|brokers} {brokers:numbers}, which {brokers:keeps|keep} a replica, "
        "{brokers:is|are} offline. " + _WHEN_IN_SYNC,
        "Bring the {brokers:broker|brokers} back, or re-plan the move without {brokers:it|them}.",
    ),
    StuckReasonCode.KEPT_NOT_IN_SYNC: MessageTemplate(
        "The copies are in sync, but the {brokers:replica on broker|replicas on brokers} {brokers:numbers} "
        "{brokers:is|are} not. " + _WHEN_IN_SYNC,
        "Check why {brokers:the broker lags|the brokers lag}, or re-plan the move without {brokers:it|them}.",
    ),
    StuckReasonCode.NO_SOURCE: MessageTemplate(
        "The partition has no leader to copy from.", "Start a broker that has an in-sync replica."
    ),
    StuckReasonCode.ROW_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} {direction:does} replicas at {limit:speed} at most, but producers write {inbound:speed} to "
        "{row}, so the copy cannot finish.",
        _RAISE_LIMIT,
    ),
    StuckReasonCode.BROKER_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} {direction:does} replicas at {limit:speed} at most, but producers write {inbound:speed} to "
        "the copied partitions, so the copies cannot finish.",
        _RAISE_LIMIT,
    ),
    StuckReasonCode.LIMIT_NOT_OURS: MessageTemplate("That limit is set by others."),
    StuckReasonCode.COPY_BELOW_INBOUND: MessageTemplate(
        "Producers write {inbound:speed} to {row}, at least as much as is copied, so the copy cannot finish.",
        "Raise the throttle, or cancel the move.",
    ),
    StuckReasonCode.DESTINATION_DISK_FULL: MessageTemplate(
        "Broker {broker} may take {room:bytes} more on its disks; {coming:bytes} are still to come.",
        "Free disk space on it, or re-plan the move without it.",
    ),
    StuckReasonCode.DESTINATION_DISK_NOT_READ: MessageTemplate(
        "Disks of broker {broker} were not read recently, so free space is unknown.", _CHECK_BROKER
    ),
    StuckReasonCode.DESTINATION_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.",
        "Uncordon one, or re-plan the move without the broker.",
    ),
    StuckReasonCode.SOURCE_AT_ITS_LIMIT: MessageTemplate(
        "Source broker {broker} sends {sent:speed} of its limit of {limit:speed}; in-sync {idle:broker|brokers} "
        "{idle:numbers} could send.",
        "Raise the throttle, or elect another leader.",
    ),
    StuckReasonCode.RATE_OF_OTHERS: MessageTemplate(
        "Broker {broker} has a throttle set by others: {key} is {value:stored_speed}.",
        "Decide on the broker's throttles page whether to keep it.",
    ),
    StuckReasonCode.LIST_OF_OTHERS: MessageTemplate(
        "{key} of {topic} was changed by others.", "Find out who changed it. The throttles page shows its value."
    ),
    StuckReasonCode.CLUSTER_REFUSES: MessageTemplate(
        "The cluster rejects the request: {words}", "Fix the cause, or cancel the move."
    ),
    StuckReasonCode.NO_CAUSE_FOUND: MessageTemplate(
        "The copy has not gained on the leader for {quiet:duration}. Source, destination, leader, disk and throttles "
        "show no problem.",
        "Check the log of the destination broker.",
    ),
}


def _write_whole_rate(value: str) -> str:
    """A rate as Kafka holds it; what is no number, in quotes."""
    number = read_whole_number(value)
    return f"{number:,} bytes/s" if number is not None else f"“{value}”"


LEDGER_WRITERS: Mapping[str, Writer] = {"whole_rate": _write_whole_rate}

LEDGER_MESSAGES: Mapping[LedgerReasonCode, MessageTemplate] = {
    LedgerReasonCode.THROTTLE_NOT_READ: MessageTemplate("{why:reason}"),
    LedgerReasonCode.THROTTLE_CALL_REFUSED: MessageTemplate("{why:reason}"),
    LedgerReasonCode.THROTTLE_ANSWER_LOST: MessageTemplate("{why:reason}"),
    LedgerReasonCode.THROTTLE_CLEARED: MessageTemplate("Removed."),
    LedgerReasonCode.LIST_NAMES_EVERY_REPLICA: MessageTemplate(
        "The list is “*” (every replica) and was left unchanged."
    ),
    LedgerReasonCode.LIST_DELETED_WITH_TOPIC: MessageTemplate("The list was deleted with its topic."),
    LedgerReasonCode.LIST_AS_BEFORE: MessageTemplate("Removed; earlier entries stay."),
    LedgerReasonCode.PAIRS_REMOVED_BY_OTHERS: MessageTemplate(
        "Others removed {pairs:# entry|# entries} set by kafkadash."
    ),
    LedgerReasonCode.PAIRS_OF_OTHERS_STAY: MessageTemplate(
        "Removed; {pairs:# entry set by others stays|# entries set by others stay}."
    ),
    LedgerReasonCode.RATE_NOT_SET: MessageTemplate("Not set."),
    LedgerReasonCode.RATE_STOOD_BEFORE: MessageTemplate("Set before the run; it stays."),
    LedgerReasonCode.RATE_RESTORED: MessageTemplate("Restored to {rate:whole_rate}."),
    LedgerReasonCode.RATE_BEFORE_UNCERTAIN: MessageTemplate(
        "Others removed the rate set by kafkadash during the run, so the original value is uncertain."
    ),
    LedgerReasonCode.RATE_REMOVED_BY_OTHERS: MessageTemplate("Removed by others."),
    LedgerReasonCode.RATE_SET_AGAIN: MessageTemplate("Removed by others; set again by kafkadash."),
    LedgerReasonCode.RATE_RESTORED_BY_OTHERS: MessageTemplate("Restored to its original value by others."),
    LedgerReasonCode.RATE_NOT_PUT_BACK: MessageTemplate(
        "Removed by others; the original {rate:whole_rate} was not restored."
    ),
    LedgerReasonCode.RATE_OF_OTHERS_LEFT: MessageTemplate("Now {rate:whole_rate}, set by others; left unchanged."),
}


SENTENCES: Mapping[StuckCause, str] = {
    StuckCause.DESTINATION_AWAY: "A destination broker is unavailable.",
    StuckCause.KEPT_REPLICA_AWAY: "A kept replica is offline or not in sync.",
    StuckCause.NO_LEADER: "The partition has no leader to copy from.",
    StuckCause.BELOW_INBOUND: "The throttle is below the producers' write rate.",
    StuckCause.DESTINATION_DISK: "A destination disk is full, cordoned or not read.",
    StuckCause.SOURCE_AT_THROTTLE: "The source broker sends at its throttle limit.",
    StuckCause.FOREIGN_THROTTLE: "A throttle set by others limits the move.",
    StuckCause.REFUSED: "The cluster rejected the request.",
    StuckCause.UNKNOWN: "The cause is unknown.",
}

SHORTLY: Mapping[StuckCause, str] = {
    StuckCause.DESTINATION_AWAY: "destination unavailable",
    StuckCause.KEPT_REPLICA_AWAY: "kept replica not in sync",
    StuckCause.NO_LEADER: "no leader",
    StuckCause.BELOW_INBOUND: "throttle below write rate",
    StuckCause.DESTINATION_DISK: "destination disk",
    StuckCause.SOURCE_AT_THROTTLE: "source at throttle limit",
    StuckCause.FOREIGN_THROTTLE: "throttle set by others",
    StuckCause.REFUSED: "rejected",
    StuckCause.UNKNOWN: "cause unknown",
}


class ReportNoteCode(StrEnum):
    """Codes of ``deviations`` and ``meanwhile`` of a report; the values are stored."""

    # Deviations from plan
    TOOK_OTHER_TIME = "report-took-other-time"
    ENDED_OTHERWISE = "report-ended-otherwise"
    THROTTLE_CHANGED = "report-throttle-changed"
    WAS_PAUSED = "report-was-paused"
    SUBMITTED_AGAIN = "report-submitted-again"

    # Other cluster activity
    NO_OTHER_MOVES = "report-no-other-moves"
    OTHERS_MOVED = "report-others-moved"
    TOPICS_NOT_RECORDED = "report-topics-not-recorded"
    TOPICS_DELETED = "report-topics-deleted"
    NO_OTHER_THROTTLES = "report-no-other-throttles"
    OTHER_THROTTLE = "report-other-throttle"
    MORE_OTHER_THROTTLES = "report-more-other-throttles"
    RATES_UNCERTAIN = "report-rates-uncertain"
    ABSENCES_NOT_RECORDED = "report-absences-not-recorded"
    BROKERS_STAYED = "report-brokers-stayed"
    BROKERS_NOT_WATCHED = "report-brokers-not-watched"
    OTHERS_NOT_WATCHED = "report-others-not-watched"
    AWAY_ALL_THE_TIME = "report-away-all-the-time"
    AWAY_AT_THE_START = "report-away-at-the-start"
    AWAY_AT_THE_END = "report-away-at-the-end"
    AWAY_BETWEEN = "report-away-between"
    MORE_ABSENCES = "report-more-absences"


def write_second(at: datetime | str) -> str:
    """Return a text such as "24 Nov 10:02:13 UTC"."""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{moment.astimezone(UTC):%d %b %H:%M:%S} UTC"


REPORT_NOTE_WRITERS: Mapping[str, Writer] = {
    "second": write_second,
    "run_time": run_time,
    "megabytes": format_megabytes,
    "often": lambda number: {1: "once", 2: "twice"}.get(number, f"{number:,} times"),
}

REPORT_NOTE_MESSAGES: Mapping[ReportNoteCode, MessageTemplate] = {
    ReportNoteCode.TOOK_OTHER_TIME: MessageTemplate(
        "Planned: at least {planned:run_time} at {rate:megabytes} MB/s. Actual: {took:run_time}, {ratio:.1f} times "
        "the plan."
    ),
    ReportNoteCode.ENDED_OTHERWISE: MessageTemplate(
        "{rows:# partition|# partitions} of {total:,} not completed: {state:row_state}."
    ),
    ReportNoteCode.THROTTLE_CHANGED: MessageTemplate(
        "The throttle was changed {times:often}; the last rate was {rate:megabytes} MB/s."
    ),
    ReportNoteCode.WAS_PAUSED: MessageTemplate("The run was paused for {paused:duration} in total."),
    ReportNoteCode.SUBMITTED_AGAIN: MessageTemplate(
        "{rows:# partition was|# partitions were} submitted more than once, at most {most:often}."
    ),
    ReportNoteCode.NO_OTHER_MOVES: MessageTemplate("No other reassignments observed."),
    ReportNoteCode.OTHERS_MOVED: MessageTemplate("Others moved {rows:# partition|# partitions}: {named}."),
    ReportNoteCode.TOPICS_NOT_RECORDED: MessageTemplate("Topics created or deleted during the run are not recorded."),
    ReportNoteCode.TOPICS_DELETED: MessageTemplate(
        "{topics:# topic of this plan was|# topics of this plan were} deleted or recreated: {named}. Other topics are "
        "not recorded."
    ),
    ReportNoteCode.NO_OTHER_THROTTLES: MessageTemplate("No conflicting throttles set by others."),
    ReportNoteCode.OTHER_THROTTLE: MessageTemplate(
        "{at:second}: {found}", many="{at:second}: {found} Observed {times:often}.", by="times"
    ),
    ReportNoteCode.MORE_OTHER_THROTTLES: MessageTemplate(
        "{more:# more throttle event is|# more throttle events are} in the audit log."
    ),
    ReportNoteCode.RATES_UNCERTAIN: MessageTemplate(
        "Others removed rates set by kafkadash during the run, so the original values are uncertain: {named}."
    ),
    ReportNoteCode.ABSENCES_NOT_RECORDED: MessageTemplate("Offline brokers were not recorded during the run."),
    ReportNoteCode.BROKERS_STAYED: MessageTemplate(
        "All brokers online at the start were online at every reading until the end."
    ),
    ReportNoteCode.BROKERS_NOT_WATCHED: MessageTemplate(
        "No broker was observed offline, but the cluster was not read for up to {gap:duration}."
    ),
    ReportNoteCode.OTHERS_NOT_WATCHED: MessageTemplate(
        "Other brokers may have been offline: the cluster was not read for up to {gap:duration}."
    ),
    ReportNoteCode.AWAY_ALL_THE_TIME: MessageTemplate("Broker {broker} was offline at the start and at the end."),
    ReportNoteCode.AWAY_AT_THE_START: MessageTemplate(
        "Broker {broker} was offline at the start and back at {back:second}."
    ),
    ReportNoteCode.AWAY_AT_THE_END: MessageTemplate(
        "Broker {broker} was offline from {gone:second} on and still at the end."
    ),
    ReportNoteCode.AWAY_BETWEEN: MessageTemplate(
        "Broker {broker} was offline from {gone:second} to {back:second} ({away_s:duration})."
    ),
    ReportNoteCode.MORE_ABSENCES: MessageTemplate("Brokers were offline {more:# more time|# more times}."),
}
