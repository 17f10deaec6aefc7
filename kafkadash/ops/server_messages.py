"""Texts of the codes of embedded servers: what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.embedded.errors import ServerErrorCode as Code

SERVER_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Servers that kafkadash starts itself, in a folder of one's own machine
    Code.FILES_NOT_WRITTEN: MessageTemplate(
        "{files} in {folder} could not be made: {fault}.",
        "Make the folder yours and see that its disk has room, or choose another folder.",
    ),
    Code.NEVER_STARTED: MessageTemplate("No {server} has been started in {folder}.", "Start it there first."),
    Code.DATABASE_RECORD_UNREADABLE: MessageTemplate(
        "{file} cannot be read ({fault}).",
        "Remove it and start again: a database that is in its folder is kept, one that was kept elsewhere is "
        "made anew.",
    ),
    Code.VALKEY_RECORD_UNREADABLE: MessageTemplate("", "{file} cannot be read ({fault}): remove it and start again."),
    Code.NO_EMBEDDED_SERVER: MessageTemplate(
        "",
        "There is no embedded {server} for this platform: set {setting} to {own} of your own, for example {example}.",
    ),
    Code.INITDB_FAILED: MessageTemplate(
        "PostgreSQL's initdb failed: {said}.",
        "Correct that and start again, or set DATABASE_URL to a PostgreSQL of your own.",
    ),
    Code.PROGRAM_TOO_SLOW: MessageTemplate(
        "{program} did not end within {seconds:g} s and was stopped.", "Try again when this machine has less to do."
    ),
    Code.NO_USER_FOR_POSTGRESQL: MessageTemplate(
        "",
        "PostgreSQL does not run as root, and the system user {user} could not be made ({said}): run kafkadash as "
        "another user than root, make that user yourself, or set DATABASE_URL.",
    ),
    Code.NOT_STARTED: MessageTemplate(
        "{name} could not be started: {fault}.",
        "See that {folder} can be written to; if a program is missing, run make setup.",
    ),
    Code.NOT_RECORDED: MessageTemplate(
        "{name} could not be entered in {file}: {fault}.",
        "It was ended again. See that this file can be written to, then start again.",
    ),
    Code.ENDED_EARLY: MessageTemplate(
        "{name} ended{how} before it was ready.", "Correct what its log says, then start again.{log}"
    ),
    Code.NOT_READY: MessageTemplate(
        "{name} was not ready within {seconds:g} s.",
        "Try again when this machine has less to do; its log says how far it came.{log}",
    ),
    Code.FOLDER_IN_USE: MessageTemplate(
        "", "{folder} is in use: its {name} belongs to process {pid}; stop that one first, or choose another folder."
    ),
    Code.PROCESSES_UNREADABLE: MessageTemplate(
        "", "{file} cannot be read ({fault}); stop the servers of that folder and remove the file."
    ),
    Code.NO_LOOPBACK_PORT: MessageTemplate(
        "No free loopback port between {first} and {last}.", "Stop some of what listens there, then start again."
    ),
}
