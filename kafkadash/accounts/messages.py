"""Texts of this app's codes (``errors``): what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.accounts.errors import AccountErrorCode as Code
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.messages import MessageTemplate

ACCOUNT_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Signing in, accounts and passwords
    Code.SIGN_IN_WRONG: MessageTemplate(
        "The name or the password is wrong.",
        "Try again. An administrator can set a new password on the server.",
    ),
    Code.SIGN_IN_TOO_OFTEN: MessageTemplate(
        "Too many failed sign-ins with this name.", "Wait 5 minutes, then try again."
    ),
    Code.SESSION_IDLE: MessageTemplate("The session expired because it was idle.", "Sign in again."),
    Code.ACCOUNT_IS_CLOSED: MessageTemplate("This account is closed.", "Ask an administrator to reopen it."),
    Code.PASSWORD_WRONG: MessageTemplate("The current password is wrong.", "Enter it again."),
    Code.PASSWORD_REFUSED: MessageTemplate("{why}", "Choose another password."),
    Code.PASSWORD_TOO_PLAIN: MessageTemplate(
        "The password repeats a few characters, or is a simple sequence.",
        "Use at least {fewest} different characters in no simple order.",
    ),
    Code.NO_PASSWORD: MessageTemplate(
        "Your account has no password.", "An administrator can set one on the server, if you need it."
    ),
    Code.ACCOUNT_NAME_REFUSED: MessageTemplate("{why}", "Choose another name."),
    Code.ACCOUNT_NAME_TAKEN: MessageTemplate(
        "The user {name} already exists.", "Choose another name, or grant that user the role."
    ),
    # Pages that cannot be shown, rejected requests, and the unavailable database
    Code.REQUEST_MALFORMED: MessageTemplate(
        "The address or the form of this request is invalid.", "Go back to the page and try again."
    ),
    Code.NOT_INCLUDED: MessageTemplate("Your role does not allow this.", "Ask an administrator for the role."),
    Code.FORM_TOO_OLD: MessageTemplate(
        "This form expired, or cookies are blocked. Nothing was changed.",
        "Allow cookies for kafkadash, go back, reload the page and submit the form again.",
    ),
    Code.PAGE_MISSING: MessageTemplate(
        "The page does not exist, or you have no role on its cluster. Ended reassignments are kept for a limited time.",
        "Go to the status board, or ask an administrator for a role on the cluster.",
    ),
    Code.TOO_MANY_REQUESTS: MessageTemplate("Your address sent too many requests.", "Wait a minute, then try again."),
    Code.PAGE_CRASHED: MessageTemplate(
        "The page could not be shown. It changed nothing in any cluster.",
        "Try again. If the error persists, report it with the server's log.",
    ),
    Code.DATABASE_AWAY: MessageTemplate(
        "kafkadash cannot reach its database.",
        "This page retries every {seconds} seconds and reloads when the database answers.",
    ),
    Code.DATABASE_AWAY_FORM: MessageTemplate(
        "kafkadash cannot reach its database.",
        "This page retries every {seconds} seconds and shows when the database answers.",
    ),
    Code.DATABASE_AWAY_PART: MessageTemplate(
        "kafkadash cannot reach its database.", "This panel retries every {seconds} seconds."
    ),
    Code.DATABASE_AWAY_ASKED: MessageTemplate(
        "kafkadash cannot reach its database. Your request was probably not stored.",
        "Reload the page when the database answers, and check.",
    ),
    Code.FORM_KEPT: MessageTemplate(
        "Your form was probably not stored.",
        "This page keeps your entries. Submit them again when the database answers.",
    ),
    Code.FORM_NOT_KEPT: MessageTemplate(
        "Your form was probably not stored.",
        "When the database answers, go back and submit it again. Enter passwords and choose files again.",
    ),
    Code.DATABASE_BACK: MessageTemplate("The database answers again.", "Submit the form now."),
    Code.WATCHES_TOO_MUCH: MessageTemplate("", "Request 1 to {most} keys."),
}

REQUEST_MESSAGES: Mapping[RequestErrorCode, MessageTemplate] = {
    RequestErrorCode.TIME_ZONE_UNKNOWN: MessageTemplate("Unknown time zone.", "Enter one such as Europe/Berlin."),
    RequestErrorCode.CHOICE_UNKNOWN: MessageTemplate("Unknown {noun} “{asked}”, ignored.", "Use one of: {known}."),
    RequestErrorCode.COLUMN_UNKNOWN: MessageTemplate(
        "The list cannot be sorted by “{column}”. It is sorted by {instead}.", "Use one of: {columns}."
    ),
    RequestErrorCode.BODY_TOO_LARGE: MessageTemplate("The request is too large.", "Go back and send less."),
}
