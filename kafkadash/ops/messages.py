"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.ops.errors import OperationErrorCode as Code

OPERATION_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Filters and addresses of pages that name what is not there
    Code.NO_SUCH_EVENT: MessageTemplate(
        "There is no event {number} in the audit that you may read.",
        "Look for it in the audit, or ask an administrator for the role auditor.",
    ),
    Code.EVENT_NOT_LISTED: MessageTemplate(
        "There is no event {asked} in this list; it is shown from its newest.", "Turn its pages from there."
    ),
    Code.NO_SUCH_FORMAT: MessageTemplate("", "There is no format “{asked}”; there are: {known}."),
    Code.OBJECT_UNNAMED: MessageTemplate(
        "", "“{typed}” names no object; write its type and its id, such as cluster:3. It is left out."
    ),
    Code.MOMENT_UNREADABLE: MessageTemplate(
        "", "“{typed}” is no time; write 2026-11-21 or 2026-11-21T14:30 (UTC). It is left out."
    ),
    # Commands on the server, and the checks of /readyz
    Code.NOTHING_TO_CHANGE: MessageTemplate(
        "Nothing to change was given.", "What can be is listed by `manage.py cluster connect --help`."
    ),
    Code.TEST_CANCELLED: MessageTemplate("The test was cancelled by somebody else.", "Start it again."),
    Code.TEST_NOT_TAKEN: MessageTemplate(
        "", "No worker took the test within {seconds:g} s: is beat running, and a worker for the queues tick and jobs?"
    ),
    Code.TEST_TOO_SLOW: MessageTemplate(
        "The test had no result within {seconds:g} s; it was asked to stop.", "Give it longer with --wait."
    ),
    Code.CHECK_UNKNOWN: MessageTemplate("There is no check {name}.", "There are {known}."),
    Code.DATABASE_TOO_OLD: MessageTemplate(
        "This database was made by a version before 0.1.0 and cannot be migrated. Nothing was changed.",
        "Name an empty database in DATABASE_URL, and register the clusters there again.",
    ),
    Code.DATABASE_SILENT: MessageTemplate(
        "", "The database cannot be asked: what moves goes on in Kafka, and all else when it is back."
    ),
    Code.REDIS_SILENT: MessageTemplate(
        "", "Redis does not answer: nothing new is collected until it does; nothing is lost."
    ),
    Code.NOT_KNOWN_WITHOUT_DATABASE: MessageTemplate("Not known without the database.", "Ask again when it answers."),
    Code.CLOCK_WRONG: MessageTemplate(
        "", "This machine's clock is {off} {way} the database's, so ages are wrong here: set it right."
    ),
    Code.NEVER_TICKED: MessageTemplate("", "The tick has never run: start beat, and a worker for the queue tick."),
    Code.TICK_LATE: MessageTemplate(
        "", "The tick last ran {age} ago: is beat running, and a worker for the queue tick?"
    ),
    Code.COLLECTION_LATE: MessageTemplate(
        "", "A collector waits for a worker since {age}: is one running for the queue collect?"
    ),
    Code.COLLECTION_STANDS: MessageTemplate(
        "",
        "Collectors wait for a worker, and none has ended a refresh for {age}: restart the worker of the queue "
        "collect.",
    ),
    Code.CLUSTERS_SILENT: MessageTemplate(
        "{silent:,} of {clusters:# cluster|# clusters} {silent:does|do} not answer.",
        "The status board says which, and why.",
    ),
    Code.RUN_LATE: MessageTemplate("", "A run waits for a worker since {age}: is one running for the queue execute?"),
    # The demo on one's own machine
}
