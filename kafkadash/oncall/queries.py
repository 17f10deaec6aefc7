"""The status board and the overview: clusters that a person may see, in order, and what is wrong with each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self
from urllib.parse import urlencode

from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.headline import board_headline
from kafkadash.domain.status import State
from kafkadash.domain.wording import count, listed
from kafkadash.observe.models import Outcome, ReassignmentSnapshot
from kafkadash.oncall.facts import partition_facts, refusing
from kafkadash.oncall.finding_rows import FindingRow, counted, more_words
from kafkadash.oncall.models import Finding
from kafkadash.oncall.standing import ClusterStanding, standing

QUIET = frozenset({State.OK, State.MAINTENANCE})
"""States in which there is nothing to do: the cluster takes one line."""

MOST_FINDINGS = 6
"""Findings of one cluster on the board; its own page shows all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person asked to see. ``owner`` is a user name; '' for everybody's."""

    state: State | None = None
    kind: FindingKind | None = None
    owner: str = ""

    @classmethod
    def of(cls, asked: QueryDict, user_name: str) -> Self:
        """From an address; what makes no sense is left out."""
        state, kind = asked.get("state", ""), asked.get("kind", "")
        return cls(
            State(state) if state in list(State) else None,
            FindingKind(kind) if kind in list(FindingKind) else None,
            user_name if asked.get("mine") else "",
        )

    @property
    def narrows(self) -> bool:
        """Shows some findings of a cluster and not others."""
        return self.kind is not None or bool(self.owner)

    def __bool__(self) -> bool:
        return self.state is not None or self.narrows

    def findings(self, own: ClusterStanding) -> tuple[FindingRow, ...]:
        return tuple(
            row for row in own.findings if self.kind in (None, row.kind) and (not self.owner or row.owner == self.owner)
        )

    def takes(self, own: ClusterStanding) -> bool:
        return self.state in (None, own.state) and (not self.narrows or bool(self.findings(own)))

    def address(self, **other: Any) -> str:
        """The query of this choice with something else in it; "?" for none."""
        wanted = replace(self, **other)
        return "?" + urlencode(
            {
                **({"state": wanted.state.value} if wanted.state else {}),
                **({"kind": wanted.kind.value} if wanted.kind else {}),
                **({"mine": "1"} if wanted.owner else {}),
            }
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """A filter with how much it shows; ``address`` takes it, or takes it away where it is chosen."""

    name: str
    number: int
    address: str
    chosen: bool
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """The clusters of one person at ``now``. The choice filters what is shown, never the title and the tally."""

    all: Sequence[ClusterStanding]
    now: datetime
    choice: Choice = field(default_factory=Choice)
    user_name: str = ""

    @property
    def title(self) -> str:
        return board_headline([(s.cluster.name, s.state, s.title) for s in self.all])

    @property
    def state(self) -> State:
        return self.all[0].state if self.all else State.UNKNOWN

    @property
    def shown(self) -> list[ClusterStanding]:
        return [s for s in self.all if self.choice.takes(s)]

    @property
    def loud(self) -> list[ClusterStanding]:
        return [s for s in self.shown if s.state not in QUIET]

    @property
    def quiet(self) -> list[ClusterStanding]:
        return [s for s in self.shown if s.state in QUIET]

    @property
    def quiet_words(self) -> str:
        states = Counter(s.state for s in self.quiet)
        return listed([f"{count(states[s], 'cluster')} {s.word}" for s in (State.OK, State.MAINTENANCE) if states[s]])

    @property
    def tally(self) -> list[Tally]:
        states = Counter(s.state for s in self.all)
        own = self.choice.state
        return [
            Tally(s.word, states[s], self.choice.address(state=None if s is own else s), s is own, s)
            for s in State
            if states[s] or s is own
        ]

    @property
    def kinds(self) -> list[Tally]:
        """What is wrong anywhere, most urgent first, and what is one's own."""
        own = self.choice.kind
        rows = [row for s in self.all for row in s.findings]
        numbers = {**counted(rows), **({own: 0} if own and not any(r.kind is own for r in rows) else {})}
        mine = sum(row.owner == self.user_name for row in rows)
        found = [
            Tally(k.about.name, n, self.choice.address(kind=None if k is own else k), k is own)
            for k, n in numbers.items()
        ]
        if mine or self.choice.owner:
            address = self.choice.address(owner="" if self.choice.owner else self.user_name)
            found.append(Tally("Mine", mine, address, bool(self.choice.owner)))
        return found

    @property
    def all_well(self) -> bool:
        return bool(self.all) and all(s.state is State.OK for s in self.all)

    @property
    def quiet_since(self) -> datetime | None:
        """When the last finding of all closed; None while one is open or none ever was."""
        closed = [s.last_closed_at for s in self.all if s.last_closed_at]
        return max(closed) if closed and self.all_well else None

    @property
    def oldest(self) -> ClusterStanding | None:
        """The cluster with the oldest data."""
        return max((s for s in self.all if s.freshness.taken_at), key=lambda s: s.freshness.age_s or 0, default=None)


def status_context(
    cluster: Cluster, now: datetime, known: ClusterStanding | None = None, choice: Choice | None = None
) -> dict[str, Any]:
    """A cluster's part of the board: a block with its findings, or one line when there is nothing to do.

    A block that shows only some of the findings has another id than the one that is pushed: a push has the page
    fetched again then.
    """
    seen = known or standing(cluster, now)
    narrowed = choice is not None and choice.narrows
    findings = choice.findings(seen) if choice is not None else seen.findings
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.freshness.taken_at,
        "standing": seen,
        "quiet": seen.state in QUIET and not narrowed,
        "html_id": f"{'chosen' if narrowed else 'status'}-{cluster.slug}",
        "findings": findings[:MOST_FINDINGS],
        "more": more_words(len(findings) - MOST_FINDINGS) if len(findings) > MOST_FINDINGS else "",
    }


def overview_context(cluster: Cluster, now: datetime, known: ClusterStanding | None = None) -> dict[str, Any]:
    """Findings and figures of a cluster. ``known`` saves reading them again."""
    seen = known or standing(cluster, now)
    under = seen.figures.under_replicated
    explained = seen.figures.under_replicated_moving or 0
    if under and seen.moving:
        running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
        moves = {(t, p): frozenset(adding) for t, p, adding in running.values_list("topic", "partition", "adding")}
        explained = partition_facts(cluster, seen.figures, moves).under_replicated_moving
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.freshness.taken_at,
        "standing": seen,
        "findings": seen.findings,
        "explained": None if under is None else explained,
        "unexplained": None if under is None else max(0, under - explained),
        "refused": refusing(cluster, seen.figures),
    }


def finding_context(cluster: Cluster, row: Finding, now: datetime) -> FindingRow:
    """One finding with what is known of it now: while it is open as the board has it, afterwards as it was last."""
    if row.closed_at is None:
        for shown in standing(cluster, now).findings:
            if shown.row is not None and shown.row.pk == row.pk:
                return shown
    return FindingRow(cluster, now, FindingKind(row.kind), row, row)
