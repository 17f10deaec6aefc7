"""Servers that kafkadash starts itself, in a folder of one's own machine"""

from kafkadash.domain.refusals.entry import Entry

FILES_NOT_WRITTEN = Entry(
    "files-not-written",
    "{files} in {folder} could not be made: {fault}.",
    "Make the folder yours and see that its disk has room, or choose another folder.",
)
NEVER_STARTED = Entry("never-started", "No {server} has been started in {folder}.", "Start it there first.")
DATABASE_RECORD_UNREADABLE = Entry(
    "database-record-unreadable",
    "{file} cannot be read ({fault}).",
    "Remove it and start again: a database that is in its folder is kept, one that was kept elsewhere is made anew.",
)
VALKEY_RECORD_UNREADABLE = Entry(
    "valkey-record-unreadable", "", "{file} cannot be read ({fault}): remove it and start again."
)
NO_EMBEDDED_SERVER = Entry(
    "no-embedded-server",
    "",
    "There is no embedded {server} for this platform: set {setting} to {own} of your own, for example {example}.",
)
INITDB_FAILED = Entry(
    "initdb-failed",
    "PostgreSQL's initdb failed: {said}.",
    "Correct that and start again, or set DATABASE_URL to a PostgreSQL of your own.",
)
PROGRAM_TOO_SLOW = Entry(
    "program-too-slow",
    "{program} did not end within {seconds:g} s and was stopped.",
    "Try again when this machine has less to do.",
)
NO_USER_FOR_POSTGRESQL = Entry(
    "no-user-for-postgresql",
    "",
    "PostgreSQL does not run as root, and the system user {user} could not be made ({said}): run kafkadash as another "
    "user than root, make that user yourself, or set DATABASE_URL.",
)
NOT_STARTED = Entry(
    "not-started",
    "{name} could not be started: {fault}.",
    "See that {folder} can be written to; if a program is missing, run make setup.",
)
NOT_RECORDED = Entry(
    "not-recorded",
    "{name} could not be entered in {file}: {fault}.",
    "It was ended again. See that this file can be written to, then start again.",
)
ENDED_EARLY = Entry(
    "ended-early",
    "{name} ended{how} before it was ready.",
    "Correct what its log says, then start again.{log}",
)
NOT_READY = Entry(
    "not-ready",
    "{name} was not ready within {seconds:g} s.",
    "Try again when this machine has less to do; its log says how far it came.{log}",
)
FOLDER_IN_USE = Entry(
    "folder-in-use",
    "",
    "{folder} is in use: its {name} belongs to process {pid}; stop that one first, or choose another folder.",
)
PROCESSES_UNREADABLE = Entry(
    "processes-unreadable",
    "",
    "{file} cannot be read ({fault}); stop the servers of that folder and remove the file.",
)
NO_LOOPBACK_PORT = Entry(
    "no-loopback-port",
    "No free loopback port between {first} and {last}.",
    "Stop some of what listens there, then start again.",
)
