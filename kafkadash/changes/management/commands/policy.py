"""``manage.py policy`` shows or sets a cluster's policy for change requests on the server."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kafkadash.accounts.errors import command_error
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.policy import FIELDS, change_policy, policy_of
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster

ACTOR = "command line"
_YES_OR_NO = {"yes": True, "no": False}
_NUMBERS, _SWITCHES = FIELDS[:4], FIELDS[4:]


class Command(BaseCommand):
    help = "Show the policy of a cluster, or change it immediately without a second administrator."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", help="slug of the cluster, as in its URL")
        for name in _NUMBERS:
            parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N")
        for name in _SWITCHES:
            parser.add_argument(f"--{name.replace('_', '-')}", choices=_YES_OR_NO)
        parser.add_argument("--reason", default="", help="shown in the audit log; required for a change")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none yet"
            raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=options["cluster"], known=known)
        values = {name: options[name] for name in FIELDS if options[name] is not None}
        values |= {name: _YES_OR_NO[values[name]] for name in _SWITCHES if name in values}
        if values and not options["reason"].strip():
            raise command_error(ChangeErrorCode.POLICY_REASON)
        try:
            change_policy(cluster, ACTOR, values, reason=options["reason"])
        except ChangeRefused as refused:
            raise CommandError(str(refused)) from None
        policy = policy_of(cluster)
        for name in FIELDS:
            self.stdout.write(f"{name.replace('_', '-')}: {getattr(policy, name)}")
