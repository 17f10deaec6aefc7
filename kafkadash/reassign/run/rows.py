"""The rows of a run as its page shows them: which ones, in what order, and in what words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, F, Q
from django.urls import reverse

from kafkadash.domain.executor_state import BEFORE, ENDED, IN_FLIGHT, State
from kafkadash.domain.run_progress import Cause, Mark, RowNow, RunNow
from kafkadash.domain.run_stuck import Fix, fixes
from kafkadash.domain.wording import long_duration
from kafkadash.reassign.models import Deed, Execution, Move, MoveState

MOST_ROWS = 50
"""So many are on the page and pushed; the filters list all."""
MOST_WAITING, MOST_ENDED, LEAST_OF_EACH = 8, 5, 3
MOST_CAUSES = 5
"""So many rows have their cause and what can be done below them; those after them have it on their own page."""

_ENDED_STATES = {
    State.DONE: "ok",
    State.FAILED: "critical",
    State.SKIPPED: "warning",
    State.SUPERSEDED: "warning",
    State.TOPIC_DELETED: "warning",
}
_LATE = timedelta(seconds=30)
"""A time of completion that is over for so long was wrong, or its figures are old."""
_CAUSES: Mapping[Cause, str] = {
    Cause.DESTINATION_AWAY: "A broker that it goes to is away.",
    Cause.KEPT_REPLICA_AWAY: "A replica that stays is on a broker that is away.",
    Cause.NO_LEADER: "The partition has no leader to copy from.",
    Cause.BELOW_INBOUND: "The throttle is below what the partition receives.",
    Cause.DESTINATION_DISK: "The disk that it goes to cannot take it.",
    Cause.SOURCE_AT_THROTTLE: "The broker that it copies from sends all that its throttle allows.",
    Cause.FOREIGN_THROTTLE: "A throttle that is not ours holds it up.",
    Cause.REFUSED: "The cluster refused.",
    Cause.UNKNOWN: "Nobody can tell why.",
}


_SHORTLY: Mapping[Cause, str] = {
    Cause.DESTINATION_AWAY: "destination away",
    Cause.KEPT_REPLICA_AWAY: "kept replica away",
    Cause.NO_LEADER: "no leader",
    Cause.BELOW_INBOUND: "throttle below inbound",
    Cause.DESTINATION_DISK: "destination disk",
    Cause.SOURCE_AT_THROTTLE: "source at its throttle",
    Cause.FOREIGN_THROTTLE: "throttle of others",
    Cause.REFUSED: "refused",
    Cause.UNKNOWN: "cause not known",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows are where, as they are stored. ``held_back`` of those that wait, ``asks`` of those in flight."""

    by_state: Mapping[State, int]
    asks: int
    stuck: int
    slow: int
    total: int

    def of(self, states: frozenset[State]) -> int:
        return sum(self.by_state.get(state, 0) for state in states)

    @property
    def waiting(self) -> int:
        """Also those that were not stored yet, before the run begins."""
        return self.of(BEFORE) + self.total - sum(self.by_state.values())

    @property
    def held_back(self) -> int:
        return self.by_state.get(State.WAITING, 0)

    @property
    def flight(self) -> int:
        return self.of(IN_FLIGHT)

    @property
    def moving(self) -> int:
        """In flight without those that are stuck or ask."""
        return max(0, self.flight - self.stuck - self.asks)

    @property
    def ended(self) -> int:
        return self.of(ENDED)

    @property
    def done(self) -> int:
        return self.by_state.get(State.DONE, 0)

    @property
    def exceptions(self) -> Sequence[tuple[int, str]]:
        """Those that ended in another way, as (figure, words)."""
        return [
            (self.by_state[state], MoveState(state).label)
            for state in State
            if state in ENDED and state is not State.DONE and self.by_state.get(state)
        ]


def counts_of(execution: Execution, figures: RunNow | None) -> Counts:
    """One query."""
    rows = Move.objects.filter(execution=execution).order_by().values_list("state")
    found = list(rows.annotate(n=Count("pk"), asking=Count("pk", filter=Q(asks=True))))
    by_state = Counter({State(state): n for state, n, _ in found})
    return Counts(
        by_state,
        asks=sum(asks for _, _, asks in found),
        stuck=figures.stuck if figures else 0,
        slow=figures.slow if figures else 0,
        total=max(execution.rows, by_state.total()),
    )


