"""Is kafkadash itself well? For load balancers and container supervisors; nothing here says anything about anybody.

Clusters that do not answer make kafkadash degraded, not unready: a page that says "unknown" is what people need then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import redis
import structlog
from django.conf import settings
from django.db import Error, connection

from kafkadash.accounts.errors import lazy_text
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count, duration
from kafkadash.kafka import clock
from kafkadash.ops.errors import OperationErrorCode

log = structlog.get_logger(__name__)

TICK = "tick"
BEAT_WRITTEN_EVERY_S = 3.0
BEAT_LATE_S = 30.0
COLLECTION_LATE_S = 60.0
RUNS_LATE_S = 30.0
REDIS_WAIT_S = 1.5
# Pages compare times that the database's clock gave with the clock of the machine that serves them.
CLOCK_OFF_S = 2.0
ASKED_AGAIN_S = 1.0
CLOCK_WRONG_S = 30.0


class State(StrEnum):
    """``BAD`` makes the whole not ready, ``DEGRADED`` does not; ``UNKNOWN`` could not be asked."""

    OK = "ok"
    DEGRADED = "degraded"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """``age_s`` is how old what was found is, in seconds; None where nothing has an age."""

    state: State
    sentence: str
    age_s: float | None = None


_UNASKED = Check(State.UNKNOWN, lazy_text(OperationErrorCode.NOT_KNOWN_WITHOUT_DATABASE))


def beat(name: str = TICK) -> None:
    """Note that this part did its round, by the database's clock; most calls write nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ops_heartbeat AS known (name, at) VALUES (%s, clock_timestamp())"
            " ON CONFLICT (name) DO UPDATE SET at = excluded.at"
            " WHERE known.at < excluded.at - make_interval(secs => %s)",
            [name, BEAT_WRITTEN_EVERY_S],
        )


def clock_set_back_s(name: str = TICK) -> float:
    """By how many seconds the database's clock was set back since the last ``beat``; 0 if it was not. Told once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH ahead AS (SELECT name, at FROM ops_heartbeat"
            "   WHERE name = %s AND at > clock_timestamp() + make_interval(secs => %s) FOR UPDATE)"
            " UPDATE ops_heartbeat SET at = clock_timestamp() FROM ahead WHERE ops_heartbeat.name = ahead.name"
            " RETURNING extract(epoch FROM ahead.at - clock_timestamp())",
            [name, CLOCK_OFF_S],
        )
        told = cursor.fetchone()
    return float(told[0]) if told else 0.0


def recent_checks() -> dict[str, Check]:
    """``checks``, asked for at most every ``ASKED_AGAIN_S``: anybody may ask, as often as they like."""
    with _recent.lock:
        if _recent.found is None or time.monotonic() - _recent.at >= ASKED_AGAIN_S:
            _recent.found = checks()
            _recent.at = time.monotonic()
        return _recent.found


def forget_recent_checks() -> None:
    with _recent.lock:
        _recent.found = None


class _RecentChecks:
    """The checks that this process made last, and when by its monotonic clock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: dict[str, Check] | None = None
        self.at = 0.0


_recent = _RecentChecks()


def checks() -> dict[str, Check]:
    """Every check by name; quick also where something hangs, as each has its own time limit."""
    found = {"database": _database()}
    found["redis"] = _redis()
    for name, check in (("clock", _clock), ("beat", _beat), ("collection", _collection), ("runs", _runs)):
        found[name] = _UNASKED
        if found["database"].state is State.OK:
            try:
                found[name] = check()
            except Error as error:  # it went away since it answered
                found["database"] = _cannot_be_asked(error)
    return found


def ready(found: Mapping[str, Check]) -> bool:
    return all(check.state is not State.BAD for check in found.values())


def as_json(found: Mapping[str, Check]) -> dict[str, Any]:
    worst = "ready" if all(check.state is State.OK for check in found.values()) else "degraded"
    return {
        "state": worst if ready(found) else "not ready",
        "checks": {name: asdict(check) for name, check in found.items()},
    }


def _database() -> Check:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        return _cannot_be_asked(error)
    return Check(State.OK, "The database answers.")


def _cannot_be_asked(error: Error) -> Check:
    log.warning("health.database", error=str(error))
    return Check(State.BAD, message_text(OperationErrorCode.DATABASE_SILENT))


