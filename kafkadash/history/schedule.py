"""When the ingest is due, and who is at it: one row, leased as collectors are."""

from __future__ import annotations

from django.db import connection

from kafkadash.core import leases as lease
from kafkadash.history.models import PipelineState

INGEST = lease.LeasedTable(PipelineState._meta.db_table, "seq")
STATE_ID = 1
PIPELINE = "pipeline"
"""The hint that something about the pipeline is new."""


def ensure_state() -> None:
    """Create the single state row if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {INGEST.table} (id) VALUES (%s) ON CONFLICT DO NOTHING",  # noqa: S608  the model's table
            [STATE_ID],
        )


def claim_due() -> list[int]:
    """The row's id if it is due and nobody is at it, marked as ``lease.claim`` does."""
    ensure_state()
    return lease.claim(INGEST, "WHERE true", 1, 10, most_s=60)


def hand_back(ids: list[int]) -> None:
    lease.unclaim(INGEST, ids)
