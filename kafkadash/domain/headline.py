"""The answer in one sentence: what stands as the heading of a board or of a cluster's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.status import State
from kafkadash.domain.wording import count


@dataclass(frozen=True, slots=True)
class Point:
    """A finding as a heading needs it; ``answer`` continues the cluster's name."""

    kind: FindingKind
    state: State
    answer: str
    owner: str = ""


def rolled_up(states: Sequence[State]) -> State:
    """The worst child; OK if there is none."""
    return min(states, key=lambda state: state.severity, default=State.OK)


def headline(name: str, state: State, points: Sequence[Point]) -> str:
    """What is true of one cluster in this state; ``points`` most urgent first."""
    worst = next((p for p in points if p.state is state), None)
    if worst is None:
        return f"{name} is OK." if state is State.OK else f"Cannot tell about {name}."
    alike = [p for p in points if (p.kind, p.state) == (worst.kind, worst.state)]
    answer = worst.answer
    if len(alike) > 1 and worst.kind.about.many:
        answer = worst.kind.about.many.format(n=len(alike))
    if state is State.UNKNOWN:
        return f"Cannot tell about {name}: {answer}."
    nobody = state is State.CRITICAL and not any(p.owner for p in points if p.state is state)
    return f"{name} {answer}{', and nobody has it' if nobody else ''}."


def board_headline(clusters: Sequence[tuple[str, State, str]]) -> str:
    """What is true of all clusters; ``clusters`` are (name, state, own headline), worst first."""
    if not clusters:
        return "No cluster is registered yet."
    _, state, worst = clusters[0]
    if state not in (State.OK, State.MAINTENANCE):
        return worst
    silent = sum(state is State.MAINTENANCE for _, state, _ in clusters)
    well = len(clusters) - silent
    if not silent:
        return worst if well == 1 else f"All {well} clusters are OK."
    if not well:
        return worst if silent == 1 else f"None of {silent} clusters is watched."
    return f"{count(well, 'cluster is', 'clusters are')} OK, {silent} not watched."
