"""Why no plan was made"""

from kafkadash.domain.refusals.entry import Entry

REPORT = "Nothing of it was stored; report it with what was asked for."
"""What to do about a plan with a fault of its own, whatever it is."""

PLANNER_OUT_OF_MEMORY = Entry(
    "planner-out-of-memory",
    "Planning this needs more than {most:.1f} GB of memory, the limit for one plan.",
    "Split it into smaller changes, or raise the limit.",
)
