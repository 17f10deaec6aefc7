"""``manage.py elect``: propose preferred leader elections, as ``kafka-leader-election`` runs them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from kafkadash.accounts.errors import command_error
from kafkadash.core.messages import CodedMessage
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.elections.kind import KIND
from kafkadash.elections.selection import entitle_selection, read_selection
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.monitoring.stored_commands import BAD, find_cluster
from kafkadash.short_runs.commands import ItemCommand, add_proposal_options


class Command(ItemCommand):
    help = (
        "Proposes to elect preferred leaders of partitions, a topic, a broker or all partitions. "
        "Exit code 2: bad input."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        scope = parser.add_mutually_exclusive_group(required=True)
        scope.add_argument("-p", "--partitions", nargs="+", metavar="TOPIC-PARTITION")
        scope.add_argument("--topic", metavar="TOPIC")
        scope.add_argument("--broker", type=int, metavar="ID", help="partitions whose preferred leader it is")
        scope.add_argument("--all-topic-partitions", action="store_true")
        add_proposal_options(parser)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        topic, broker = options["topic"], options["broker"]
        wanted: dict[str, Any] = {}
        title = "Elect preferred leaders"
        known = True
        if options["partitions"]:
            chosen = read_selection(cluster, " ".join(options["partitions"]))
            if isinstance(chosen, CodedMessage):
                raise command_error(chosen, returncode=BAD)
            wanted, title = {"selection": chosen}, entitle_selection(chosen)
        elif topic is not None:
            known = TopicState.objects.filter(cluster=cluster, name=topic).exists()
            wanted, title = {"topic": topic}, f"{title} of {topic}"
        elif broker is not None:
            known = BrokerState.objects.filter(cluster=cluster, broker_id=broker).exists()
            wanted, title = {"broker": broker}, f"{title} on broker {broker}"
        if not known:
            raise command_error(ElectionErrorCode.SCOPE_UNKNOWN, cluster=cluster.name, returncode=BAD)
        self.propose(cluster, KIND, wanted, title, options)
