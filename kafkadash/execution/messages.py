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

_ANEW = "If it is still wanted, propose it anew from the cluster as it is now."
_NEXT_STEP = "It takes its turn in the next step."

ROW_MESSAGES: Mapping[RowReasonCode, MessageTemplate] = {
    RowReasonCode.REASSIGNED_BY_OTHERS: MessageTemplate("Somebody else reassigns it, to {target:brokers}.", _ANEW),
    RowReasonCode.NOT_AS_PLANNED: MessageTemplate(
        "Its replicas are {replicas:brokers}; the plan expects {expected:brokers} before.", _ANEW
    ),
    RowReasonCode.THERE_ALREADY: MessageTemplate(
        "Its replicas are {replicas:brokers} already, as the plan asks; the plan expects {expected:brokers} before.",
        "Nothing is left to do for it.",
    ),
    RowReasonCode.FACTOR_NOT_APPROVED: MessageTemplate(
        "It has {has:,} replica and would have {target:,}, which was not approved.",
        "Propose it anew, and allow another number of replicas under Limits.",
        many="It has {has:,} replicas and would have {target:,}, which was not approved.",
        by="has",
    ),
    RowReasonCode.TOPIC_DELETED: MessageTemplate(
        "{topic} was deleted.", "Nothing is left to move; restore the topic if that was a mistake."
    ),
    RowReasonCode.TOPIC_CREATED_AGAIN: MessageTemplate(
        "{topic} was deleted and created again.", "Plan the new topic in a change of its own, if it has to move."
    ),
    RowReasonCode.TOPIC_DELETED_SINCE: MessageTemplate(
        "It was done; {topic} was deleted since.", "Restore the topic if that was a mistake."
    ),
    RowReasonCode.MOVED_BY_OTHERS: MessageTemplate("Somebody else moves it to {target:brokers}.", _ANEW),
    RowReasonCode.OLD_REPLICAS_SUBMITTED: MessageTemplate(
        "Somebody submitted its old replicas while it moved; that can never end.", "Cancel it."
    ),
    RowReasonCode.CHANGED_BY_OTHERS: MessageTemplate(
        "Somebody else changed it: its replicas are {replicas:brokers}, not {target:brokers}.", _ANEW
    ),
    RowReasonCode.CHANGED_SINCE: MessageTemplate(
        "It was done; its replicas are {replicas:brokers} since, by somebody else.", _ANEW
    ),
    RowReasonCode.CANCELLED_BY_OTHERS: MessageTemplate("Somebody else cancelled it.", _ANEW),
    RowReasonCode.ORDERED_BY_OTHERS: MessageTemplate("Somebody else put its replicas into another order.", _ANEW),
    RowReasonCode.ORDER_NOT_RESTORED: MessageTemplate(
        "Its order could not be restored: its replicas are {replicas:brokers}.",
        "A change of its own can put them in order.",
    ),
    RowReasonCode.NO_TRACE: MessageTemplate(
        "It was submitted {times:,} time and Kafka shows no trace of it.",
        "Submit it again, or give it up?",
        many="It was submitted {times:,} times and Kafka shows no trace of it.",
        by="times",
    ),
    RowReasonCode.ANSWER_LOST: MessageTemplate(
        "The answer to its submission was lost.", "The next look at the cluster tells what came of it."
    ),
    RowReasonCode.ANSWER_UNCLEAR: MessageTemplate("{answer}", "The next look at the cluster tells what came of it."),
    RowReasonCode.ARRIVED_LATE: MessageTemplate(
        "A request that had gone astray reached Kafka late.", "It goes on; nothing is to be done."
    ),
    RowReasonCode.ARRIVED_LATE_CANCELLED: MessageTemplate(
        "A request that had gone astray reached Kafka late.", "It is cancelled again."
    ),
    RowReasonCode.REFUSED_BY_KAFKA: MessageTemplate("{answer}", "Propose it anew when that is mended."),
    RowReasonCode.NOT_SENT: MessageTemplate("{why:reason}", _NEXT_STEP),
    RowReasonCode.REFUSED_TO_CANCEL: MessageTemplate(
        "Kafka refuses to cancel it: {answer}", "It is asked again until Kafka does."
    ),
    RowReasonCode.REFUSED_TO_ORDER: MessageTemplate(
        "Kafka refuses to restore the order of its replicas: {answer}",
        "It is asked again a few times; a change of its own can do it later.",
    ),
    RowReasonCode.NOT_ELECTED: MessageTemplate(
        "Its preferred leader was not elected: {why:reason}",
        "Ask for the election on the page of the row, or with Kafka's own tool once the run has ended.",
    ),
    RowReasonCode.UNTOLD: MessageTemplate(
        "Nobody can tell how it ended: Kafka lists no move of it, but {topic} is not described to kafkadash any more.",
        "Verify it when it is.",
    ),
    RowReasonCode.NOT_REREAD: MessageTemplate(
        "It could not be read once more: {topic} is not described to kafkadash any more.",
        "Verify it when the principal may Describe it again.",
    ),
    RowReasonCode.NO_TIME_LEFT: MessageTemplate("There was no time left for it in this step.", _NEXT_STEP),
    RowReasonCode.NO_TIME_FOR_THROTTLE: MessageTemplate(
        "There was no time left to set its throttle in this step.", _NEXT_STEP
    ),
    RowReasonCode.THROTTLE_CHANGED_MEANWHILE: MessageTemplate(
        "Somebody else changed the rate right before ours was set, so ours was not set.",
        "It is looked at again in the next step.",
    ),
    RowReasonCode.CANCELLED_BEFORE: MessageTemplate(
        "The run was cancelled before it began.", "Propose what is left anew if it is still wanted."
    ),
    RowReasonCode.RUN_ENDED_BEFORE: MessageTemplate(
        "The run ended before it began.", "Propose what is left anew if it is still wanted."
    ),
    RowReasonCode.RUN_ENDED_UNSEEN: MessageTemplate(
        "The run ended while nobody could see what became of it.",
        "See the partition in the cluster, and cancel what still moves with Kafka's own tool.",
    ),
    RowReasonCode.GIVEN_UP: MessageTemplate("The operator gave it up.", "Propose it anew if it is still wanted."),
    RowReasonCode.ENDED_BY_OPERATOR: MessageTemplate("{name} ended it."),
    RowReasonCode.ENDED_BY_OPERATOR_WITH_NOTE: MessageTemplate("{name} ended it: {note}"),
    RowReasonCode.BROKER_AWAY: MessageTemplate(
        "Broker {broker} is away; a move with it would not end.", "Bring it back; the row then goes on."
    ),
    RowReasonCode.BROKER_FENCED: MessageTemplate(
        "Broker {broker} is fenced; a move with it would not end.",
        "See why the controller fences it; the row then goes on.",
    ),
    RowReasonCode.BROKER_NOT_REGISTERED: MessageTemplate(
        "Broker {broker} is not registered; a move with it would not end.",
        "Start it, or cancel the row and plan it anew.",
    ),
    RowReasonCode.RATE_IN_USE: MessageTemplate(
        "Broker {broker} is throttled to {rate:rate} by somebody else who may be using it; the throttle of this run "
        "waits.",
        "It goes on when that rate is gone, or has stood for a minute without moves of others.",
    ),
    RowReasonCode.BROKER_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.", "Uncordon one, or cancel the row and plan it anew."
    ),
    RowReasonCode.DISKS_NOT_READ: MessageTemplate(
        "The disks of broker {broker} were not read; nobody can tell whether they take what comes.",
        "See on the broker's page why they are not read.",
    ),
    RowReasonCode.DISKS_READ_LONG_AGO: MessageTemplate(
        "The disks of broker {broker} were read {age:duration} ago; nobody can tell whether they take what comes.",
        "See on the broker's page why they are not read.",
    ),
    RowReasonCode.DISKS_FULL: MessageTemplate(
        "Broker {broker} has room for {room:bytes} of its disks, and {coming:bytes} are still to come.",
        "Make room on it, or cancel the row and plan it anew.",
    ),
    RowReasonCode.DISKS_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} has room for {room:bytes} below {limit:.0f} % of its disks, and {coming:bytes} are still to "
        "come.",
        "Make room on it, or cancel the row and plan it anew.",
    ),
    RowReasonCode.NO_LEADER: MessageTemplate(
        "It has no leader; nothing can be copied.", "Bring back a broker that has it in sync."
    ),
    RowReasonCode.UNDER_MIN_ISR: MessageTemplate(
        "It is under min-ISR; broker {brokers:brokers} has to catch up first.",
        "It goes on by itself then; see why that broker lags.",
        many="It is under min-ISR; brokers {brokers:brokers} have to catch up first.",
        by="brokers",
    ),
    RowReasonCode.LIES_ELSEWHERE: MessageTemplate(
        "Its replica on broker {broker} lies in {there}; the plan puts it into {path}.",
        "Kafka's kafka-reassign-partitions can move it between the directories of the broker.",
    ),
    RowReasonCode.LIES_NOBODY_KNOWS: MessageTemplate(
        "Nobody can tell whether its replica on broker {broker} lies in {path}, as the plan says. {why}",
        "See the directories on the broker's page when it answers again.",
    ),
}


