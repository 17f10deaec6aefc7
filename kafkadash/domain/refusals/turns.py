"""Why a queued run does not begin"""

from kafkadash.domain.refusals.entry import Entry

NOT_WATCHED = Entry(
    "not-watched",
    "{cluster} is not watched now, so nobody can tell whether it is well.",
    "Enable it under Settings.",
)
WINDOW_CLOSED = Entry("window-closed", "Its window is not open.", "It begins by itself when the window opens.")
NOT_READ_LATELY = Entry(
    "not-read-lately",
    "The {facts} were not read lately, so nobody can tell whether the cluster is well.",
    "See on its overview why they are not read.",
)
QUORUM_SILENT = Entry(
    "quorum-silent", "The controller quorum does not answer.", "See the controllers on the page of the quorum."
)
LISTING_UNREAD = Entry(
    "listing-unread",
    "The reassignments in flight could not be read.",
    "See that the controllers answer, and that the principal may Describe the cluster.",
)
TOPICS_UNREAD = Entry(
    "topics-unread",
    "Nothing was told about {many}: {topics}.",
    "See that the principal may Describe them.",
)
LOOKED_ONCE_MORE = Entry(
    "looked-once-more",
    "Looked at once more: {first}",
    "If that says the same, the change turns stale and needs a new plan.",
)
LACKS_PERMISSION = Entry(
    "lacks-permission", "The principal needs {permissions}.", "Grant it in Kafka; the run then begins by itself."
)
