"""How much of each part of the proof is asked for."""

from __future__ import annotations

from dataclasses import dataclass

ROUNDS = 3
MINUTES = 10.0


@dataclass(frozen=True, slots=True)
class Extent:
    """``rounds``: how often everything of a part is done; ``minutes``: how long people work (part "crowd")."""

    rounds: int = ROUNDS
    minutes: float = MINUTES
