"""Stored findings as pages show them.

A board reads hundreds of findings and shows some of them. Making model instances of them takes several times as long
as reading them, so they are tuples here, and their JSON is parsed when it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from kafkadash.core.messages import CodedMessage
from kafkadash.findings.messages import FindingTexts, read_texts
from kafkadash.findings.models import Finding
from kafkadash.maintenance.models import QuietPeriod


class StoredFinding(NamedTuple):
    """Columns of ``models.Finding``, with its JSON as text, and of its owner and its window or silence.

    ``owner`` is a user name; None where nobody owns it. All of ``quiet_`` are None without a window or silence.
    """

    pk: int
    cluster_id: int | None
    public_id: str
    kind: str
    scope: str
    message_code: str
    params: str
    value: float | None
    threshold: float | None
    measured: str
    limit: str
    changes: str
    since: datetime | None
    first_seen_at: datetime
    opened_at: datetime | None
    seen_at: datetime
    closed_at: datetime | None
    owner: str | None
    acknowledged_at: datetime | None
    acknowledged_until: datetime | None
    acknowledge_note: str
    snoozed: bool
    cause_id: int | None
    cause_run: int | None
    quiet_id: int | None
    quiet_purpose: str | None
    quiet_broker: int | None
    quiet_rack: str | None
    quiet_begins_at: datetime | None
    quiet_ends_at: datetime | None
    quiet_reason: str | None
    quiet_author_name: str | None

    @property
    def quiet(self) -> QuietPeriod | None:
        """Return the window or silence with what pages show of it."""
        if self.quiet_id is None:
            return None
        return QuietPeriod(**dict(zip(_QUIET_COLUMNS, self[-len(_QUIET_COLUMNS) :], strict=True)))

    @property
    def history(self) -> Sequence[Sequence[float]]:
        """Return the changes of the number as ``models.Finding`` keeps them."""
        changes: list[list[float]] = json.loads(self.changes)
        return changes

    @property
    def message(self) -> CodedMessage:
        return CodedMessage.from_json({"code": self.message_code, "params": json.loads(self.params)})

    @property
    def texts(self) -> FindingTexts:
        return read_texts(self.message_code, self.params)

    @property
    def title(self) -> str:
        """Heading without the cluster's name."""
        return self.texts.title


_QUIET_COLUMNS = ("id", "purpose", "broker", "rack", "begins_at", "ends_at", "reason", "author_name")
_COLUMNS: Sequence[str | Combinable] = (
    *("pk", "cluster_id", "public_id", "kind", "scope", "message_code", Cast("message_params", TextField())),
    *("value", "threshold", "measured", "limit", Cast("history", TextField())),
    *("since", "first_seen_at", "opened_at", "seen_at", "closed_at"),
    *("acknowledged_by__username", "acknowledged_at", "acknowledged_until", "acknowledge_note", "snoozed"),
    *("cause_id", "cause_run"),
    *(f"quiet__{name}" for name in _QUIET_COLUMNS),
)
"""In the order of the fields of ``StoredFinding``."""


def read_findings(rows: QuerySet[Finding]) -> list[StoredFinding]:
    """Return the findings of one query."""
    return [StoredFinding(*row) for row in rows.values_list(*_COLUMNS)]
