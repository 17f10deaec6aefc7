"""One row of a run as its pages show it: its figures, its words, and what can be done about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from kafkadash.domain.executor_state import BEFORE, ENDED, IN_FLIGHT, State
from kafkadash.domain.messages import reason_text
from kafkadash.domain.run_progress import Cause, Mark, RowNow
from kafkadash.domain.run_stuck import Fix, fixes
from kafkadash.domain.stuck_reasons import StuckReason
from kafkadash.domain.wording import long_duration
from kafkadash.reassign.models import Deed, Move, MoveState
from kafkadash.reassign.run.stuck_messages import SENTENCES, SHORTLY

_ENDED_STATES = {
    State.DONE: "ok",
    State.FAILED: "critical",
    State.SKIPPED: "warning",
    State.SUPERSEDED: "warning",
    State.TOPIC_DELETED: "warning",
}
_LATE = timedelta(seconds=30)
"""A time of completion that is over for so long was wrong, or its figures are old."""


@dataclass(frozen=True, slots=True)
class RowAction:
    """What can be done about a row: a link from the page of the run to where it is asked for."""

    words: str
    href: str


@dataclass(frozen=True, slots=True)
class RowShown:
    """A row at ``now`` of the run of #``number``; ``seen`` are its figures of the last step while it is in flight, None
    where there are none. ``explained``: its cause and what can be done stand below it, if there is something. ``away``:
    brokers that the last look of the run did not see alive.
    """

    move: Move
    seen: RowNow | None
    now: datetime
    number: int
    explained: bool = False
    away: frozenset[int] = frozenset()

    @property
    def state(self) -> State:
        return State(self.move.state)

    @property
    def in_flight(self) -> bool:
        return self.state in IN_FLIGHT

    @property
    def waits(self) -> bool:
        return self.state in BEFORE

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def name(self) -> str:
        return f"{self.move.topic}-{self.move.partition}"

    @property
    def adding(self) -> list[int]:
        return [broker for broker in self.move.target if broker not in self.move.current]

    @property
    def removing(self) -> list[int]:
        return [broker for broker in self.move.current if broker not in self.move.target]

    @property
    def copies(self) -> bool:
        return bool(self.adding)

    @property
    def from_words(self) -> str:
        if self.removing:
            return _ids(self.removing)
        return "none leaves" if self.copies else _ids(self.move.current)

    @property
    def to_words(self) -> str:
        if self.copies:
            return _ids(self.adding)
        return "none new" if self.removing else _ids(self.move.target)

    @property
    def source(self) -> int | None:
        return self.seen.source if self.in_flight and self.seen else None

    @property
    def percent(self) -> float | None:
        """Of its records; of a row that is done, all."""
        if self.state is State.DONE and self.copies:
            return 100.0
        return self.seen.percent if self.in_flight and self.seen else None

    @property
    def sampled_at(self) -> datetime | None:
        """When the replicas behind its percent were asked, while it is in flight."""
        return self.seen.sampled_at if self.in_flight and self.seen and self.seen.percent is not None else None

    @property
    def estimate(self) -> str:
        return self.seen.estimate if self.in_flight and self.seen else ""

    @property
    def size_bytes(self) -> int | None:
        """Of all copies that it makes."""
        if self.in_flight and self.seen and self.seen.size_bytes is not None:
            return self.seen.size_bytes
        return None if self.move.size_bytes is None else self.move.size_bytes * len(self.adding)

    @property
    def moved_bytes(self) -> int | None:
        if self.ended:
            return self.move.moved_bytes
        return self.seen.moved_bytes if self.in_flight and self.seen else None

    @property
    def remaining_bytes(self) -> int | None:
        if self.state is State.DONE:
            return 0
        return self.seen.remaining_bytes if self.in_flight and self.seen else None

    @property
    def began_at(self) -> datetime | None:
        return self.move.first_at or self.move.submitted_at

    @property
    def took_s(self) -> float | None:
        if not self.ended or self.move.since is None or self.began_at is None:
            return None
        return max(0.0, (self.move.since - self.began_at).total_seconds())

    @property
    def rate(self) -> float | None:
        """Bytes per second; of what has ended, the mean."""
        if self.in_flight:
            return self.seen.rate if self.seen else None
        return self.moved_bytes / self.took_s if self.moved_bytes and self.took_s else None

    @property
    def eta(self) -> datetime | None:
        seen = self.seen
        if not self.in_flight or seen is None or seen.eta_s is None or not math.isfinite(seen.eta_s) or self.caught_up:
            return None
        at = (seen.sampled_at or self.now) + timedelta(seconds=seen.eta_s)
        return at if at > self.now - _LATE else None

    @property
    def caught_up(self) -> bool:
        return self.state is State.CATCHING_UP

    @property
    def eta_words(self) -> str:
        """Why there is no time of completion."""
        seen = self.seen
        if self.caught_up:
            return "finishing" if seen and seen.in_isr else "not in ISR yet"
        if seen is None or seen.eta_s is None or (math.isfinite(seen.eta_s) and self.eta is None):
            return "not known"
        return "" if math.isfinite(seen.eta_s) else "no progress"

    @property
    def stuck(self) -> bool:
        return self.in_flight and self.seen is not None and self.seen.mark is Mark.STUCK

    @property
    def slow(self) -> bool:
        return self.in_flight and self.seen is not None and self.seen.mark is Mark.SLOW

    @property
    def tone(self) -> str:
        """A state of the status tokens for the whole row, '' for none."""
        return "warning" if self.stuck or self.move.asks else ""

    @property
    def pill(self) -> str:
        """What is wrong with it, in two words."""
        if self.move.asks:
            return "Needs an answer"
        if self.stuck:
            return f"Stuck{self._still_for}"
        return f"Slow{self._still_for}" if self.slow else ""

    @property
    def _still_for(self) -> str:
        grew = self.seen.grew_at if self.seen else None
        return f" {long_duration((self.now - grew).total_seconds())}" if grew else ""

    @property
    def mark(self) -> str:
        """The state of its mark, where it has one besides its words."""
        if self.state is State.UNKNOWN:
            return "unknown"
        return _ENDED_STATES.get(self.state, "")

    @property
    def words(self) -> str:
        return MoveState(self.move.state).label

    @property
    def classes(self) -> str:
        """Of the table's row."""
        own = "waits" if self.waits else "ended" if self.ended else ""
        return "has-cause" if self.tone and self.explained else own

    @property
    def said(self) -> str:
        """Below its state: which of its brokers is down, and why it is in it, unless that is said below the row."""
        return " ".join(filter(None, (self.down, self._why)))

    @property
    def down(self) -> str:
        """ "Broker 4 is down." of a row that has not ended."""
        replicas = {*self.move.current, *self.move.target}
        return "" if self.ended else " ".join(f"Broker {id_} is down." for id_ in sorted(self.away & replicas))

    @property
    def _why(self) -> str:
        if self.tone and self.explained:
            return ""
        if (self.stuck or self.slow) and self.seen is not None:
            return SHORTLY[self._stuck_cause]
        return self.reason or (f"an estimate: {self.estimate}" if self.estimate else "")

    @property
    def reason(self) -> str:
        return reason_text(self.move.reason)

    @property
    def cause(self) -> str:
        """In a sentence, '' where it gets on."""
        if self.move.asks:
            return "What was sent left no trace."
        if not (self.stuck or self.slow) or self.seen is None:
            return ""
        return SENTENCES[self._stuck_cause]

    @property
    def _stuck_cause(self) -> Cause:
        why = self.seen.why if self.seen else None
        return why.cause if isinstance(why, StuckReason) else Cause.UNKNOWN

    @property
    def cause_words(self) -> str:
        if self.move.asks:
            return self.reason
        return reason_text(self.seen.why) if self.seen else ""

    @property
    def link(self) -> str:
        """To its own page, from that of the run: short, because it is pushed."""
        return f"row/?move={self.move.pk}"

    @property
    def address(self) -> str:
        named = urlencode({"topic": self.move.topic, "partition": self.move.partition})
        return f"{reverse('reassign:run_row', args=[self.number])}?{named}"

    @property
    def actions(self) -> Sequence[RowAction]:
        """What helps first."""
        if self.move.asks:
            return [self._deed(Deed.AGAIN, "Submit again…"), self._deed(Deed.GIVE_UP, "Give it up…")]
        offered = {
            Fix.RAISE_THROTTLE: RowAction("Raise the throttle", "#throttle"),
            Fix.SETTLE_THROTTLE: RowAction("Decide about the throttle", "#foreign"),
            Fix.ELECT_LEADER: self._deed(Deed.ELECT, "Elect its preferred leader…"),
            Fix.REPLAN_ROW: RowAction("Re-plan row…", f"{self.link}#replan"),
            Fix.CANCEL_ROW: self._deed(Deed.CANCEL_ROW, "Cancel row…"),
        }
        return [offered[fix] for fix in fixes(self._stuck_cause) if fix in offered]

    def _deed(self, deed: Deed, words: str) -> RowAction:
        return RowAction(words, f"{self.link}#{deed.value}")

    @property
    def deeds(self) -> Sequence[tuple[Deed, str]]:
        """What may be asked for about it now, with what that means."""
        if self.ended or self.state is State.CANCELLING:
            return ()
        if self.move.asks:
            return (
                (Deed.AGAIN, "It takes its turn as if for the first time."),
                (Deed.GIVE_UP, "It ends as cancelled; nothing is sent for it any more."),
            )
        found = [
            (
                Deed.CANCEL_ROW,
                "What was copied of it is given up, and its replicas go back to what they were; the other rows go on."
                if self.in_flight
                else "It is not begun; the other rows go on.",
            )
        ]
        if self.in_flight:
            found.append((Deed.ELECT, "The first of its replicas becomes the leader if it is in sync."))
        return tuple(found)

    @property
    def title(self) -> str:
        if self.pill:
            return f"{self.name}: {self.pill[:1].lower()}{self.pill[1:]}"
        return f"{self.name}: {self.words}"


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
