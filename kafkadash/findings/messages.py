"""Texts of the codes of this app (``findings.errors``), and of findings in the three places that show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkadash.core.formatting import join_items
from kafkadash.core.messages import CodedMessage, MessageTemplate, Writer, message_part
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.kinds import FactSource, FindingCode
from kafkadash.findings.kinds import FindingNoteCode as Note

ONCALL_MESSAGES: Mapping[OnCallErrorCode, MessageTemplate] = {
    # Filters and addresses of pages that name what is not there
    OnCallErrorCode.FINDING_FORGOTTEN: MessageTemplate(
        "There is no finding {number}, or it closed so long ago that it is forgotten.",
        "The overview of the cluster lists those that are open.",
    ),
    OnCallErrorCode.FINDING_CLOSED: MessageTemplate(
        "", "This finding has closed; there is nothing left to take care of."
    ),
    OnCallErrorCode.NO_SUCH_RUNBOOK: MessageTemplate("", "There is no runbook {kind!r}; see the list of runbooks."),
    OnCallErrorCode.DRILL_BROKERS_UNKNOWN: MessageTemplate("", "{cluster} has no {brokers}; {there}."),
    OnCallErrorCode.DRILL_RACK_UNKNOWN: MessageTemplate("", "No broker of {cluster} is in a rack {rack}; {there}."),
    OnCallErrorCode.DRILL_FENCED: MessageTemplate(
        "{brokers} fenced already: what that did has happened.", "The overview of the cluster shows it."
    ),
    OnCallErrorCode.DRILL_NO_BROKER: MessageTemplate(
        "", "“{typed}” is no broker id: give numbers with commas between them, such as 1,2."
    ),
    OnCallErrorCode.DRILL_TOO_MANY: MessageTemplate(
        "Only the first {most:,} of {many:,} brokers are looked at.", "Ask for the others by themselves."
    ),
}


@dataclass(frozen=True, slots=True)
class FindingTemplate(MessageTemplate):
    """``text`` stands alone, ``answer`` continues the cluster's name in a heading, ``detail`` stands below both."""

    answer: str = ""
    detail: str = ""


def finding_answer(message: CodedMessage) -> str:
    """Return what continues the cluster's name; the code with its parameters where this version has no text of it."""
    return message_part(message, "answer") or message.cause


def finding_detail(message: CodedMessage) -> str:
    return message_part(message, "detail")


def _template(text: str, answer: str, detail: str = "") -> FindingTemplate:
    return FindingTemplate(text, answer=answer, detail=detail)


_PARTITIONS = "{partitions:# partition|# partitions}"
_AT_MIN_ISR = f"{_PARTITIONS} {{partitions:is|are}} at min-ISR: the next lost replica"
_DIRECTORY = "A log directory of broker {broker}"
_GROWS = (
    "It grows by {growth:bytes} a day, as seen over {seen:age}, and had {free:bytes} free of {total:bytes} · "
    "an estimate; a full directory goes offline"
)
_DEAD = "Broker {broker} is down and hosts {replicas:# replica|# replicas}."
_IS_DOWN = "has broker {broker} down"
_EMPTY = "Broker {broker} is away; no replica is hosted there."
_MISSES = "misses broker {broker}, which hosts nothing"
_WAITING = "{waiting:# record waits|# records wait}"
_GROUPS = "{names:names} · the list of groups has all of them, worst first"
_HISTORY = "What you see elsewhere about this cluster is history."
_NOT_JUDGED = "Facts are stored, but the workers did not judge them; look at their log"

