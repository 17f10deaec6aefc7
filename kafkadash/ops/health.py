"""Health of kafkadash itself, for load balancers and container supervisors: ``/livez`` and ``/readyz``.

Both are public, so that a supervisor needs no account; they show states and ages, and no names. Clusters that do not
answer make kafkadash degraded, not unready: a page that says "unknown" is what people need then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import redis
import structlog
from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from kafkadash.changes.models import STEPS_BEFORE_ARE_OVER
from kafkadash.clusters.access import public
from kafkadash.core import clock
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import CodedMessage, choose_plural, coded
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


class CheckState(StrEnum):
    """``BAD`` makes the whole not ready, ``DEGRADED`` does not; ``UNKNOWN`` could not be asked."""

    OK = "ok"
    DEGRADED = "degraded"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """``age_s`` is how old what was found is, in seconds; None where nothing has an age. ``found`` is a message with a
    code where something is wrong.
    """

    state: CheckState
    found: CodedMessage | str
    age_s: float | None = None

    @property
    def sentence(self) -> str:
        return str(self.found)

    @property
    def code(self) -> str:
        """'' where nothing is wrong."""
        return str(self.found.code) if isinstance(self.found, CodedMessage) else ""

    def as_json(self) -> dict[str, Any]:
        return {"state": self.state, "code": self.code, "sentence": self.sentence, "age_s": self.age_s}


_UNASKED = HealthCheck(CheckState.UNKNOWN, coded(OperationErrorCode.NOT_KNOWN_WITHOUT_DATABASE))


def record_beat(name: str = TICK) -> None:
    """Note that this part did its round, by the database's clock; most calls write nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ops_heartbeat AS known (name, at) VALUES (%s, clock_timestamp())"
            " ON CONFLICT (name) DO UPDATE SET at = excluded.at"
            " WHERE known.at < excluded.at - make_interval(secs => %s)",
            [name, BEAT_WRITTEN_EVERY_S],
        )


def clock_set_back_s(name: str = TICK) -> float:
    """Seconds by which the database's clock was set back since the last ``record_beat``, else 0. Told once."""
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


def recent_checks() -> dict[str, HealthCheck]:
    """``run_checks``, asked for at most every ``ASKED_AGAIN_S``: anybody may ask, as often as they like."""
    with _recent.lock:
        if _recent.found is None or time.monotonic() - _recent.at >= ASKED_AGAIN_S:
            _recent.found = run_checks()
            _recent.at = time.monotonic()
        return _recent.found


def forget_recent_checks() -> None:
    with _recent.lock:
        _recent.found = None


class _RecentChecks:
    """The checks that this process made last, and when by its monotonic clock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: dict[str, HealthCheck] | None = None
        self.at = 0.0


_recent = _RecentChecks()


def run_checks() -> dict[str, HealthCheck]:
    """Every check by name; quick also where something hangs, as each has its own time limit."""
    found = {"database": _check_database()}
    found["redis"] = _check_redis()
    for name, check in (
        ("clock", _check_clock),
        ("beat", _check_tick),
        ("collection", _check_collection),
        ("runs", _check_runs),
    ):
        found[name] = _UNASKED
        if found["database"].state is CheckState.OK:
            try:
                found[name] = check()
            except Error as error:  # it went away since it answered
                found["database"] = _cannot_be_asked(error)
    return found


def is_ready(found: Mapping[str, HealthCheck]) -> bool:
    return all(check.state is not CheckState.BAD for check in found.values())


def as_json(found: Mapping[str, HealthCheck]) -> dict[str, Any]:
    worst = "ready" if all(check.state is CheckState.OK for check in found.values()) else "degraded"
    return {
        "state": worst if is_ready(found) else "not ready",
        "checks": {name: check.as_json() for name, check in found.items()},
    }


def _check_database() -> HealthCheck:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        return _cannot_be_asked(error)
    return HealthCheck(CheckState.OK, "The database answers.")


def _cannot_be_asked(error: Error) -> HealthCheck:
    log.warning("health.database", error=str(error))
    return HealthCheck(CheckState.BAD, coded(OperationErrorCode.DATABASE_SILENT))


def _check_redis() -> HealthCheck:
    limits = {"socket_connect_timeout": REDIS_WAIT_S, "socket_timeout": REDIS_WAIT_S}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        log.warning("health.redis", error=str(error))
        return HealthCheck(CheckState.BAD, coded(OperationErrorCode.REDIS_SILENT))
    return HealthCheck(CheckState.OK, "Redis answers.")


def read_clock() -> datetime:
    """The database's time; whatever this process reads from now on is stamped with it (``core.clock``)."""
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (told,) = cursor.fetchone()
    clock.set_right(told, time.monotonic() - began)
    return told  # type: ignore[no-any-return]


