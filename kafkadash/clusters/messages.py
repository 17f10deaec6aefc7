"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.clusters.errors import ClusterErrorCode as Code
from kafkadash.domain.messages import MessageTemplate

_KRAFT = "Move it to KRaft to see the rest."

CLUSTER_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Rights, and facts that are too old
    Code.READ_ONLY: MessageTemplate(
        "{cluster} is read-only in kafkadash: changes are neither proposed nor approved nor started on it.",
        "An administrator can allow them under Settings.",
    ),
    Code.NEEDS_ROLE: MessageTemplate(
        "On {cluster}, this needs the role {roles}.", "Ask an administrator of the cluster for it."
    ),
    Code.NO_SUCH_CLUSTER: MessageTemplate(
        "There is no cluster {slug} that you may view.",
        "Look at the list of clusters, or ask an administrator for the role viewer on it.",
    ),
    Code.NEEDS_ROLE_SOMEWHERE: MessageTemplate(
        "This needs the role {roles} on a cluster.", "Ask an administrator for it."
    ),
    Code.NEEDS_ROLE_EVERYWHERE: MessageTemplate(
        "This needs the role {roles} on all clusters.", "Ask an administrator for it."
    ),
    # Clusters and roles under Settings, and which Kafka cluster answers
    Code.NOBODY_NAMED: MessageTemplate("", "Nobody was named: whose role is it?"),
    Code.OWN_ROLE: MessageTemplate("Nobody gives a role to himself.", "Ask another administrator to give it."),
    Code.NO_SUCH_ACCOUNT: MessageTemplate(
        "There is no account called {name}.", "It is made on the server: manage.py user create {name}"
    ),
    Code.ACCOUNT_CLOSED: MessageTemplate("", "The account of {name} is closed: open it first."),
    Code.ROLE_UNKNOWN: MessageTemplate("", "Choose a role, one of {roles}."),
    Code.END_PASSED: MessageTemplate("", "This has passed already: give a time that is to come, in UTC."),
    Code.NAME_TO_CONFIRM: MessageTemplate("", "Type the name as it is written here, {cluster}, to remove it."),
    Code.LAST_ADMINISTRATOR: MessageTemplate(
        "{name} is the last administrator {of} whose role does not run out.",
        "Give that role to somebody else first, without an end.",
    ),
    Code.IDENTITY_CHANGED: MessageTemplate(
        "Behind the addresses of {cluster} answers the Kafka cluster {answered}, and not {expected} as before.",
        "Correct the addresses, or register the other cluster under a name of its own; nothing was stored.",
    ),
    Code.SAME_CLUSTER: MessageTemplate(
        "{cluster} is the same Kafka cluster as {other}, which was registered first. {cluster} is not read, and "
        "read-only.",
        "Use {other}, and remove {cluster} under Settings.",
    ),
    Code.CLUSTER_UNKNOWN: MessageTemplate("There is no cluster {slug}.", "Registered: {known}."),
    Code.CLUSTER_NAME_EMPTY: MessageTemplate(
        "", "A name needs at least one letter or digit, as it becomes part of the page's address."
    ),
    Code.CLUSTER_NAME_TOO_LONG: MessageTemplate("The name has {length} characters; 64 is the most.", "Shorten it."),
    Code.CLUSTER_NAME_TAKEN: MessageTemplate(
        "A cluster called {name} is registered already.", "Choose another name, or change the settings of that one."
    ),
    Code.CLUSTER_NAME_JUST_TAKEN: MessageTemplate(
        "A cluster called {name} has just been registered by somebody else.",
        "Choose another name, or look at that one under Settings.",
    ),
    Code.CLUSTER_NAME_TOO_ALIKE: MessageTemplate(
        "The name is too much like {other}: both would have the address {slug}.", "Choose another name."
    ),
    Code.MECHANISM_NEEDED: MessageTemplate("", "SASL needs a mechanism, one of {known}."),
    Code.LOGIN_NEEDED: MessageTemplate("", "SASL needs a user name and a password."),
    Code.SECRET_ENTERED_FOR_OTHER: MessageTemplate(
        "The stored secret was entered for other settings. Changed since: {changed}.",
        "Type it again to use it with the new ones.",
    ),
    Code.PAIR_NEEDED: MessageTemplate(
        "", "A client certificate and its private key belong together: give both or neither."
    ),
    Code.ROLE_NOT_LISTED: MessageTemplate(
        "That role is not among those given here: it was taken away meanwhile, or the page is old.",
        "The list shows who has which now.",
    ),
    Code.ROLE_TAKEN_MEANWHILE: MessageTemplate(
        "{name} is not {role} here any more: somebody took that role away meanwhile.", "Nothing is left to do."
    ),
    Code.LAG_PATTERN_EMPTY: MessageTemplate(
        "", "Name a group, or a pattern of names: * stands for any characters, ? for one."
    ),
    Code.LAG_PATTERN_TOO_LONG: MessageTemplate(
        "This has {length:,} characters; {most:,} fit.", "Shorten it: * stands for any characters."
    ),
    Code.LAG_PATTERN_NOT_PRINTABLE: MessageTemplate(
        "Character {place} of this cannot be seen, so nobody could tell what is allowed.", "Type ? in its place."
    ),
    Code.LAG_UNREADABLE: MessageTemplate("", "Give a whole number of records, for example 10,000."),
    Code.LAG_NEGATIVE: MessageTemplate("A lag is never negative.", "Give 0 or more records."),
    Code.LAG_TOO_LARGE: MessageTemplate("More than {most:,} records cannot be allowed.", "Give fewer."),
    Code.LAG_TOO_MANY_RULES: MessageTemplate(
        "{cluster} has {most} rules already, and no more fit.", "Take one away, or use a pattern for several groups."
    ),
    Code.LAG_RULE_GONE: MessageTemplate(
        "That rule is not there: it was taken away meanwhile, or the page is old.",
        "The list shows those that hold now.",
    ),
    # Connections: addresses, names and ports, certificates, stored secrets
    Code.PROTOCOL_IN_FRONT: MessageTemplate(
        "", "{item} has a protocol in front: enter only host:port, the protocol is chosen separately."
    ),
    Code.BRACKETS_WRONG: MessageTemplate("", "{item} is not an address: write an IPv6 address as [address]:port."),
    Code.BRACKETS_MISSING: MessageTemplate("", "{item} looks like an IPv6 address: write it as [address]:port."),
    Code.PORT_MISSING: MessageTemplate("", "{item} has no port: write it as host:port, for example {item}:9092."),
    Code.PORT_WRONG: MessageTemplate("", "{item} has the port {port}: a port is a number from 1 to 65535."),
    Code.IPV6_WRONG: MessageTemplate("{item} has no valid IPv6 address between its brackets.", "Correct it there."),
    Code.HOST_WRONG: MessageTemplate("{item} has no valid host name in front of its port.", "Correct it there."),
    Code.IPV4_WRONG: MessageTemplate("{item} has no valid IPv4 address in front of its port.", "Correct it there."),
    Code.ADDRESS_TWICE: MessageTemplate("{item} is there twice.", "Take one of them out."),
    Code.NO_ADDRESS: MessageTemplate("No address was given.", "Give that of at least one broker, as host:port."),
    Code.SECRET_UNREADABLE: MessageTemplate(
        "A stored secret cannot be read with the keys in FIELD_KEYS.",
        "Put back the key it was written with (behind the new one), or enter the secret again.",
    ),
    Code.SECRET_MEANT_FOR_OTHER: MessageTemplate(
        "A stored secret was entered for other settings, and is not used. Changed since: {changed}.",
        "See in the audit who changed them, and enter the secret again if they are right.",
    ),
    Code.NO_KEYS: MessageTemplate(
        "FIELD_KEYS is not set, so secrets can be neither stored nor read.", "Set it to a key made with `{command}`."
    ),
    Code.KEY_MALFORMED: MessageTemplate(
        "A key in FIELD_KEYS is malformed: each is 32 bytes in URL-safe base64.", "Make one with `{command}`."
    ),
    Code.FIT_NO_KEY: MessageTemplate(
        "These fit none of the keys and were left as they are: {names}.", "Put their key back, or enter them again."
    ),
    # Clusters that do not answer, and what a connection test finds
    Code.OTHER_CLUSTER: MessageTemplate(
        "The address of {cluster} now leads to the Kafka cluster {answered}, not to {expected} as before. Nothing of "
        "the other one is stored.",
        "Correct the address, or register the other cluster under a name of its own.",
    ),
    Code.NOT_LOOKED_AT: MessageTemplate(
        "{silent}: no worker looks at this cluster.",
        "See that beat runs, and a worker for the queues tick and collect.",
    ),
    Code.TRIED_LESS_OFTEN: MessageTemplate(
        "It is tried less and less often, next at {when} UTC.", "New settings are tried at once."
    ),
    Code.NOT_TRIED_ANY_MORE: MessageTemplate(
        "After {times} refusals it is not tried any more.",
        "Correct the settings, or disable and enable the cluster when the other side was mended.",
    ),
    Code.WITH_ZOOKEEPER: MessageTemplate(
        "This cluster keeps its metadata in ZooKeeper, which kafkadash does not support yet: topics and brokers are "
        "shown, the controller and its quorum are not.",
        _KRAFT,
    ),
    # Signing in, accounts and passwords
    Code.NO_SUCH_USER: MessageTemplate(
        "There is no user called {name}.", "See who there is with `manage.py user list`."
    ),
    Code.NO_ROLE_TO_TAKE: MessageTemplate(
        "{name} has no role {role} {where}.", "See who has which with `manage.py user list`."
    ),
    Code.DATE_UNREADABLE: MessageTemplate(
        "{text} is no time.", "Write it like 2027-01-31 or 2027-01-31T18:00, in UTC."
    ),
    Code.DATE_GONE_BY: MessageTemplate("{text} has passed already.", "Give a time that is to come, in UTC."),
    Code.SECRET_NOT_READ: MessageTemplate(
        "The {what} could not be read from {source}: {fault}.", "Name a file that can be read, or - for standard input."
    ),
    Code.NO_SECRET_GIVEN: MessageTemplate("There is no {what} in {source}.", "Put it there, alone."),
}
