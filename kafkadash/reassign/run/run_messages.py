"""Texts of the reasons of runs (``domain.run_reasons``). That of a read-only cluster is in ``clusters.messages``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkadash.domain.messages import MessageTemplate, Writer
from kafkadash.domain.run_reasons import RunReasonCode as Code
from kafkadash.domain.wording import listed

_SEE_OVERVIEW = "See on its overview why they are not read."
_SEE_OVERVIEW_OF_CLUSTER = "See on the overview of the cluster why they are not read."
_NOT_READ = {
    "metadata": "topics and brokers",
    "reassignments": "reassignments",
    "log_dirs": "log directories",
    "quorum": "controller quorum",
}


def _list_facts(kinds: Sequence[str]) -> str:
    return listed([_NOT_READ.get(kind, kind) for kind in kinds])


def _list_permissions(permissions: Sequence[Sequence[str]]) -> str:
    return listed([f"{needed} on {f'the topic {topic}' if topic else 'the cluster'}" for needed, topic in permissions])


RUN_WRITERS: Mapping[str, Writer] = {
    "facts": _list_facts,
    "permissions": _list_permissions,
    "names": listed,
}

RUN_MESSAGES: Mapping[Code, MessageTemplate] = {
    Code.NOT_WATCHED: MessageTemplate(
        "{cluster} is not watched now, so nobody can tell whether it is well.", "Enable it under Settings."
    ),
    Code.WINDOW_NOT_OPEN: MessageTemplate("Its window is not open.", "It begins by itself when the window opens."),
    Code.NOT_READ_LATELY: MessageTemplate(
        "The {facts:facts} were not read lately, so nobody can tell whether the cluster is well.", _SEE_OVERVIEW
    ),
    Code.CHECK_FAILED: MessageTemplate("{problem}", "{then}"),
    Code.QUORUM_SILENT: MessageTemplate(
        "The controller quorum does not answer.", "See the controllers on the page of the quorum."
    ),
    Code.LISTING_UNREAD: MessageTemplate(
        "The reassignments in flight could not be read.",
        "See that the controllers answer, and that the principal may Describe the cluster.",
    ),
    Code.TOPICS_UNREAD: MessageTemplate(
        "Nothing was told about {number:,} topic: {topics:names}.",
        "See that the principal may Describe them.",
        many="Nothing was told about {number:,} topics: {topics:names}.",
        by="number",
    ),
    Code.LOOKED_ONCE_MORE: MessageTemplate(
        "Looked at once more: {row}: {why:cause}",
        "If that says the same, the change turns stale and needs a new plan.",
    ),
    Code.ROW_HELD_UP: MessageTemplate("{row}: {why:reason}"),
    Code.LACKS_PERMISSION: MessageTemplate(
        "The principal needs {permissions:permissions}.", "Grant it in Kafka; the run then begins by itself."
    ),
    Code.START_REFUSED: MessageTemplate("{words}"),
    Code.MORE_LIKE_IT: MessageTemplate(
        "And {number:,} more thing like it.", many="And {number:,} more things like it.", by="number"
    ),
    Code.PAUSED: MessageTemplate("It is paused; what is in flight goes on.", "Resume it to have the rest submitted."),
    Code.WINDOW_CLOSED: MessageTemplate(
        "The window is closed.", "What is in flight goes on; cancel the run to end it."
    ),
    Code.LOOK_TOO_OLD: MessageTemplate(
        "The cluster was read {age:duration} ago, too long to act on.", "The next look is under way."
    ),
    Code.OTHER_TOPICS_NEVER_READ: MessageTemplate(
        "The other topics of the cluster were never read, so nobody can tell whether a move would harm them.",
        _SEE_OVERVIEW_OF_CLUSTER,
    ),
    Code.OTHER_TOPICS_READ_LONG_AGO: MessageTemplate(
        "The other topics were read {age:duration} ago; nobody can tell whether another move would harm them.",
        _SEE_OVERVIEW_OF_CLUSTER,
    ),
    Code.THROTTLE_REMOVED: MessageTemplate(
        "Somebody else keeps removing our throttle ({places}).",
        "It is set again {again:,} min after the last time; until then nothing is submitted.",
    ),
    Code.THROTTLE_MISSING: MessageTemplate(
        "Somebody else removed our throttle ({places}).",
        "It is set again when the next look finds the same; until then nothing is submitted.",
    ),
    Code.UNDER_MIN_ISR: MessageTemplate(
        "{partition} is under min-ISR, and no broker is away that would explain it.",
        "Nothing is submitted but what repairs it. If the moves are what holds it up, cancel the run.",
        many="{number:,} partitions are under min-ISR, {partition} is the first, and no broker is away that would "
        "explain it.",
        by="number",
    ),
    Code.CLUSTER_UNREADABLE: MessageTemplate("{words}"),
    Code.STEP_FAILED: MessageTemplate(
        "This step failed inside of kafkadash; the log of the worker says more.",
        "It is tried again by itself; if that goes on, report what the log says.",
    ),
    Code.ANOTHER_CLUSTER: MessageTemplate(
        "The address of {cluster} now leads to the Kafka cluster {answered}, and not to {expected}. Nothing of this "
        "run is done there.",
        "Give the cluster its own addresses again under Settings.",
    ),
    Code.NEWER_VERSION: MessageTemplate(
        "A newer version of kafkadash (format {format}) has worked on this run, and this one (format {own}) does not "
        "know how to go on.",
        "Start the workers of the newer version.",
    ),
    Code.STILL_GOING: MessageTemplate(
        "{number:,} move of it is still in flight.",
        "What it owes is cleared when that has ended.",
        many="{number:,} moves of it are still in flight.",
        by="number",
    ),
    Code.ALL_REFUSED: MessageTemplate(
        "Kafka refused {rows:,} row, all there are: {why:cause}",
        "Propose it anew when that is mended.",
        many="Kafka refused {rows:,} rows, all there are: {why:cause}",
        by="rows",
    ),
    Code.GIVEN_UP_BY: MessageTemplate("{name} gave it up: {note}"),
}
