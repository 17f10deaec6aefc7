"""What one step of a run works with: its lease, its request, its rows, and how it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from kafkadash.changes.guards import locked
from kafkadash.changes.live import tell
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.refusals import Changed
from kafkadash.changes.transitions import audit, move
from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Options
from kafkadash.domain.workflow import Deed
from kafkadash.domain.workflow_states import State, Trigger, Who
from kafkadash.events import changed
from kafkadash.observe.lease import Lease, LeaseLost
from kafkadash.reassign.checks import limits_of
from kafkadash.reassign.models import Execution, Order
from kafkadash.reassign.run.live_keys import run_keys
from kafkadash.reassign.window_facts import run_options

ITSELF = "kafkadash"


@dataclass(slots=True)
class Running:
    """``execution`` as it was read when the lease was taken, with request and cluster. ``options`` has the rate and
    the limits in force. ``orders``: whether somebody asked for something that was not taken yet.
    """

    lease: Lease
    execution: Execution
    orders: bool

    @classmethod
    def of(cls, lease: Lease) -> Running | None:
        """One query; None when the run is gone, or its cluster: that is never asked again."""
        waiting = Order.objects.filter(execution=OuterRef("pk"), taken_at=None)
        execution = (
            Execution.objects.select_related("request", "cluster")
            .defer("report")
            .annotate(orders_wait=Exists(waiting))
            .filter(pk=lease.run_id, cluster__removed_at=None)
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
    def state(self) -> State:
        return State(self.request.state)

    @property
    def options(self) -> Options:
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
        with transaction.atomic():
            try:
                row = locked(self.request)
            except Changed as gone:
                raise LeaseLost from gone
            with self.lease.write():
                yield row

    def save(self, **fields: Any) -> None:
        """Columns of the run's own row, in a transaction of ``write``."""
        Execution.objects.filter(pk=self.execution.pk).update(**fields)

    def move(
        self,
        row: ChangeRequest,
        trigger: Trigger,
        *,
        reason: str = "",
        fields: Mapping[str, Any] | None = None,
        also: Mapping[str, Any] | None = None,
    ) -> None:
        """The next state of the request, which ``write_state`` gave. Raises Refused."""
        move(
            row,
            Deed(trigger, capacities=frozenset({Who.ITSELF}), reason=reason),
            rules_of(policy_of(row.cluster)),
            self.now(),
            actor=ITSELF,
            fields=fields,
            also=also,
        )

    def audit(self, verb: str, **what: Any) -> None:
        """One event about the run, in a transaction of ``write``."""
        audit(self.request, ITSELF, verb, **what)

    def hint(self) -> None:
        """Pages of the request fetch themselves again."""
        tell(self.execution.request_id, listed=False)

    def publish(self) -> None:
        """After commit: who looks at the run gets its figures and rows."""
        number = self.execution.request_id
        changed.send(sender=Execution, keys=run_keys(number))
