"""Which steps that failed are the product's own fault."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.own_faults import own_faults

LOG = """\
2026-11-21T21:16:24.005325Z [info     ] execute@vm ready. [celery.apps.worker]
2026-11-21T21:16:25.005325Z [error    ] execution.step_failed          [kafkadash.reassign.run.step] execution=1
Traceback (most recent call last):
  File "step.py", line 1, in step_once
{error}
2026-11-21T21:16:26.005325Z [info     ] went on
"""


def test_a_fault_of_its_own_is_told(tmp_path: Path) -> None:
    log = tmp_path / "worker-execute.log"
    log.write_text(LOG.format(error="KeyError: 'orders'"), encoding="utf-8")
    assert own_faults([log, tmp_path / "not-there.log"]) == ["worker-execute: a step failed: KeyError: 'orders'"]


def test_a_database_that_is_away_is_none(tmp_path: Path) -> None:
    log = tmp_path / "worker-execute.log"
    errors = ("django.db.utils.OperationalError: the connection is closed", "psycopg_pool.PoolTimeout: after 10.00 sec")
    log.write_text("".join(LOG.format(error=error) for error in errors), encoding="utf-8")
    assert own_faults([log]) == []
