"""What the author of a reassignment asks for: ``ChangeRequest.input`` of the kind "reassignment", and its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from kafkadash.domain.plan import Options
from kafkadash.domain.wording import listed

DRAIN, EXPLICIT, ROLLBACK = "drain", "explicit", "rollback"
MODES = (DRAIN, EXPLICIT)
"""What is chosen in the wizard; a rollback is proposed from the run that it takes back."""
DISK_LIMIT = 0.8
LONGEST_TITLE = 200
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """``brokers`` are to be drained; ``upload`` is the sha256 of the stored JSON of an explicit assignment, '' before.

    ``disk_limit`` (0 to 1 of each disk) bounds where replicas may go. ``name`` of the file, for titles only.
    ``ignore_racks`` and ``accept_fewer_racks`` (as in ``DrainRequest``) are for drains, ``change_rf`` is for
    explicit assignments. ``of`` is the number of the request that a rollback takes back, ``since`` when its run ended
    (ISO 8601): facts from before do not show what it did.
    """

    mode: str
    brokers: tuple[int, ...] = ()
    upload: str = ""
    name: str = ""
    ignore_racks: bool = False
    accept_fewer_racks: bool = False
    change_rf: bool = False
    disk_limit: float = DISK_LIMIT
    of: int = 0
    since: str = ""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Asked:
        return cls(**{**stored, "brokers": tuple(stored["brokers"])})

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "brokers": list(self.brokers)}

    @property
    def complete(self) -> bool:
        """There is something to plan."""
        return bool({DRAIN: self.brokers, ROLLBACK: self.of}.get(self.mode, self.upload))

    @property
    def title(self) -> str:
        """What the change does, as it is called until somebody gives it another name."""
        if self.mode == DRAIN:
            return f"Drain {broker_names(self.brokers)}" if self.brokers else "Drain brokers"
        if self.mode == ROLLBACK:
            return f"Rollback of #{self.of}"
        return f"Reassign as in {self.name}"[:LONGEST_TITLE] if self.name else "Reassign as given"

    @property
    def sentence(self) -> str:
        """What is to be done, in full, for whoever decides about it."""
        if self.mode == DRAIN:
            return f"Move every replica off {broker_names(self.brokers)}. Nothing else moves."
        if self.mode == ROLLBACK:
            return (
                f"Give the partitions that #{self.of} moved their original replicas back, in their original order. "
                "Nothing else moves."
            )
        brought = self.name or "the JSON that was brought"
        return f"Give the partitions named in {brought} the replicas that stand there. Nothing else moves."

    @property
    def words(self) -> str:
        """Beside the first step of the wizard; '' while nothing is asked for."""
        if self.mode == DRAIN:
            shown = ", ".join(map(str, self.brokers[:_MOST_NAMED]))
            more = len(self.brokers) - _MOST_NAMED
            return f"drain {shown}{f' and {more} more' if more > 0 else ''}" if self.brokers else ""
        if self.mode == ROLLBACK:
            return f"take #{self.of} back"
        return (self.name or "pasted") if self.upload else ""


def broker_names(brokers: Sequence[int]) -> str:
    """ "broker 3", "brokers 3 and 7", "brokers 1, 2, … (40 of them)"."""
    if len(brokers) == 1:
        return f"broker {brokers[0]}"
    if len(brokers) <= _MOST_NAMED:
        return f"brokers {listed([str(b) for b in brokers])}"
    return f"brokers {', '.join(map(str, brokers[:_MOST_NAMED]))}, … ({len(brokers)} of them)"


def options_of(stored: Mapping[str, Any]) -> Options | None:
    """``ChangeRequest.options`` of the kind; None before the limits were given."""
    if not stored:
        return None
    return Options(**{field.name: stored[field.name] for field in fields(Options) if field.name in stored})


def options_json(options: Options, asked: Asked) -> dict[str, Any]:
    """As they are stored: with the disk limit, for the pages; the digest covers ``Options.as_json`` alone."""
    return {**asdict(options), "disk_limit_percent": round(100 * asked.disk_limit, 2)}
