"""Clusters and roles under Settings, and which Kafka cluster answers"""

from kafkadash.domain.refusals.entry import Entry

NOBODY_NAMED = Entry("nobody-named", "", "Nobody was named: whose role is it?")
OWN_ROLE = Entry("own-role", "Nobody gives a role to himself.", "Ask another administrator to give it.")
NO_SUCH_ACCOUNT = Entry(
    "no-such-account",
    "There is no account called {name}.",
    "It is made on the server: manage.py user create {name}",
)
ACCOUNT_CLOSED = Entry("account-closed", "", "The account of {name} is closed: open it first.")
ROLE_UNKNOWN = Entry("role-unknown", "", "Choose a role, one of {roles}.")
END_PASSED = Entry("end-passed", "", "This has passed already: give a time that is to come, in UTC.")
NAME_TO_CONFIRM = Entry("name-to-confirm", "", "Type the name as it is written here, {cluster}, to remove it.")
LAST_ADMINISTRATOR = Entry(
    "last-administrator",
    "{name} is the last administrator {of} whose role does not run out.",
    "Give that role to somebody else first, without an end.",
)
IDENTITY_CHANGED = Entry(
    "identity-changed",
    "Behind the addresses of {cluster} answers the Kafka cluster {answered}, and not {expected} as before.",
    "Correct the addresses, or register the other cluster under a name of its own; nothing was stored.",
)
SAME_CLUSTER = Entry(
    "same-cluster",
    "{cluster} is the same Kafka cluster as {other}, which was registered first. {cluster} is not read, and read-only.",
    "Use {other}, and remove {cluster} under Settings.",
)
CLUSTER_UNKNOWN = Entry("cluster-unknown", "There is no cluster {slug}.", "Registered: {known}.")
CLUSTER_NAME_EMPTY = Entry(
    "cluster-name-empty", "", "A name needs at least one letter or digit, as it becomes part of the page's address."
)
CLUSTER_NAME_TOO_LONG = Entry(
    "cluster-name-too-long", "The name has {length} characters; 64 is the most.", "Shorten it."
)
CLUSTER_NAME_TAKEN = Entry(
    "cluster-name-taken",
    "A cluster called {name} is registered already.",
    "Choose another name, or change the settings of that one.",
)
CLUSTER_NAME_JUST_TAKEN = Entry(
    "cluster-name-just-taken",
    "A cluster called {name} has just been registered by somebody else.",
    "Choose another name, or look at that one under Settings.",
)
CLUSTER_NAME_TOO_ALIKE = Entry(
    "cluster-name-too-alike",
    "The name is too much like {other}: both would have the address {slug}.",
    "Choose another name.",
)
MECHANISM_NEEDED = Entry("mechanism-needed", "", "SASL needs a mechanism, one of {known}.")
LOGIN_NEEDED = Entry("login-needed", "", "SASL needs a user name and a password.")
SECRET_ENTERED_FOR_OTHER = Entry(
    "secret-entered-for-other",
    "The stored secret was entered for other settings. Changed since: {changed}.",
    "Type it again to use it with the new ones.",
)
PAIR_NEEDED = Entry(
    "pair-needed", "", "A client certificate and its private key belong together: give both or neither."
)
ROLE_NOT_LISTED = Entry(
    "role-not-listed",
    "That role is not among those given here: it was taken away meanwhile, or the page is old.",
    "The list shows who has which now.",
)
ROLE_TAKEN_MEANWHILE = Entry(
    "role-taken-meanwhile",
    "{name} is not {role} here any more: somebody took that role away meanwhile.",
    "Nothing is left to do.",
)
LAG_PATTERN_EMPTY = Entry(
    "lag-pattern-empty", "", "Name a group, or a pattern of names: * stands for any characters, ? for one."
)
LAG_PATTERN_TOO_LONG = Entry(
    "lag-pattern-too-long", "This has {length:,} characters; {most:,} fit.", "Shorten it: * stands for any characters."
)
LAG_PATTERN_NOT_PRINTABLE = Entry(
    "lag-pattern-not-printable",
    "Character {place} of this cannot be seen, so nobody could tell what is allowed.",
    "Type ? in its place.",
)
LAG_UNREADABLE = Entry("lag-unreadable", "", "Give a whole number of records, for example 10,000.")
LAG_NEGATIVE = Entry("lag-negative", "A lag is never negative.", "Give 0 or more records.")
LAG_TOO_LARGE = Entry("lag-too-large", "More than {most:,} records cannot be allowed.", "Give fewer.")
LAG_TOO_MANY_RULES = Entry(
    "lag-too-many-rules",
    "{cluster} has {most} rules already, and no more fit.",
    "Take one away, or use a pattern for several groups.",
)
LAG_RULE_GONE = Entry(
    "lag-rule-gone",
    "That rule is not there: it was taken away meanwhile, or the page is old.",
    "The list shows those that hold now.",
)
