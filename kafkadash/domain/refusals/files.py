"""Kafka's JSON of an assignment, and an exported topology"""

from kafkadash.domain.refusals.entry import Entry

MARK_IGNORED = Entry("mark-ignored", "The file begins with a byte order mark.", "It is ignored.")
UTF_16 = Entry("utf-sixteen", "The file is UTF-16; Kafka reads UTF-8.", "Save it as UTF-8.")
NOT_UTF_8 = Entry(
    "not-utf-eight", "The file is not UTF-8: byte 0x{byte:02x} here is part of no character.", "Save it as UTF-8."
)
NOTHING_IN_IT = Entry("nothing-in-it", "The file is empty.", "Bring the JSON of the assignment.")
NOT_JSON = Entry("not-json", "This is not JSON: {fault}.", "Mend it there, then bring it again.")
GENERATED = Entry(
    "generated",
    "This is all that kafka-reassign-partitions --generate printed.",
    "Leave only the JSON below “{heading}”.",
)
NO_OBJECT = Entry(
    "no-object",
    'The file holds {found}, not an object with "version" and "partitions".',
    "Bring Kafka’s JSON of an assignment.",
)
TOPICS_TO_MOVE = Entry(
    "topics-to-move",
    "This is a list of topics to move, the input of kafka-reassign-partitions --generate.",
    'What is read here is its result, with "partitions".',
)
NOTHING_ASKED_FOR = Entry(
    "nothing-asked-for", "{field} is an empty list: nothing is asked for.", "Name the partitions that are to move."
)
OTHER_VERSION = Entry(
    "other-version", "{field} is {found}; Kafka knows version 1 only.", "Write 1, if the file is of that format."
)
VERSION_MISSING = Entry(
    "version-missing", 'There is no "version".', "The file is read as version 1, as Kafka’s tool does."
)
FIELD_UNKNOWN = Entry(
    "field-unknown", "{field} is no field of Kafka’s format{more}.", "It is ignored, as Kafka’s tool does."
)
FIELD_MISSING = Entry("field-missing", "{where} has no {field}.", "Add it.")
FIELD_OF_OTHER_SHAPE = Entry("field-of-other-shape", "", "{field} is {found}; it has to be {wanted}.")
FIELD_TWICE = Entry("field-twice", "The entry has {field} more than once.", "Leave one of them.")
STANDS_TWICE = Entry("stands-twice", "{again} stands here again; it is on line {line:,} already.", "Leave one of them.")
TOO_MANY_PROBLEMS = Entry(
    "too-many-problems",
    "There are {most:,} problems up to line {line:,}; what follows was not read.",
    "Mend these, then bring the file again.",
)
NO_NAME_OF_A_TOPIC = Entry(
    "no-name-of-a-topic", "{field} is {found}, which no topic can be called.", "Give the name of a topic."
)
NO_REPLICAS = Entry("no-replicas", "{row} has an empty list of replicas.", "Name the brokers that are to have them.")
NO_ID_OF_A_BROKER = Entry(
    "no-id-of-a-broker", "", "{row}: {found} is no broker id; ids are whole numbers from 0 on{more}."
)
REPLICA_TWICE = Entry("replica-twice", "{row} names broker {broker} {times} in its replicas.", "Leave it once.")
DIRECTORIES_NO_LIST = Entry(
    "directories-no-list", "", '{row}: {field} has to be a list of paths or "any", one for each replica.'
)
DIRECTORIES_NOT_AS_MANY = Entry(
    "directories-not-as-many", "", "{row} has {replicas} and {directories}; it needs one for each replica."
)
DIRECTORY_NOT_ABSOLUTE = Entry(
    "directory-not-absolute", "", '{row}: a log directory has to be an absolute path or "any".'
)
DIRECTORY_IMPOSSIBLE = Entry(
    "directory-impossible",
    "{row}: {path} can be no log directory: too long, or not printable.",
    "Name a directory of the broker.",
)

TOPOLOGY_NOT_UTF_8 = Entry("topology-not-utf-eight", "The topology is not UTF-8.", "Export it again.")
TOPOLOGY_NOT_JSON = Entry("topology-not-json", "The topology is not JSON: {error}.", "Export it again.")
TOPOLOGY_TWICE = Entry("topology-twice", "{one} is in the topology twice.", "Leave it once.")
TOPOLOGY_PARTITION_TWICE = Entry(
    "topology-partition-twice", "{where} has partition {partition} twice.", "Leave it once."
)
TOPOLOGY_TOO_LARGE = Entry(
    "topology-too-large", "All replicas together have {total}; up to {most} can be planned.", "Give sizes in bytes."
)
TOPOLOGY_SHAPE = Entry("topology-shape", "", "{field} has to be {wanted}.")