def _check_clock() -> HealthCheck:
    """How far the clock of this machine is from the database's."""
    before = datetime.now(UTC)
    told = read_clock()
    ahead, behind = (before - told).total_seconds(), (told - datetime.now(UTC)).total_seconds()
    off = max(ahead, behind)
    if off <= CLOCK_OFF_S:
        return HealthCheck(CheckState.OK, "This machine's clock is in sync with the database.")
    way = "ahead of" if ahead > behind else "behind"
    message = coded(OperationErrorCode.CLOCK_WRONG, off=format_duration(off), way=way)
    return HealthCheck(CheckState.BAD if off > CLOCK_WRONG_S else CheckState.DEGRADED, message)


def _check_tick() -> HealthCheck:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp() - at) FROM ops_heartbeat WHERE name = %s", [TICK])
        row = cursor.fetchone()
    if row is None:
        return HealthCheck(CheckState.BAD, coded(OperationErrorCode.NEVER_TICKED))
    age = max(0.0, float(row[0]))
    if age > BEAT_LATE_S:
        message = coded(OperationErrorCode.TICK_LATE, age=format_duration(age))
        return HealthCheck(CheckState.BAD, message, round(age, 1))
    return HealthCheck(CheckState.OK, "The tick is running.", round(age, 1))


def _check_collection() -> HealthCheck:
    """The collector of an enabled cluster that is longest overdue, and how many clusters do not answer."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - r.next_at))"
            "  FILTER (WHERE r.lease_until IS NULL OR r.lease_until < clock_timestamp()), 0),"
            " COUNT(DISTINCT r.cluster_id),"
            " COUNT(DISTINCT r.cluster_id) FILTER (WHERE r.kind = 'metadata' AND r.failures > 0),"
            " EXTRACT(EPOCH FROM clock_timestamp() - MAX(r.attempted_at))"
            " FROM monitoring_collectorrun r JOIN clusters_cluster c ON c.id = r.cluster_id WHERE c.enabled"
        )
        overdue, clusters, silent, quiet = cursor.fetchone()
    late = max(0.0, float(overdue))
    if not clusters:
        return HealthCheck(CheckState.OK, "No cluster is enabled.")
    if late > COLLECTION_LATE_S:
        if quiet is not None and quiet > COLLECTION_LATE_S:
            return HealthCheck(
                CheckState.BAD,
                coded(OperationErrorCode.COLLECTION_STANDS, age=format_duration(float(quiet))),
                round(late, 1),
            )
        return HealthCheck(
            CheckState.DEGRADED, coded(OperationErrorCode.COLLECTION_LATE, age=format_duration(late)), round(late, 1)
        )
    if silent:
        return HealthCheck(
            CheckState.DEGRADED,
            coded(OperationErrorCode.CLUSTERS_SILENT, silent=silent, clusters=clusters),
            round(late, 1),
        )
    return HealthCheck(CheckState.OK, "All collectors are on time.", round(late, 1))


def is_collection_on_time() -> bool:
    """Return whether no collector waits for a worker; clusters that do not answer are read on time all the same."""
    found = _check_collection()
    return found.state is CheckState.OK or found.code == OperationErrorCode.CLUSTERS_SILENT


def _check_runs() -> HealthCheck:
    """The run of a change that waits longest for a worker, but for steps that wait for the step before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - r.next_at))"  # noqa: S608
            "  FILTER (WHERE r.lease_until IS NULL OR r.lease_until < clock_timestamp()), 0), COUNT(*)"
            " FROM execution_execution r JOIN changes_changerequest c ON c.id = r.request_id"
            " JOIN clusters_cluster k ON k.id = r.cluster_id"
            " WHERE k.removed_at IS NULL AND c.state IN"
            f" ('queued', 'executing', 'paused', 'cancelling', 'verifying') AND {STEPS_BEFORE_ARE_OVER}"
        )
        overdue, runs = cursor.fetchone()
    late = max(0.0, float(overdue))
    if not runs:
        return HealthCheck(CheckState.OK, "No runs.")
    if late > RUNS_LATE_S:
        message = coded(OperationErrorCode.RUN_LATE, age=format_duration(late))
        return HealthCheck(CheckState.DEGRADED, message, round(late, 1))
    return HealthCheck(CheckState.OK, f"{choose_plural('# run|# runs', runs)} on time.", round(late, 1))


@require_safe
@public
@never_cache
def livez(_request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers at all; asks nobody else."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
@public
@never_cache
def readyz(_request: HttpRequest) -> HttpResponse:
    """503 when the database, Redis or the tick is gone."""
    found = recent_checks()
    return JsonResponse(as_json(found), status=200 if is_ready(found) else 503)
