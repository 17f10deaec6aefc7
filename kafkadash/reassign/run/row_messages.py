"""Texts of the reasons of rows (``domain.row_reasons``)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.domain.row_reasons import RowReasonCode as Code

_ANEW = "If it is still wanted, propose it anew from the cluster as it is now."
_NEXT_STEP = "It takes its turn in the next step."

ROW_MESSAGES: Mapping[Code, MessageTemplate] = {
    Code.REASSIGNED_BY_OTHERS: MessageTemplate("Somebody else reassigns it, to {target:brokers}.", _ANEW),
    Code.NOT_AS_PLANNED: MessageTemplate(
        "Its replicas are {replicas:brokers}; the plan expects {expected:brokers} before.", _ANEW
    ),
    Code.THERE_ALREADY: MessageTemplate(
        "Its replicas are {replicas:brokers} already, as the plan asks; the plan expects {expected:brokers} before.",
        "Nothing is left to do for it.",
    ),
    Code.FACTOR_NOT_APPROVED: MessageTemplate(
        "It has {has:,} replica and would have {target:,}, which was not approved.",
        "Propose it anew, and allow another number of replicas under Limits.",
        many="It has {has:,} replicas and would have {target:,}, which was not approved.",
        by="has",
    ),
    Code.TOPIC_DELETED: MessageTemplate(
        "{topic} was deleted.", "Nothing is left to move; restore the topic if that was a mistake."
    ),
    Code.TOPIC_CREATED_AGAIN: MessageTemplate(
        "{topic} was deleted and created again.", "Plan the new topic in a change of its own, if it has to move."
    ),
    Code.TOPIC_DELETED_SINCE: MessageTemplate(
        "It was done; {topic} was deleted since.", "Restore the topic if that was a mistake."
    ),
    Code.MOVED_BY_OTHERS: MessageTemplate("Somebody else moves it to {target:brokers}.", _ANEW),
    Code.OLD_REPLICAS_SUBMITTED: MessageTemplate(
        "Somebody submitted its old replicas while it moved; that can never end.", "Cancel it."
    ),
    Code.CHANGED_BY_OTHERS: MessageTemplate(
        "Somebody else changed it: its replicas are {replicas:brokers}, not {target:brokers}.", _ANEW
    ),
    Code.CHANGED_SINCE: MessageTemplate(
        "It was done; its replicas are {replicas:brokers} since, by somebody else.", _ANEW
    ),
    Code.CANCELLED_BY_OTHERS: MessageTemplate("Somebody else cancelled it.", _ANEW),
    Code.ORDERED_BY_OTHERS: MessageTemplate("Somebody else put its replicas into another order.", _ANEW),
    Code.ORDER_NOT_RESTORED: MessageTemplate(
        "Its order could not be restored: its replicas are {replicas:brokers}.",
        "A change of its own can put them in order.",
    ),
    Code.NO_TRACE: MessageTemplate(
        "It was submitted {times:,} time and Kafka shows no trace of it.",
        "Submit it again, or give it up?",
        many="It was submitted {times:,} times and Kafka shows no trace of it.",
        by="times",
    ),
    Code.ANSWER_LOST: MessageTemplate(
        "The answer to its submission was lost.", "The next look at the cluster tells what came of it."
    ),
    Code.ANSWER_UNCLEAR: MessageTemplate("{answer}", "The next look at the cluster tells what came of it."),
    Code.ARRIVED_LATE: MessageTemplate(
        "A request that had gone astray reached Kafka late.", "It goes on; nothing is to be done."
    ),
    Code.ARRIVED_LATE_CANCELLED: MessageTemplate(
        "A request that had gone astray reached Kafka late.", "It is cancelled again."
    ),
    Code.REFUSED_BY_KAFKA: MessageTemplate("{answer}", "Propose it anew when that is mended."),
    Code.NOT_SENT: MessageTemplate("{why}", _NEXT_STEP),
    Code.REFUSED_TO_CANCEL: MessageTemplate(
        "Kafka refuses to cancel it: {answer}", "It is asked again until Kafka does."
    ),
    Code.REFUSED_TO_ORDER: MessageTemplate(
        "Kafka refuses to restore the order of its replicas: {answer}",
        "It is asked again a few times; a change of its own can do it later.",
    ),
    Code.NOT_ELECTED: MessageTemplate(
        "Its preferred leader was not elected: {why:reason}",
        "Ask for the election on the page of the row, or with Kafka's own tool once the run has ended.",
    ),
    Code.UNTOLD: MessageTemplate(
        "Nobody can tell how it ended: Kafka lists no move of it, but {topic} is not described to kafkadash any more.",
        "Verify it when it is.",
    ),
    Code.NOT_REREAD: MessageTemplate(
        "It could not be read once more: {topic} is not described to kafkadash any more.",
        "Verify it when the principal may Describe it again.",
    ),
    Code.NO_TIME_LEFT: MessageTemplate("There was no time left for it in this step.", _NEXT_STEP),
    Code.NO_TIME_FOR_THROTTLE: MessageTemplate("There was no time left to set its throttle in this step.", _NEXT_STEP),
    Code.THROTTLE_CHANGED_MEANWHILE: MessageTemplate(
        "Somebody else changed the rate right before ours was set, so ours was not set.",
        "It is looked at again in the next step.",
    ),
    Code.THROTTLE_NOT_SET: MessageTemplate("Its throttle could not be set.", "It is tried again in the next step."),
    Code.CANCELLED_BEFORE: MessageTemplate(
        "The run was cancelled before it began.", "Propose what is left anew if it is still wanted."
    ),
    Code.RUN_ENDED_BEFORE: MessageTemplate(
        "The run ended before it began.", "Propose what is left anew if it is still wanted."
    ),
    Code.RUN_ENDED_UNSEEN: MessageTemplate(
        "The run ended while nobody could see what became of it.",
        "See the partition in the cluster, and cancel what still moves with Kafka's own tool.",
    ),
    Code.GIVEN_UP: MessageTemplate("The operator gave it up.", "Propose it anew if it is still wanted."),
    Code.ENDED_BY_OPERATOR: MessageTemplate("{name} ended it."),
    Code.ENDED_BY_OPERATOR_WITH_NOTE: MessageTemplate("{name} ended it: {note}"),
    Code.BROKER_AWAY: MessageTemplate(
        "Broker {broker} is away; a move with it would not end.", "Bring it back; the row then goes on."
    ),
    Code.BROKER_FENCED: MessageTemplate(
        "Broker {broker} is fenced; a move with it would not end.",
        "See why the controller fences it; the row then goes on.",
    ),
    Code.BROKER_NOT_REGISTERED: MessageTemplate(
        "Broker {broker} is not registered; a move with it would not end.",
        "Start it, or cancel the row and plan it anew.",
    ),
    Code.RATE_IN_USE: MessageTemplate(
        "Broker {broker} is throttled to {rate:rate} by somebody else who may be using it; the throttle of this run "
        "waits.",
        "It goes on when that rate is gone, or has stood for a minute without moves of others.",
    ),
    Code.BROKER_CORDONED: MessageTemplate(
        "All log directories of broker {broker} are cordoned.", "Uncordon one, or cancel the row and plan it anew."
    ),
    Code.DISKS_NOT_READ: MessageTemplate(
        "The disks of broker {broker} were not read; nobody can tell whether they take what comes.",
        "See on the broker's page why they are not read.",
    ),
    Code.DISKS_READ_LONG_AGO: MessageTemplate(
        "The disks of broker {broker} were read {age:duration} ago; nobody can tell whether they take what comes.",
        "See on the broker's page why they are not read.",
    ),
    Code.DISKS_FULL: MessageTemplate(
        "Broker {broker} has room for {room:bytes} of its disks, and {coming:bytes} are still to come.",
        "Make room on it, or cancel the row and plan it anew.",
    ),
    Code.DISKS_ABOVE_LIMIT: MessageTemplate(
        "Broker {broker} has room for {room:bytes} below {limit:.0f} % of its disks, and {coming:bytes} are still to "
        "come.",
        "Make room on it, or cancel the row and plan it anew.",
    ),
    Code.NO_LEADER: MessageTemplate(
        "It has no leader; nothing can be copied.", "Bring back a broker that has it in sync."
    ),
    Code.UNDER_MIN_ISR: MessageTemplate(
        "It is under min-ISR; broker {brokers:brokers} has to catch up first.",
        "It goes on by itself then; see why that broker lags.",
        many="It is under min-ISR; brokers {brokers:brokers} have to catch up first.",
        by="brokers",
    ),
    Code.LIES_ELSEWHERE: MessageTemplate(
        "Its replica on broker {broker} lies in {there}; the plan puts it into {path}.",
        "Kafka's kafka-reassign-partitions can move it between the directories of the broker.",
    ),
    Code.LIES_NOBODY_KNOWS: MessageTemplate(
        "Nobody can tell whether its replica on broker {broker} lies in {path}, as the plan says. {why}",
        "See the directories on the broker's page when it answers again.",
    ),
}
