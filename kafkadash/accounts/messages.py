"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.accounts.errors import AccountErrorCode as Code
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.messages import MessageTemplate

ACCOUNT_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Signing in, accounts and passwords
    Code.SIGN_IN_WRONG: MessageTemplate(
        "The name or the password is wrong.",
        "Try again; if the password is lost, an administrator can set a new one on the server.",
    ),
    Code.SIGN_IN_TOO_OFTEN: MessageTemplate(
        "There were too many wrong tries to sign in with this name.", "Wait five minutes, then try again."
    ),
    Code.SESSION_IDLE: MessageTemplate("The session was idle for too long.", "Sign in again."),
    Code.ACCOUNT_IS_CLOSED: MessageTemplate(
        "This account is closed.", "An administrator of kafkadash can open it again."
    ),
    Code.PASSWORD_WRONG: MessageTemplate("This is not your current password.", "Type it again."),
    Code.PASSWORD_REFUSED: MessageTemplate("{why}", "Choose another password."),
    Code.PASSWORD_TOO_PLAIN: MessageTemplate(
        "A few characters repeat in it, or follow each other.",
        "Use at least {fewest} different ones, in no simple order.",
    ),
    Code.ACCOUNT_NAME_REFUSED: MessageTemplate("{why}", "Choose another name."),
    Code.ACCOUNT_NAME_TAKEN: MessageTemplate(
        "There is a user called {name} already.", "Choose another name, or give that user the role."
    ),
    # Pages that cannot be shown, requests that are not taken, and the database away
    Code.REQUEST_MALFORMED: MessageTemplate(
        "This request cannot be understood.",
        "Something in its address or its form is not as it should be. Go back and try again from the page.",
    ),
    Code.NOT_INCLUDED: MessageTemplate("Your role does not include it.", "An administrator can give the role."),
    Code.FORM_TOO_OLD: MessageTemplate(
        "This form is too old, or cookies are blocked.",
        "Nothing was changed. Go back, load the page again and send it once more; kafkadash needs its cookies "
        "for that.",
    ),
    Code.PAGE_MISSING: MessageTemplate(
        "The page does not exist, or you have no role on the cluster it is about. Reassignments that ended are kept "
        "for a limited time.",
        "Go to the status board, or ask an administrator for a role on the cluster.",
    ),
    Code.TOO_MANY_REQUESTS: MessageTemplate("Too many requests came from here.", "Wait a minute, then try again."),
    Code.PAGE_CRASHED: MessageTemplate(
        "What you asked for could not be shown; nothing was changed in any cluster by this page.",
        "The fault was logged on the server. Try again; if it stays, report what the log says.",
    ),
    Code.DATABASE_AWAY: MessageTemplate(
        "kafkadash cannot reach its database.",
        "It comes back by itself, and this page with it: it looks again every {seconds} seconds.",
    ),
    Code.DATABASE_AWAY_FORM: MessageTemplate(
        "kafkadash cannot reach its database.",
        "It comes back by itself, and this page says so: it looks again every {seconds} seconds.",
    ),
    Code.DATABASE_AWAY_PART: MessageTemplate(
        "kafkadash cannot reach its database.", "It comes back by itself: this looks again every {seconds} seconds."
    ),
    Code.DATABASE_AWAY_ASKED: MessageTemplate(
        "kafkadash cannot reach its database. What you asked for has probably not been stored.",
        "Load the page again when it is back.",
    ),
    Code.FORM_KEPT: MessageTemplate(
        "What you sent has probably not been stored.",
        "Nothing that you typed is lost: it is kept on this page. Send it again when the database answers.",
    ),
    Code.FORM_NOT_KEPT: MessageTemplate(
        "What you sent has probably not been stored.",
        "Go back in your browser and send it again when the database answers; a password or a file has to be given "
        "once more.",
    ),
    Code.DATABASE_BACK: MessageTemplate("", "The database answers again: send it now."),
    Code.WATCHES_TOO_MUCH: MessageTemplate("", "Ask for 1 to {most} keys."),
}

REQUEST_MESSAGES: Mapping[RequestErrorCode, MessageTemplate] = {
    RequestErrorCode.CHOICE_UNKNOWN: MessageTemplate(
        "There is no {noun} “{asked}”; it is left out.", "There are: {known}."
    ),
    RequestErrorCode.COLUMN_UNKNOWN: MessageTemplate(
        "The list cannot be sorted by “{column}”; it is sorted by {instead}.", "Columns: {columns}."
    ),
    RequestErrorCode.BODY_TOO_LARGE: MessageTemplate(
        "This is more than kafkadash takes at once.", "Go back and send less."
    ),
}
