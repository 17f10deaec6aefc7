"""Brokers that cannot be asked, and what Kafka answers"""

from collections.abc import Iterable

from kafkadash.domain.refusals.entry import Entry

_GRANT = "Grant it in Kafka."
_QUORUM = "See the controllers on the page of the quorum."
_LATER = "The next refresh asks again."
_UPDATE = "Update the brokers to have it."

NODE_NOT_CONNECTED = Entry(
    "node-not-connected",
    "{who} could not be connected: {detail}.",
    "See that it runs, and that its address can be reached from the machine of kafkadash's workers.",
)
CLIENT_CERTIFICATE_REFUSED = Entry(
    "client-certificate-refused",
    "{who} refused our TLS certificate, or the lack of one: {detail}.",
    "Give a client certificate that it accepts under Settings.",
)
HANDSHAKE_FAILED = Entry(
    "handshake-failed",
    "{who}: the TLS handshake failed: {detail}.",
    "Correct the security and the CA certificate under Settings, or the certificate of the broker.",
)
CREDENTIALS_REFUSED = Entry(
    "credentials-refused",
    "{who} refused the credentials: {detail}.",
    "Correct user name and password under Settings, or have Kafka accept them.",
)
SASL_MECHANISM_REFUSED = Entry(
    "sasl-mechanism-refused",
    "{who} does not accept this SASL mechanism: {detail}.",
    "Choose the one of its listener under Settings.",
)
NODE_TOO_OLD = Entry(
    "node-too-old",
    "{who} offers no version of this request that kafkadash speaks: {detail}.",
    _UPDATE,
)
EARLIER_UNANSWERED = Entry(
    "earlier-unanswered",
    "{who}: the connection was given up because an earlier request got no answer.",
    "The next question connects anew; if that goes on, see why it hangs.",
)
NODE_TOO_SLOW = Entry(
    "node-too-slow",
    "{who} accepted the connection but did not answer in time.",
    "See whether it hangs or has too much to do; then ask again.",
)
NOT_KAFKA = Entry(
    "not-kafka",
    "{who} answered with something that is not Kafka's protocol (is it a TLS listener?).",
    "Give address and security of a listener of Kafka under Settings.",
)
ANSWER_TOO_LARGE = Entry(
    "answer-too-large",
    "{who} answered with more than {most} MB, which is more than is read.",
    "Look for members of consumer groups with very large metadata or assignments.",
)
CLOSED_INSTEAD = Entry(
    "closed-instead",
    "{who} closed the connection instead of answering ({detail}): it stopped, or expects another way to connect (TLS, "
    "a login, a certificate).",
    "See that it runs, and correct the security under Settings.",
)
NODE_NOT_ASKED = Entry(
    "node-not-asked",
    "{who} could not be asked: {detail}.",
    "Ask again; if that goes on, see the log of the broker.",
)
ASKING_CRASHED = Entry(
    "asking-crashed",
    "{who} could not be asked because of a fault of kafkadash's own.",
    "The log of the worker says more; report what it says.",
)
CONTROLLERS_SILENT = Entry(
    "controllers-silent",
    "The brokers answer, but no controller did within {seconds:g} s: the controllers have no majority, no leader yet, "
    "or are too slow.",
    _QUORUM,
)
BOOTSTRAP_SILENT = Entry(
    "bootstrap-silent",
    "The bootstrap servers {servers} did not answer in time.",
    "See that they run and can be reached from the machine of kafkadash's workers.",
)
NO_LIVE_BROKER = Entry(
    "no-live-broker",
    "The bootstrap servers {servers} answered, but listed no live broker.",
    "See in the brokers' logs why none is registered.",
)
BROKER_NOT_LIVE = Entry(
    "broker-not-live",
    "Broker {broker} is not among the live brokers of the cluster.",
    "Start it, or see in its log why it is not registered.",
)
QUORUM_WITHOUT_LEADER = Entry("quorum-without-leader", "The controllers have no leader at the moment.", _QUORUM)
NO_CONTROLLER = Entry(
    "no-controller",
    "The cluster has no controller at the moment.",
    "Ask again; if that goes on, see in the brokers' logs why none is elected.",
)
CONNECTION_RENEWED = Entry(
    "connection-renewed",
    "This connection was closed because its settings changed.",
    "The next question uses the new ones.",
)
CONNECTION_HUNG = Entry(
    "connection-hung",
    "No answer within {seconds:g} s: the connection hung and is being renewed.",
    "Ask again.",
)
CLOSED_WHILE_WAITING = Entry(
    "closed-while-waiting", "The connection to this cluster was closed while we waited.", "Ask again."
)
TURN_TOO_LATE = Entry("turn-too-late", "The time for this question was over before its turn came.", _LATER)

