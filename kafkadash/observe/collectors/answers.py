"""Answers of brokers: a sign of life of each, asked for often.

The controllers take a broker for alive until its session has timed out (broker.session.timeout.ms, 9 s), and metadata
says so that long. A process that was killed refuses connections at once.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.kafka.port import ApiVersions
from kafkadash.observe.collectors.reading import Asking, Reading, moment, refuse_nothing
from kafkadash.observe.collectors.writing import update_rows
from kafkadash.observe.lease import Stamp, one_writer_of_shapes
from kafkadash.observe.models import BrokerState, Kind

TRY_S = 4.0
"""A broker that does not answer within two tries of so many seconds is silent; one that refuses is so at once."""


def read(asking: Asking) -> Reading:
    """Asks every broker that the cluster lists as alive; one that fails is asked once more, over a new connection."""
    answer = _ask(asking)
    if silent := _silent(answer):
        answer = _ask(asking)
        silent &= _silent(answer)
    refuse_nothing(answer.brokers, answer.errors)
    taken_at = moment(answer.taken_at)
    known = list(
        BrokerState.objects.filter(cluster=asking.cluster).only("broker_id", "silent_since", "fenced", "gone_at")
    )
    changed = _changed(known, answer.brokers, silent, taken_at)

    def write(_: Stamp) -> None:
        one_writer_of_shapes(asking.cluster.pk)
        update_rows(BrokerState, changed)

    listed = answer.brokers.keys() | answer.errors.keys()
    up = {row.broker_id for row in known if row.gone_at is None and not row.fenced}
    return Reading(
        taken_at=taken_at,
        rows=len(listed),
        write=write,
        not_answered=sorted(silent),
        errors=[f"broker {broker}: {error.text}" for broker, error in sorted(answer.errors.items())],
        doubts=[Kind.METADATA] if changed or up != listed else [],
    )


def _ask(asking: Asking) -> ApiVersions:
    asking.step()
    return asking.admin.api_versions(deadline=min(TRY_S, asking.deadline))


def _silent(answer: ApiVersions) -> set[int]:
    """Brokers from which nothing came; a refused login is an answer."""
    refused = FailureKind.CREDENTIALS_REFUSED
    return {broker for broker, error in answer.errors.items() if error.code is None and error.name != refused}


def _changed(
    known: Collection[BrokerState], answered: Collection[int], silent: Collection[int], taken_at: datetime
) -> dict[int, dict[str, datetime | None]]:
    """Primary key → since when it is silent. One that is not listed as alive stays what it was until it answers."""
    changed: dict[int, dict[str, datetime | None]] = {}
    for row in known:
        if row.broker_id in silent and row.silent_since is None:
            changed[row.pk] = {"silent_since": taken_at}
        elif row.broker_id in answered and row.silent_since is not None:
            changed[row.pk] = {"silent_since": None}
    return changed
