"""How long a step may take: a worker that is told to stop has ended it within 20 s, whatever the cluster does."""

from __future__ import annotations

import time

STEP_S = 15.0
"""No call is begun later than this after the step was, in seconds."""
CALL_S = 4.0
"""Deadline of a call that changes something, and of the ledger's reads, in seconds."""
_LEAST_S = 0.1


class Budget:
    """Begins with the step."""

    def __init__(self) -> None:
        self._until = time.monotonic() + STEP_S

    @property
    def left(self) -> float:
        """Seconds; none where it is 0 or less."""
        return self._until - time.monotonic()

    def reading(self, most: float) -> float:
        """The deadline of a question that is asked now: ``most`` seconds, or what is left.

        A moment where nothing is left: what is not answered in it counts as not known, as of a broker that is silent.
        """
        return max(_LEAST_S, min(most, self.left))
