"""The status board: every cluster a person may see, judged and put in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.domain.findings import board_title
from kafkadash.domain.status import State
from kafkadash.domain.wording import count, listed
from kafkadash.oncall.standing import ClusterStanding, standing

QUIET = frozenset({State.OK, State.MAINTENANCE})
"""States in which there is nothing to do: the cluster takes one line."""


@dataclass(frozen=True, slots=True)
class Tally:
    state: State
    clusters: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class Board:
    """The clusters of one person at ``now``. ``chosen`` filters the rows, never the title and the tally."""

    all: Sequence[ClusterStanding]
    now: datetime
    chosen: State | None = None

    @property
    def title(self) -> str:
        return board_title([(s.cluster.name, s.judgement) for s in self.all])

    @property
    def state(self) -> State:
        return self.all[0].state if self.all else State.UNKNOWN

    @property
    def shown(self) -> list[ClusterStanding]:
        return [s for s in self.all if self.chosen in (None, s.state)]

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
        return [Tally(s, states[s], s == self.chosen) for s in State if states[s] or s == self.chosen]

    @property
    def all_well(self) -> bool:
        return bool(self.all) and all(s.state is State.OK for s in self.all)


def status_context(cluster: Cluster, now: datetime, known: ClusterStanding | None = None) -> dict[str, Any]:
    """A cluster's part of the board: a block with its findings, or one line when there is nothing to do."""
    seen = known or standing(cluster, now)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.freshness.taken_at,
        "standing": seen,
        "quiet": seen.state in QUIET,
    }


def overview_context(cluster: Cluster, now: datetime, known: ClusterStanding | None = None) -> dict[str, Any]:
    """State and figures of a cluster. ``known`` saves judging it again."""
    seen = known or standing(cluster, now)
    return {"cluster": cluster, "now": now, "sampled_at": seen.freshness.taken_at, "standing": seen}
