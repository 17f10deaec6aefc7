"""`manage.py provision_demo`: the part of the demo that needs the database; `manage.py demo` calls it."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kafkadash.devtools.demo.drain import propose_drain
from kafkadash.devtools.demo.folder import DemoFolder
from kafkadash.devtools.demo.people import PEOPLE
from kafkadash.devtools.demo.provision import provision
from kafkadash.devtools.embedded.process import ServerError


class Command(BaseCommand):
    help = "Create the demo's users and register its cluster; called by the demo command."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("bootstrap", help="addresses of the playground's brokers")
        parser.add_argument("kafka_id", help="cluster ID of the playground")
        parser.add_argument("--zookeeper", default="", help="addresses of its ZooKeeper servers, if it has any")
        parser.add_argument("--drain", action="store_true", help="also propose a drain as alice")

    def handle(self, *args: Any, **options: Any) -> None:
        passwords = DemoFolder(Path(settings.VAR_DIR)).sign_ins(tuple(PEOPLE))
        try:
            summary = provision(options["bootstrap"], options["kafka_id"], passwords, options["zookeeper"])
            if options["drain"]:
                summary = f"{summary}; {propose_drain()}"
            self.stdout.write(summary)
        except ServerError as error:
            raise CommandError(str(error)) from error
