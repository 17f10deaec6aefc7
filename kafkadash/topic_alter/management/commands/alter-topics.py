"""``manage.py alter-topics``: drafts of the steps that alter topics.

A worker plans a reassignment, so all are submitted on their page.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from kafkadash.accounts.errors import ActionForbidden, command_error
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.models import Cluster
from kafkadash.configs.stored import OwnerKind, load_keys
from kafkadash.monitoring.stored_commands import BAD, add_output_options, find_cluster
from kafkadash.planning.options import FIRST_RATE, format_megabytes
from kafkadash.short_runs.commands import ItemCommand, find_proposer
from kafkadash.topic_alter.alteration import create_steps
from kafkadash.topic_alter.forms import AlterForm
from kafkadash.topics.creation import load_brokers


class Command(ItemCommand):
    help = (
        "Makes drafts that alter several aspects of topics (KIP-179), as steps of one change; -1 is no change. "
        "Exit code 2: bad input, nothing is created."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="+", metavar="TOPIC")
        parser.add_argument("--partitions", default="", metavar="N")
        parser.add_argument("--replication-factor", default="", metavar="N")
        parser.add_argument(
            "--replica-assignment", default="", metavar="1:2,2:3", help="of every partition of one topic"
        )
        parser.add_argument("--throttle", default=format_megabytes(FIRST_RATE), metavar="MB/s")
        parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
        parser.add_argument("--delete-config", action="append", default=[], metavar="KEY")
        parser.add_argument("--user", required=True, metavar="NAME", help="author of the change, an operator")
        add_output_options(parser)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster, user = find_cluster(options["cluster"]), find_proposer(options["user"])
        form = self._read_form(cluster, options)
        try:
            drafts = create_steps(cluster, user, form.alteration)
        except (ChangeRefused, ActionForbidden) as refused:
            raise command_error(refused.message, returncode=BAD) from refused
        page = "changes:steps" if len(drafts) > 1 else "changes:request"
        address = reverse(page, args=[drafts[0].pk])
        if options["json"]:
            steps = [{"change": draft.pk, "kind": draft.kind, "title": draft.title} for draft in drafts]
            self.stdout.write(json.dumps({"address": address, "steps": steps}, indent=2, ensure_ascii=False))
            return
        for draft in drafts:
            self.stdout.write(f"#{draft.pk} {draft.title}")
        self.stdout.write(f"Submit at {address}")

    def _read_form(self, cluster: Cluster, options: Mapping[str, Any]) -> AlterForm:
        """Raises CodedCommandError."""
        typed = {
            "topics": "\n".join(options["names"]),
            "partitions": options["partitions"],
            "factor": options["replication_factor"],
            "assignment": options["replica_assignment"],
            "throttle": options["throttle"],
            "added": "\n".join(options["config"]),
            "removed": "\n".join(options["delete_config"]),
        }
        keys = load_keys(cluster, OwnerKind.TOPIC)
        form = AlterForm(typed, cluster=cluster, brokers=load_brokers(cluster), keys=keys)
        if not form.is_valid():
            self.refuse_form(cluster, form)
        return form
