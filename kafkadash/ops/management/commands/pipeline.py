"""``manage.py pipeline``: the Spark application as a process of its own, on the folder that the settings name.

The command replaces itself by that process: Django never holds a Spark session, and Spark never Django or its secrets.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from kafkadash.core.environment import drop_secrets

ACTIONS = {
    "run": "process segments until stopped",
    "once": "process the waiting segments, then exit",
    "backfill": "compute the history of a period again from retained segments",
    "status": "show the pipeline's state; exit code 1: not running, 2: a requirement is missing",
}


class Command(BaseCommand):
    help = "Run the data pipeline, or show its state."
    requires_system_checks = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--uri", default=None, help="folder of the pipeline; default: PIPELINE_URI")
        actions = parser.add_subparsers(dest="action", required=True)
        for name, text in ACTIONS.items():
            action = actions.add_parser(name, help=text, description=text)
            if name == "run":
                action.add_argument("--every", type=float, help="seconds between checks for new segments; default 0.5")
            if name == "backfill":
                action.add_argument(
                    "--from", dest="begin", required=True, help="start, a date or time in UTC: 2026-11-22T14:00"
                )
                action.add_argument("--to", dest="end", required=True, help="end, exclusive, in UTC")

    def handle(self, *_: Any, **options: Any) -> None:
        arguments = [options["action"], "--uri", options["uri"] or settings.PIPELINE_URI]
        if options.get("every") is not None:
            arguments += ["--every", str(options["every"])]
        if options["action"] == "backfill":
            arguments += [f"--from={options['begin']}", f"--to={options['end']}"]
        self.stdout.flush()
        command = [sys.executable, "-m", "kafkadash.pipeline", *arguments]
        os.execve(sys.executable, command, drop_secrets(os.environ))  # noqa: S606  no shell is wanted
