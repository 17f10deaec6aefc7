"""Rack violations in words."""

from __future__ import annotations

from kafkadash.domain.rack_spread import Spread
from kafkadash.domain.wording import count


def fix_words(spread: Spread) -> str:
    """What makes this partition even: "needs one more rack", "2 moves fix it"."""
    if spread.missing == spread.moves == 1:
        return "needs one more rack"
    if spread.missing == spread.moves:
        return f"needs {spread.missing} more racks"
    return moves_words(spread.moves)


def moves_words(moves: int) -> str:
    return f"{count(moves, 'move')} {'fixes' if moves == 1 else 'fix'} it"
