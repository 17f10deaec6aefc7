"""Texts of the codes of this app (``clusters.errors``) and of the Kafka client (``kafka.errors``)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.core.messages import MessageTemplate
from kafkadash.kafka.errors import KafkaErrorCode

_HOST_PORT = "Enter host:port, for example broker-1:9092."

CLUSTER_MESSAGES: Mapping[ClusterErrorCode, MessageTemplate] = {
    # Rights, and facts that are too old
    ClusterErrorCode.READ_ONLY: MessageTemplate(
        "{cluster} is read-only in kafkadash: changes cannot be proposed, approved or started.",
        "An administrator can allow changes under Settings.",
    ),
    ClusterErrorCode.NEEDS_ROLE: MessageTemplate(
        "This needs the role {roles} on {cluster}.", "Ask an administrator of the cluster for the role."
    ),
    ClusterErrorCode.NO_SUCH_CLUSTER: MessageTemplate(
        "There is no cluster {slug} that you may view.",
        "Open the status board, or ask an administrator for the role viewer.",
    ),
    ClusterErrorCode.NEEDS_ROLE_SOMEWHERE: MessageTemplate(
        "This needs the role {roles} on a cluster.", "Ask an administrator for the role."
    ),
    ClusterErrorCode.NEEDS_ROLE_EVERYWHERE: MessageTemplate(
        "This needs the role {roles} on all clusters.", "Ask an administrator for the role."
    ),
    # Clusters and roles under Settings, and which Kafka cluster answers
    ClusterErrorCode.NOBODY_NAMED: MessageTemplate("User name missing.", "Enter the name of a user."),
    ClusterErrorCode.OWN_ROLE: MessageTemplate("You cannot grant a role to yourself.", "Ask another administrator."),
    ClusterErrorCode.NO_SUCH_ACCOUNT: MessageTemplate(
        "There is no user {name}.", "Create the user on the server: manage.py user create {name}."
    ),
    ClusterErrorCode.ACCOUNT_CLOSED: MessageTemplate("The account of {name} is closed.", "Reopen the account first."),
    ClusterErrorCode.ROLE_UNKNOWN: MessageTemplate("Unknown role.", "Choose one of {roles}."),
    ClusterErrorCode.END_PASSED: MessageTemplate("This time is in the past.", "Enter a later time, in UTC."),
    ClusterErrorCode.NAME_TO_CONFIRM: MessageTemplate(
        "The name does not match.", "Type {cluster} to remove the cluster."
    ),
    ClusterErrorCode.LAST_ADMINISTRATOR: MessageTemplate(
        "{name} is the last permanent administrator {of}.", "Grant another user the role admin without an end first."
    ),
    ClusterErrorCode.IDENTITY_CHANGED: MessageTemplate(
        "Another Kafka cluster answers at the addresses of {cluster}: {answered}, not {expected}. Nothing was stored.",
        "Correct the addresses, or register the other cluster under its own name.",
    ),
    ClusterErrorCode.SAME_CLUSTER: MessageTemplate(
        "{cluster} is the same Kafka cluster as {other}, which was registered first. {cluster} is read-only and not "
        "collected.",
        "Use {other}, and remove {cluster} under Settings.",
    ),
    ClusterErrorCode.CLUSTER_UNKNOWN: MessageTemplate("There is no cluster {slug}.", "Registered clusters: {known}."),
    ClusterErrorCode.CLUSTER_NAME_EMPTY: MessageTemplate(
        "The name has no letter or digit.", "Enter a name with at least one: the page addresses contain it."
    ),
    ClusterErrorCode.CLUSTER_NAME_TOO_LONG: MessageTemplate(
        "The name has {length} characters.", "Enter at most 64 characters."
    ),
    ClusterErrorCode.CLUSTER_NAME_TAKEN: MessageTemplate(
        "A cluster named {name} is already registered.", "Choose another name, or change its settings."
    ),
    ClusterErrorCode.CLUSTER_NAME_JUST_TAKEN: MessageTemplate(
        "Another user has just registered a cluster named {name}.",
        "Choose another name, or open that cluster under Settings.",
    ),
    ClusterErrorCode.CLUSTER_NAME_TOO_ALIKE: MessageTemplate(
        "The name is too similar to {other}: both have the page address {slug}.", "Choose another name."
    ),
    ClusterErrorCode.MECHANISM_NEEDED: MessageTemplate("SASL mechanism missing.", "Choose one of {known}."),
    ClusterErrorCode.LOGIN_NEEDED: MessageTemplate("SASL credentials missing.", "Enter user name and password."),
    ClusterErrorCode.TOKEN_ENDPOINT_NEEDED: MessageTemplate(
        "Token endpoint missing.", "Enter the address where the identity provider issues access tokens."
    ),
    ClusterErrorCode.SECRET_ENTERED_FOR_OTHER: MessageTemplate(
        "The stored secret was entered for other settings. Changed since: {changed}.",
        "Enter the secret again for the new settings.",
    ),
    ClusterErrorCode.PAIR_NEEDED: MessageTemplate(
        "A client certificate needs its private key, and the reverse.", "Enter both or neither."
    ),
    ClusterErrorCode.ROLE_NOT_LISTED: MessageTemplate(
        "This role grant no longer exists.", "Check the current grants in the list."
    ),
    ClusterErrorCode.ROLE_TAKEN_MEANWHILE: MessageTemplate(
        "The role {role} of {name} was already revoked.", "Nothing is left to do."
    ),
    ClusterErrorCode.LAG_PATTERN_EMPTY: MessageTemplate(
        "Group or pattern missing.", "Enter a group name, or a pattern with * for any characters and ? for one."
    ),
    ClusterErrorCode.LAG_PATTERN_TOO_LONG: MessageTemplate(
        "The pattern has {length:,} characters.", "Enter at most {most:,}; * stands for any characters."
    ),
    ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE: MessageTemplate(
        "Character {place} of the pattern is not printable.", "Enter ? in its place."
    ),
    ClusterErrorCode.LAG_UNREADABLE: MessageTemplate(
        "The lag threshold is not a whole number.", "Enter records, for example 10,000."
    ),
    ClusterErrorCode.LAG_NEGATIVE: MessageTemplate("The lag threshold is negative.", "Enter 0 or more records."),
    ClusterErrorCode.LAG_TOO_LARGE: MessageTemplate(
        "The lag threshold is too large.", "Enter at most {most:,} records."
    ),
    ClusterErrorCode.LAG_TOO_MANY_RULES: MessageTemplate(
        "{cluster} has {most} lag thresholds, the maximum.", "Remove one, or use a pattern for several groups."
    ),
    ClusterErrorCode.LAG_RULE_GONE: MessageTemplate(
        "This lag threshold no longer exists.", "Check the current thresholds in the list."
    ),
    # Connections: addresses, names and ports, certificates, stored secrets
    ClusterErrorCode.PROTOCOL_IN_FRONT: MessageTemplate(
        "{item} starts with a protocol.", "Enter host:port only, and choose the protocol below."
    ),
    ClusterErrorCode.BRACKETS_WRONG: MessageTemplate(
        "{item} is not an address.", "Enter an IPv6 address as [address]:port."
    ),
    ClusterErrorCode.BRACKETS_MISSING: MessageTemplate(
        "{item} is an IPv6 address without brackets.", "Enter it as [address]:port."
    ),
    ClusterErrorCode.PORT_MISSING: MessageTemplate("{item} has no port.", "Enter host:port, for example {item}:9092."),
    ClusterErrorCode.PORT_WRONG: MessageTemplate(
        "{item} has the invalid port {port}.", "Enter a port from 1 to 65535."
    ),
    ClusterErrorCode.IPV6_WRONG: MessageTemplate("{item} has an invalid IPv6 address.", "Correct the address."),
    ClusterErrorCode.HOST_WRONG: MessageTemplate("{item} has an invalid host name.", "Correct the host name."),
    ClusterErrorCode.IPV4_WRONG: MessageTemplate("{item} has an invalid IPv4 address.", "Correct the address."),
    ClusterErrorCode.ADDRESS_TWICE: MessageTemplate("{item} is listed twice.", "Remove one of them."),
    ClusterErrorCode.NO_ADDRESS: MessageTemplate("Address missing.", _HOST_PORT),
    ClusterErrorCode.CHROOT_WRONG: MessageTemplate(
        "{path} is not a path in ZooKeeper.", "Enter it once, behind the last address: host:port,host:port/path."
    ),
    ClusterErrorCode.ZOOKEEPER_LOGIN_HALF: MessageTemplate(
        "A ZooKeeper user needs a password, and the reverse.", "Enter both or neither."
    ),
    ClusterErrorCode.ZOOKEEPER_USER_WRONG: MessageTemplate(
        "The ZooKeeper user has a colon.", "Enter the user of the digest scheme, without its password."
    ),
    ClusterErrorCode.SECRET_UNREADABLE: MessageTemplate(
        "A stored secret cannot be decrypted with the keys in FIELD_KEYS.",
        "Add its old key after the new one, or enter the secret again.",
    ),
    ClusterErrorCode.SECRET_MEANT_FOR_OTHER: MessageTemplate(
        "A stored secret was entered for other settings and is not used. Changed since: {changed}.",
        "See the audit log for who changed them. If they are right, enter the secret again.",
    ),
    ClusterErrorCode.NO_KEYS: MessageTemplate(
        "FIELD_KEYS is not set: secrets can be neither stored nor read.", "Set it to a key from `{command}`."
    ),
    ClusterErrorCode.KEY_MALFORMED: MessageTemplate(
        "A key in FIELD_KEYS is malformed: each is 32 bytes in URL-safe base64.", "Create a key with `{command}`."
    ),
    ClusterErrorCode.FIT_NO_KEY: MessageTemplate(
        "No key decrypts these secrets, which were left unchanged: {names}.",
        "Add their key to FIELD_KEYS, or enter the secrets again.",
    ),
    # Clusters that do not answer, and the results of a connection test
    ClusterErrorCode.OTHER_CLUSTER: MessageTemplate(
        "Another Kafka cluster answers at the address of {cluster}: {answered}, not {expected}. No data of the other "
        "cluster is stored.",
        "Correct the address, or register the other cluster under its own name.",
    ),
    ClusterErrorCode.NOT_LOOKED_AT: MessageTemplate(
        "{silent}: no worker collects from this cluster.",
        "Check that beat is running, and a worker for the queues tick and collect.",
    ),
    ClusterErrorCode.TRIED_LESS_OFTEN: MessageTemplate(
        "Retries become less frequent; the next is at {when} UTC.", "New settings are tried immediately."
    ),
    ClusterErrorCode.NOT_TRIED_ANY_MORE: MessageTemplate(
        "Retries stopped after {times} refusals.",
        "Correct the settings. If the cause was in Kafka, disable and enable the cluster.",
    ),
    ClusterErrorCode.WITH_ZOOKEEPER: MessageTemplate(
        "The brokers use ZooKeeper, whose address is not entered. Controller and queued reassignments are not shown.",
        "Enter the ZooKeeper address under Settings.",
    ),
    ClusterErrorCode.ZOOKEEPER_UNUSED: MessageTemplate(
        "The brokers run in KRaft mode and do not use ZooKeeper.",
        "Remove the ZooKeeper address, unless a migration to KRaft is under way.",
    ),
    # Accounts, roles and passwords on the command line
    ClusterErrorCode.NO_SUCH_USER: MessageTemplate("There is no user {name}.", "List users: `manage.py user list`."),
    ClusterErrorCode.NO_ROLE_TO_TAKE: MessageTemplate(
        "{name} has no role {role} {where}.", "List roles: `manage.py user list`."
    ),
    ClusterErrorCode.DATE_UNREADABLE: MessageTemplate(
        "{text} is not a date or time.", "Write 2027-01-31 or 2027-01-31T18:00, in UTC."
    ),
    ClusterErrorCode.DATE_GONE_BY: MessageTemplate("{text} is in the past.", "Give a later time, in UTC."),
    ClusterErrorCode.SECRET_NOT_READ: MessageTemplate(
        "The {what} cannot be read from {source}: {fault}.", "Name a readable file, or - for standard input."
    ),
    ClusterErrorCode.NO_SECRET_GIVEN: MessageTemplate(
        "{source} has no {what}.", "Write the {what} there, and nothing else."
    ),
}


_UNDER_SETTINGS = "Correct it under Settings."
_TLS_SETTINGS = "Correct security and CA certificates under Settings, or the broker's certificate."
_UPGRADE = "Upgrade the brokers."
_QUORUM = "Check the controllers on the quorum page."
_LATER = "The next refresh tries again."
_GRANT = "Grant it in Kafka."
_PROVIDER = "Check the address and the identity provider."
_REACH = "Check that it is running and reachable from kafkadash's workers."

KAFKA_MESSAGES: Mapping[KafkaErrorCode, MessageTemplate] = {
    # Connections: addresses, names and ports, certificates, stored secrets
    KafkaErrorCode.ADDRESS_MALFORMED: MessageTemplate(
        "The bootstrap server {address!r} is not in the form host:port.", _UNDER_SETTINGS
    ),
    KafkaErrorCode.PROTOCOL_UNKNOWN: MessageTemplate(
        "Unknown security protocol {protocol!r}.", "Choose one of {known}."
    ),
    KafkaErrorCode.MECHANISM_UNKNOWN: MessageTemplate(
        "Unknown SASL mechanism {mechanism!r}.", "Choose one of {known}."
    ),
    KafkaErrorCode.KERBEROS_UNSUPPORTED: MessageTemplate(
        "Kerberos (GSSAPI) is not supported.", "Use a listener with {known}, or with client certificates."
    ),
    KafkaErrorCode.CANARY_UNREACHABLE: MessageTemplate(
        "The canary's client could not connect ({detail}).",
        "Check the cluster's credentials and certificates. Nothing is probed until it connects.",
    ),
    KafkaErrorCode.CANARY_OF_OTHER_CLUSTER: MessageTemplate(
        "The canary reached Kafka cluster {found!r} instead of {expected!r}, and wrote nothing.",
        "Check the bootstrap addresses of the cluster.",
    ),
    KafkaErrorCode.CANARY_TOPIC_UNREADABLE: MessageTemplate(
        "kafkadash may not read or write the canary's topic ({detail}).",
        "Grant Describe, Read and Write on it, or stop the canary.",
    ),
    KafkaErrorCode.CANARY_OF_LIMITED_NETWORKS: MessageTemplate(
        "The canary does not run where KAFKA_NETWORKS limits networks.",
        "Stop the canary: its client connects wherever brokers advertise.",
    ),
    KafkaErrorCode.CANARY_OF_READ_ONLY: MessageTemplate(
        "The canary does not write to a cluster that is read-only here.", "Stop the canary, or allow changes."
    ),
    KafkaErrorCode.CA_UNUSABLE: MessageTemplate(
        "The CA certificates are not valid PEM: {detail}.",
        "Enter the complete text, from the line BEGIN CERTIFICATE to the last line.",
    ),
    KafkaErrorCode.CERTIFICATE_WITHOUT_KEY: MessageTemplate(
        "A client certificate needs its private key, and the reverse.", "Enter both as PEM."
    ),
    KafkaErrorCode.KEY_UNUSABLE: MessageTemplate(
        "The private key is not an unencrypted PEM text.",
        "Enter the key without a passphrase; kafkadash stores it encrypted.",
    ),
    KafkaErrorCode.PAIR_UNUSABLE: MessageTemplate(
        "The client certificate and the private key do not match: {detail}.",
        "Enter the key that belongs to the certificate.",
    ),
    KafkaErrorCode.NAME_SERVER_SLOW: MessageTemplate(
        "No DNS answer within {seconds:g} s.", "Test again, then check the DNS server of kafkadash's workers."
    ),
    KafkaErrorCode.NAME_UNRESOLVED: MessageTemplate(
        "The host name {host} cannot be resolved ({said}).",
        "Correct the name, or add it to the DNS server of kafkadash's workers.",
    ),
    KafkaErrorCode.NO_TIME_TO_CONNECT: MessageTemplate(
        "The time limit passed before this address was tried.", "Test the connection again."
    ),
    KafkaErrorCode.NOTHING_ACCEPTED: MessageTemplate(
        "{address} did not accept a connection within {seconds:.0f} s.",
        "Check that the broker is running and no firewall blocks kafkadash's workers.",
    ),
    KafkaErrorCode.CONNECTING_FAILED: MessageTemplate(
        "The connection to {address} failed: {said}.", "Check that a broker listens there."
    ),
    KafkaErrorCode.TLS_SILENT: MessageTemplate(
        "{address} did not answer the TLS handshake in time. The listener may not use TLS.",
        "Enter address and security of the same Kafka listener.",
    ),
    KafkaErrorCode.TLS_FAILED: MessageTemplate("{address}: {reason}.{shown}", _TLS_SETTINGS),
    # Access tokens
    KafkaErrorCode.TOKEN_ENDPOINT_MALFORMED: MessageTemplate(
        "The token endpoint is not a usable URL.", "Enter https://host/path, without user name, password and fragment."
    ),
    KafkaErrorCode.TOKEN_ENDPOINT_UNENCRYPTED: MessageTemplate(
        "The token endpoint is not encrypted, but SASL_SSL is.", "Enter a URL that starts with https."
    ),
    KafkaErrorCode.EXTENSIONS_MALFORMED: MessageTemplate(
        "{item!r} is not a SASL extension.", "Enter name=value, with a name of letters other than auth."
    ),
    KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE: MessageTemplate(
        "The token endpoint {endpoint} cannot be reached: {detail}.", _PROVIDER
    ),
    KafkaErrorCode.TOKEN_ENDPOINT_SLOW: MessageTemplate(
        "The token endpoint {endpoint} did not answer completely within {seconds:g} s.", _PROVIDER
    ),
    KafkaErrorCode.TOKEN_ENDPOINT_LATE: MessageTemplate(
        "The token endpoint {endpoint} has not answered in time.", _PROVIDER
    ),
    KafkaErrorCode.TOKEN_ENDPOINT_REDIRECTS: MessageTemplate(
        "The token endpoint {endpoint} redirects (HTTP {status}), which kafkadash does not follow.",
        "Enter its final address under Settings.",
    ),
    KafkaErrorCode.TOKEN_ENDPOINT_FAILED: MessageTemplate(
        "The token endpoint {endpoint} answered with HTTP status {status}.", _PROVIDER
    ),
    KafkaErrorCode.TOKEN_ANSWER_TOO_LARGE: MessageTemplate(
        "The token endpoint {endpoint} answered with more than {most} kB.", _PROVIDER
    ),
    KafkaErrorCode.TOKEN_ANSWER_UNUSABLE: MessageTemplate(
        "The token endpoint {endpoint} answered without a usable access token.", _PROVIDER
    ),
    KafkaErrorCode.CLIENT_REJECTED: MessageTemplate(
        "The token endpoint {endpoint} rejected the client {client}: {detail}.",
        "Correct client ID, secret and scope under Settings.",
    ),
    # Brokers that cannot be queried, and Kafka's answers
    KafkaErrorCode.NODE_NOT_CONNECTED: MessageTemplate("{who} cannot be reached: {detail}.", _REACH),
    KafkaErrorCode.CLIENT_CERTIFICATE_REFUSED: MessageTemplate(
        "{who} rejected kafkadash's client certificate, or requires one: {detail}.",
        "Enter an accepted client certificate under Settings.",
    ),
    KafkaErrorCode.HANDSHAKE_FAILED: MessageTemplate("{who}: the TLS handshake failed: {detail}.", _TLS_SETTINGS),
    KafkaErrorCode.CREDENTIALS_REFUSED: MessageTemplate(
        "{who} rejected the credentials: {detail}.",
        "Correct user name and password under Settings, or in Kafka.",
    ),
    KafkaErrorCode.SASL_MECHANISM_REFUSED: MessageTemplate(
        "{who} rejected the SASL mechanism: {detail}.", "Choose the mechanism of its listener under Settings."
    ),
    KafkaErrorCode.TOKEN_REFUSED: MessageTemplate(
        "{who} rejected the access token ({claims}): {detail}.",
        "Compare audience, issuer and scope with the listener's settings.",
    ),
    KafkaErrorCode.NODE_TOO_OLD: MessageTemplate(
        "{who} supports no version of this request that kafkadash uses: {detail}.", _UPGRADE
    ),
    KafkaErrorCode.EARLIER_UNANSWERED: MessageTemplate(
        "{who} did not answer an earlier request; the connection was closed.",
        "The next request reconnects. If the error persists, check the node's log.",
    ),
    KafkaErrorCode.NODE_TOO_SLOW: MessageTemplate(
        "{who} accepted the connection but did not answer in time.", "Check the node for overload, then retry."
    ),
    KafkaErrorCode.NOT_KAFKA: MessageTemplate(
        "{who} did not answer in Kafka's protocol. The listener may use TLS.",
        "Enter address and security of a Kafka listener under Settings.",
    ),
    KafkaErrorCode.ANSWER_TOO_LARGE: MessageTemplate(
        "{who} sent more than {most} MB; kafkadash reads no more.",
        "Check for consumer group members with very large metadata or assignments.",
    ),
    KafkaErrorCode.CLOSED_INSTEAD: MessageTemplate(
        "{who} closed the connection ({detail}). It stopped, or requires TLS, a login or a certificate.",
        "Check that it is running, and correct the security under Settings.",
    ),
    KafkaErrorCode.NODE_NOT_ASKED: MessageTemplate(
        "{who} could not be queried: {detail}.", "Retry. If the error persists, check the broker's log."
    ),
    KafkaErrorCode.ANSWER_MALFORMED: MessageTemplate(
        "An answer of the cluster is malformed and was not used.",
        "Retry. If the error persists, report it with the worker's log.",
    ),
    KafkaErrorCode.ASKING_CRASHED: MessageTemplate(
        "{who} could not be queried because of an internal error in kafkadash.", "Report it with the worker's log."
    ),
    KafkaErrorCode.CONTROLLERS_SILENT: MessageTemplate(
        "Brokers answer, but no controller answered within {seconds:g} s. The quorum has no majority or no leader, or "
        "is slow.",
        _QUORUM,
    ),
    KafkaErrorCode.BOOTSTRAP_SILENT: MessageTemplate(
        "The bootstrap servers {servers} did not answer in time.",
        "Check that they are running and reachable from kafkadash's workers.",
    ),
    KafkaErrorCode.NO_LIVE_BROKER: MessageTemplate(
        "The bootstrap servers {servers} listed no registered broker.", "Check the brokers' logs."
    ),
    KafkaErrorCode.BROKER_NOT_LIVE: MessageTemplate(
        "Broker {broker} is fenced or not registered.", "Start the broker, or check its log."
    ),
    KafkaErrorCode.QUORUM_WITHOUT_LEADER: MessageTemplate("The controller quorum has no leader.", _QUORUM),
    KafkaErrorCode.NO_CONTROLLER: MessageTemplate(
        "The cluster has no active controller.", "Retry. If the error persists, check the brokers' logs."
    ),
    KafkaErrorCode.CONNECTION_RENEWED: MessageTemplate(
        "The connection was closed because its settings changed.", "The next request uses the new settings."
    ),
    KafkaErrorCode.CONNECTION_HUNG: MessageTemplate(
        "No answer within {seconds:g} s. kafkadash is reconnecting.", "Retry."
    ),
    KafkaErrorCode.CLOSED_WHILE_WAITING: MessageTemplate(
        "The connection to this cluster was closed before the answer.", "Retry."
    ),
    KafkaErrorCode.TURN_TOO_LATE: MessageTemplate("The time limit passed before this request was sent.", _LATER),
    KafkaErrorCode.CALL_FORBIDDEN: MessageTemplate(
        "Kafka refused {request}: the principal needs {permission} ({code}).", _GRANT
    ),
    KafkaErrorCode.CALL_UNSUPPORTED: MessageTemplate(
        "This cluster does not support {request} ({code}){said}.", _UPGRADE
    ),
    KafkaErrorCode.CALL_WITHOUT_CONTROLLER: MessageTemplate(
        "The active controller did not answer {request} ({code}){said}. The quorum may have no majority or no leader.",
        _QUORUM,
    ),
    KafkaErrorCode.CALL_FAILED: MessageTemplate(
        "Kafka answered {request} with {name} ({code}){said}.", "Retry. If the error persists, check the brokers' logs."
    ),
    KafkaErrorCode.ITEM_FORBIDDEN: MessageTemplate("{subject}: the principal needs {permission} ({code}).", _GRANT),
    KafkaErrorCode.ITEM_NOT_NOW: MessageTemplate("{subject}: {detail} ({code}).", _LATER),
    KafkaErrorCode.ITEM_REFUSED: MessageTemplate("{subject}: {detail} ({code}).", "Check the broker's log."),
    KafkaErrorCode.NOT_IN_ANSWER: MessageTemplate("{subject}: missing from Kafka's answer.", _LATER),
    KafkaErrorCode.ASSIGNMENT_UNREADABLE: MessageTemplate(
        "The assignment of member {member} in group {group} is not in the consumer protocol.",
        "Check the client of this member. Its offsets are shown.",
    ),
    KafkaErrorCode.NOT_KNOWN_THERE: MessageTemplate("{subject}: unknown to the broker.", _LATER),
    KafkaErrorCode.DIRECTORIES_HIDDEN: MessageTemplate(
        "Broker {broker} listed no log directories. The principal may lack {permission}.", _GRANT
    ),
    KafkaErrorCode.TOPICS_HIDDEN: MessageTemplate(
        "Describe on {which} is missing: Kafka hides these, so counts are too low.", _GRANT
    ),
    KafkaErrorCode.NOT_OFFERED: MessageTemplate("This broker does not support {what}.", _UPGRADE),
    KafkaErrorCode.NO_QUORUM_TO_DESCRIBE: MessageTemplate(
        "This cluster has no controller quorum: it runs with ZooKeeper, or Kafka older than 3.0.",
        "Migrate the cluster to KRaft to see the quorum. Topics and brokers are shown.",
    ),
    KafkaErrorCode.ANOTHER_QUORUM: MessageTemplate(
        "The controller addresses belong to the Kafka cluster {answered}, not to {expected}. Nothing was sent.",
        "Correct the controller addresses under Settings.",
    ),
    KafkaErrorCode.NO_LEADER_THERE: MessageTemplate(
        "None of the controller addresses is the quorum's leader.",
        "Check that the controllers are running and reachable from kafkadash's workers.",
    ),
    KafkaErrorCode.NOTHING_SENT: MessageTemplate("", "Nothing was sent: {why}"),
    KafkaErrorCode.LOST_LEADERSHIP: MessageTemplate(
        "The controller lost its leadership before it answered ({code}).", "The next refresh shows the result."
    ),
    KafkaErrorCode.CHANGE_NOT_IN_ANSWER: MessageTemplate(
        "{subject}: missing from Kafka's answer.", "The next refresh shows the result."
    ),
    # ZooKeeper
    KafkaErrorCode.OUTSIDE_NETWORKS: MessageTemplate(
        "{address} is not in KAFKA_NETWORKS.", "Correct the address, or allow its network."
    ),
    KafkaErrorCode.ZOOKEEPER_WITHOUT_QUORUM: MessageTemplate(
        "ZooKeeper at {address} ended the connection without an answer.",
        "Check that the ensemble has a quorum, and whether the port requires TLS.",
    ),
    KafkaErrorCode.ZOOKEEPER_LOST: MessageTemplate("ZooKeeper at {address} ended the connection.", _LATER),
    KafkaErrorCode.ZOOKEEPER_SLOW: MessageTemplate(
        "ZooKeeper at {address} did not answer in time.", "Check the server for overload, then retry."
    ),
    KafkaErrorCode.NOT_ZOOKEEPER: MessageTemplate(
        "{address} did not answer in ZooKeeper's protocol.", "Enter the client port of a ZooKeeper server."
    ),
    KafkaErrorCode.ZOOKEEPER_FAILED: MessageTemplate(
        "ZooKeeper at {address} answered with error {number}.", "Check the server's log, then retry."
    ),
    KafkaErrorCode.ZOOKEEPER_ANSWER_TOO_LARGE: MessageTemplate(
        "ZooKeeper at {address} sent more than {most} MB; kafkadash reads no more.", "Check the size of the znodes."
    ),
    KafkaErrorCode.ZOOKEEPER_WITHOUT_KAFKA: MessageTemplate(
        "ZooKeeper has no {path} at this address.", "Enter the path of zookeeper.connect behind the last port."
    ),
    KafkaErrorCode.ZOOKEEPER_OF_OTHER_CLUSTER: MessageTemplate(
        "ZooKeeper has the Kafka cluster {answered} there, not {expected}. Nothing of it is stored.",
        "Correct the ZooKeeper address under Settings.",
    ),
    KafkaErrorCode.ZNODE_PROTECTED: MessageTemplate(
        "An ACL protects {path} in ZooKeeper.",
        "Enter a ZooKeeper user (digest) or, with TLS, a client certificate that it allows. "
        "SASL to ZooKeeper is not supported.",
    ),
    KafkaErrorCode.ZNODE_CHANGED: MessageTemplate(
        "{path} in ZooKeeper changed before it was written.", "The next refresh shows the result."
    ),
    KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE: MessageTemplate(
        "ZooKeeper does not name Kafka's controller: the cluster migrates to KRaft, or elects a controller.",
        "Retry. During a migration kafkadash writes nothing to ZooKeeper.",
    ),
    KafkaErrorCode.BROKER_STARTED: MessageTemplate(
        "Broker {broker} has registered again.", "Its configuration is changed through the broker itself."
    ),
    KafkaErrorCode.ZNODE_MALFORMED: MessageTemplate(
        "{path} in ZooKeeper is not as Kafka writes it: {part}.", "Compare it with what Kafka's tools show."
    ),
}
