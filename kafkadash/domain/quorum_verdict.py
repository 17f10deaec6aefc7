"""What a person on call is told of the controllers: the sentence that answers "how many more may fail?"."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kafkadash.domain.facts import controllers_are_silent
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.quorum import NodeStatus, Quorum
from kafkadash.domain.quorum_history import FLAPPING_CHANGES, FLAPPING_WITHIN
from kafkadash.domain.status import Refreshed, State
from kafkadash.domain.wording import count, duration


@dataclass(frozen=True, slots=True)
class QuorumVerdict:
    """``title`` is a whole sentence, ``detail`` what to know beside it. ``lost``: the majority is gone."""

    state: State
    title: str
    detail: str = ""
    lost: bool = False


def majority_lost(asked: Refreshed, metadata: Refreshed) -> bool:
    """Whether the controllers are silent while brokers answer: a state of its own, apart from an unreachable cluster.

    Without a majority DescribeQuorum, listings and changes time out through every broker, while Metadata goes on
    answering and all brokers look alive.
    """
    return controllers_are_silent(asked) and metadata.failures == 0


def quorum_verdict(
    quorum: Quorum | None, asked: Refreshed, metadata: Refreshed, recent_changes: int, now: datetime
) -> QuorumVerdict:
    """Judges the newest answer. ``asked`` and ``metadata`` say how reading the quorum and the brokers went lately."""
    ago = duration((now - asked.taken_at).total_seconds()) if asked.taken_at else ""
    if majority_lost(asked, metadata):
        known = f"What is shown here is as it was {ago} ago." if ago else "How it was before is not known."
        return QuorumVerdict(
            State.CRITICAL,
            "The quorum is lost: no leader can be elected and nothing can be changed.",
            "Brokers look alive and serve partitions that have a leader; whatever needs the controllers times out. "
            + known,
            lost=True,
        )
    if asked.failure == FailureKind.NOT_AUTHORIZED:
        return QuorumVerdict(
            State.UNKNOWN, "Cannot tell how the quorum stands: kafkadash may not ask for it.", asked.error
        )
    if quorum is None or asked.taken_at is None:
        return QuorumVerdict(
            State.UNKNOWN, "Cannot tell how the quorum stands: the controllers have not answered yet.", asked.error
        )
    if asked.stale(now):
        return QuorumVerdict(
            State.UNKNOWN, f"Cannot tell how the quorum stands: it was last heard of {ago} ago.", asked.error
        )
    margin = _margin(quorum)
    if recent_changes > FLAPPING_CHANGES:
        minutes = round(FLAPPING_WITHIN.total_seconds() / 60)
        title = f"The leader of the quorum keeps changing: {recent_changes} changes in {minutes} minutes."
        return QuorumVerdict(State.WARNING, title, margin.title)
    return margin


def _margin(quorum: Quorum) -> QuorumVerdict:
    voters, majority = len(quorum.voters), quorum.majority
    leads = next((voter for voter in quorum.voters if voter.status is NodeStatus.LEADER), None)
    if voters > 1 and leads is not None and leads.node.last_caught_up_ms is None:
        # DescribeQuorum v0 has no times at all, not even the leader's own (KIP-836).
        return QuorumVerdict(
            State.UNKNOWN,
            "Cannot tell how many failures the quorum survives: a Kafka before 3.3 tells no times of its voters.",
        )
    unknown = sum(voter.status is NodeStatus.UNKNOWN for voter in quorum.voters)
    silent = f"{count(unknown, 'voter was', 'voters were')} not heard from since the leader changed"
    if quorum.in_sync < majority:
        if unknown and quorum.in_sync + unknown >= majority:
            return QuorumVerdict(State.UNKNOWN, f"Cannot tell yet how many failures the quorum survives: {silent}.")
        title = f"Only {quorum.in_sync} of {count(voters, 'voter')} is in sync, and a majority is {majority}."
        if quorum.in_sync != 1:
            title = title.replace(" is in sync", " are in sync")
        return QuorumVerdict(State.WARNING, title, "The leader goes on only as long as the others keep fetching.")
    if quorum.survives:
        least = "at least " if unknown else ""
        title = f"The quorum survives {least}{count(quorum.survives, 'more failure')}."
        return QuorumVerdict(State.WARNING if quorum.failing else State.OK, title, f"{silent}." if unknown else "")
    if voters == 1:
        return QuorumVerdict(State.OK, "The quorum has a single voter: without it nothing can be elected or changed.")
    if unknown and not quorum.failing:
        return QuorumVerdict(State.UNKNOWN, f"The quorum survives no further failure as far as is known: {silent}.")
    needed = f"{quorum.in_sync} of {voters} voters are in sync, and a majority is {majority}."
    return QuorumVerdict(
        State.WARNING if quorum.failing else State.OK, "The quorum survives no further failure.", needed
    )
