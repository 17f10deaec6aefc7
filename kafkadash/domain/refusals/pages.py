"""Pages that cannot be shown, requests that are not taken, and the database away"""

from kafkadash.domain.refusals.entry import Entry

REQUEST_MALFORMED = Entry(
    "request-malformed",
    "This request cannot be understood.",
    "Something in its address or its form is not as it should be. Go back and try again from the page.",
)
NOT_INCLUDED = Entry("not-included", "Your role does not include it.", "An administrator can give the role.")
FORM_TOO_OLD = Entry(
    "form-too-old",
    "This form is too old, or cookies are blocked.",
    "Nothing was changed. Go back, load the page again and send it once more; kafkadash needs its cookies for that.",
)
PAGE_MISSING = Entry(
    "page-missing",
    "The page does not exist, or you have no role on the cluster it is about. Reassignments that ended are kept for a "
    "limited time.",
    "Go to the status board, or ask an administrator for a role on the cluster.",
)
BODY_TOO_LARGE = Entry("body-too-large", "This is more than kafkadash takes at once.", "Go back and send less.")
WATCHES_TOO_MUCH = Entry("watches-too-much", "", "Ask for 1 to {most} keys.")
TOO_MANY_REQUESTS = Entry("too-many-requests", "Too many requests came from here.", "Wait a minute, then try again.")
PAGE_CRASHED = Entry(
    "page-crashed",
    "What you asked for could not be shown; nothing was changed in any cluster by this page.",
    "The fault was logged on the server. Try again; if it stays, report what the log says.",
)
DATABASE_AWAY = Entry(
    "database-away",
    "kafkadash cannot reach its database.",
    "It comes back by itself, and this page with it: it looks again every {seconds} seconds.",
)
DATABASE_AWAY_FORM = Entry(
    "database-away-form",
    "kafkadash cannot reach its database.",
    "It comes back by itself, and this page says so: it looks again every {seconds} seconds.",
)
DATABASE_AWAY_PART = Entry(
    "database-away-part",
    "kafkadash cannot reach its database.",
    "It comes back by itself: this looks again every {seconds} seconds.",
)
DATABASE_AWAY_ASKED = Entry(
    "database-away-asked",
    "kafkadash cannot reach its database. What you asked for has probably not been stored.",
    "Load the page again when it is back.",
)
FORM_KEPT = Entry(
    "form-kept",
    "What you sent has probably not been stored.",
    "Nothing that you typed is lost: it is kept on this page. Send it again when the database answers.",
)
FORM_NOT_KEPT = Entry(
    "form-not-kept",
    "What you sent has probably not been stored.",
    "Go back in your browser and send it again when the database answers; a password or a file has to be given once "
    "more.",
)
DATABASE_BACK = Entry("database-back", "", "The database answers again: send it now.")
