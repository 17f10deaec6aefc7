"""``manage.py segments check [URI]``, ``flush`` and ``status``: the files in which facts leave for the pipeline."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.accounts.errors import command_error, with_code
from kafkadash.core.formatting import format_size
from kafkadash.core.messages import choose_plural, coded
from kafkadash.export import flusher
from kafkadash.export.encoding import explain_missing
from kafkadash.export.errors import ExportErrorCode
from kafkadash.export.files import CheckedFiles, check_files
from kafkadash.export.outbox import read_standing
from kafkadash.export.places import PlaceUnknown, open_place


class Command(BaseCommand):
    help = "Checks segment files, writes waiting facts, or shows the status. Exit code 1: problems found; 2: bad input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_subparsers(dest="what", required=True)
        checks = what.add_parser("check", help="read all manifests and their files")
        checks.add_argument("uri", nargs="?", metavar="URI", help="folder of the segments; default: PIPELINE_URI")
        what.add_parser("flush", help="write waiting facts now")
        what.add_parser("status", help="show waiting and lost facts")

    def handle(self, *args: Any, **options: Any) -> None:
        unwritten = explain_missing()
        if options["what"] != "status" and unwritten:
            raise command_error(unwritten, returncode=2)
        match options["what"]:
            case "check":
                self._check(options["uri"] or flusher.segments_uri())
            case "flush":
                self._flush()
            case _:
                self._status()

    def _check(self, uri: str) -> None:
        checked, wrong = CheckedFiles(), 0
        try:
            where = open_place(uri)
            for message in check_files(where, datetime.now(UTC), checked):
                wrong += 1
                self.stderr.write(str(message))
        except PlaceUnknown as error:
            raise command_error(error.message, returncode=2) from error
        except OSError as error:
            fault = error.strerror or (str(error).splitlines() or ["no response"])[0].rstrip(".")
            raise command_error(ExportErrorCode.PLACE_UNKNOWN, uri=uri, fault=fault, returncode=2) from error
        if not checked.flushes and not wrong:
            raise command_error(ExportErrorCode.NO_SEGMENTS, uri=uri, returncode=2)
        found = ", ".join(
            (
                choose_plural("# flush|# flushes", checked.flushes),
                f"{choose_plural('# refresh|# refreshes', checked.snapshots)} ({checked.missing} without rows)",
                choose_plural("# file|# files", checked.files),
                choose_plural("# row|# rows", checked.rows),
            )
        )
        verdict = choose_plural("# problem|# problems", wrong) if wrong else "no problems"
        self.stdout.write(f"{found}: {verdict}")
        if wrong:
            sys.exit(1)

    def _flush(self) -> None:
        done = flusher.flush(flusher.ensure_writer(), only_if_due=False)
        if done is None:
            self.stderr.write(with_code(coded(ExportErrorCode.ANOTHER_WRITES_NOW)))
            sys.exit(3)
        if done.error:
            self.stderr.write(with_code(done.error))
            sys.exit(1)
        flushes = choose_plural("# flush|# flushes", done.flushes)
        self.stdout.write(f"{choose_plural('# refresh|# refreshes', done.snapshots)} in {flushes}")

    def _status(self) -> None:
        now = read_standing()
        since = f" since {now.waiting_since:%Y-%m-%d %H:%M:%S} UTC" if now.waiting_since else ""
        last = f"{now.flushed_at:%Y-%m-%d %H:%M:%S} UTC" if now.flushed_at else "never"
        self.stdout.write(f"last flush: {last}")
        waiting = choose_plural("# refresh|# refreshes", now.waiting_snapshots)
        self.stdout.write(f"waiting: {waiting}, {format_size(now.waiting_bytes)}{since}")
        last = f", last at {now.lost_at:%Y-%m-%d %H:%M:%S} UTC" if now.lost_at else ""
        lost = choose_plural("# refresh|# refreshes", now.lost_snapshots)
        self.stdout.write(f"lost: {choose_plural('# row|# rows', now.lost_rows)} of {lost}{last}")
        for message in filter(None, (now.missing, now.error)):
            self.stderr.write(with_code(message))
        if now.missing or now.error:
            sys.exit(1)