_SEE_OVERVIEW = "See on its overview why they are not read."
_SEE_OVERVIEW_OF_CLUSTER = "See on the overview of the cluster why they are not read."
_NOT_READ = {
    "metadata": "topics and brokers",
    "reassignments": "reassignments",
    "log_dirs": "log directories",
    "quorum": "controller quorum",
}


def _list_facts(kinds: Sequence[str]) -> str:
    return join_items([_NOT_READ.get(kind, kind) for kind in kinds])


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
        "{cluster} is not watched now, so nobody can tell whether it is well.", "Enable it under Settings."
    ),
    RunReasonCode.WINDOW_NOT_OPEN: MessageTemplate(
        "Its window is not open.", "It begins by itself when the window opens."
    ),
    RunReasonCode.NOT_READ_LATELY: MessageTemplate(
        "The {facts:facts} were not read lately, so nobody can tell whether the cluster is well.", _SEE_OVERVIEW
    ),
    RunReasonCode.CHECK_FAILED: MessageTemplate("{problem:cause}", "{problem:advice}"),
    RunReasonCode.QUORUM_SILENT: MessageTemplate(
        "The controller quorum does not answer.", "See the controllers on the page of the quorum."
    ),
    RunReasonCode.LISTING_UNREAD: MessageTemplate(
        "The reassignments in flight could not be read.",
        "See that the controllers answer, and that the principal may Describe the cluster.",
    ),
    RunReasonCode.TOPICS_UNREAD: MessageTemplate(
        "Nothing was told about {number:,} topic: {topics:names}.",
        "See that the principal may Describe them.",
        many="Nothing was told about {number:,} topics: {topics:names}.",
        by="number",
    ),
    RunReasonCode.LOOKED_ONCE_MORE: MessageTemplate(
        "Looked at once more: {row}: {why:cause}",
        "If that says the same, the change turns stale and needs a new plan.",
    ),
    RunReasonCode.ROW_HELD_UP: MessageTemplate("{row}: {why:reason}"),
    RunReasonCode.LACKS_PERMISSION: MessageTemplate(
        "The principal needs {permissions:permissions}.", "Grant it in Kafka; the run then begins by itself."
    ),
    RunReasonCode.START_REFUSED: MessageTemplate("{words}"),
    RunReasonCode.MORE_LIKE_IT: MessageTemplate(
        "And {number:,} more thing like it.", many="And {number:,} more things like it.", by="number"
    ),
    RunReasonCode.PAUSED: MessageTemplate(
        "It is paused; what is in flight goes on.", "Resume it to have the rest submitted."
    ),
    RunReasonCode.WINDOW_CLOSED: MessageTemplate(
        "The window is closed.", "What is in flight goes on; cancel the run to end it."
    ),
    RunReasonCode.LOOK_TOO_OLD: MessageTemplate(
        "The cluster was read {age:duration} ago, too long to act on.", "The next look is under way."
    ),
    RunReasonCode.OTHER_TOPICS_NEVER_READ: MessageTemplate(
        "The other topics of the cluster were never read, so nobody can tell whether a move would harm them.",
        _SEE_OVERVIEW_OF_CLUSTER,
    ),
    RunReasonCode.OTHER_TOPICS_READ_LONG_AGO: MessageTemplate(
        "The other topics were read {age:duration} ago; nobody can tell whether another move would harm them.",
        _SEE_OVERVIEW_OF_CLUSTER,
    ),
    RunReasonCode.THROTTLE_REMOVED: MessageTemplate(
        "Somebody else keeps removing our throttle ({places}).",
        "It is set again {again:,} min after the last time; until then nothing is submitted.",
    ),
    RunReasonCode.THROTTLE_MISSING: MessageTemplate(
        "Somebody else removed our throttle ({places}).",
        "It is set again when the next look finds the same; until then nothing is submitted.",
    ),
    RunReasonCode.UNDER_MIN_ISR: MessageTemplate(
        "{partition} is under min-ISR, and no broker is away that would explain it.",
        "Nothing is submitted but what repairs it. If the moves are what holds it up, cancel the run.",
        many="{number:,} partitions are under min-ISR, {partition} is the first, and no broker is away that would "
        "explain it.",
        by="number",
    ),
    RunReasonCode.CLUSTER_UNREADABLE: MessageTemplate("{words}"),
    RunReasonCode.STEP_FAILED: MessageTemplate(
        "This step failed inside of kafkadash; the log of the worker says more.",
        "It is tried again by itself; if that goes on, report what the log says.",
    ),
    RunReasonCode.ANOTHER_CLUSTER: MessageTemplate(
        "The address of {cluster} now leads to the Kafka cluster {answered}, and not to {expected}. Nothing of this "
        "run is done there.",
        "Give the cluster its own addresses again under Settings.",
    ),
    RunReasonCode.NEWER_VERSION: MessageTemplate(
        "A newer version of kafkadash (format {format}) has worked on this run, and this one (format {own}) does not "
        "know how to go on.",
        "Start the workers of the newer version.",
    ),
    RunReasonCode.STILL_GOING: MessageTemplate(
        "{number:,} move of it is still in flight.",
        "What it owes is cleared when that has ended.",
        many="{number:,} moves of it are still in flight.",
        by="number",
    ),
    RunReasonCode.ALL_REFUSED: MessageTemplate(
        "Kafka refused {rows:,} row, all there are: {why:cause}",
        "Propose it anew when that is mended.",
        many="Kafka refused {rows:,} rows, all there are: {why:cause}",
        by="rows",
    ),
    RunReasonCode.GIVEN_UP_BY: MessageTemplate("{name} gave it up: {note}"),
}


