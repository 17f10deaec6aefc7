"""Signing in, accounts and passwords"""

from kafkadash.domain.refusals.entry import Entry

SIGN_IN_WRONG = Entry(
    "sign-in-wrong",
    "The name or the password is wrong.",
    "Try again; if the password is lost, an administrator can set a new one on the server.",
)
SIGN_IN_TOO_OFTEN = Entry(
    "sign-in-too-often",
    "There were too many wrong tries to sign in with this name.",
    "Wait five minutes, then try again.",
)
ACCOUNT_IS_CLOSED = Entry(
    "account-is-closed", "This account is closed.", "An administrator of kafkadash can open it again."
)
PASSWORD_WRONG = Entry("password-wrong", "This is not your current password.", "Type it again.")
PASSWORD_REFUSED = Entry("password-refused", "{why}", "Choose another password.")
PASSWORD_TOO_PLAIN = Entry(
    "password-too-plain",
    "A few characters repeat in it, or follow each other.",
    "Use at least {fewest} different ones, in no simple order.",
)
ACCOUNT_NAME_REFUSED = Entry("account-name-refused", "{why}", "Choose another name.")
ACCOUNT_NAME_TAKEN = Entry(
    "account-name-taken", "There is a user called {name} already.", "Choose another name, or give that user the role."
)
NO_SUCH_USER = Entry("no-such-user", "There is no user called {name}.", "See who there is with `manage.py user list`.")
NO_ROLE_TO_TAKE = Entry(
    "no-role-to-take", "{name} has no role {role} {where}.", "See who has which with `manage.py user list`."
)
DATE_UNREADABLE = Entry(
    "date-unreadable", "{text} is no time.", "Write it like 2027-01-31 or 2027-01-31T18:00, in UTC."
)
DATE_GONE_BY = Entry("date-gone-by", "{text} has passed already.", "Give a time that is to come, in UTC.")
SECRET_NOT_READ = Entry(
    "secret-not-read",
    "The {what} could not be read from {source}: {fault}.",
    "Name a file that can be read, or - for standard input.",
)
NO_SECRET_GIVEN = Entry("no-secret-given", "There is no {what} in {source}.", "Put it there, alone.")
