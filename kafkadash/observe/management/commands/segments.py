"""``manage.py segments check [URI]``, ``flush`` and ``status``: the files in which facts leave for the pipeline."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kafkadash.accounts.errors import command_error
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count, size
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.segments import flusher
from kafkadash.observe.segments.check import Checked, check
from kafkadash.observe.segments.places import PlaceUnknown, place
from kafkadash.observe.segments.status import missing, standing


class Command(BaseCommand):
    help = "Checks segments, writes what waits, or says how it stands. Exit 1 if something is wrong, 2 for bad input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_subparsers(dest="what", required=True)
        checks = what.add_parser("check", help="read every manifest and every file that it names")
        checks.add_argument(
            "uri", nargs="?", metavar="URI", help="of the folder of segments; else that of PIPELINE_URI"
        )
        what.add_parser("flush", help="write what waits now, whoever else's turn it is")
        what.add_parser("status", help="what waits, since when, and what was lost")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["what"] != "status" and missing():
            raise CommandError(missing(), returncode=2)
        match options["what"]:
            case "check":
                self._check(options["uri"] or flusher.segments_uri())
            case "flush":
                self._flush()
            case _:
                self._status()

    def _check(self, uri: str) -> None:
        checked, wrong = Checked(), 0
        try:
            where = place(uri)
            for sentence in check(where, datetime.now(UTC), checked):
                wrong += 1
                self.stderr.write(sentence)
        except PlaceUnknown as error:
            raise CommandError(str(error), returncode=2) from error
        except OSError as error:
            fault = error.strerror or (str(error).splitlines() or ["it does not answer"])[0].rstrip(".")
            raise command_error(CollectionErrorCode.PLACE_UNKNOWN, uri=uri, fault=fault, returncode=2) from error
        if not checked.flushes and not wrong:
            raise command_error(CollectionErrorCode.NO_SEGMENTS, uri=uri, returncode=2)
        found = ", ".join(
            (
                count(checked.flushes, "flush", "flushes"),
                f"{count(checked.snapshots, 'refresh', 'refreshes')} ({checked.missing} without their rows)",
                count(checked.files, "file"),
                count(checked.rows, "row"),
            )
        )
        self.stdout.write(f"{found}: {count(wrong, 'thing')} wrong" if wrong else f"{found}: all as it should be")
        if wrong:
            sys.exit(1)

    def _flush(self) -> None:
        done = flusher.flush(flusher.ensure_writer(), only_if_due=False)
        if done is None:
            self.stderr.write(message_text(CollectionErrorCode.ANOTHER_WRITES_NOW))
            sys.exit(3)
        if done.error:
            self.stderr.write(done.error)
            sys.exit(1)
        self.stdout.write(
            f"{count(done.snapshots, 'refresh', 'refreshes')} in {count(done.flushes, 'flush', 'flushes')}"
        )

    def _status(self) -> None:
        now = standing()
        since = f" since {now.waiting_since:%Y-%m-%d %H:%M:%S} UTC" if now.waiting_since else ""
        last = f"{now.flushed_at:%Y-%m-%d %H:%M:%S} UTC" if now.flushed_at else "never"
        self.stdout.write(f"last flush: {last}")
        self.stdout.write(
            f"waiting: {count(now.waiting_snapshots, 'refresh', 'refreshes')}, {size(now.waiting_bytes)}{since}"
        )
        lost = f", last at {now.lost_at:%Y-%m-%d %H:%M:%S} UTC" if now.lost_at else ""
        self.stdout.write(
            f"lost: {count(now.lost_rows, 'row')} of {count(now.lost_snapshots, 'refresh', 'refreshes')}{lost}"
        )
        for sentence in filter(None, (now.missing, now.error)):
            self.stderr.write(sentence)
        if now.missing or now.error:
            sys.exit(1)
