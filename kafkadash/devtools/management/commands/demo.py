"""`manage.py demo`: everything at once, in the foreground, until Ctrl-C."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from kafkadash.devtools.demo import supervisor as run
from kafkadash.devtools.demo.supervisor import DEFAULT_RACKS, DemoOptions


class Command(BaseCommand):
    help = "Start kafkadash with a real Kafka cluster, PostgreSQL and Valkey; Ctrl-C stops everything."
    requires_system_checks = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=None, help="folder for data, logs and keys; default: var")
        parser.add_argument(
            "--port", type=int, help="web port; default: the last one, or the first free port from 8000"
        )
        parser.add_argument("--no-move", action="store_true", help="propose no drain and create no data for it")
        parser.add_argument(
            "--no-pipeline", action="store_true", help="do not start Spark: no history and forecasts, 1 GB less memory"
        )
        parser.add_argument(
            "--zookeeper", action="store_true", help="Kafka 3.9 with three ZooKeeper servers instead of controllers"
        )
        parser.add_argument("--reset", action="store_true", help="delete the data of an earlier demo in the folder")
        parser.add_argument(
            "--racks",
            type=lambda text: tuple(text.split(",")),
            default=DEFAULT_RACKS,
            help="one broker per rack name, default a,a,b,b,c; a drain needs at least five",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        os.umask(0o077)  # logs and lake name topics, groups and addresses; processes of the demo inherit it
        chosen = DemoOptions(
            folder=options["folder"] or Path(settings.VAR_DIR),
            port=options["port"],
            drain=not options["no_move"],
            reset=options["reset"],
            racks=tuple(options["racks"]),
            pipeline=not options["no_pipeline"],
            zookeeper=options["zookeeper"],
            given={name: value for name, value in os.environ.items() if name not in settings.NAMES_FROM_FILE},
        )
        sys.exit(run.run_demo(chosen, say=self._say, complain=self.stderr.write))

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
