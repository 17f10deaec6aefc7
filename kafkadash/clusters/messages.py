"""Texts of the codes of this app (``clusters.errors``) and of the Kafka client (``kafka.errors``)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.core.messages import MessageTemplate
from kafkadash.kafka.errors import KafkaErrorCode

_KRAFT = "Move it to KRaft to see the rest."

CLUSTER_MESSAGES: Mapping[ClusterErrorCode, MessageTemplate] = {
    # Rights, and facts that are too old
    ClusterErrorCode.READ_ONLY: MessageTemplate(
        "{cluster} is read-only in kafkadash: changes are neither proposed nor approved nor started on it.",
        "An administrator can allow them under Settings.",
    ),
    ClusterErrorCode.NEEDS_ROLE: MessageTemplate(
        "On {cluster}, this needs the role {roles}.", "Ask an administrator of the cluster for it."
    ),
    ClusterErrorCode.NO_SUCH_CLUSTER: MessageTemplate(
        "There is no cluster {slug} that you may view.",
        "Look at the list of clusters, or ask an administrator for the role viewer on it.",
    ),
    ClusterErrorCode.NEEDS_ROLE_SOMEWHERE: MessageTemplate(
        "This needs the role {roles} on a cluster.", "Ask an administrator for it."
    ),
    ClusterErrorCode.NEEDS_ROLE_EVERYWHERE: MessageTemplate(
        "This needs the role {roles} on all clusters.", "Ask an administrator for it."
    ),
    # Clusters and roles under Settings, and which Kafka cluster answers
    ClusterErrorCode.NOBODY_NAMED: MessageTemplate("", "Nobody was named: whose role is it?"),
    ClusterErrorCode.OWN_ROLE: MessageTemplate(
        "Nobody gives a role to himself.", "Ask another administrator to give it."
    ),
    ClusterErrorCode.NO_SUCH_ACCOUNT: MessageTemplate(
        "There is no account called {name}.", "It is made on the server: manage.py user create {name}"
    ),
    ClusterErrorCode.ACCOUNT_CLOSED: MessageTemplate("", "The account of {name} is closed: open it first."),
    ClusterErrorCode.ROLE_UNKNOWN: MessageTemplate("", "Choose a role, one of {roles}."),
    ClusterErrorCode.END_PASSED: MessageTemplate("", "This has passed already: give a time that is to come, in UTC."),
    ClusterErrorCode.NAME_TO_CONFIRM: MessageTemplate(
        "", "Type the name as it is written here, {cluster}, to remove it."
    ),
    ClusterErrorCode.LAST_ADMINISTRATOR: MessageTemplate(
        "{name} is the last administrator {of} whose role does not run out.",
        "Give that role to somebody else first, without an end.",
    ),
    ClusterErrorCode.IDENTITY_CHANGED: MessageTemplate(
        "Behind the addresses of {cluster} answers the Kafka cluster {answered}, and not {expected} as before.",
        "Correct the addresses, or register the other cluster under a name of its own; nothing was stored.",
    ),
    ClusterErrorCode.SAME_CLUSTER: MessageTemplate(
        "{cluster} is the same Kafka cluster as {other}, which was registered first. {cluster} is not read, and "
        "read-only.",
        "Use {other}, and remove {cluster} under Settings.",
    ),
    ClusterErrorCode.CLUSTER_UNKNOWN: MessageTemplate("There is no cluster {slug}.", "Registered: {known}."),
    ClusterErrorCode.CLUSTER_NAME_EMPTY: MessageTemplate(
        "", "A name needs at least one letter or digit, as it becomes part of the page's address."
    ),
    ClusterErrorCode.CLUSTER_NAME_TOO_LONG: MessageTemplate(
        "The name has {length} characters; 64 is the most.", "Shorten it."
    ),
    ClusterErrorCode.CLUSTER_NAME_TAKEN: MessageTemplate(
        "A cluster called {name} is registered already.", "Choose another name, or change the settings of that one."
    ),
    ClusterErrorCode.CLUSTER_NAME_JUST_TAKEN: MessageTemplate(
        "A cluster called {name} has just been registered by somebody else.",
        "Choose another name, or look at that one under Settings.",
    ),
    ClusterErrorCode.CLUSTER_NAME_TOO_ALIKE: MessageTemplate(
        "The name is too much like {other}: both would have the address {slug}.", "Choose another name."
    ),
    ClusterErrorCode.MECHANISM_NEEDED: MessageTemplate("", "SASL needs a mechanism, one of {known}."),
    ClusterErrorCode.LOGIN_NEEDED: MessageTemplate("", "SASL needs a user name and a password."),
    ClusterErrorCode.SECRET_ENTERED_FOR_OTHER: MessageTemplate(
        "The stored secret was entered for other settings. Changed since: {changed}.",
        "Type it again to use it with the new ones.",
    ),
    ClusterErrorCode.PAIR_NEEDED: MessageTemplate(
        "", "A client certificate and its private key belong together: give both or neither."
    ),
    ClusterErrorCode.ROLE_NOT_LISTED: MessageTemplate(
        "That role is not among those given here: it was taken away meanwhile, or the page is old.",
        "The list shows who has which now.",
    ),
    ClusterErrorCode.ROLE_TAKEN_MEANWHILE: MessageTemplate(
        "{name} is not {role} here any more: somebody took that role away meanwhile.", "Nothing is left to do."
    ),
    ClusterErrorCode.LAG_PATTERN_EMPTY: MessageTemplate(
        "", "Name a group, or a pattern of names: * stands for any characters, ? for one."
    ),
    ClusterErrorCode.LAG_PATTERN_TOO_LONG: MessageTemplate(
        "This has {length:,} characters; {most:,} fit.", "Shorten it: * stands for any characters."
    ),
    ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE: MessageTemplate(
        "Character {place} of this cannot be seen, so nobody could tell what is allowed.", "Type ? in its place."
    ),
    ClusterErrorCode.LAG_UNREADABLE: MessageTemplate("", "Give a whole number of records, for example 10,000."),
    ClusterErrorCode.LAG_NEGATIVE: MessageTemplate("A lag is never negative.", "Give 0 or more records."),
    ClusterErrorCode.LAG_TOO_LARGE: MessageTemplate("More than {most:,} records cannot be allowed.", "Give fewer."),
    ClusterErrorCode.LAG_TOO_MANY_RULES: MessageTemplate(
        "{cluster} has {most} rules already, and no more fit.", "Take one away, or use a pattern for several groups."
    ),
    ClusterErrorCode.LAG_RULE_GONE: MessageTemplate(
        "That rule is not there: it was taken away meanwhile, or the page is old.",
        "The list shows those that hold now.",
    ),
    # Connections: addresses, names and ports, certificates, stored secrets
    ClusterErrorCode.PROTOCOL_IN_FRONT: MessageTemplate(
        "", "{item} has a protocol in front: enter only host:port, the protocol is chosen separately."
    ),
    ClusterErrorCode.BRACKETS_WRONG: MessageTemplate(
        "", "{item} is not an address: write an IPv6 address as [address]:port."
    ),
    ClusterErrorCode.BRACKETS_MISSING: MessageTemplate(
        "", "{item} looks like an IPv6 address: write it as [address]:port."
    ),
    ClusterErrorCode.PORT_MISSING: MessageTemplate(
        "", "{item} has no port: write it as host:port, for example {item}:9092."
    ),
    ClusterErrorCode.PORT_WRONG: MessageTemplate("", "{item} has the port {port}: a port is a number from 1 to 65535."),
    ClusterErrorCode.IPV6_WRONG: MessageTemplate(
        "{item} has no valid IPv6 address between its brackets.", "Correct it there."
    ),
    ClusterErrorCode.HOST_WRONG: MessageTemplate(
        "{item} has no valid host name in front of its port.", "Correct it there."
    ),
    ClusterErrorCode.IPV4_WRONG: MessageTemplate(
        "{item} has no valid IPv4 address in front of its port.", "Correct it there."
    ),
    ClusterErrorCode.ADDRESS_TWICE: MessageTemplate("{item} is there twice.", "Take one of them out."),
    ClusterErrorCode.NO_ADDRESS: MessageTemplate(
        "No address was given.", "Give that of at least one broker, as host:port."
    ),
    ClusterErrorCode.SECRET_UNREADABLE: MessageTemplate(
        "A stored secret cannot be read with the keys in FIELD_KEYS.",
        "Put back the key it was written with (behind the new one), or enter the secret again.",
    ),
    ClusterErrorCode.SECRET_MEANT_FOR_OTHER: MessageTemplate(
        "A stored secret was entered for other settings, and is not used. Changed since: {changed}.",
        "See in the audit who changed them, and enter the secret again if they are right.",
    ),
    ClusterErrorCode.NO_KEYS: MessageTemplate(
        "FIELD_KEYS is not set, so secrets can be neither stored nor read.", "Set it to a key made with `{command}`."
    ),
    ClusterErrorCode.KEY_MALFORMED: MessageTemplate(
        "A key in FIELD_KEYS is malformed: each is 32 bytes in URL-safe base64.", "Make one with `{command}`."
    ),
    ClusterErrorCode.FIT_NO_KEY: MessageTemplate(
        "These fit none of the keys and were left as they are: {names}.", "Put their key back, or enter them again."
    ),
    # Clusters that do not answer, and what a connection test finds
    ClusterErrorCode.OTHER_CLUSTER: MessageTemplate(
        "The address of {cluster} now leads to the Kafka cluster {answered}, not to {expected} as before. Nothing of "
        "the other one is stored.",
        "Correct the address, or register the other cluster under a name of its own.",
    ),
    ClusterErrorCode.NOT_LOOKED_AT: MessageTemplate(
        "{silent}: no worker looks at this cluster.",
        "See that beat runs, and a worker for the queues tick and collect.",
    ),
    ClusterErrorCode.TRIED_LESS_OFTEN: MessageTemplate(
        "It is tried less and less often, next at {when} UTC.", "New settings are tried at once."
    ),
    ClusterErrorCode.NOT_TRIED_ANY_MORE: MessageTemplate(
        "After {times} refusals it is not tried any more.",
        "Correct the settings, or disable and enable the cluster when the other side was mended.",
    ),
    ClusterErrorCode.WITH_ZOOKEEPER: MessageTemplate(
        "This cluster keeps its metadata in ZooKeeper, which kafkadash does not support yet: topics and brokers are "
        "shown, the controller and its quorum are not.",
        _KRAFT,
    ),
    # Signing in, accounts and passwords
    ClusterErrorCode.NO_SUCH_USER: MessageTemplate(
        "There is no user called {name}.", "See who there is with `manage.py user list`."
    ),
    ClusterErrorCode.NO_ROLE_TO_TAKE: MessageTemplate(
        "{name} has no role {role} {where}.", "See who has which with `manage.py user list`."
    ),
    ClusterErrorCode.DATE_UNREADABLE: MessageTemplate(
        "{text} is no time.", "Write it like 2027-01-31 or 2027-01-31T18:00, in UTC."
    ),
    ClusterErrorCode.DATE_GONE_BY: MessageTemplate(
        "{text} has passed already.", "Give a time that is to come, in UTC."
    ),
    ClusterErrorCode.SECRET_NOT_READ: MessageTemplate(
        "The {what} could not be read from {source}: {fault}.", "Name a file that can be read, or - for standard input."
    ),
    ClusterErrorCode.NO_SECRET_GIVEN: MessageTemplate("There is no {what} in {source}.", "Put it there, alone."),
}


_UNDER_SETTINGS = "Correct it under Settings."
_UPDATE = "Update the brokers to have it."
_QUORUM = "See the controllers on the page of the quorum."
_LATER = "The next refresh asks again."
_GRANT = "Grant it in Kafka."

KAFKA_MESSAGES: Mapping[KafkaErrorCode, MessageTemplate] = {
    # Connections: addresses, names and ports, certificates, stored secrets
    KafkaErrorCode.ADDRESS_MALFORMED: MessageTemplate(
        "The bootstrap server {address!r} is not of the form host:port.", _UNDER_SETTINGS
    ),
    KafkaErrorCode.PROTOCOL_UNKNOWN: MessageTemplate(
        "The security protocol {protocol!r} is not known.", "Choose one of {known}."
    ),
    KafkaErrorCode.MECHANISM_UNKNOWN: MessageTemplate(
        "The SASL mechanism {mechanism!r} is not known.", "Choose one of {known}."
    ),
    KafkaErrorCode.CA_UNUSABLE: MessageTemplate(
        "The CA certificate is not a usable PEM text: {detail}.",
        "Give all of its text, from its first line, BEGIN CERTIFICATE, to its last.",
    ),
    KafkaErrorCode.CERTIFICATE_WITHOUT_KEY: MessageTemplate(
        "", "A client certificate needs both the certificate and its private key as PEM text."
    ),
    KafkaErrorCode.KEY_UNUSABLE: MessageTemplate(
        "The private key is not an unencrypted PEM text.", "Give it without a passphrase; it is stored encrypted."
    ),
    KafkaErrorCode.PAIR_UNUSABLE: MessageTemplate(
        "The client certificate and its private key cannot be used together: {detail}.",
        "Give the key that the certificate was made for.",
    ),
    KafkaErrorCode.NAME_SERVER_SLOW: MessageTemplate(
        "No answer came within {seconds:g} s: the name server or the network is slow.",
        "Test the connection again; if that goes on, see the name server of kafkadash's workers.",
    ),
    KafkaErrorCode.NAME_UNRESOLVED: MessageTemplate(
        "The host name {host} cannot be resolved ({said}).",
        "Correct the name, or have the name server of kafkadash's workers know it.",
    ),
    KafkaErrorCode.NO_TIME_TO_CONNECT: MessageTemplate("No time was left to try it.", "Test the connection again."),
    KafkaErrorCode.NOTHING_ACCEPTED: MessageTemplate(
        "Nothing at {address} accepted the connection within {seconds:.0f} s: a firewall, or a host that is down.",
        "Open the way to it from the machine of kafkadash's workers, or start it.",
    ),
    KafkaErrorCode.CONNECTING_FAILED: MessageTemplate(
        "The connection to {address} failed: {said}.", "See that a broker listens there."
    ),
    KafkaErrorCode.TLS_SILENT: MessageTemplate(
        "{address} did not answer the TLS handshake in time: is this a TLS listener?",
        "Give address and security of the same listener of Kafka.",
    ),
    KafkaErrorCode.TLS_FAILED: MessageTemplate(
        "{address}: {reason}.{shown}",
        "Correct the security and the CA certificate under Settings, or the certificate of the broker.",
    ),
    # Brokers that cannot be asked, and what Kafka answers
    KafkaErrorCode.NODE_NOT_CONNECTED: MessageTemplate(
        "{who} could not be connected: {detail}.",
        "See that it runs, and that its address can be reached from the machine of kafkadash's workers.",
    ),
    KafkaErrorCode.CLIENT_CERTIFICATE_REFUSED: MessageTemplate(
        "{who} refused our TLS certificate, or the lack of one: {detail}.",
        "Give a client certificate that it accepts under Settings.",
    ),
    KafkaErrorCode.HANDSHAKE_FAILED: MessageTemplate(
        "{who}: the TLS handshake failed: {detail}.",
        "Correct the security and the CA certificate under Settings, or the certificate of the broker.",
    ),
    KafkaErrorCode.CREDENTIALS_REFUSED: MessageTemplate(
        "{who} refused the credentials: {detail}.",
        "Correct user name and password under Settings, or have Kafka accept them.",
    ),
    KafkaErrorCode.SASL_MECHANISM_REFUSED: MessageTemplate(
        "{who} does not accept this SASL mechanism: {detail}.", "Choose the one of its listener under Settings."
    ),
    KafkaErrorCode.NODE_TOO_OLD: MessageTemplate(
        "{who} offers no version of this request that kafkadash speaks: {detail}.", _UPDATE
    ),
    KafkaErrorCode.EARLIER_UNANSWERED: MessageTemplate(
        "{who}: the connection was given up because an earlier request got no answer.",
        "The next question connects anew; if that goes on, see why it hangs.",
    ),
    KafkaErrorCode.NODE_TOO_SLOW: MessageTemplate(
        "{who} accepted the connection but did not answer in time.",
        "See whether it hangs or has too much to do; then ask again.",
    ),
    KafkaErrorCode.NOT_KAFKA: MessageTemplate(
        "{who} answered with something that is not Kafka's protocol (is it a TLS listener?).",
        "Give address and security of a listener of Kafka under Settings.",
    ),
    KafkaErrorCode.ANSWER_TOO_LARGE: MessageTemplate(
        "{who} answered with more than {most} MB, which is more than is read.",
        "Look for members of consumer groups with very large metadata or assignments.",
    ),
    KafkaErrorCode.CLOSED_INSTEAD: MessageTemplate(
        "{who} closed the connection instead of answering ({detail}): it stopped, or expects another way to "
        "connect (TLS, "
        "a login, a certificate).",
        "See that it runs, and correct the security under Settings.",
    ),
    KafkaErrorCode.NODE_NOT_ASKED: MessageTemplate(
        "{who} could not be asked: {detail}.", "Ask again; if that goes on, see the log of the broker."
    ),
    KafkaErrorCode.ASKING_CRASHED: MessageTemplate(
        "{who} could not be asked because of a fault of kafkadash's own.",
        "The log of the worker says more; report what it says.",
    ),
    KafkaErrorCode.CONTROLLERS_SILENT: MessageTemplate(
        "The brokers answer, but no controller did within {seconds:g} s: the controllers have no majority, no "
        "leader yet, "
        "or are too slow.",
        _QUORUM,
    ),
    KafkaErrorCode.BOOTSTRAP_SILENT: MessageTemplate(
        "The bootstrap servers {servers} did not answer in time.",
        "See that they run and can be reached from the machine of kafkadash's workers.",
    ),
    KafkaErrorCode.NO_LIVE_BROKER: MessageTemplate(
        "The bootstrap servers {servers} answered, but listed no live broker.",
        "See in the brokers' logs why none is registered.",
    ),
    KafkaErrorCode.BROKER_NOT_LIVE: MessageTemplate(
        "Broker {broker} is not among the live brokers of the cluster.",
        "Start it, or see in its log why it is not registered.",
    ),
    KafkaErrorCode.QUORUM_WITHOUT_LEADER: MessageTemplate("The controllers have no leader at the moment.", _QUORUM),
    KafkaErrorCode.NO_CONTROLLER: MessageTemplate(
        "The cluster has no controller at the moment.",
        "Ask again; if that goes on, see in the brokers' logs why none is elected.",
    ),
    KafkaErrorCode.CONNECTION_RENEWED: MessageTemplate(
        "This connection was closed because its settings changed.", "The next question uses the new ones."
    ),
    KafkaErrorCode.CONNECTION_HUNG: MessageTemplate(
        "No answer within {seconds:g} s: the connection hung and is being renewed.", "Ask again."
    ),
    KafkaErrorCode.CLOSED_WHILE_WAITING: MessageTemplate(
        "The connection to this cluster was closed while we waited.", "Ask again."
    ),
    KafkaErrorCode.TURN_TOO_LATE: MessageTemplate("The time for this question was over before its turn came.", _LATER),
    KafkaErrorCode.CALL_FORBIDDEN: MessageTemplate(
        "Kafka refused {request}: the principal needs {permission} ({code}).", _GRANT
    ),
    KafkaErrorCode.CALL_UNSUPPORTED: MessageTemplate(
        "This cluster does not support {request} ({code}){said}.", _UPDATE
    ),
    KafkaErrorCode.CALL_WITHOUT_CONTROLLER: MessageTemplate(
        "A broker answered, but could not get {request} from the active controller ({code}){said}. The controllers may "
        "have no majority or no leader yet.",
        _QUORUM,
    ),
    KafkaErrorCode.CALL_FAILED: MessageTemplate(
        "Kafka answered {request} with {name} ({code}){said}.",
        "Ask again; if that goes on, see the logs of the brokers.",
    ),
    KafkaErrorCode.ITEM_FORBIDDEN: MessageTemplate("{subject}: the principal needs {permission} ({code}).", _GRANT),
    KafkaErrorCode.ITEM_NOT_NOW: MessageTemplate("{subject}: {detail} ({code}).", _LATER),
    KafkaErrorCode.ITEM_REFUSED: MessageTemplate(
        "{subject}: {detail} ({code}).", "See the log of the broker for more."
    ),
    KafkaErrorCode.NOT_IN_ANSWER: MessageTemplate("{subject}: Kafka's answer leaves it out.", _LATER),
    KafkaErrorCode.ASSIGNMENT_UNREADABLE: MessageTemplate(
        "What member {member} of group {group} is assigned cannot be read: it is not written in the consumer protocol.",
        "See what client that is; its offsets are shown all the same.",
    ),
    KafkaErrorCode.NOT_KNOWN_THERE: MessageTemplate("{subject}: it is not known there.", _LATER),
    KafkaErrorCode.DIRECTORIES_HIDDEN: MessageTemplate(
        "Broker {broker} does not tell its log directories: the answer is empty; the principal may lack {permission}.",
        _GRANT,
    ),
    KafkaErrorCode.TOPICS_HIDDEN: MessageTemplate(
        "Describe on {which} is missing: Kafka hides what may not be described, so counts are too small.", _GRANT
    ),
    KafkaErrorCode.NOT_OFFERED: MessageTemplate("This broker does not offer {what}.", _UPDATE),
    KafkaErrorCode.NO_QUORUM_TO_DESCRIBE: MessageTemplate(
        "This cluster has no controller quorum to describe: it runs with ZooKeeper, or Kafka older than 3.0.",
        "Its topics and brokers are shown; move it to KRaft to see the rest.",
    ),
    KafkaErrorCode.ANOTHER_QUORUM: MessageTemplate(
        "The controllers' listeners belong to the Kafka cluster {answered}, and not to {expected}. Nothing was "
        "sent there.",
        "Correct the addresses of the controllers under Settings.",
    ),
    KafkaErrorCode.NO_LEADER_THERE: MessageTemplate(
        "No listener of the controllers leads the quorum.",
        "See that the controllers run and can be reached from the machine of kafkadash's workers.",
    ),
    KafkaErrorCode.NOTHING_SENT: MessageTemplate("", "Nothing was sent: {why}"),
    KafkaErrorCode.LOST_LEADERSHIP: MessageTemplate(
        "The controller lost its leadership before it answered ({code}).",
        "The next look at the cluster tells what came of it.",
    ),
    KafkaErrorCode.CHANGE_NOT_IN_ANSWER: MessageTemplate(
        "{subject}: it is not in Kafka's answer.", "The next look at the cluster tells what came of it."
    ),
}
