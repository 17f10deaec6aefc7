"""Runs as the executor leaves them, for tests of what is shown of one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import RunOptions
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.execution.engine.reasons import RowAboveLimit, StuckReason
from kafkadash.execution.engine.state import IN_FLIGHT, RowState
from kafkadash.execution.kind import digest_change
from kafkadash.execution.models import Execution, Move
from kafkadash.execution.progress.figures import BrokerNow, FlowDirection, RowMark, RowNow, RunNow
from kafkadash.execution.worker.measure import FORMAT
from kafkadash.planning.proposal import DRAIN, KIND, PlanInput, options_json
from tests.changes.parcels import propose
from tests.factories import GB, NOW

MB = 1_000_000
OPTIONS = RunOptions(throttle=60 * MB, throttle_min=20 * MB, throttle_max=80 * MB)
TOPIC_ID = "pW7mE1rASEqVl0d3kB4pzQ"


def requested(
    cluster: Cluster,
    author: User,
    state: ChangeState = ChangeState.EXECUTING,
    options: RunOptions = OPTIONS,
    **fields: Any,
) -> ChangeRequest:
    """A drain of broker 3 in this state."""
    asked = PlanInput(mode=DRAIN, brokers=(3,))
    change = propose(
        cluster,
        author,
        state,
        **{
            "title": "Drain broker 3",
            "input": pack_dataclass(asked),
            "options": options_json(options, asked),
            **fields,
        },
    )
    ChangeRequest.objects.filter(pk=change.pk).update(kind=KIND)
    return approve_as_stored(change)


def approve_as_stored(change: ChangeRequest) -> ChangeRequest:
    """As if what is stored of the request now had been approved; read anew."""
    stored = ChangeRequest.objects.select_related("cluster").get(pk=change.pk)
    ChangeRequest.objects.filter(pk=change.pk).update(digest=digest_change(stored))
    return ChangeRequest.objects.get(pk=change.pk)


def moves(
    execution: Execution,
    states: Mapping[RowState, int],
    now: datetime = NOW,
    *,
    topic: str = "events",
    **fields: Any,
) -> list[Move]:
    """So many rows in each state, 3 → 6; what has begun did so some minutes ago, and they are of 4.2 GB each."""
    rows, number = [], Move.objects.filter(execution=execution).count()
    for state, many in states.items():
        begun = state in IN_FLIGHT or state is RowState.DONE
        for _ in range(many):
            at = now - timedelta(minutes=4 + number % 7)
            rows.append(
                Move(
                    **{
                        "execution": execution,
                        "topic": topic,
                        "topic_id": TOPIC_ID,
                        "partition": number,
                        "current": [3, 2, 1],
                        "target": [6, 2, 1],
                        "size_bytes": 4_200_000_000 + 1_000_000 * (number % 900),
                        "state": state,
                        "since": at + timedelta(minutes=3) if state is RowState.DONE else at,
                        "first_at": at if begun else None,
                        "submitted_at": at if begun else None,
                        "attempt": 1 if begun else 0,
                        "moved_bytes": 4_200_000_000 if state is RowState.DONE else None,
                        **fields,
                    }
                )
            )
            number += 1
    return Move.objects.bulk_create(rows)


def row_now(move: Move, percent: float | None = 62.04, now: datetime = NOW, **fields: Any) -> RowNow:
    size = move.size_bytes
    moved = None if percent is None or size is None else round(size * percent / 100)
    left = None if moved is None or size is None else (size - moved) / 19_200_000
    return RowNow(
        **{
            "topic": move.topic,
            "partition": move.partition,
            "source": 2,
            "percent": percent,
            "size_bytes": size,
            "moved_bytes": moved,
            "rate": 19_200_000.0,
            "eta_s": left,
            "grew_at": now - timedelta(seconds=3),
            "sampled_at": now - timedelta(seconds=3),
            **fields,
        }
    )


def stuck(move: Move, why: StuckReason | None = None, now: datetime = NOW, **fields: Any) -> RowNow:
    return row_now(
        move,
        16.2,
        now,
        **{
            "source": 4,
            "rate": 0.0,
            "eta_s": float("inf"),
            "grew_at": now - timedelta(minutes=25),
            "mark": RowMark.STUCK,
            "why": why or RowAboveLimit(4, "out", 10, str(move), 200_000),
            **fields,
        },
    )


def figures(rows: Sequence[RowNow] = (), now: datetime = NOW, **fields: Any) -> RunNow:
    """Half of 665.5 GB copied, most of it into broker 6, which binds the time left."""
    into = {6: (605.1, 278.5), 5: (22.3, 22.3), 1: (18.2, 18.2), 2: (16.2, 16.2), 4: (3.7, 3.7)}
    return RunNow(
        **{
            "at": now - timedelta(seconds=3),
            "total_bytes": round(665.5 * GB),
            "moved_bytes": round(338.9 * GB),
            "percent": 50.92,
            "rate": 58_600_000.0,
            "eta_s": 5573.0,
            "eta_low_s": 5390.0,
            "eta_high_s": 6110.0,
            "binding": (6, FlowDirection.IN),
            "brokers": tuple(
                BrokerNow(
                    broker,
                    FlowDirection.IN,
                    round(total * GB),
                    round(moved * GB),
                    58_600_000.0 if broker == 6 else None,
                    5573.0 if broker == 6 else None,
                )
                for broker, (total, moved) in into.items()
            ),
            "rows": tuple(rows),
            **fields,
        }
    )


def running(
    change: ChangeRequest,
    states: Mapping[RowState, int] | None = None,
    *,
    now: datetime = NOW,
    stuck_rows: int = 0,
    topic: str = "events",
    **fields: Any,
) -> Execution:
    """A run of which the cluster was read three seconds ago; the first ``stuck_rows`` of those that move are stuck."""
    states = {RowState.MOVING: 5, RowState.PENDING: 177, RowState.DONE: 48} if states is None else states
    execution = Execution.objects.create(
        **{
            "request": change,
            "cluster": change.cluster,
            "active": change.state
            not in (ChangeState.QUEUED, ChangeState.DONE, ChangeState.CANCELLED, ChangeState.FAILED),
            "started_at": now - timedelta(hours=2),
            "queued_at": now - timedelta(hours=2, minutes=1),
            "throttle": 60 * MB,
            "per_broker": 5,
            "per_cluster": 50,
            "rows": sum(states.values()),
            "steps": 3600,
            "looked_at": now - timedelta(seconds=3),
            "progress_at": now - timedelta(seconds=3),
            **fields,
        }
    )
    stored = moves(execution, states, now, topic=topic)
    moving = [move for move in stored if move.state in IN_FLIGHT]
    seen = [stuck(move, now=now) if n < stuck_rows else row_now(move, now=now) for n, move in enumerate(moving)]
    if "progress" not in fields:
        progressed(execution, figures(seen, now))
    return execution


def progressed(execution: Execution, now_figures: RunNow) -> None:
    """These are the figures of its last step."""
    execution.progress = zlib.compress(json.dumps(pack_dataclass(now_figures, format_number=FORMAT)).encode())
    execution.save(update_fields=["progress"])
