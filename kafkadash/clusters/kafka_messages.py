"""Texts of the codes of the Kafka client (``kafka.errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.kafka.errors import KafkaErrorCode as Code

_UNDER_SETTINGS = "Correct it under Settings."
_UPDATE = "Update the brokers to have it."
_QUORUM = "See the controllers on the page of the quorum."
_LATER = "The next refresh asks again."
_GRANT = "Grant it in Kafka."

KAFKA_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Connections: addresses, names and ports, certificates, stored secrets
    Code.ADDRESS_MALFORMED: MessageTemplate(
        "The bootstrap server {address!r} is not of the form host:port.", _UNDER_SETTINGS
    ),
    Code.PROTOCOL_UNKNOWN: MessageTemplate(
        "The security protocol {protocol!r} is not known.", "Choose one of {known}."
    ),
    Code.MECHANISM_UNKNOWN: MessageTemplate("The SASL mechanism {mechanism!r} is not known.", "Choose one of {known}."),
    Code.CA_UNUSABLE: MessageTemplate(
        "The CA certificate is not a usable PEM text: {detail}.",
        "Give all of its text, from its first line, BEGIN CERTIFICATE, to its last.",
    ),
    Code.CERTIFICATE_WITHOUT_KEY: MessageTemplate(
        "", "A client certificate needs both the certificate and its private key as PEM text."
    ),
    Code.KEY_UNUSABLE: MessageTemplate(
        "The private key is not an unencrypted PEM text.", "Give it without a passphrase; it is stored encrypted."
    ),
    Code.PAIR_UNUSABLE: MessageTemplate(
        "The client certificate and its private key cannot be used together: {detail}.",
        "Give the key that the certificate was made for.",
    ),
    Code.NAME_SERVER_SLOW: MessageTemplate(
        "No answer came within {seconds:g} s: the name server or the network is slow.",
        "Test the connection again; if that goes on, see the name server of kafkadash's workers.",
    ),
    Code.NAME_UNRESOLVED: MessageTemplate(
        "The host name {host} cannot be resolved ({said}).",
        "Correct the name, or have the name server of kafkadash's workers know it.",
    ),
    Code.NO_TIME_TO_CONNECT: MessageTemplate("No time was left to try it.", "Test the connection again."),
    Code.NOTHING_ACCEPTED: MessageTemplate(
        "Nothing at {address} accepted the connection within {seconds:.0f} s: a firewall, or a host that is down.",
        "Open the way to it from the machine of kafkadash's workers, or start it.",
    ),
    Code.CONNECTING_FAILED: MessageTemplate(
        "The connection to {address} failed: {said}.", "See that a broker listens there."
    ),
    Code.TLS_SILENT: MessageTemplate(
        "{address} did not answer the TLS handshake in time: is this a TLS listener?",
        "Give address and security of the same listener of Kafka.",
    ),
    Code.TLS_FAILED: MessageTemplate(
        "{address}: {reason}.{shown}",
        "Correct the security and the CA certificate under Settings, or the certificate of the broker.",
    ),
    # Brokers that cannot be asked, and what Kafka answers
    Code.NODE_NOT_CONNECTED: MessageTemplate(
        "{who} could not be connected: {detail}.",
        "See that it runs, and that its address can be reached from the machine of kafkadash's workers.",
    ),
    Code.CLIENT_CERTIFICATE_REFUSED: MessageTemplate(
        "{who} refused our TLS certificate, or the lack of one: {detail}.",
        "Give a client certificate that it accepts under Settings.",
    ),
    Code.HANDSHAKE_FAILED: MessageTemplate(
        "{who}: the TLS handshake failed: {detail}.",
        "Correct the security and the CA certificate under Settings, or the certificate of the broker.",
    ),
    Code.CREDENTIALS_REFUSED: MessageTemplate(
        "{who} refused the credentials: {detail}.",
        "Correct user name and password under Settings, or have Kafka accept them.",
    ),
    Code.SASL_MECHANISM_REFUSED: MessageTemplate(
        "{who} does not accept this SASL mechanism: {detail}.", "Choose the one of its listener under Settings."
    ),
    Code.NODE_TOO_OLD: MessageTemplate(
        "{who} offers no version of this request that kafkadash speaks: {detail}.", _UPDATE
    ),
    Code.EARLIER_UNANSWERED: MessageTemplate(
        "{who}: the connection was given up because an earlier request got no answer.",
        "The next question connects anew; if that goes on, see why it hangs.",
    ),
    Code.NODE_TOO_SLOW: MessageTemplate(
        "{who} accepted the connection but did not answer in time.",
        "See whether it hangs or has too much to do; then ask again.",
    ),
    Code.NOT_KAFKA: MessageTemplate(
        "{who} answered with something that is not Kafka's protocol (is it a TLS listener?).",
        "Give address and security of a listener of Kafka under Settings.",
    ),
    Code.ANSWER_TOO_LARGE: MessageTemplate(
        "{who} answered with more than {most} MB, which is more than is read.",
        "Look for members of consumer groups with very large metadata or assignments.",
    ),
    Code.CLOSED_INSTEAD: MessageTemplate(
        "{who} closed the connection instead of answering ({detail}): it stopped, or expects another way to "
        "connect (TLS, "
        "a login, a certificate).",
        "See that it runs, and correct the security under Settings.",
    ),
    Code.NODE_NOT_ASKED: MessageTemplate(
        "{who} could not be asked: {detail}.", "Ask again; if that goes on, see the log of the broker."
    ),
    Code.ASKING_CRASHED: MessageTemplate(
        "{who} could not be asked because of a fault of kafkadash's own.",
        "The log of the worker says more; report what it says.",
    ),
    Code.CONTROLLERS_SILENT: MessageTemplate(
        "The brokers answer, but no controller did within {seconds:g} s: the controllers have no majority, no "
        "leader yet, "
        "or are too slow.",
        _QUORUM,
    ),
    Code.BOOTSTRAP_SILENT: MessageTemplate(
        "The bootstrap servers {servers} did not answer in time.",
        "See that they run and can be reached from the machine of kafkadash's workers.",
    ),
    Code.NO_LIVE_BROKER: MessageTemplate(
        "The bootstrap servers {servers} answered, but listed no live broker.",
        "See in the brokers' logs why none is registered.",
    ),
    Code.BROKER_NOT_LIVE: MessageTemplate(
        "Broker {broker} is not among the live brokers of the cluster.",
        "Start it, or see in its log why it is not registered.",
    ),
    Code.QUORUM_WITHOUT_LEADER: MessageTemplate("The controllers have no leader at the moment.", _QUORUM),
    Code.NO_CONTROLLER: MessageTemplate(
        "The cluster has no controller at the moment.",
        "Ask again; if that goes on, see in the brokers' logs why none is elected.",
    ),
    Code.CONNECTION_RENEWED: MessageTemplate(
        "This connection was closed because its settings changed.", "The next question uses the new ones."
    ),
    Code.CONNECTION_HUNG: MessageTemplate(
        "No answer within {seconds:g} s: the connection hung and is being renewed.", "Ask again."
    ),
    Code.CLOSED_WHILE_WAITING: MessageTemplate(
        "The connection to this cluster was closed while we waited.", "Ask again."
    ),
    Code.TURN_TOO_LATE: MessageTemplate("The time for this question was over before its turn came.", _LATER),
    Code.CALL_FORBIDDEN: MessageTemplate("Kafka refused {request}: the principal needs {permission} ({code}).", _GRANT),
    Code.CALL_UNSUPPORTED: MessageTemplate("This cluster does not support {request} ({code}){said}.", _UPDATE),
    Code.CALL_WITHOUT_CONTROLLER: MessageTemplate(
        "A broker answered, but could not get {request} from the active controller ({code}){said}. The controllers may "
        "have no majority or no leader yet.",
        _QUORUM,
    ),
    Code.CALL_FAILED: MessageTemplate(
        "Kafka answered {request} with {name} ({code}){said}.",
        "Ask again; if that goes on, see the logs of the brokers.",
    ),
    Code.ITEM_FORBIDDEN: MessageTemplate("{subject}: the principal needs {permission} ({code}).", _GRANT),
    Code.ITEM_NOT_NOW: MessageTemplate("{subject}: {detail} ({code}).", _LATER),
    Code.ITEM_REFUSED: MessageTemplate("{subject}: {detail} ({code}).", "See the log of the broker for more."),
    Code.NOT_IN_ANSWER: MessageTemplate("{subject}: Kafka's answer leaves it out.", _LATER),
    Code.ASSIGNMENT_UNREADABLE: MessageTemplate(
        "What member {member} of group {group} is assigned cannot be read: it is not written in the consumer protocol.",
        "See what client that is; its offsets are shown all the same.",
    ),
    Code.NOT_KNOWN_THERE: MessageTemplate("{subject}: it is not known there.", _LATER),
    Code.DIRECTORIES_HIDDEN: MessageTemplate(
        "Broker {broker} does not tell its log directories: the answer is empty; the principal may lack {permission}.",
        _GRANT,
    ),
    Code.TOPICS_HIDDEN: MessageTemplate(
        "Describe on {which} is missing: Kafka hides what may not be described, so counts are too small.", _GRANT
    ),
    Code.NOT_OFFERED: MessageTemplate("This broker does not offer {what}.", _UPDATE),
    Code.NO_QUORUM_TO_DESCRIBE: MessageTemplate(
        "This cluster has no controller quorum to describe: it runs with ZooKeeper, or Kafka older than 3.0.",
        "Its topics and brokers are shown; move it to KRaft to see the rest.",
    ),
    Code.ANOTHER_QUORUM: MessageTemplate(
        "The controllers' listeners belong to the Kafka cluster {answered}, and not to {expected}. Nothing was "
        "sent there.",
        "Correct the addresses of the controllers under Settings.",
    ),
    Code.NO_LEADER_THERE: MessageTemplate(
        "No listener of the controllers leads the quorum.",
        "See that the controllers run and can be reached from the machine of kafkadash's workers.",
    ),
    Code.NOTHING_SENT: MessageTemplate("", "Nothing was sent: {why}"),
    Code.LOST_LEADERSHIP: MessageTemplate(
        "The controller lost its leadership before it answered ({code}).",
        "The next look at the cluster tells what came of it.",
    ),
    Code.CHANGE_NOT_IN_ANSWER: MessageTemplate(
        "{subject}: it is not in Kafka's answer.", "The next look at the cluster tells what came of it."
    ),
}
