"""When collectors are due: leases of ``CollectorRun`` rows, handed out by the tick (``kafkadash.core.leases``)."""

from __future__ import annotations

from collections.abc import Iterable

from kafkadash.core import leases
from kafkadash.core.leases import LeasedTable, RowLease
from kafkadash.monitoring.models import CollectorRun

COLLECTORS = LeasedTable(CollectorRun._meta.db_table, "seq", overruns="overruns")


def take_lease(run_id: int, *, only_if_due: bool = True) -> RowLease | None:
    """Return the lease of a collector, or None while another worker has it or its time has not come."""
    return leases.take(run_id, of=COLLECTORS, only_if_due=only_if_due)


def read_soon(cluster_id: int, kinds: Iterable[str]) -> None:
    """Makes these kinds due now, because something says that what is stored of them may not hold any more.

    A refresh that is under way began before that: it is followed by another. Kinds that must not be
    tried quickly keep their pause: refused credentials, and refreshes that hang.
    """
    runs = CollectorRun.objects.filter(
        cluster=cluster_id, kind__in=[str(kind) for kind in kinds], refusals=0, overruns=0
    )
    runs.update(next_at=leases.from_now(0))


def claim_due(limit: int = 200, hold_s: float = 10, most_s: float = 60) -> list[int]:
    """Ids of collectors that are due and that nobody works on, marked as ``claim`` does."""
    where = "JOIN clusters_cluster c ON c.id = r.cluster_id WHERE c.enabled"
    return leases.claim(COLLECTORS, where, limit, hold_s, most_s=most_s)


def hand_back(run_ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away, for collectors that could not be handed to a worker."""
    leases.unclaim(COLLECTORS, run_ids)
