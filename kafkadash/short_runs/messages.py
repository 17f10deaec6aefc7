"""Texts of the codes of short runs and of their items."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.short_runs.errors import ShortCheckTitle, ShortRunErrorCode
from kafkadash.short_runs.reasons import ItemReasonCode, ShortRunReasonCode

_RETRIES = "kafkadash tries again automatically."

SHORT_RUN_ERROR_MESSAGES: Mapping[ShortRunErrorCode, MessageTemplate] = {
    ShortRunErrorCode.ITEM_DOES_NOT_FIT: MessageTemplate("{item}: {why:cause}", "{why:advice}"),
    ShortRunErrorCode.FACTS_OLD: MessageTemplate("The data behind this plan is stale.", "Check the worker."),
    ShortRunErrorCode.NOTHING_TO_DO: MessageTemplate(
        "Nothing in this scope needs the change any more.", "Choose another scope, or close this page."
    ),
    ShortRunErrorCode.TOO_MANY_ITEMS: MessageTemplate(
        "The scope has {items:,} items; the limit of a change is {most:,}.", "Choose a smaller scope."
    ),
    ShortRunErrorCode.NOT_CONFIRMED: MessageTemplate(
        "The confirmation is not “{expected}”.", "Type exactly that: this change has no rollback."
    ),
    ShortRunErrorCode.NOT_PROPOSED: MessageTemplate(
        "No change was proposed.", "Correct the input that is named above."
    ),
    ShortRunErrorCode.NO_PROPOSER: MessageTemplate(
        "There is no open account {name}.", "Name the user who proposes the change; manage.py user list shows all."
    ),
    ShortRunErrorCode.NO_SHORT_CHANGE: MessageTemplate(
        "#{number} is a change of another kind.", "Open it under Changes."
    ),
    ShortRunErrorCode.NOT_VALIDATED: MessageTemplate(
        "Kafka did not validate {item}: {why}", "Refresh the items, or start all the same: the worker validates again."
    ),
    ShortRunErrorCode.NOT_VALIDATED_YET: MessageTemplate(
        "Kafka has not validated the items yet.", "Wait a few seconds, then reload this page."
    ),
    ShortRunErrorCode.NO_ROLLBACK: MessageTemplate(
        "#{number} has no rollback.", "Only an ended run that changed something can be rolled back."
    ),
    ShortRunErrorCode.RUN_STILL_HERE: MessageTemplate(
        "#{number} is running on this cluster.", "Cancel it, or wait for its end."
    ),
    ShortRunErrorCode.ITEMS_IN_FLIGHT: MessageTemplate(
        "#{number} has {items:# item|# items} in flight whose result is unknown.", "Check them with Kafka's tools."
    ),
}

SHORT_CHECK_TITLES: Mapping[ShortCheckTitle, MessageTemplate] = {
    ShortCheckTitle.VALIDATED: MessageTemplate("Kafka accepts the values"),
}

SHORT_RUN_MESSAGES: Mapping[ShortRunReasonCode, MessageTemplate] = {
    ShortRunReasonCode.READ_ONLY: MessageTemplate(
        "The cluster is read-only in kafkadash.", "An administrator can allow changes in the cluster's settings."
    ),
    ShortRunReasonCode.NOT_WATCHED: MessageTemplate(
        "Collection of the cluster is off.", "An administrator can turn it on in the cluster's settings."
    ),
    ShortRunReasonCode.WINDOW_NOT_OPEN: MessageTemplate("The window has not opened.", "The run starts when it opens."),
    ShortRunReasonCode.CLUSTER_UNREAD: MessageTemplate("The cluster cannot be read: {why}", _RETRIES),
    ShortRunReasonCode.NOT_SENT: MessageTemplate("A request was not sent to Kafka: {why}", _RETRIES),
    ShortRunReasonCode.ITEMS_UNREAD: MessageTemplate(
        "{first} cannot be read.",
        _RETRIES,
        many="{items:# item|# items} cannot be read, {first} among them.",
        by="items",
    ),
    ShortRunReasonCode.LOOKS_ONCE_MORE: MessageTemplate(
        "{item} does not fit: {why:cause}", "kafkadash reads it once more, then the change becomes stale."
    ),
    ShortRunReasonCode.NEWER_FORMAT: MessageTemplate(
        "A newer version of kafkadash started this run.", "Use that version to continue it."
    ),
    ShortRunReasonCode.STEP_FAILED: MessageTemplate(
        "A step of the run failed inside kafkadash.", "kafkadash tries again. The worker's log has the cause."
    ),
    ShortRunReasonCode.ANOTHER_CLUSTER: MessageTemplate(
        "The address of {cluster} leads to Kafka cluster {answered} instead of {expected}. Nothing is sent.",
        "Correct the cluster's addresses under Settings.",
    ),
    ShortRunReasonCode.NOT_VALIDATED: MessageTemplate("Kafka did not validate {first}: {why}", _RETRIES),
    ShortRunReasonCode.START_REFUSED: MessageTemplate("The run did not start: {why}", _RETRIES),
}

ITEM_MESSAGES: Mapping[ItemReasonCode, MessageTemplate] = {
    ItemReasonCode.LOST_TOO_OFTEN: MessageTemplate(
        "Kafka's answer was lost three times, and the change is not in effect.", "Propose it again."
    ),
    ItemReasonCode.REVERTED: MessageTemplate("Done, but the value changed again since.", "Propose it again if needed."),
    ItemReasonCode.ALREADY_SO: MessageTemplate("Already in effect before the run.", "No action needed."),
    ItemReasonCode.RUN_CANCELLED: MessageTemplate("Not sent: the run was cancelled.", "Propose it again if needed."),
    ItemReasonCode.REFUSED_BY_KAFKA: MessageTemplate("{why}", "Fix the cause, then propose the item again."),
    ItemReasonCode.ANSWER_LOST: MessageTemplate(
        "Kafka's answer was lost: {why}", "The next step reads the result from the cluster."
    ),
}
