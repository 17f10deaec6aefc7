"""Command line of the pipeline process: ``python -m kafkadash.pipeline run | once | backfill | status --uri URI``.

Exit codes: 0; 1 if it failed, or if ``status`` has something to report; 2 if something is missing or the arguments are
wrong. SIGTERM ends ``run`` in good order.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime

from kafkadash.core.messages import message_text, register_messages
from kafkadash.pipeline import session
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.messages import PIPELINE_MESSAGES
from kafkadash.pipeline.store import PipelineStore, open_store


def parse_times(begin: str, end: str) -> tuple[datetime, datetime]:
    """In UTC, where nothing else is said. Raises PipelineFault for what is no time, and for an end before its begin."""
    first, last = _parse_time("--from", begin), _parse_time("--to", end)
    if first >= last:
        raise PipelineFault(PipelineErrorCode.FROM_AFTER_TO, begin=begin, end=end)
    return first, last


def _parse_time(option: str, given: str) -> datetime:
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise PipelineFault(PipelineErrorCode.OPTION_NO_TIME, option=option, given=given) from None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


FAILED, REFUSED = 1, 2


def main(arguments: Sequence[str]) -> int:
    register_messages(PIPELINE_MESSAGES)
    options = _parser().parse_args(arguments)
    os.nice(options.nice)
    try:
        times = parse_times(options.begin, options.end) if options.action == "backfill" else None
        if options.action == "run":
            _require_or_tell(options.uri)
        else:
            session.require()
        store = open_store(options.uri)
        if options.action == "status":
            return _print_status(store)
    except PipelineFault as fault:
        sys.stderr.write(f"{fault}\n")
        return REFUSED
    try:
        _do(options, store, times)
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
    from kafkadash.pipeline.heartbeat import PROMISED_SECONDS, PipelineHeartbeat, is_alive

    try:
        session.require()
    except PipelineFault as fault:
        with contextlib.suppress(PipelineFault, OSError, ValueError):
            store = open_store(uri)
            if not is_alive(store, datetime.now(UTC)):
                PipelineHeartbeat(store, PROMISED_SECONDS, state="failed", fault=fault.message).beat()
        raise


def _do(options: argparse.Namespace, store: PipelineStore, times: tuple[datetime, datetime] | None) -> None:
    from kafkadash.pipeline import application, backfill

    if times is not None:
        backfill.backfill(store, os.environ, *times, application.say)
        return
    every = options.every if options.action == "run" else None
    application.run(store, os.environ, application.StreamWay(every, options.flushes))


def _print_status(store: PipelineStore) -> int:
    from kafkadash.pipeline.heartbeat import read_status

    found = read_status(store, datetime.now(UTC))
    for label, words in found.lines:
        sys.stdout.write(f"{label:<12} {words}\n")
    if found.wrong is not None:
        sys.stdout.write(f"{found.wrong}\n")
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kafkadash.pipeline")
    parser.add_argument("action", choices=("run", "once", "backfill", "status"))
    parser.add_argument("--uri", required=True, help="folder of the pipeline: file:, hdfs: or s3a:")
    parser.add_argument(
        "--every", type=float, default=0.5, metavar="SECONDS", help="interval of run between checks for segments"
    )
    parser.add_argument("--flushes", type=int, default=30, metavar="N", help="maximum flushes per batch")
    parser.add_argument("--nice", type=int, default=0, help="nice value, as of nice(1)")
    parser.add_argument("--from", dest="begin", default="", help="start of the backfill, in UTC")
    parser.add_argument("--to", dest="end", default="", help="end of the backfill, exclusive, in UTC")
    return parser


if __name__ == "__main__":
    os.umask(0o077)  # the lake names topics, groups and addresses
    sys.exit(main(sys.argv[1:]))
