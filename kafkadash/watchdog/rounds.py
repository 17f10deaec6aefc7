"""Rounds of scheduled tasks: recorded where a task ends, and probes that ask the workers of each queue for one."""

from __future__ import annotations

from django.db import connection

from kafkadash.watchdog.models import ScheduledTask
from kafkadash.watchdog.rules import AUDIT, AUDITED, DEAD_MAN, TaskRound

_TABLE = ScheduledTask._meta.db_table
_WRITTEN_EVERY_S = 3.0
_QUEUES = [name for name, task in AUDITED.items() if task.queue]
_LONGEST_PAUSE_S = 600.0


def record_round(name: str) -> None:
    """Note that a round of the task ended; most calls of a quick task write nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_TABLE} AS known (name, finished_at) VALUES (%s, clock_timestamp())"  # noqa: S608
            " ON CONFLICT (name) DO UPDATE SET finished_at = excluded.finished_at WHERE known.finished_at IS NULL"
            " OR known.finished_at < excluded.finished_at - make_interval(secs => %s)"
            " OR known.finished_at > excluded.finished_at",
            [name, _WRITTEN_EVERY_S],
        )


def take_turn(name: str) -> bool:
    """Return True for one process in each interval of the task, which then does this round."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_TABLE} AS known (name, asked_at) VALUES (%s, clock_timestamp())"  # noqa: S608
            " ON CONFLICT (name) DO UPDATE SET asked_at = excluded.asked_at WHERE known.asked_at IS NULL"
            " OR known.asked_at <= excluded.asked_at - make_interval(secs => %s)"
            " OR known.asked_at > excluded.asked_at RETURNING 1",
            [name, 0.9 * AUDITED[name].interval_s],
        )
        return cursor.fetchone() is not None


def expect_rounds() -> None:
    """Expect every task from now on that has no row yet; all of them where nobody audited for some time.

    kafkadash was down then, and its tasks are not overdue because of that.
    """
    names = [name for name in AUDITED if name != DEAD_MAN]
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH gap AS (SELECT FROM {_TABLE} WHERE name = %s"  # noqa: S608
            " AND greatest(expected_at, finished_at) < clock_timestamp() - make_interval(secs => %s))"
            f" UPDATE {_TABLE} SET expected_at = clock_timestamp() WHERE EXISTS (SELECT FROM gap)",
            [AUDIT, AUDITED[AUDIT].limit_s],
        )
        cursor.execute(
            f"INSERT INTO {_TABLE} (name) SELECT unnest(%s::text[]) ON CONFLICT (name) DO NOTHING",
            [names],
        )


def claim_probes() -> list[str]:
    """Return the queues that are to be probed now, each marked as asked.

    A queue whose workers are away gets fewer and fewer probes, so that these do not pile up.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {_TABLE} SET asked_at = clock_timestamp() WHERE name = ANY(%s)"  # noqa: S608
            " AND (asked_at IS NULL OR asked_at > clock_timestamp() OR asked_at < clock_timestamp() - make_interval("
            "  secs => least(%s, greatest(%s, extract(epoch FROM asked_at - greatest(expected_at, finished_at)) / 2))))"
            " RETURNING name",
            [_QUEUES, _LONGEST_PAUSE_S, AUDITED[_QUEUES[0]].interval_s],
        )
        return sorted(row[0] for row in cursor.fetchall())


def note_news() -> None:
    """Note that a finding about kafkadash itself came or went; the tick tells open pages (``take_news``)."""
    ScheduledTask.objects.filter(name=AUDIT).update(news=True)


def take_news() -> bool:
    """Return whether there are news, once."""
    return bool(ScheduledTask.objects.filter(name=AUDIT, news=True).update(news=False))


def expect_pings(*, configured: bool) -> None:
    """Expect pings of the dead-man URL, or no longer."""
    if configured:
        ScheduledTask.objects.bulk_create([ScheduledTask(name=DEAD_MAN)], ignore_conflicts=True)
    else:
        ScheduledTask.objects.filter(name=DEAD_MAN).delete()


def load_rounds() -> list[TaskRound]:
    """Return the newest rounds; a task that was never expected is not among them. One query."""
    rows = ScheduledTask.objects.filter(name__in=AUDITED).order_by("name")
    return [TaskRound(*row) for row in rows.values_list("name", "expected_at", "finished_at")]