CALL_FORBIDDEN = Entry("call-forbidden", "Kafka refused {request}: the principal needs {permission} ({code}).", _GRANT)
CALL_UNSUPPORTED = Entry("call-unsupported", "This cluster does not support {request} ({code}){said}.", _UPDATE)
CALL_WITHOUT_CONTROLLER = Entry(
    "call-without-controller",
    "A broker answered, but could not get {request} from the active controller ({code}){said}. The controllers may "
    "have no majority or no leader yet.",
    _QUORUM,
)
CALL_FAILED = Entry(
    "call-failed",
    "Kafka answered {request} with {name} ({code}){said}.",
    "Ask again; if that goes on, see the logs of the brokers.",
)
ITEM_FORBIDDEN = Entry("item-forbidden", "{subject}: the principal needs {permission} ({code}).", _GRANT)
ITEM_NOT_NOW = Entry("item-not-now", "{subject}: {detail} ({code}).", _LATER)
ITEM_REFUSED = Entry("item-refused", "{subject}: {detail} ({code}).", "See the log of the broker for more.")
NOT_IN_ANSWER = Entry("not-in-answer", "{subject}: Kafka's answer leaves it out.", _LATER)
ASSIGNMENT_UNREADABLE = Entry(
    "assignment-unreadable",
    "What member {member} of group {group} is assigned cannot be read: it is not written in the consumer protocol.",
    "See what client that is; its offsets are shown all the same.",
)
NOT_KNOWN_THERE = Entry("not-known-there", "{subject}: it is not known there.", _LATER)
DIRECTORIES_HIDDEN = Entry(
    "directories-hidden",
    "Broker {broker} does not tell its log directories: the answer is empty; the principal may lack {permission}.",
    _GRANT,
)
TOPICS_HIDDEN = Entry(
    "topics-hidden",
    "Describe on {which} is missing: Kafka hides what may not be described, so counts are too small.",
    _GRANT,
)
NOT_OFFERED = Entry("not-offered", "This broker does not offer {what}.", _UPDATE)
NO_QUORUM_TO_DESCRIBE = Entry(
    "no-quorum-to-describe",
    "This cluster has no controller quorum to describe: it runs with ZooKeeper, or Kafka older than 3.0.",
    "Its topics and brokers are shown; move it to KRaft to see the rest.",
)
ANOTHER_QUORUM = Entry(
    "another-quorum",
    "The controllers' listeners belong to the Kafka cluster {answered}, and not to {expected}. Nothing was sent there.",
    "Correct the addresses of the controllers under Settings.",
)
NO_LEADER_THERE = Entry(
    "no-leader-there",
    "No listener of the controllers leads the quorum.",
    "See that the controllers run and can be reached from the machine of kafkadash's workers.",
)

NOTHING_SENT = Entry("nothing-sent", "", "Nothing was sent: {why}")
LOST_LEADERSHIP = Entry(
    "lost-leadership",
    "The controller lost its leadership before it answered ({code}).",
    "The next look at the cluster tells what came of it.",
)
CHANGE_NOT_IN_ANSWER = Entry(
    "change-not-in-answer",
    "{subject}: it is not in Kafka's answer.",
    "The next look at the cluster tells what came of it.",
)

_ADVICE = frozenset(entry.then for entry in list(globals().values()) if isinstance(entry, Entry)) - {NOTHING_SENT.then}


def together(sentences: Iterable[str]) -> str:
    """Several of these as one text: each cause once, then each advice once."""
    causes: dict[str, None] = {}
    advice: dict[str, None] = {}
    for sentence in sentences:
        known = next((each for each in _ADVICE if sentence.endswith(f" {each}")), "")
        causes[sentence.removesuffix(known).rstrip()] = None
        if known:
            advice[known] = None
    return " ".join([*causes, *advice])