_PLAN_ANEW = "Bring it back, or plan the row anew without it."
_KEPT = "Kafka ends the move only when every replica is in sync."
_BRING_BACK = "Bring back what is away, or plan the row anew without it."
_RAISE = "Raise that limit, or cancel the row."
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
    "does": lambda way: "sends" if way == FlowDirection.OUT else "takes",
}

STUCK_MESSAGES: Mapping[StuckReasonCode, MessageTemplate] = {
    StuckReasonCode.DESTINATION_UNREGISTERED: MessageTemplate(
        "Broker {broker}, which it is copied to, is not registered.", "Start it, or plan the row anew without it."
    ),
    StuckReasonCode.DESTINATION_AWAY: MessageTemplate("Broker {broker}, which it is copied to, is away.", _PLAN_ANEW),
    StuckReasonCode.DESTINATION_FENCED: MessageTemplate(
        "Broker {broker}, which it is copied to, is fenced.", _PLAN_ANEW
    ),
    StuckReasonCode.KEPT_REPLICA_AWAY: MessageTemplate(
        "It is copied and in sync, but broker {brokers:numbers}, which keeps a replica, is away. " + _KEPT,
        _BRING_BACK,
        many="It is copied and in sync, but brokers {brokers:numbers}, which keep a replica, are away. " + _KEPT,
        by="brokers",
    ),
    StuckReasonCode.KEPT_NOT_IN_SYNC: MessageTemplate(
        "It is copied and in sync, but broker {brokers:numbers}, which keeps a replica, is not in sync. " + _KEPT,
        _BRING_BACK,
        many="It is copied and in sync, but brokers {brokers:numbers}, which keep a replica, are not in sync. " + _KEPT,
        by="brokers",
    ),
    StuckReasonCode.NO_SOURCE: MessageTemplate(
        "The partition has no leader, so there is nothing to copy from.", "Bring back a broker that has it in sync."
    ),
    StuckReasonCode.ROW_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} {direction:does} replicas at no more than {limit:speed}; {row} receives {inbound:speed}, so "
        "it can never finish.",
        _RAISE,
    ),
    StuckReasonCode.BROKER_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} {direction:does} replicas at no more than {limit:speed}; producers write {inbound:speed} to "
        "what is copied there, so it can never finish.",
        _RAISE,
    ),
    StuckReasonCode.LIMIT_NOT_OURS: MessageTemplate("That limit is not ours."),
    StuckReasonCode.COPY_BELOW_INBOUND: MessageTemplate(
        "Producers write {inbound:speed} to {row}, which is no less than its copy gets: so it can never finish.",
        "Raise the throttle, or cancel the row.",
    ),
    StuckReasonCode.DESTINATION_DISK_FULL: MessageTemplate(
        "Broker {broker} may take {room:bytes} more on its disks, and {coming:bytes} are still to come.",
        "Make room on it, or plan the row anew without it.",
    ),
    StuckReasonCode.DESTINATION_DISK_NOT_READ: MessageTemplate(
        "The disks of broker {broker} were not read lately; nobody can tell whether they take what comes.",
        "See on the broker's page why they are not read.",
    ),
    StuckReasonCode.DESTINATION_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.", "Uncordon one, or plan the row anew without it."
    ),
    StuckReasonCode.SOURCE_AT_ITS_LIMIT: MessageTemplate(
        "Broker {broker}, which it is copied from, sends {sent:speed} of the {limit:speed} it may, while broker "
        "{idle:numbers}, in sync as well, could send.",
        "Raise the throttle, or let another broker lead it.",
        many="Broker {broker}, which it is copied from, sends {sent:speed} of the {limit:speed} it may, while brokers "
        "{idle:numbers}, in sync as well, could send.",
        by="idle",
    ),
    StuckReasonCode.RATE_OF_OTHERS: MessageTemplate(
        "Broker {broker} has a throttle that is not ours: {key} is {value:stored_speed}.",
        "Decide on the page of its throttles whether it stays.",
    ),
    StuckReasonCode.LIST_OF_OTHERS: MessageTemplate(
        "{key} of {topic} was changed by somebody else.", "Ask who did; it is seen on the page of the throttles."
    ),
    StuckReasonCode.CLUSTER_REFUSES: MessageTemplate("The cluster refuses: {words}", "Mend that, or cancel the row."),
    StuckReasonCode.NO_CAUSE_FOUND: MessageTemplate(
        "It has not come nearer to its leader for {quiet:duration}. Source, destination, leader, disk and throttles "
        "look well.",
        "The log of the destination may say why.",
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
        "The list is “*”, which names every replica; it was left as it is."
    ),
    LedgerReasonCode.LIST_DELETED_WITH_TOPIC: MessageTemplate("The topic was deleted, and its list with it."),
    LedgerReasonCode.LIST_AS_BEFORE: MessageTemplate("Removed; what was set before stays."),
    LedgerReasonCode.PAIRS_REMOVED_BY_OTHERS: MessageTemplate("Somebody else removed {pairs:# pair|# pairs} of ours."),
    LedgerReasonCode.PAIRS_OF_OTHERS_STAY: MessageTemplate(
        "Removed; {pairs:# pair of others stays|# pairs of others stay}."
    ),
    LedgerReasonCode.RATE_NOT_SET: MessageTemplate("It was not set."),
    LedgerReasonCode.RATE_STOOD_BEFORE: MessageTemplate("It stood there before, and stays."),
    LedgerReasonCode.RATE_RESTORED: MessageTemplate("Set back to {rate:whole_rate}."),
    LedgerReasonCode.RATE_BEFORE_UNCERTAIN: MessageTemplate(
        "Somebody else had removed ours meanwhile: what stood there before is not certain."
    ),
    LedgerReasonCode.RATE_REMOVED_BY_OTHERS: MessageTemplate("Somebody else removed it."),
    LedgerReasonCode.RATE_SET_AGAIN: MessageTemplate("Somebody else removed it; it was set again."),
    LedgerReasonCode.RATE_RESTORED_BY_OTHERS: MessageTemplate("Somebody else set it back to what it was before."),
    LedgerReasonCode.RATE_NOT_PUT_BACK: MessageTemplate(
        "Somebody else removed it; {rate:whole_rate} from before was not put back."
    ),
    LedgerReasonCode.RATE_OF_OTHERS_LEFT: MessageTemplate(
        "{rate:whole_rate} stands there now, which is not ours; it was left."
    ),
}


