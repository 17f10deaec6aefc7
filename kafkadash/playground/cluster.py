"""A real Kafka cluster in KRaft mode on loopback: one folder, one process for each node.

    playground = Playground(Path("var/playground"))
    playground.up(brokers=5, racks=("a", "a", "b", "b", "c"))
    playground.bootstrap          # "127.0.0.1:20411,127.0.0.1:27310,..."
    playground.add_broker("c")    # 6
    playground.down()

The folder holds the cluster's description, its data and its logs; `up` on the same folder starts the same cluster
again. All processes are in the folder's ledger, so any later process can stop one node or all of them.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkadash.embedded.errors import ServerErrorCode
from kafkadash.embedded.files import write_atomically
from kafkadash.embedded.process import (
    Child,
    ServerError,
    reap_leftovers,
    recorded,
    spawn,
    stop_all,
    wait_all,
)
from kafkadash.playground.errors import PlaygroundErrorCode
from kafkadash.playground.load import wait_for_brokers
from kafkadash.playground.logs import rotated_size
from kafkadash.playground.prepare import prepare_runtime, says_started
from kafkadash.playground.properties import node_properties
from kafkadash.playground.runtime import Runtime
from kafkadash.playground.security import Secured
from kafkadash.playground.state import (
    NODE_NAME,
    Cluster,
    Layout,
    Node,
    choose_ports,
    difference,
    grown,
    new_cluster,
    read_cluster,
    write_cluster,
)
from kafkadash.playground.storage import format_nodes
from kafkadash.playground.tool import run_tool

READY_SECONDS = 90.0
STOP_SECONDS = 20.0
VOTER_STOP_SECONDS = 1.0
# Brokers go before controllers: a broker that finds no controller takes 25 s to give up.
BROKER_STAGE, COMBINED_STAGE, VOTER_STAGE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """`pid` and `memory_bytes` (resident) are None when the node does not run; ports are loopback TCP ports."""

    node_id: int
    roles: str
    rack: str | None
    broker_port: int | None
    controller_port: int | None
    pid: int | None
    memory_bytes: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class UpReport:
    """How a start went: `seconds` for all nodes together; fetching and other one-time preparation is apart."""

    seconds: float
    prepare_seconds: float
    nodes: tuple[NodeStatus, ...]
    bootstrap: str


class Playground:
    """One playground folder. Making the object does nothing; see the module's text.

    `secured` gives the brokers of a new cluster further listeners; it is to be given again for the same folder.
    `detached` nodes outlive this process (the command line); otherwise they belong to it, and another process that
    calls `up` on the folder is told so. `say` gets one readable line for each step.
    """

    def __init__(
        self,
        folder: Path,
        *,
        detached: bool = False,
        say: Callable[[str], None] | None = None,
        secured: Secured | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.detached = detached
        self.secured = secured
        self.layout = Layout(self.folder)
        self._say = say or (lambda _: None)

    def up(
        self,
        brokers: int | None = None,
        racks: Sequence[str] | None = None,
        controllers: int | None = None,
        dirs: int | None = None,
    ) -> UpReport:
        """Start the folder's cluster, making it first if there is none, and return when every broker serves.

        Options left out mean: as the folder's cluster is, else 5 brokers in racks a,a,b,b,c, one combined controller,
        one log directory. Brokers that were added to it since start too. Raises ServerError with a sentence; nodes
        started by a failed call are stopped, logs stay.
        """
        began = time.monotonic()
        if "," in str(self.folder):
            raise ServerError(PlaygroundErrorCode.PLAYGROUND_HAS_COMMA, folder=self.folder)
        runtime = prepare_runtime(self._say)
        prepared = time.monotonic()
        if not self.detached:
            reap_leftovers(self.folder, STOP_SECONDS, names=set(self._live()))
        cluster = self._existing(brokers, racks, controllers, dirs)
        if cluster is None:
            # What an interrupted first start may have left carries ids that nobody knows any more.
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            further = self.secured.listeners if self.secured else ()
            cluster = new_cluster(brokers, racks, controllers or 1, dirs or 1, further)
        cluster = self._configure(choose_ports(cluster, set(self._live())), runtime)
        running = self._live()
        self._join([node for node in cluster.nodes if node.name not in running], cluster, cluster.brokers, runtime)
        report = UpReport(time.monotonic() - prepared, prepared - began, tuple(self.status()), cluster.bootstrap)
        self._say(f"Kafka: {len(cluster.brokers)} brokers ready in {report.seconds:.1f} s at {cluster.bootstrap}")
        return report

    def add_broker(self, rack: str | None = None) -> int:
        """Give the running cluster a broker more; its id, when it serves. It stays one of the folder's cluster.

        It is remembered before it is started: where this call is killed in between, `up` or `start_broker` starts it,
        as it does after a start that failed. Raises ServerError.
        """
        cluster, live = self.cluster, self._live()
        serving = sum(node.name in live for node in cluster.controllers)
        if serving * 2 <= len(cluster.controllers):
            raise ServerError(PlaygroundErrorCode.NOBODY_TO_JOIN, running=serving, all=len(cluster.controllers))
        runtime = prepare_runtime(self._say)
        cluster = self._configure(choose_ports(grown(cluster, rack), set(live)), runtime)
        node = _pick(cluster.added[-1], cluster.brokers, "broker")
        try:
            self._join([node], cluster, [node], runtime)
        except ServerError as error:
            raise ServerError(PlaygroundErrorCode.ADDED_BUT_NOT_STARTED, broker=node.node_id, fault=error) from error
        self._say(f"Kafka: broker {node.node_id} serves and holds nothing yet")
        return node.node_id

    def down(self) -> None:
        """Stop all nodes: brokers first, then controllers.

        Of several controllers the leader waits 5 s for a successor that cannot come. Everything a controller has
        acknowledged is on its disk, so it is not left to wait.
        """
        nodes = self._recorded()
        stop_all([child for child in nodes if child.entry.stage != VOTER_STAGE], STOP_SECONDS)
        stop_all([child for child in nodes if child.entry.stage == VOTER_STAGE], VOTER_STOP_SECONDS)

    def reset(self) -> None:
        """Stop all nodes and remove the cluster: its data, configuration and logs."""
        self.down()
        for name in ("data", "config", "logs"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.layout.state.unlink(missing_ok=True)

    def status(self) -> list[NodeStatus]:
        """Every node of the folder's cluster, running or not."""
        live = self._live()
        return [self._node_status(node, live.get(node.name)) for node in self.cluster.nodes]

    @property
    def cluster(self) -> Cluster:
        """The folder's cluster; ServerError when there is none yet."""
        cluster = read_cluster(self.folder)
        if cluster is None:
            raise ServerError(PlaygroundErrorCode.NO_PLAYGROUND, folder=self.folder)
        return cluster

    @property
    def bootstrap(self) -> str:
        """All brokers, host:port joined by commas."""
        return self.cluster.bootstrap

    def stop_broker(self, node_id: int) -> None:
        """Orderly stop: the broker hands its leaderships over first."""
        self._running(self._broker(node_id)).stop(STOP_SECONDS)

    def kill_broker(self, node_id: int) -> None:
        """SIGKILL; the cluster notices after the session timeout of 3 s."""
        self._running(self._broker(node_id)).kill()

    def start_broker(self, node_id: int) -> None:
        """Start a stopped broker and return when it serves."""
        self._start_again(self._broker(node_id))

    def kill_controller(self, node_id: int) -> None:
        """SIGKILL to a controller (a combined node loses its broker too)."""
        self._running(self._controller(node_id)).kill()

    def start_controller(self, node_id: int) -> None:
        """Start a stopped controller and return when it serves."""
        self._start_again(self._controller(node_id))

    def launch(self, node_id: int) -> tuple[Child, Callable[[], bool]]:
        """Start a stopped node where it was, without waiting; its process, and what tells whether it serves.

        For who keeps nodes alive while others are away: a broker serves only when a controller does.
        """
        node = _pick(node_id, list(self.cluster.nodes), "node")
        if node.name in self._live():
            raise ServerError(PlaygroundErrorCode.NODE_RUNS, node=node.node_id)
        stop_all([child for child in self._recorded() if child.name == node.name])  # its entry, when it crashed
        return self._spawn(node, prepare_runtime(self._say))

    def process(self, node_id: int) -> Child:
        """The running process of a broker or controller, for tests that stop or freeze it."""
        return self._running(_pick(node_id, list(self.cluster.nodes), "node"))

    def tool(self, name: str, args: Sequence[str], timeout: float | None = 120.0) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own commands against this cluster; see `tool.run_tool`."""
        return run_tool(name, args, self.bootstrap, timeout=timeout)

    # --- making and starting ---

    def _existing(
        self, brokers: int | None, racks: Sequence[str] | None, controllers: int | None, dirs: int | None
    ) -> Cluster | None:
        cluster = read_cluster(self.folder)
        if cluster is None:
            return None
        if other := difference(cluster, brokers, racks, controllers, dirs):
            what, have, want = other
            raise ServerError(
                PlaygroundErrorCode.PLAYGROUND_IS_OTHER, folder=self.folder, what=what, have=have, want=want
            )
        return cluster

    def _configure(self, cluster: Cluster, runtime: Runtime) -> Cluster:
        try:
            for name in ("config", "logs"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            for node in cluster.nodes:
                text = node_properties(
                    node_id=node.node_id,
                    broker_port=node.broker_port,
                    controller_port=node.controller_port,
                    rack=node.rack,
                    log_dirs=self.layout.log_dirs(cluster, node),
                    metadata_dir=self.layout.metadata_dir(node),
                    controller_ports=[controller.controller_port or 0 for controller in cluster.controllers],
                    brokers=len(cluster.brokers),
                    secured=self.secured,
                    secured_ports=node.secured_ports,
                )
                write_atomically(self.layout.properties(node), text)
            format_nodes(cluster, self.layout, runtime, self.secured.scram_arguments() if self.secured else ())
            # Only a cluster that was formatted is remembered: ids in this file and on the disk always agree.
            write_cluster(self.folder, cluster)
        except OSError as error:
            raise ServerError(
                ServerErrorCode.FILES_NOT_WRITTEN, files="The playground's files", folder=self.folder, fault=error
            ) from error
        return cluster

    def _join(self, nodes: Sequence[Node], cluster: Cluster, expected: Sequence[Node], runtime: Runtime) -> None:
        """Start nodes and return when the cluster lists the expected brokers; stop them again when it does not."""
        started = self._start(nodes, runtime)
        try:
            wait_for_brokers(cluster.bootstrap, [node.node_id for node in expected], READY_SECONDS)
        except BaseException:
            stop_all(started, STOP_SECONDS)
            raise

    def _start(self, nodes: Sequence[Node], runtime: Runtime) -> list[Child]:
        """Start nodes and return when they serve; stop them again when one does not.

        Controllers without a broker serve before any broker starts. While several of them elect for the first time,
        what one leader wrote may be taken back by the next, and a broker that had read who the voters are by then does
        not read it again (Kafka 4.3.1, KRaftControlRecordStateMachine, truncateNewEntries): it does not get to serve,
        or finds no controller any more when the leader changes next.
        """
        stop_all([child for child in self._recorded() if not child.alive()])  # their entries, when they crashed
        voters = [node for node in nodes if node.broker_port is None]
        started: list[Child] = []
        try:
            for together in (voters, [node for node in nodes if node not in voters]):
                pending = []
                # A combined node first: a broker that comes before it waits and retries.
                for node in sorted(together, key=lambda node: node.controller_port is None):
                    pending.append(self._spawn(node, runtime))
                    started.append(pending[-1][0])
                wait_all(pending, READY_SECONDS)
        except BaseException:
            stop_all(started, STOP_SECONDS)
            raise
        return started

    def _spawn(self, node: Node, runtime: Runtime) -> tuple[Child, Callable[[], bool]]:
        """The node's process, and what tells whether it serves."""
        log = self.layout.log(node.name)
        offset = rotated_size(log)
        child = spawn(
            self.folder,
            node.name,
            runtime.server_command(self.layout.properties(node)),
            log=log,
            stage=_stage(node),
            detached=self.detached,
        )
        return child, says_started(log, offset)

    def _start_again(self, node: Node) -> None:
        if node.name in self._live():
            raise ServerError(PlaygroundErrorCode.NODE_RUNS, node=node.node_id)
        cluster = self.cluster
        runtime = prepare_runtime(self._say)
        others = {other.name for other in cluster.nodes if other.node_id != node.node_id}
        self._configure(choose_ports(cluster, others), runtime)
        self._start([node], runtime)

    # --- looking up ---

    def _recorded(self) -> list[Child]:
        """Nodes in the folder's ledger, also crashed ones; its other processes are not this class's business."""
        return [
            Child(child.state_dir, child.entry, self.layout.log(child.name))
            for child in recorded(self.folder)
            if NODE_NAME.fullmatch(child.name)
        ]

    def _live(self) -> dict[str, Child]:
        """Running nodes by name."""
        return {child.name: child for child in self._recorded() if child.alive()}

    def _broker(self, node_id: int) -> Node:
        return _pick(node_id, self.cluster.brokers, "broker")

    def _controller(self, node_id: int) -> Node:
        return _pick(node_id, self.cluster.controllers, "controller")

    def _running(self, node: Node) -> Child:
        child = self._live().get(node.name)
        if child is None:
            raise ServerError(PlaygroundErrorCode.NODE_DOES_NOT_RUN, node=node.node_id)
        return child

    def _node_status(self, node: Node, child: Child | None) -> NodeStatus:
        return NodeStatus(
            node_id=node.node_id,
            roles=node.roles,
            rack=node.rack,
            broker_port=node.broker_port,
            controller_port=node.controller_port,
            pid=child.pid if child is not None else None,
            memory_bytes=child.memory_bytes() if child is not None else None,
            log=self.layout.log(node.name),
        )


def _pick(node_id: int, nodes: list[Node], role: str) -> Node:
    for node in nodes:
        if node.node_id == node_id:
            return node
    known = ", ".join(str(node.node_id) for node in nodes)
    raise ServerError(PlaygroundErrorCode.NODE_UNKNOWN, role=role, node=node_id, known=known)


def _stage(node: Node) -> int:
    if node.controller_port is None:
        return BROKER_STAGE
    return COMBINED_STAGE if node.broker_port is not None else VOTER_STAGE
