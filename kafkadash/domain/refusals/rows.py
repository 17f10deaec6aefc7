"""A run as a whole: why nothing of it is submitted, or why it failed"""

from kafkadash.domain.refusals.entry import Entry

ALL_REFUSED = Entry("all-refused", "Kafka refused {rows}, all there are: {why}", "Propose it anew when that is mended.")
BRAKE = Entry(
    "brake",
    "{partitions} under min-ISR, and no broker is away that would explain it.",
    "Nothing is submitted but what repairs it. If the moves are what holds it up, cancel the run.",
)
THROTTLE_REMOVED = Entry(
    "throttle-removed",
    "Somebody else keeps removing our throttle ({places}).",
    "It is set again {again} after the last time; until then nothing is submitted.",
)
THROTTLE_MISSING = Entry(
    "throttle-missing",
    "Somebody else removed our throttle ({places}).",
    "It is set again when the next look finds the same; until then nothing is submitted.",
)
PAUSED = Entry("paused", "It is paused; what is in flight goes on.", "Resume it to have the rest submitted.")
WINDOW_CLOSED = Entry(
    "run-window-closed", "The window is closed.", "What is in flight goes on; cancel the run to end it."
)
LOOK_TOO_OLD = Entry(
    "look-too-old", "The cluster was read {age} ago, too long to act on.", "The next look is under way."
)
OTHER_TOPICS_NEVER_READ = Entry(
    "other-topics-never-read",
    "The other topics of the cluster were never read, so nobody can tell whether a move would harm them.",
    "See on the overview of the cluster why they are not read.",
)
OTHER_TOPICS_READ_LONG_AGO = Entry(
    "other-topics-read-long-ago",
    "The other topics were read {age} ago; nobody can tell whether another move would harm them.",
    "See on the overview of the cluster why they are not read.",
)
STEP_FAILED = Entry(
    "step-failed",
    "This step failed inside of kafkadash; the log of the worker says more.",
    "It is tried again by itself; if that goes on, report what the log says.",
)
ANOTHER_CLUSTER = Entry(
    "another-cluster",
    "The address of {cluster} now leads to the Kafka cluster {answered}, and not to {expected}. Nothing of this run "
    "is done there.",
    "Give the cluster its own addresses again under Settings.",
)