SENTENCES: Mapping[StuckCause, str] = {
    StuckCause.DESTINATION_AWAY: "A broker that it goes to is away.",
    StuckCause.KEPT_REPLICA_AWAY: "A replica that stays is on a broker that is away.",
    StuckCause.NO_LEADER: "The partition has no leader to copy from.",
    StuckCause.BELOW_INBOUND: "The throttle is below what the partition receives.",
    StuckCause.DESTINATION_DISK: "The disk that it goes to cannot take it.",
    StuckCause.SOURCE_AT_THROTTLE: "The broker that it copies from sends all that its throttle allows.",
    StuckCause.FOREIGN_THROTTLE: "A throttle that is not ours holds it up.",
    StuckCause.REFUSED: "The cluster refused.",
    StuckCause.UNKNOWN: "Nobody can tell why.",
}

SHORTLY: Mapping[StuckCause, str] = {
    StuckCause.DESTINATION_AWAY: "destination away",
    StuckCause.KEPT_REPLICA_AWAY: "kept replica away",
    StuckCause.NO_LEADER: "no leader",
    StuckCause.BELOW_INBOUND: "throttle below inbound",
    StuckCause.DESTINATION_DISK: "destination disk",
    StuckCause.SOURCE_AT_THROTTLE: "source at its throttle",
    StuckCause.FOREIGN_THROTTLE: "throttle of others",
    StuckCause.REFUSED: "refused",
    StuckCause.UNKNOWN: "cause not known",
}


