"""``manage.py playground``: a real Kafka cluster on this machine for the demo, tests and experiments.

The command needs no database and no web process. The brokers keep running after ``up``; ``down`` stops them.
"""

from __future__ import annotations

import signal
import sys
import threading
from argparse import REMAINDER, ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.playground.cluster import TOOLS, KafkaPlayground, PlaygroundNodeStatus
from kafkadash.devtools.playground.consumers import GROUPS, RATE, PlaygroundConsumers
from kafkadash.devtools.playground.load import load_topics, produce_steadily

NODE_ACTIONS = {
    "stop-broker": "stop one broker (controlled shutdown)",
    "start-broker": "start a stopped broker",
    "kill-broker": "kill one broker (SIGKILL)",
    "kill-controller": "kill one controller (SIGKILL)",
    "start-controller": "start a stopped controller",
}


class Command(BaseCommand):
    help = "Start, stop and load a real Kafka cluster on loopback."
    requires_system_checks = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--folder", type=Path, default=None, help="folder of the cluster; default: playground in the var folder"
        )
        actions = parser.add_subparsers(dest="action", required=True)
        up = actions.add_parser("up", help="start the cluster; create it if there is none")
        up.add_argument("--brokers", type=int, help="number of brokers, default 5")
        up.add_argument(
            "--racks", type=lambda text: tuple(text.split(",")), help="rack of each broker, default a,a,b,b,c"
        )
        up.add_argument(
            "--controllers", type=int, choices=(1, 3), help="number of controllers; 1: combined with broker 1 (default)"
        )
        up.add_argument(
            "--zookeepers", type=int, choices=(1, 3), help="Kafka 3.9 with so many ZooKeeper servers, no controllers"
        )
        up.add_argument("--dirs", type=int, help="log directories per broker, default 1")
        up.add_argument("--reset", action="store_true", help="delete the folder's cluster first")
        down = actions.add_parser("down", help="stop all nodes")
        down.add_argument("--reset", action="store_true", help="also delete the cluster's data")
        actions.add_parser("status", help="show nodes, ports and memory")
        add = actions.add_parser("add-broker", help="add a broker to the running cluster, permanently")
        add.add_argument("--rack", help="rack of the broker; default: none")
        for name, text in NODE_ACTIONS.items():
            actions.add_parser(name, help=text).add_argument("node", type=int)
        tool = actions.add_parser("tool", help="run a Kafka command-line tool: tool topics -- --list")
        tool.add_argument("tool", choices=sorted(TOOLS))
        tool.add_argument("tool_args", nargs=REMAINDER, metavar="-- args")
        fill = actions.add_parser("load", help="create topics, fill them, keep writing")
        fill.add_argument("--topics", type=int, default=1)
        fill.add_argument("--partitions", type=int, default=6, help="partitions per topic")
        fill.add_argument("--rf", type=int, default=3, help="replication factor")
        fill.add_argument("--mb", type=float, default=0, help="MiB to produce now, over all topics, without replicas")
        fill.add_argument("--rate", type=float, default=0, help="bytes/s to produce until Ctrl-C")
        fill.add_argument("--prefix", default="load", help="topic names: PREFIX-1, PREFIX-2, …")

        consume = actions.add_parser("consume", help="run healthy and faulty consumer groups until Ctrl-C")
        consume.add_argument("--rate", type=float, default=RATE, help="records/s produced for them")

    def handle(self, *_: Any, **options: Any) -> None:
        folder = options["folder"] or Path(settings.VAR_DIR) / "playground"
        playground = KafkaPlayground(folder, detached=True, say=self.stdout.write)
        try:
            self._act(playground, options)
        except ServerError as error:
            raise CommandError(str(error)) from error

    def _act(self, playground: KafkaPlayground, options: dict[str, Any]) -> None:
        match options["action"]:
            case "up":
                if options["reset"]:
                    playground.reset()
                shape = ("brokers", "racks", "controllers", "dirs", "zookeepers")
                report = playground.up(**{name: options[name] for name in shape})
                self._print_nodes(list(report.nodes))
            case "down":
                (playground.reset if options["reset"] else playground.down)()
            case "status":
                self._print_nodes(playground.status())
            case "add-broker":
                playground.add_broker(options["rack"])
                self._print_nodes(playground.status())
            case "tool":
                self._tool(playground, options["tool"], options["tool_args"])
            case "load":
                self._load(playground, options)
            case "consume":
                self._consume(playground, options["rate"])
            case action:
                getattr(playground, action.replace("-", "_"))(options["node"])
                self._print_nodes(playground.status())

    def _print_nodes(self, nodes: list[PlaygroundNodeStatus]) -> None:
        self.stdout.write(f"{'node':>5}  {'roles':<18} {'rack':<5} {'address':<16} {'pid':>8} {'memory':>8}")
        for node in nodes:
            address = f"127.0.0.1:{node.broker_port or node.controller_port}"
            pid = str(node.pid) if node.pid is not None else "stopped"
            memory = f"{node.memory_bytes / 1e6:.0f} MB" if node.memory_bytes is not None else "-"
            line = f"{node.node_id:>5}  {node.roles:<18} {node.rack or '-':<5} {address:<16} {pid:>8} {memory:>8}"
            self.stdout.write(line)

    def _tool(self, playground: KafkaPlayground, name: str, args: list[str]) -> None:
        done = playground.tool(name, args[1:] if args[:1] == ["--"] else args)
        self.stdout.write(done.stdout, ending="")
        self.stderr.write(done.stderr, lambda text: text, ending="")
        if done.returncode != 0:
            sys.exit(done.returncode)

    def _load(self, playground: KafkaPlayground, options: dict[str, Any]) -> None:
        report = load_topics(
            playground.bootstrap,
            options["topics"],
            options["partitions"],
            options["rf"],
            options["mb"],
            prefix=options["prefix"],
            say=self.stdout.write,
        )
        rate = options["rate"]
        if rate <= 0:
            return
        stop = _told_to_stop()
        self.stdout.write(f"Producing {rate:.0f} bytes/s until Ctrl-C")
        written = produce_steadily(playground.bootstrap, report.topics, rate, stop)
        self.stdout.write(
            f"Produced {written.delivered / 1e6:.1f} MB; {written.dropped / 1e6:.1f} MB were not accepted"
        )

    def _consume(self, playground: KafkaPlayground, rate: float) -> None:
        stop = _told_to_stop()
        rf = min(3, len(playground.cluster.brokers))
        with PlaygroundConsumers(playground.bootstrap, rate=rate, rf=rf, say=self.stdout.write):
            for each in GROUPS:
                self.stdout.write(f"{each.group:<20} {each.behaviour:<10} reads {each.topic}")
            self.stdout.write(f"Producing {rate:g} records/s until Ctrl-C")
            stop.wait()


def _told_to_stop() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
