"""Transitions that kafkadash makes itself: by the tick, by checks, and by the workers of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction

from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.policy import rules_for
from kafkadash.changes.request_validation import lock_change
from kafkadash.changes.state_machine import ActorKind, ChangeTrigger, TransitionRequest
from kafkadash.changes.transitions import ITSELF, move
from kafkadash.core.leases import LeaseLost, RowLease
from kafkadash.core.messages import CodedMessage, coded

MOST_REASONS = 200


@contextmanager
def write_change(change: ChangeRequest, lease: RowLease) -> Iterator[ChangeRequest]:
    """Open a transaction with the request as it is now, and the proven lease of its run.

    The request is locked before the run, as by whoever steers it. Raises LeaseLost with nothing written, also where the
    request is gone.
    """
    with transaction.atomic():
        try:
            row = lock_change(change)
        except ChangedMeanwhile as gone:
            raise LeaseLost from gone
        with lease.write():
            yield row


def move_itself(
    change: ChangeRequest,
    trigger: ChangeTrigger,
    now: datetime,
    *,
    why: CodedMessage | None = None,
    fields: Mapping[str, Any] | None = None,
    also: Mapping[str, Any] | None = None,
    clean: bool = True,
) -> None:
    """Move a request to its next state, with kafkadash as the actor; parameters as of ``move``.

    Raises ChangeRefused.
    """
    move(
        change,
        TransitionRequest(trigger, capacities=frozenset({ActorKind.ITSELF})),
        rules_for(change),
        now,
        actor=ITSELF,
        fields=fields,
        also=also,
        why=why,
        clean=clean,
    )


def turn_stale(
    change: ChangeRequest,
    shown: Sequence[CodedMessage],
    total: int,
    now: datetime,
    written: Mapping[str, Any] | None = None,
) -> None:
    """Move a request to STALE.

    ``shown``: the reasons to store, ``total``: of how many; ``written``: further columns.
    """
    fields = {**(written or {}), "stale_reasons": [reason.as_json() for reason in shown]}
    move_itself(change, ChangeTrigger.CONTENT_FAILED, now, why=shown[0], fields=fields, also={"reasons": total})


def list_reasons(reasons: Sequence[CodedMessage], total: int) -> list[CodedMessage]:
    """Return the first reasons, and one that says how many more there are."""
    shown = list(reasons[:MOST_REASONS])
    return [*shown, coded(ChangeErrorCode.MORE_REASONS, more=total - len(shown))] if total > len(shown) else shown
