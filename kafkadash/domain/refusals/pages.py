"""Pages that cannot be shown, requests that are not taken, and the database away"""

from kafkadash.domain.refusals.entry import Entry

BODY_TOO_LARGE = Entry("body-too-large", "This is more than kafkadash takes at once.", "Go back and send less.")
WATCHES_TOO_MUCH = Entry("watches-too-much", "", "Ask for 1 to {most} keys.")
