"""``manage.py health``: the checks of /readyz for processes that serve no pages; exit code 1 when one is bad."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.accounts.errors import command_error
from kafkadash.ops import health
from kafkadash.ops.errors import OperationErrorCode

NAMES = ("database", "redis", "beat", "collection", "runs")


class Command(BaseCommand):
    help = "Check database, Redis, beat, collection and runs; exit code 1 if a check is bad."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(NAMES))

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = options["checks"] or NAMES
        if unknown := sorted(set(wanted) - set(NAMES)):
            raise command_error(OperationErrorCode.CHECK_UNKNOWN, name=unknown[0], known=", ".join(NAMES))
        found = {name: check for name, check in health.run_checks().items() if name in wanted}
        for name, check in found.items():
            age = f" ({check.age_s:g} s)" if check.age_s is not None else ""
            self.stdout.write(f"{name}: {check.state}: {check.sentence}{age}")
        if not health.is_ready(found):
            sys.exit(1)