class ReportNoteCode(StrEnum):
    """Codes of ``deviations`` and ``meanwhile`` of a report; the values are stored."""

    # Otherwise than planned
    TOOK_OTHER_TIME = "report-took-other-time"
    ENDED_OTHERWISE = "report-ended-otherwise"
    THROTTLE_CHANGED = "report-throttle-changed"
    WAS_PAUSED = "report-was-paused"
    SUBMITTED_AGAIN = "report-submitted-again"

    # Elsewhere meanwhile
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
        "The plan reckoned with at least {planned:run_time} at {rate:megabytes} MB/s; it took {took:run_time}, "
        "{ratio:.1f} times that."
    ),
    ReportNoteCode.ENDED_OTHERWISE: MessageTemplate(
        "{rows:# partition|# partitions} of {total:,} ended otherwise: {state:row_state}."
    ),
    ReportNoteCode.THROTTLE_CHANGED: MessageTemplate(
        "The throttle was changed {times:often}; it was {rate:megabytes} MB/s last."
    ),
    ReportNoteCode.WAS_PAUSED: MessageTemplate("It was paused for {paused:duration} in all."),
    ReportNoteCode.SUBMITTED_AGAIN: MessageTemplate(
        "{rows:# partition|# partitions} had to be submitted more than once, at most {most:often}."
    ),
    ReportNoteCode.NO_OTHER_MOVES: MessageTemplate("No reassignment of others was seen."),
    ReportNoteCode.OTHERS_MOVED: MessageTemplate("Others moved {rows:# partition|# partitions}: {named}."),
    ReportNoteCode.TOPICS_NOT_RECORDED: MessageTemplate(
        "Which topics were created or deleted elsewhere is not recorded, so it is not known."
    ),
    ReportNoteCode.TOPICS_DELETED: MessageTemplate(
        "{topics:# topic of this plan was|# topics of this plan were} deleted, or created again: {named}. Of other "
        "topics that is not recorded."
    ),
    ReportNoteCode.NO_OTHER_THROTTLES: MessageTemplate("No throttle of others was found where ours stood."),
    ReportNoteCode.OTHER_THROTTLE: MessageTemplate(
        "{at:second}: {found}", many="{at:second}: {found} That was seen {times:often}.", by="times"
    ),
    ReportNoteCode.MORE_OTHER_THROTTLES: MessageTemplate(
        "And {more:# more thing|# more things} about throttles; the audit has them."
    ),
    ReportNoteCode.RATES_UNCERTAIN: MessageTemplate(
        "Others removed our rates while it ran, so what stood before is not certain of {named}."
    ),
    ReportNoteCode.ABSENCES_NOT_RECORDED: MessageTemplate("Whether brokers were away meanwhile was not recorded."),
    ReportNoteCode.BROKERS_STAYED: MessageTemplate(
        "Every broker that was there when it began was there at each look until it ended."
    ),
    ReportNoteCode.BROKERS_NOT_WATCHED: MessageTemplate(
        "No broker was seen away, but one could have been: the cluster was not read for up to {gap:duration}."
    ),
    ReportNoteCode.OTHERS_NOT_WATCHED: MessageTemplate(
        "Others could have been: the cluster was not read for up to {gap:duration}."
    ),
    ReportNoteCode.AWAY_ALL_THE_TIME: MessageTemplate("Broker {broker} was away when it began and when it ended."),
    ReportNoteCode.AWAY_AT_THE_START: MessageTemplate(
        "Broker {broker} was away when it began, and was back at {back:second}."
    ),
    ReportNoteCode.AWAY_AT_THE_END: MessageTemplate(
        "Broker {broker} was away from {gone:second} on, and was not back when it ended."
    ),
    ReportNoteCode.AWAY_BETWEEN: MessageTemplate(
        "Broker {broker} was away from {gone:second} to {back:second}, {away_s:duration}."
    ),
    ReportNoteCode.MORE_ABSENCES: MessageTemplate("Brokers were away {more:# more time|# more times}."),
}