def _redis() -> Check:
    limits = {"socket_connect_timeout": REDIS_WAIT_S, "socket_timeout": REDIS_WAIT_S}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        log.warning("health.redis", error=str(error))
        return Check(State.BAD, message_text(OperationErrorCode.REDIS_SILENT))
    return Check(State.OK, "Redis answers.")


def read_clock() -> datetime:
    """The database's time; whatever this process reads from now on is stamped with it (``kafka.clock``)."""
    asked = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (told,) = cursor.fetchone()
    clock.set_right(told, time.monotonic() - asked)
    return told  # type: ignore[no-any-return]


def _clock() -> Check:
    """How far the clock of this machine is from the database's."""
    before = datetime.now(UTC)
    told = read_clock()
    ahead, behind = (before - told).total_seconds(), (told - datetime.now(UTC)).total_seconds()
    off = max(ahead, behind)
    if off <= CLOCK_OFF_S:
        return Check(State.OK, "This machine's clock is right.")
    way = "ahead of" if ahead > behind else "behind"
    sentence = message_text(OperationErrorCode.CLOCK_WRONG, off=duration(off), way=way)
    return Check(State.BAD if off > CLOCK_WRONG_S else State.DEGRADED, sentence)


def _beat() -> Check:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp() - at) FROM ops_heartbeat WHERE name = %s", [TICK])
        row = cursor.fetchone()
    if row is None:
        return Check(State.BAD, message_text(OperationErrorCode.NEVER_TICKED))
    age = max(0.0, float(row[0]))
    if age > BEAT_LATE_S:
        sentence = message_text(OperationErrorCode.TICK_LATE, age=duration(age))
        return Check(State.BAD, sentence, round(age, 1))
    return Check(State.OK, "The tick runs.", round(age, 1))


def _collection() -> Check:
    """The collector of an enabled cluster that is longest overdue, and how many clusters do not answer."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - r.next_at))"
            "  FILTER (WHERE r.lease_until IS NULL OR r.lease_until < clock_timestamp()), 0),"
            " COUNT(DISTINCT r.cluster_id),"
            " COUNT(DISTINCT r.cluster_id) FILTER (WHERE r.kind = 'metadata' AND r.failures > 0),"
            " EXTRACT(EPOCH FROM clock_timestamp() - MAX(r.attempted_at))"
            " FROM observe_collectorrun r JOIN clusters_cluster c ON c.id = r.cluster_id WHERE c.enabled"
        )
        overdue, clusters, silent, quiet = cursor.fetchone()
    late = max(0.0, float(overdue))
    if not clusters:
        return Check(State.OK, "No cluster is to be collected.")
    if late > COLLECTION_LATE_S:
        if quiet is not None and quiet > COLLECTION_LATE_S:
            return Check(
                State.BAD,
                message_text(OperationErrorCode.COLLECTION_STANDS, age=duration(float(quiet))),
                round(late, 1),
            )
        return Check(
            State.DEGRADED, message_text(OperationErrorCode.COLLECTION_LATE, age=duration(late)), round(late, 1)
        )
    if silent:
        verb = "does" if silent == 1 else "do"
        return Check(
            State.DEGRADED,
            message_text(
                OperationErrorCode.CLUSTERS_SILENT, silent=silent, clusters=count(clusters, "cluster"), verb=verb
            ),
            round(late, 1),
        )
    return Check(State.OK, "Every collector is on time.", round(late, 1))


def _runs() -> Check:
    """The run of a change that waits longest for a worker."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - r.next_at))"
            "  FILTER (WHERE r.lease_until IS NULL OR r.lease_until < clock_timestamp()), 0), COUNT(*)"
            " FROM reassign_execution r JOIN changes_changerequest c ON c.id = r.request_id"
            " JOIN clusters_cluster k ON k.id = r.cluster_id"
            " WHERE k.removed_at IS NULL AND c.state IN"
            " ('queued', 'executing', 'paused', 'cancelling', 'verifying')"
        )
        overdue, runs = cursor.fetchone()
    late = max(0.0, float(overdue))
    if not runs:
        return Check(State.OK, "No change is running.")
    if late > RUNS_LATE_S:
        sentence = message_text(OperationErrorCode.RUN_LATE, age=duration(late))
        return Check(State.DEGRADED, sentence, round(late, 1))
    return Check(State.OK, f"{count(runs, 'run')} on time.", round(late, 1))
