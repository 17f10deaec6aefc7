"""Context of one step of a run: its lease, request, rows and writes, and the time budget of the step.

A worker that is told to stop has ended its step within 20 s, whatever the cluster does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import RunOptions
from kafkadash.changes.state_machine import ChangeState, ChangeTrigger
from kafkadash.changes.transitions import ITSELF, announce_changes, audit_change
from kafkadash.changes.worker_transitions import move_itself, write_change
from kafkadash.clusters.models import Cluster
from kafkadash.core.events import changed
from kafkadash.core.leases import RowLease
from kafkadash.core.messages import CodedMessage
from kafkadash.execution.live_keys import run_keys
from kafkadash.execution.models import Execution, Order
from kafkadash.planning.stored_checks import limits_of
from kafkadash.planning.window import run_options


@dataclass(slots=True)
class RunningStep:
    """``execution`` as it was read when the lease was taken, with request and cluster. ``options`` has the rate and
    the limits in force. ``orders``: whether somebody asked for something that was not taken yet.
    """

    lease: RowLease
    execution: Execution
    orders: bool

    @classmethod
    def of(cls, lease: RowLease) -> RunningStep | None:
        """Load the lease's run. One query; None if the run is gone, or its cluster: that one is never asked again."""
        waiting = Order.objects.filter(execution=OuterRef("pk"), taken_at=None)
        execution = (
            Execution.objects.select_related("request", "cluster")
            .defer("report")
            .annotate(orders_wait=Exists(waiting))
            .filter(pk=lease.row_id, cluster__removed_at=None)
            .first()
        )
        return None if execution is None else cls(lease, execution, execution.orders_wait)

    @property
    def request(self) -> ChangeRequest:
        return self.execution.request

    @property
    def cluster(self) -> Cluster:
        return self.execution.cluster

    @property
    def state(self) -> ChangeState:
        return ChangeState(self.request.state)

    @property
    def options(self) -> RunOptions:
        own = self.execution
        return replace(
            run_options(self.request), throttle=own.throttle, per_broker=own.per_broker, per_cluster=own.per_cluster
        )

    @property
    def disk_limit(self) -> float | None:
        return limits_of(self.request.input).disk

    def now(self) -> datetime:
        return self.lease.now()

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction under the proven lease. Raises LeaseLost with nothing written."""
        with self.lease.write():
            yield

    @contextmanager
    def write_state(self) -> Iterator[ChangeRequest]:
        """The same for what changes the request too: its row, as it is now, is locked first, as everybody does it.

        Raises LeaseLost also where the request is gone.
        """
        with write_change(self.request, self.lease) as row:
            yield row

    def save(self, **fields: Any) -> None:
        """Columns of the run's own row, in a transaction of ``write``."""
        Execution.objects.filter(pk=self.execution.pk).update(**fields)

    def move(
        self,
        row: ChangeRequest,
        trigger: ChangeTrigger,
        *,
        why: CodedMessage | None = None,
        fields: Mapping[str, Any] | None = None,
        also: Mapping[str, Any] | None = None,
        clean: bool = True,
    ) -> None:
        """The next state of the request, which ``write_state`` gave. Raises Refused."""
        move_itself(row, trigger, self.now(), why=why, fields=fields, also=also, clean=clean)

    def audit(self, verb: str, **what: Any) -> None:
        """Store an audit event about the run, in a transaction of ``write``."""
        audit_change(self.request, ITSELF, verb, **what)

    def hint(self) -> None:
        """Pages of the request fetch themselves again."""
        announce_changes(self.execution.request_id, listed=False)

    def publish(self) -> None:
        """After commit: who looks at the run gets its figures and rows."""
        number = self.execution.request_id
        changed.send(sender=Execution, keys=run_keys(number))


STEP_S = 15.0
"""No call is begun later than this after the step was, in seconds."""
CALL_S = 4.0
"""Deadline of a call that changes something, and of the ledger's reads, in seconds."""
_LEAST_S = 0.1


class StepBudget:
    """Begins with the step."""

    def __init__(self) -> None:
        self._until = time.monotonic() + STEP_S

    @property
    def left(self) -> float:
        """Seconds; none where it is 0 or less."""
        return self._until - time.monotonic()

    def reading(self, most: float) -> float:
        """The deadline of a question that is asked now: ``most`` seconds, or what is left.

        A moment where nothing is left: what is not answered in it counts as not known, as of a broker that is silent.
        """
        return max(_LEAST_S, min(most, self.left))
