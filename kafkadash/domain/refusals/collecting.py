"""Clusters that do not answer, and what a connection test finds"""

from kafkadash.domain.refusals.entry import Entry

_GRANT = "Grant it in Kafka."
_KRAFT = "Move it to KRaft to see the rest."
_FAILED = "The last refresh of {kinds} failed."
_DENIED = "Kafka does not let kafkadash read {kinds}."
_FROM_BEFORE = "What is shown of it is from before, with its age."

OTHER_CLUSTER = Entry(
    "other-cluster",
    "The address of {cluster} now leads to the Kafka cluster {answered}, not to {expected} as before. Nothing of the "
    "other one is stored.",
    "Correct the address, or register the other cluster under a name of its own.",
)
NOT_LOOKED_AT = Entry(
    "not-looked-at",
    "{silent}: no worker looks at this cluster.",
    "See that beat runs, and a worker for the queues tick and collect.",
)
TRIED_LESS_OFTEN = Entry(
    "tried-less-often",
    "It is tried less and less often, next at {when} UTC.",
    "New settings are tried at once.",
)
NOT_TRIED_ANY_MORE = Entry(
    "not-tried-any-more",
    "After {times} refusals it is not tried any more.",
    "Correct the settings, or disable and enable the cluster when the other side was mended.",
)
WITH_ZOOKEEPER = Entry(
    "with-zookeeper",
    "This cluster keeps its metadata in ZooKeeper, which kafkadash does not support yet: topics and brokers are shown, "
    "the controller and its quorum are not.",
    _KRAFT,
)
ANOTHER_COLLECTOR = Entry(
    "another-collector", "Another collector took over; nothing was stored.", "What the other one reads is stored."
)
COLLECTOR_FAULT = Entry(
    "collector-fault",
    "kafkadash failed while it read {kind} ({fault}). Nothing of that refresh was stored.",
    "The log of the worker says where; report it if it goes on.",
)
COLLECTOR_SET_ASIDE = Entry(
    "collector-set-aside",
    "Reading {kind} did not end in time {times} times in a row. It is set aside for {pause}, so that no more workers "
    "are lost to it.",
    "The log of the worker says what it was at; a restart of the worker frees those that still hang.",
)
COLLECTED_BY_ANOTHER = Entry(
    "collected-by-another",
    "{kind}: another collector is at it; nothing was done.",
    "What it reads is shown when it is done.",
)
REFRESH_FAILED = Entry("refresh-failed", _FAILED, _FROM_BEFORE)
NEVER_REFRESHED = Entry("never-refreshed", _FAILED, "Until then, what comes from it is empty here.")
READ_DENIED = Entry("read-denied", _DENIED, _FROM_BEFORE)
NEVER_ALLOWED = Entry("never-allowed", _DENIED, "Until kafkadash may, what comes from it is empty here.")
READ_IN_PART = Entry(
    "read-in-part", "{kind} were read, but not completely.", "The overview lists how each kind is read."
)

NONE_GOT_THIS_FAR = Entry(
    "none-got-this-far",
    "No bootstrap address got this far.",
    "Each says below why not; correct what it says.",
)
LISTENERS_UNREACHABLE = Entry(
    "listeners-unreachable",
    "{reached} of {brokers} can be reached.",
    "Brokers give these addresses to every client; correct advertised.listeners there, or names and firewalls between "
    "the brokers and the machine that kafkadash's workers run on.",
)
LISTENER_UNREACHABLE = Entry(
    "listener-unreachable", "Broker {broker} advertises {address}, which cannot be reached from here.", "{why}"
)
NO_VERSIONS = Entry(
    "no-versions", "No broker tells what it speaks.", "Each says below why not; test the connection again then."
)
LOGIN_UNANSWERED = Entry(
    "login-unanswered",
    "The login as {user} with {mechanism} was not answered.",
    "The next step says what was in the way.",
)
NOT_ASKED = Entry(
    "not-asked", "Broker {broker} at {address} was not asked.", "Test the connection again when it is back."
)
TAKES_NO_PART = Entry(
    "takes-no-part", "Broker {broker} is fenced: it takes part in nothing.", "See why the controller fences it."
)
QUORUM_UNREAD = Entry("quorum-unread", "", "The controller quorum could not be read: {why}")
RIGHTS_UNKNOWN = Entry("rights-unknown", "", "What this principal may do could not be asked: {why}")
MISSING_ON_CLUSTER = Entry("missing-on-cluster", "{permission} on the cluster is missing: {costs}.", _GRANT)
MISSING_ON_TOPICS = Entry(
    "missing-on-topics",
    "{permission} on {which} is missing: their configuration and throttled replicas stay unknown.",
    _GRANT,
)
