"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.ops.errors import OperationErrorCode as Code

_LOG = "Its log says why: {log}"

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
        "{silent} of {clusters} {verb} not answer.", "The status board says which, and why."
    ),
    Code.RUN_LATE: MessageTemplate("", "A run waits for a worker since {age}: is one running for the queue execute?"),
    # The demo on one's own machine
    Code.PYTHON_TOO_OLD: MessageTemplate(
        "", "kafkadash needs Python 3.11 or newer, this is {version}: run make setup."
    ),
    Code.PORT_TAKEN: MessageTemplate("", "Port {port} is taken: name another one with --port, or leave --port out."),
    Code.NO_FREE_PORT: MessageTemplate("", "No free port from {first} to {last} on {host}: name one (--port)."),
    Code.DISK_TOO_FULL: MessageTemplate(
        "",
        "The disk of {folder} has {free} MiB free and the demo needs {needed} MiB: make room, or choose a folder on "
        "another disk (--folder DIR, and KAFKADASH_CACHE for Kafka's jars).",
    ),
    Code.NO_POSTGRESQL: MessageTemplate(
        "", "DATABASE_URL names no PostgreSQL: write postgres://user:password@host/name, or unset it."
    ),
    Code.DATABASE_REFUSES: MessageTemplate(
        "", "The database in DATABASE_URL does not let us in ({reason}): correct it, or unset it for the embedded one."
    ),
    Code.REDIS_REFUSES: MessageTemplate(
        "", "The Redis or Valkey in REDIS_URL does not answer ({reason}): correct it, or unset it for the embedded one."
    ),
    Code.ANOTHER_DEMO: MessageTemplate(
        "",
        "Another demo runs in {folder}: stop it with Ctrl-C where it was started, or start this one with --folder DIR.",
    ),
    Code.SIGN_INS_UNREADABLE: MessageTemplate("", "{file} cannot be read: remove it, new passwords will be made."),
    Code.FOLDER_NOT_WRITABLE: MessageTemplate(
        "",
        "The folder {folder} cannot be written to ({reason}): make it yours, or choose another one with --folder DIR.",
    ),
    Code.DEMO_CRASHED: MessageTemplate(
        "The demo failed in a way nobody thought of.", "The details are in {log}; report what it says."
    ),
    Code.DEMO_TEST_FAILED: MessageTemplate(
        "The connection test of the demo's cluster {ended}.", "{why} Start the demo again."
    ),
    Code.DEMO_TOO_SLOW: MessageTemplate("{otherwise} within {seconds:g} s.", "See the logs of the workers."),
    Code.PROCESS_TOO_SLOW: MessageTemplate("{name} did not end within {seconds:g} s.", _LOG),
    Code.PROCESS_FAILED: MessageTemplate("{name} failed ({how}).", _LOG),
    Code.PROCESS_ENDED: MessageTemplate(
        "{name} ended by itself ({how}), so the demo ends.", "See its log, then start the demo again."
    ),
}