FINDING_MESSAGES: Mapping[FindingCode, FindingTemplate] = {
    # Partitions and their replicas
    FindingCode.PARTITIONS_LEADERLESS: _template(
        f"{_PARTITIONS} {{partitions:has|have}} no leader: nobody can read or write {{partitions:it|them}}.",
        f"has {_PARTITIONS} without a leader",
        "{notes:notes}",
    ),
    FindingCode.WRITES_REFUSED: _template(
        f"{_PARTITIONS} {{partitions:is|are}} under min-ISR: writes with acks=all are refused.",
        f"refuses writes to {_PARTITIONS}",
        "{notes:notes}",
    ),
    FindingCode.NEXT_STOPS_WRITES: _template(
        f"{_AT_MIN_ISR} stops writes.", f"has {_PARTITIONS} at min-ISR", "{notes:notes}"
    ),
    FindingCode.NEXT_GOES_OFFLINE: _template(
        f"{_AT_MIN_ISR} takes {{partitions:it|them}} offline.", f"has {_PARTITIONS} at min-ISR", "{notes:notes}"
    ),
    FindingCode.NEXT_DOES_BOTH: _template(
        f"{_AT_MIN_ISR} takes {{last:,}} of them offline and stops writes to the {{others:other|others}}.",
        f"has {_PARTITIONS} at min-ISR",
        "{notes:notes}",
    ),
    FindingCode.UNDER_REPLICATED: _template(
        f"{_PARTITIONS} {{partitions:is|are}} under-replicated, not explained by a move.",
        "has {partitions:# under-replicated partition|# under-replicated partitions}",
        "{notes:notes}",
    ),
    FindingCode.RACKS_UNEVEN: _template(
        f"{_PARTITIONS} {{partitions:is|are}} not spread evenly over the racks.",
        f"has {_PARTITIONS} that a lost rack hits harder than it must",
        "One rack holds more than its share of the replicas",
    ),
    FindingCode.TOPICS_NOT_SHOWN: _template(
        "At least {topics:# topic is|# topics are} hidden from kafkadash; how {topics:it is|they are} cannot be told.",
        "some topics are hidden",
        "Describe on topics is missing: every figure leaves them out · the collection names them",
    ),
    # Controllers
    FindingCode.QUORUM_SILENT: _template(
        "The controllers do not answer: no leader can be elected and nothing can be changed.",
        "has no controller quorum",
        "{why:reason}",
    ),
    FindingCode.QUORUM_AT_MARGIN: _template(
        "One more failed controller takes the majority away.",
        "survives no further failure of a controller",
        "{in_sync} of {voters} voters are known to be in sync, the majority is {majority}",
    ),
    FindingCode.KEEPS_ELECTING: _template(
        "The controllers elected a leader {elections} times in 10 min.",
        "elected its controller {elections} times in 10 min",
        "every election stops changes to the cluster for a moment",
    ),
    # Brokers
    FindingCode.DOWN_FENCED: _template(
        _DEAD, _IS_DOWN, "The controller has it fenced: registered, but it sends no heartbeat"
    ),
    FindingCode.DOWN_NOT_REGISTERED: _template(_DEAD, _IS_DOWN, "It is not registered"),
    FindingCode.DOWN_SILENT: _template(
        "Broker {broker} does not answer and hosts {replicas:# replica|# replicas}.",
        "has broker {broker} that does not answer",
        "The cluster still lists it as alive · {leaders:# partition|# partitions} led by it not served",
    ),
    FindingCode.DOWN_UNSEEN: _template(
        "{brokers:# broker is|# brokers are} down and {brokers:hosts|host} replicas.",
        "has {brokers:# broker|# brokers} down",
        "never seen alive since the cluster is watched",
    ),
    FindingCode.AWAY_FENCED: _template(_EMPTY, _MISSES, "fenced: registered, but it sends no heartbeat"),
    FindingCode.AWAY_NOT_REGISTERED: _template(_EMPTY, _MISSES, "no longer registered"),
    FindingCode.AWAY_SILENT: _template(
        "Broker {broker} does not answer; no replica is hosted there.",
        _MISSES,
        "the cluster still lists it as alive",
    ),
    FindingCode.LEADS_MORE: _template(
        "Broker {broker} leads {percent} % more partitions than the mean of all brokers.",
        "has uneven leaders: broker {broker} leads {percent} % more than the mean",
        "{leaders:# leader|# leaders}, the mean is {mean:,.1f}",
    ),
    FindingCode.LEADS_FEWER: _template(
        "Broker {broker} leads {percent} % fewer partitions than the mean of all brokers.",
        "has uneven leaders: broker {broker} leads {percent} % fewer than the mean",
        "{leaders:# leader|# leaders}, the mean is {mean:,.1f}",
    ),
    FindingCode.VERSIONS_DIFFER: _template(
        "The brokers run {versions} different versions of Kafka.",
        "runs {versions} versions of Kafka at once",
        "{releases:names}, as far as API versions tell",
    ),
    # Log directories
    FindingCode.DIRECTORY_FAILED: _template(
        f"{_DIRECTORY} failed: {{path}}.",
        "has a failed log directory on broker {broker}",
        "Its replicas are offline · {fault}",
    ),
    FindingCode.DIRECTORY_FILLS_UP: _template(
        f"{_DIRECTORY} is {{percent:.1f}} % full: {{path}}.",
        "has a log directory on broker {broker} that is {percent:.1f} % full",
        "{free:bytes} free of {total:bytes}; a full directory goes offline",
    ),
    FindingCode.DIRECTORY_FULL_SOON: _template(
        f"{_DIRECTORY} is projected to be full in about {{left:age}}: {{path}}.",
        "has a log directory on broker {broker} that is projected to be full within a day",
        _GROWS,
    ),
    FindingCode.DIRECTORY_FULL_NOW: _template(
        f"{_DIRECTORY} is projected to be full in less than 1 min: {{path}}.",
        "has a log directory on broker {broker} that is projected to be full within a minute",
        _GROWS,
    ),
    # Consumer groups
    FindingCode.GROUP_STALLS: _template(
        f"Group {{group:group}} stalls on {{place}}: nothing is committed while {_WAITING}.",
        "has a consumer group that stalls: {group:group}",
        "{notes:notes}",
    ),
    FindingCode.GROUP_STOPPED: _template(
        f"Group {{group:group}} has no members while {_WAITING}.",
        "has a consumer group without members: {group:group}",
        "{notes:notes}",
    ),
    FindingCode.GROUP_SET_BACK: _template(
        f"Group {{group:group}} was set back on {{place}}; {_WAITING}.",
        "has a consumer group that was set back: {group:group}",
        "{notes:notes}",
    ),
    FindingCode.GROUP_STANDS_STILL: _template(
        f"Group {{group:group}} stands still on {{place}}; {_WAITING}.",
        "has a consumer group that stands still: {group:group}",
        "{notes:notes}",
    ),
    FindingCode.MORE_GROUPS_BEHIND: _template(
        "{groups:# more consumer group does|# more consumer groups do} not read: {states:names}.",
        "has {total:# consumer group|# consumer groups} that do not read",
        _GROUPS,
    ),
    FindingCode.RECORDS_LOST: _template(
        "{records:# record was|Up to # records were} deleted before group {group:group} read {records:it|them}.",
        "has records that were deleted before group {group:group} read them",
        "The log start has passed what it committed; at its next fetch it goes on where its auto.offset.reset says",
    ),
    FindingCode.MORE_RECORDS_LOST: _template(
        "Records of {groups:# more consumer group|# more consumer groups} were deleted unread.",
        "has {total:# consumer group|# consumer groups} whose records were deleted unread",
        _GROUPS,
    ),
    # What reassignments leave behind
    FindingCode.THROTTLES_ORPHANED: _template(
        "{throttles:# replication throttle is|# replication throttles are} in force although nothing moves that needs "
        "{throttles:it|them}.",
        "has {throttles:# orphan throttle|# orphan throttles}",
        "{names:names} · replication that lags is slowed down as well",
    ),
    FindingCode.MOVES_NEVER_END: _template(
        "{moves:# reassignment adds and removes|# reassignments add and remove} the same replica and will not end by "
        "{moves:itself|themselves}.",
        "has {moves:# zombie reassignment|# zombie reassignments}",
        "{names:names}",
    ),
    # The pipeline
    FindingCode.SEGMENTS_UNREAD: _template(
        "The pipeline could not read {segments:# segment|# segments} and set {segments:it|them} aside: history has a "
        "gap.",
        "has {segments:# segment|# segments} that the pipeline could not read",
        "{why:reason} · {names:names}",
    ),
    FindingCode.PIPELINE_STILL: _template(
        "The pipeline stands still: history, percentiles and forecasts are not updated.",
        "gets no history: the pipeline stands still",
        "What is live does not depend on it; nothing is lost as long as segments are kept",
    ),
    # How kafkadash itself reads the cluster
    FindingCode.OTHER_CLUSTER_ANSWERS: _template(
        "The address now leads to another Kafka cluster, {other}. Nothing of it is stored.",
        "its address leads to another Kafka cluster",
        "Registered was {registered} · correct the address, or register the other one under its own name",
    ),
    FindingCode.REGISTERED_TWICE: _template(
        "It is the same Kafka cluster as {first}, which was registered first. It is not read, and read-only.",
        "it is the same Kafka cluster as {first}",
        "Use {first}, and remove this one under Settings",
    ),
    FindingCode.NO_BROKER_ANSWERS: _template(
        f"No broker has answered for {{age:age}}. {_HISTORY}",
        "no broker has answered for {age:age}",
        "{why:reason}",
    ),
    FindingCode.NO_BROKER_ANSWERED_YET: _template(
        "No broker has answered yet.", "no broker has answered yet", "{why:reason}"
    ),
    FindingCode.NOTHING_READ: _template(
        f"Nothing could be read for {{age:age}}. {_HISTORY}", "nothing could be read for {age:age}", "{why:reason}"
    ),
    FindingCode.NOTHING_READ_YET: _template("Nothing could be read yet.", "nothing could be read yet", "{why:reason}"),
    FindingCode.NOTHING_COLLECTED: _template(
        f"Nothing was collected for {{age:age}}. {_HISTORY}", "nothing was collected for {age:age}", "{why:reason}"
    ),
    FindingCode.NOTHING_COLLECTED_YET: _template(
        "Nothing was collected yet.", "nothing was collected yet", "{why:reason}"
    ),
    FindingCode.NOT_JUDGED: _template(
        "What was read has not been judged for {age:age}.",
        "what was read has not been judged for {age:age}",
        _NOT_JUDGED,
    ),
    FindingCode.NOT_JUDGED_YET: _template(
        "What was read has not been judged yet.", "what was read has not been judged yet", _NOT_JUDGED
    ),
    FindingCode.FACTS_OLD: _template(
        "Nothing new about {sources:sources} for {age:age}.",
        "nothing new about {sources:sources} for {age:age}",
        "{why:reason}",
    ),
    FindingCode.FACTS_UNREAD_YET: _template(
        "Nothing could be read yet about {sources:sources}.",
        "nothing could be read yet about {sources:sources}",
        "{why:reason}",
    ),
    FindingCode.ZOOKEEPER_MODE: _template(
        "This cluster runs in ZooKeeper mode, which kafkadash does not support yet.",
        "it runs in ZooKeeper mode, which is not supported yet",
        "Brokers and partitions are shown as far as brokers tell; controllers and ZooKeeper itself are not watched",
    ),
    FindingCode.COLLECTION_OFF: _template(
        "Collection is switched off; nothing is read from this cluster.",
        "is not watched: collection is switched off",
    ),
}

