"""What a cancel of a run, or of one of its rows, would lead to, as far as the last look at the cluster tells.

A cancelled reassignment leaves ``replicas − adding`` of that moment (KIP-455). After somebody gave the partition
another target meanwhile, that can be a larger set than before the move; the original one is then restored by a second
request, and so is the original order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import Page, Paginator
from django.db.models import Count, Q

from kafkadash.domain.executor_state import BEFORE, IN_FLIGHT
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count
from kafkadash.observe.models import Outcome, ReassignmentSnapshot
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution, Move

PAGE_SIZE = 100


@dataclass(frozen=True)
class GoesBack:
    """One row in flight. ``seen`` is its listing as it was last seen, None where no refresh has seen it yet."""

    move: Move
    seen: ReassignmentSnapshot | None

    @property
    def name(self) -> str:
        return str(self.move)

    @property
    def ours(self) -> bool:
        """Whether what is listed leads to the row's target by adding what it adds; as the executor tells it."""
        if self.seen is None:
            return True
        adding = set(self.move.target) - set(self.move.current)
        return list(self.seen.target) == list(self.move.target) and set(self.seen.adding) <= adding

    @property
    def leaves(self) -> Sequence[int]:
        """The replicas right after the cancel; in the original order where they are the original ones."""
        if self.seen is None:
            return self.move.current
        left = [broker for broker in self.seen.replicas if broker not in self.seen.adding]
        return self.move.current if set(left) == set(self.move.current) else left

    @property
    def other(self) -> bool:
        """Whether that is another set than the original one."""
        return set(self.leaves) != set(self.move.current)

    @property
    def more(self) -> Sequence[int]:
        """Of them, those that are none of the original ones."""
        return [broker for broker in self.leaves if broker not in self.move.current]

    @property
    def sentence(self) -> str:
        original, there = _ids(self.move.current), _ids(self.leaves)
        if not self.ours and self.seen is not None:
            return message_text(ReassignmentErrorCode.NOT_OURS_TO_CANCEL, target=_ids(self.seen.target))
        if set(self.move.current) == set(self.move.target):
            return f"Only its order changes; it is put back to {original}."
        if self.other:
            return message_text(ReassignmentErrorCode.CANCEL_LEAVES_OTHERS, there=there, original=original)
        note = "" if self.seen else " It was not seen in the cluster yet; this is what was stored when it began."
        return f"It goes back to {original}, in that order.{note}"


@dataclass(frozen=True)
class Preview:
    """``done`` stay as they are, ``waiting`` are not started, ``ended`` ended otherwise before."""

    flight: int
    done: int
    waiting: int
    ended: int
    page: Page[Move]
    rows: Sequence[GoesBack]
    seen_at: datetime | None

    @property
    def sentences(self) -> Sequence[str]:
        told = []
        if self.flight:
            told.append(
                f"{count(self.flight, 'move')} in flight {'returns' if self.flight == 1 else 'return'} to "
                f"{'its' if self.flight == 1 else 'their'} original replicas, as listed below."
            )
        else:
            told.append("No move is in flight.")
        if self.done:
            told.append(
                f"{count(self.done, 'done move')} {'stays' if self.done == 1 else 'stay'} where "
                f"{'it is' if self.done == 1 else 'they are'}, and {'is' if self.done == 1 else 'are'} listed in the "
                "report."
            )
        if self.waiting:
            told.append(f"{count(self.waiting, 'waiting move')} {'is' if self.waiting == 1 else 'are'} not started.")
        if self.ended:
            told.append(f"{count(self.ended, 'move')} ended otherwise before.")
        told.append("Our throttles are taken away; what cannot be now is as soon as it is possible.")
        return told


def preview(execution: Execution, page: str | None) -> Preview:
    """From stored rows. Three queries, with one more for the snapshots where something is in flight."""
    moves = Move.objects.filter(execution=execution)
    counts = moves.aggregate(
        flight=Count("pk", filter=Q(state__in=IN_FLIGHT)),
        done=Count("pk", filter=Q(state=RowState.DONE)),
        waiting=Count("pk", filter=Q(state__in=BEFORE)),
        total=Count("pk"),
    )
    total = counts.pop("total")
    shown = Paginator(moves.filter(state__in=IN_FLIGHT).order_by("topic", "partition"), PAGE_SIZE).get_page(page)
    rows = goes_back(execution, list(shown.object_list))
    return Preview(
        **counts,
        ended=total - sum(counts.values()),
        page=shown,
        rows=rows,
        seen_at=min((row.seen.last_seen_at for row in rows if row.seen), default=None),
    )


def goes_back(execution: Execution, moves: Sequence[Move]) -> list[GoesBack]:
    """What a cancel of each of these rows leaves; at most one query."""
    seen: Mapping[tuple[str, int], ReassignmentSnapshot] = {}
    if moves:
        listed = ReassignmentSnapshot.objects.filter(
            cluster=execution.cluster_id, outcome=Outcome.RUNNING, topic__in={move.topic for move in moves}
        ).only("topic", "partition", "replicas", "adding", "removing", "target", "last_seen_at")
        seen = {(each.topic, each.partition): each for each in listed}
    return [GoesBack(move, seen.get((move.topic, move.partition))) for move in moves]


def _ids(replicas: Sequence[int]) -> str:
    return ", ".join(map(str, replicas))
