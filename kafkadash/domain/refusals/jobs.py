"""Work that a worker does for a page or a command"""

from kafkadash.domain.refusals.entry import Entry

TOOK_TOO_LONG = Entry(
    "took-too-long",
    "This took longer than the {seconds} s it may take.",
    "Ask for it again; if that goes on, see whether the brokers answer and the workers keep up.",
)
CRASHED = Entry(
    "crashed",
    "kafkadash could not do this because of a fault of its own.",
    "The log of the worker says more; report what it says.",
)
WITHOUT_CLUSTER = Entry(
    "without-cluster", "The cluster is not registered any more.", "Register it again, then ask for this once more."
)
VERIFIER_TOOK_TOO_MUCH = Entry(
    "verifier-took-too-much",
    "To read this file takes more memory or more of a processor than one verification may take.",
    "Split it into smaller files, and verify them one after another.",
)
VERIFIER_FAILED = Entry(
    "verifier-failed",
    "The process that verifies ended with a fault of its own (exit code {code}).",
    "The log of the worker has the details; report them.",
)
NO_SUCH_TEST = Entry(
    "no-such-test",
    "There is no such connection test, or it was so long ago that it is forgotten.",
    "Test the connection again under Settings.",
)
TEST_FOR_ADMINISTRATORS = Entry(
    "test-for-administrators",
    "Only an administrator of that cluster may see this test.",
    "Ask one of them, or for the role admin on it.",
)
ASKED_BY_ANOTHER = Entry(
    "asked-by-another",
    "This was asked for by {who}, so only that person or an administrator of the cluster may stop it.",
    "Ask one of them, or let it end.",
)
LOST_WORKER = Entry(
    "lost-worker",
    "The worker that ran this stopped in the middle of it. Nothing further was written.",
    "Start it again.",
)
CHANGE_KIND_UNKNOWN = Entry(
    "change-kind-unknown",
    "This version of kafkadash knows no kind of change called {name!r}.",
    "Use the version that made it.",
)
KIND_UNKNOWN = Entry(
    "kind-unknown",
    "The worker knows no kind of job called {name!r}.",
    "Start the workers of the version that asked for it, then ask again.",
)