FINDING_NOTE_MESSAGES: Mapping[Note, MessageTemplate] = {
    Note.NAMED: MessageTemplate("{names:names}"),
    Note.OF_PARTITIONS: MessageTemplate("of {partitions:# partition|# partitions}"),
    Note.PRODUCERS_SEE: MessageTemplate("producers see NOT_ENOUGH_REPLICAS"),
    Note.MISS_REPLICA: MessageTemplate(
        "All miss {partitions:a|their} replica on {brokers:broker|brokers} {brokers:brokers}"
    ),
    Note.EXPLAINED_BY_MOVES: MessageTemplate("{partitions:# more is|# more are} explained by moves"),
    Note.FAILING_PARTITIONS: MessageTemplate("{failing:,} of {partitions:# partition|# partitions}"),
    Note.MOST_WAIT_IN: MessageTemplate("{waiting:,} wait in {place}"),
    Note.MEMBERS: MessageTemplate("{members:# member|# members} in the group"),
    Note.MEMBERS_UNKNOWN: MessageTemplate("whether it has members is not known"),
    Note.GROUPS_STALL: MessageTemplate("{groups:# stalls|# stall}"),
    Note.GROUPS_STAND_STILL: MessageTemplate("{groups:# stands still|# stand still}"),
    Note.GROUPS_SET_BACK: MessageTemplate("{groups:# was set back|# were set back}"),
    Note.GROUPS_STOPPED: MessageTemplate("{groups:# has no members|# have no members}"),
    Note.RELEASE: MessageTemplate("{release} on {brokers:# broker|# brokers}"),
}

_SOURCES: Mapping[str, str] = {
    FactSource.ANSWERS: "answers of brokers",
    FactSource.METADATA: "metadata",
    FactSource.REASSIGNMENTS: "reassignments",
    FactSource.QUORUM: "the controller quorum",
    FactSource.LOG_DIRS: "log directories",
    FactSource.CONFIGS: "configs and throttles",
    FactSource.VERSIONS: "versions",
    FactSource.GROUPS: "consumer groups",
    FactSource.PIPELINE: "the pipeline",
}


def _write_sources(sources: Iterable[str]) -> str:
    return join_items([_SOURCES.get(source, source) for source in sources])


def _write_group(name: str) -> str:
    """Kafka lets a group have an empty name."""
    return name or "with the empty name"


FINDING_WRITERS: Mapping[str, Writer] = {"sources": _write_sources, "group": _write_group}
