"""What is looked for and is not there: verifications, plans and reassignments"""

from kafkadash.domain.refusals.entry import Entry

PLAN_OF_ANOTHER_FORMAT = Entry(
    "plan-of-another-format",
    "The plan has format {found}; this version reads format {own}.",
    "Make the plan again, or start the version that made it.",
)
PLAN_NOT_READABLE = Entry("plan-not-readable", "The stored plan cannot be read: {error}.", "Make the plan again.")
