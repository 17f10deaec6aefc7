"""``python -m kafkadash.pipeline run | once | backfill | status --uri URI``: the pipeline as a process of its own.

Exit codes: 0; 1 when it failed, or when ``status`` has something to say; 2 when something is missing or was asked for
wrongly. SIGTERM ends ``run`` in good order.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime

from kafkadash.domain.messages import message_text, register_messages
from kafkadash.pipeline import asked as read
from kafkadash.pipeline import session
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.messages import PIPELINE_MESSAGES
from kafkadash.pipeline.store import Store, open_store

FAILED, REFUSED = 1, 2


def main(arguments: Sequence[str]) -> int:
    register_messages(PIPELINE_MESSAGES)
    asked = _parser().parse_args(arguments)
    os.nice(asked.nice)
    try:
        times = read.times(asked.begin, asked.end) if asked.action == "backfill" else None
        if asked.action == "run":
            _require_or_tell(asked.uri)
        else:
            session.require()
        store = open_store(asked.uri)
        if asked.action == "status":
            return _status(store)
    except PipelineFault as fault:
        sys.stderr.write(f"{fault}\n")
        return REFUSED
    try:
        _do(asked, store, times)
    except PipelineFault as fault:
        sys.stderr.write(f"{fault}\n")
        return FAILED
    except Exception as error:  # noqa: BLE001  people get a sentence, below what only makers read
        traceback.print_exc()
        sys.stderr.write(message_text(PipelineErrorCode.BATCH_FAILED, fault=session.first_line(error)) + "\n")
        return FAILED
    return 0


def _require_or_tell(uri: str) -> None:
    """Raises PipelineFault where something is missing; pages tell the same, unless another one runs there."""
    from kafkadash.pipeline.heartbeat import PROMISED_SECONDS, Heartbeat, lives

    try:
        session.require()
    except PipelineFault as fault:
        with contextlib.suppress(PipelineFault, OSError, ValueError):
            store = open_store(uri)
            if not lives(store, datetime.now(UTC)):
                Heartbeat(store, PROMISED_SECONDS, state="failed", fault=str(fault)).beat()
        raise


def _do(asked: argparse.Namespace, store: Store, times: tuple[datetime, datetime] | None) -> None:
    from kafkadash.pipeline import application, backfill

    if times is not None:
        backfill.backfill(store, os.environ, *times, application.say)
        return
    every = asked.every if asked.action == "run" else None
    application.run(store, os.environ, application.Way(every, asked.flushes))


def _status(store: Store) -> int:
    from kafkadash.pipeline.standing import standing

    found = standing(store, datetime.now(UTC))
    for label, words in found.lines:
        sys.stdout.write(f"{label:<12} {words}\n")
    if found.wrong is not None:
        sys.stdout.write(f"{found.wrong}\n")
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kafkadash.pipeline")
    parser.add_argument("action", choices=("run", "once", "backfill", "status"))
    parser.add_argument("--uri", required=True, help="the folder of the pipeline: file:, hdfs: or s3a:")
    parser.add_argument("--every", type=float, default=0.5, metavar="SECONDS", help="between two looks of run")
    parser.add_argument("--flushes", type=int, default=30, metavar="N", help="at most, in one batch")
    parser.add_argument("--nice", type=int, default=0, help="how far behind others on this machine, as of nice(1)")
    parser.add_argument("--from", dest="begin", default="", help="of backfill, in UTC")
    parser.add_argument("--to", dest="end", default="", help="of backfill, in UTC; not in it")
    return parser


if __name__ == "__main__":
    os.umask(0o077)  # the lake names topics, groups and addresses
    sys.exit(main(sys.argv[1:]))