@dataclass(frozen=True, slots=True)
class RowAction:
    """What can be done about a row: a link from the page of the run to where it is asked for."""

    words: str
    href: str


@dataclass(frozen=True, slots=True)
class RowShown:
    """A row at ``now`` of the run of #``number``; ``seen`` are its figures of the last step while it is in flight, None
    where there are none. ``explained``: its cause and what can be done stand below it, if there is something.
    """

    move: Move
    seen: RowNow | None
    now: datetime
    number: int
    explained: bool = False

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
        """Below its state: why it is in it, unless that is said in full below the row."""
        if self.tone and self.explained:
            return ""
        if (self.stuck or self.slow) and self.seen is not None:
            return _SHORTLY[self.seen.cause or Cause.UNKNOWN]
        return self.move.reason or (f"an estimate: {self.estimate}" if self.estimate else "")

    @property
    def cause(self) -> str:
        """In a sentence, '' where it gets on."""
        if self.move.asks:
            return "What was sent left no trace."
        if not (self.stuck or self.slow) or self.seen is None:
            return ""
        return _CAUSES[self.seen.cause or Cause.UNKNOWN]

    @property
    def cause_words(self) -> str:
        if self.move.asks:
            return self.move.reason
        return self.seen.cause_words if self.seen else ""

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
        cause = self.seen.cause if self.seen else None
        offered = {
            Fix.RAISE_THROTTLE: RowAction("Raise the throttle", "#throttle"),
            Fix.SETTLE_THROTTLE: RowAction("Decide about the throttle", "#foreign"),
            Fix.ELECT_LEADER: self._deed(Deed.ELECT, "Elect its preferred leader…"),
            Fix.REPLAN_ROW: RowAction("Re-plan row…", f"{self.link}#replan"),
            Fix.CANCEL_ROW: self._deed(Deed.CANCEL_ROW, "Cancel row…"),
        }
        return [offered[fix] for fix in fixes(cause or Cause.UNKNOWN) if fix in offered]

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


class InFlight:
    """The keys of all rows in flight, those first that look worst."""

    def __init__(self, execution: Execution, figures: RunNow | None) -> None:
        self._seen = {(row.topic, row.partition): row for row in figures.rows} if figures else {}
        found = Move.objects.filter(execution=execution, state__in=IN_FLIGHT).values_list(
            "pk", "topic", "partition", "state", "asks", "since"
        )
        self._ranked = sorted(
            (self._rank(topic, partition, state, asks), since or _NEVER, topic, partition, pk)
            for pk, topic, partition, state, asks, since in found
        )

    def seen(self, move: Move) -> RowNow | None:
        return self._seen.get((move.topic, move.partition))

    def needing(self) -> list[int]:
        """Those that are stuck or ask."""
        return [row[-1] for row in self._ranked if row[0] in (_STUCK, _ASKS)]

    def others(self) -> list[int]:
        return [row[-1] for row in self._ranked if row[0] not in (_STUCK, _ASKS)]

    def _rank(self, topic: str, partition: int, state: str, asks: bool) -> int:
        seen = self._seen.get((topic, partition))
        if asks:
            return _ASKS
        if seen is not None and seen.mark is Mark.STUCK:
            return _STUCK
        if seen is not None and seen.mark is Mark.SLOW:
            return _SLOW
        return _RANKS.get(State(state), _COPIES)


_STUCK, _SLOW, _ASKS, _UNKNOWN, _CANCELLING, _CATCHES_UP, _COPIES = range(7)
_RANKS = {State.UNKNOWN: _UNKNOWN, State.CANCELLING: _CANCELLING, State.CATCHING_UP: _CATCHES_UP}
_NEVER = datetime.max.replace(tzinfo=UTC)
WAITING_ORDER = (F("size_bytes").desc(nulls_last=True), "topic", "partition")
ENDED_ORDER = (F("since").desc(nulls_last=True), "topic", "partition")


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
