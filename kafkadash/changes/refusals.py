"""Why something is not done with a change request."""

from __future__ import annotations

from kafkadash.domain.errors import UserError


class Refused(UserError):
    """``str()`` is a sentence that a person can act on. Nothing was written."""


class Changed(Refused):
    """The request is not what the person saw any more; the sentence says who changed it, how and when."""


class EditedMeanwhile(Changed):
    """The draft has another version than the one that was open; what was entered is not stored."""
