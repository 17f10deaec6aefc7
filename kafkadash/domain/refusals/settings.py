"""Roles, and which Kafka cluster answers"""

from kafkadash.domain.refusals.entry import Entry

NOBODY_NAMED = Entry("nobody-named", "", "Nobody was named: whose role is it?")
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
