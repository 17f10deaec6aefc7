"""Texts of this app's codes (``errors``): what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.ops.errors import OperationErrorCode as Code

OPERATION_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Filters and addresses that name unknown objects
    Code.NO_SUCH_EVENT: MessageTemplate(
        "There is no event {number} that you may read.",
        "Search the audit log, or ask an administrator for the role auditor.",
    ),
    Code.EVENT_NOT_LISTED: MessageTemplate(
        "The list has no event {asked}. It starts with the newest event.", "Browse the pages from there."
    ),
    Code.NO_SUCH_FORMAT: MessageTemplate("Unknown format “{asked}”.", "Use one of: {known}."),
    Code.OBJECT_UNNAMED: MessageTemplate(
        "“{typed}” is not an object and was ignored.", "Enter type and id, for example cluster:3."
    ),
    Code.MOMENT_UNREADABLE: MessageTemplate(
        "“{typed}” is not a date or time and was ignored.", "Enter 2026-11-21 or 2026-11-21T14:30, in UTC."
    ),
    # Commands on the server, and the checks of /readyz
    Code.NOTHING_TO_CHANGE: MessageTemplate(
        "No setting to change was given.", "See `manage.py cluster connect --help`."
    ),
    Code.TEST_CANCELLED: MessageTemplate("Another user cancelled the test.", "Start the test again."),
    Code.TEST_NOT_TAKEN: MessageTemplate(
        "No worker started the test within {seconds:g} s.",
        "Check that beat is running, and a worker for the queues tick and jobs.",
    ),
    Code.TEST_TOO_SLOW: MessageTemplate(
        "The test had no result within {seconds:g} s and was cancelled.", "Allow more time with --wait."
    ),
    Code.CHECK_UNKNOWN: MessageTemplate("Unknown check {name}.", "Use one of: {known}."),
    Code.DATABASE_TOO_OLD: MessageTemplate(
        "This database is from a version before 0.1.0 and cannot be migrated. Nothing was changed.",
        "Set DATABASE_URL to an empty database, and register the clusters again.",
    ),
    Code.DATABASE_SILENT: MessageTemplate(
        "The database does not answer. Moves in progress continue in Kafka; kafkadash waits.",
        "Start the database, or correct DATABASE_URL.",
    ),
    Code.REDIS_SILENT: MessageTemplate(
        "Redis does not answer: nothing new is collected, and nothing is lost.",
        "Start Redis, or correct REDIS_URL.",
    ),
    Code.NOT_KNOWN_WITHOUT_DATABASE: MessageTemplate(
        "Unknown while the database does not answer.", "Check again when the database answers."
    ),
    Code.CLOCK_WRONG: MessageTemplate(
        "This machine's clock is {off} {way} the database's: ages are wrong here.", "Synchronize both clocks."
    ),
    Code.NEVER_TICKED: MessageTemplate("The tick has never run.", "Start beat, and a worker for the queue tick."),
    Code.TICK_LATE: MessageTemplate(
        "The tick last ran {age} ago.", "Check that beat is running, and a worker for the queue tick."
    ),
    Code.COLLECTION_LATE: MessageTemplate(
        "A collector has been waiting for a worker for {age}.", "Check that a worker for the queue collect is running."
    ),
    Code.COLLECTION_STANDS: MessageTemplate(
        "Collectors are waiting for a worker. The last refresh was {age} ago.",
        "Restart the worker for the queue collect.",
    ),
    Code.CLUSTERS_SILENT: MessageTemplate(
        "{silent:,} of {clusters:# cluster|# clusters} {silent:does|do} not answer.",
        "See the status board for the causes.",
    ),
    Code.RUN_LATE: MessageTemplate(
        "A run has been waiting for a worker for {age}.", "Check that a worker for the queue execute is running."
    ),
}
